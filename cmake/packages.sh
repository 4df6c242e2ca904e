# Packages that the launcher installs, of Debian and of the Python package index. Read by ./draftproof.

# Debian's package | who needs it | how to see that it is there | what it is for
#   program: without it nothing runs. lint: only ./draftproof lint. mpi: only ./draftproof build --with-mpi. dash: only
#   ./draftproof dash, and the tests of it. web: only ./draftproof web. browser: only ./draftproof web --test.
#   figures, tests: optional, said in one line if absent.
packages=(
  "g++                  program  command:g++                            C++20 compiler"
  "cmake                program  command:cmake                          configures the build"
  "ninja-build          program  command:ninja                          builds"
  "libcli11-dev         program  header:CLI/CLI.hpp                     command line"
  "nlohmann-json3-dev   program  header:nlohmann/json.hpp               JSON results, safetensors headers"
  "catch2               program  header:catch2/catch.hpp                test framework (version 2)"
  "librandom123-dev     program  header:Random123/philox.h              what the tests compare our Philox with"
  "libhwy-dev           program  header:hwy/highway.h                   vector instructions, chosen at run time"
  "libboost-dev         program  header:boost/multiprecision/cpp_int.hpp  statistics and exact rationals"
  "libboost-context-dev program  header:boost/context/fiber.hpp         fibres, for the CPU executor of kernels"
  "libssl-dev           program  header:openssl/evp.h                   SHA-256 of result files"
  "zlib1g-dev           program  header:zlib.h                          arrays of NumPy, .npz"
  "libpcre2-dev         program  header:pcre2.h                         regular expressions with Unicode, for tokenizers"
  "libutf8proc-dev      program  header:utf8proc.h                      Unicode's composed form, for tokenizers"
  "libeigen3-dev        program  header:eigen3/Eigen/Core               least squares, in fits of the cost model"
  "libtomlplusplus-dev  program  header:toml++/toml.h                   presets and scenarios of the simulator"
  "libsqlite3-dev       program  header:sqlite3.h                       rows of sweeps and experiments"
  "libopenmpi-dev       mpi      command:mpicxx                         sweeps over several machines"
  "openmpi-bin          mpi      command:mpirun                         starts the processes of such a sweep"
  "libglfw3-dev         dash     header:GLFW/glfw3.h                    windows of the dashboard"
  "libgl-dev            dash     header:GL/gl.h                         what is drawn in them"
  "libgl1-mesa-dri      dash     file:/usr/lib/*/dri/swrast_dri.so      the same without a GPU"
  "libpng-dev           dash     header:png.h                           screenshots"
  "xvfb                 dash     command:Xvfb                           a display where there is none"
  "emscripten           web      command:em++                           WebAssembly, for the dashboard in a browser"
  "chromium             browser  command:chromium                       the tests of it, without a screen"
  "gnuplot-nox          figures  command:gnuplot                        figures as SVG"
  "python3              tests    command:python3                        tests against other programs"
  "python3-venv         tests    module:ensurepip                       a place for the Python packages below"
  "clang-format         lint     command:clang-format                   source format"
)
# From the Python package index, into build/python: the tests read and write traces with them, and the Python module is built
# and tested.
python_packages="numpy safetensors pytest>=7.4 pytest-xdist>=3.6 nanobind>=2.4"

# Static analysis, from the same index: version 16 of Debian takes four times as long, since it looks into the headers of the
# system too, and version 14 cannot read the CPU executor.
clang_tidy_package=clang-tidy==23.1.4
python_lint_packages="ruff==0.17.6 mypy==2.4.1"

# Prints the names of the packages of the groups "$1" (words) that are not there.
missing_packages() {
  local groups=$1 entry name group probe purpose headers=""
  for entry in "${packages[@]}"; do
    read -r name group probe purpose <<<"$entry"
    [[ " $groups " == *" $group "* ]] || continue
    case $probe in
      command:*) command -v "${probe#*:}" >/dev/null || echo "$name" ;;
      file:*) compgen -G "${probe#*:}" >/dev/null || echo "$name" ;;
      module:*) python3 -I -c "import ${probe#*:}" 2>/dev/null || echo "$name" ;;
      header:*)
        if command -v g++ >/dev/null; then
          headers+="#if !__has_include(<${probe#*:}>)"$'\n'"missing $name"$'\n'"#endif"$'\n'
        else
          echo "$name"
        fi ;;
    esac
  done
  # One run of the preprocessor answers for all headers.
  if [[ -n $headers ]]; then
    g++ -std=c++20 -x c++ -E -P - <<<"$headers" | sed -n 's/^missing //p'
  fi
}

install_packages() {  # names
  local as_root=() log=$root/build/install.log
  command -v apt-get >/dev/null || return 1
  if [[ $EUID != 0 ]]; then
    sudo -n true 2>/dev/null || return 1
    as_root=(sudo -n)
  fi
  note "installing $*"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update >"$log" 2>&1 || true  # without a network the packages may still be in the cache
  "${apt[@]}" install -y --no-install-recommends "$@" >>"$log" 2>&1 </dev/null && return 0
  tail -n 20 "$log" >&2
  return 1
}

# Makes sure of the packages of some groups (words); exits where one without which we cannot go on stays missing. Those of
# the groups "$2" are said to be missing, and are done without.
require_packages() {
  local groups=$1 optional=" ${2:-} " stamp known="" missing entry name group purpose required=() commands=""
  stamp=$root/build/.packages-${groups// /-}
  if [[ -f $stamp ]]; then known=$(<"$stamp"); fi
  if [[ $known == "${packages[*]}" ]]; then return; fi
  mkdir -p "$root/build"
  exec 8>"$root/build/.packages.lock"
  flock 8
  missing=$(missing_packages "$groups")
  # shellcheck disable=SC2086  # names have no spaces
  if [[ -n $missing ]] && install_packages $missing; then missing=$(missing_packages "$groups"); fi
  exec 8>&-
  for entry in "${packages[@]}"; do
    read -r name group _ purpose <<<"$entry"
    [[ $'\n'$missing$'\n' == *$'\n'$name$'\n'* ]] || continue
    case $group in
      figures) note "$name is not installed: no figures will be drawn" ;;
      tests) note "$name is not installed: the tests that need it will be skipped" ;;
      *)
        if [[ $optional == *" $group "* ]]; then
          note "$name is not installed: the tests that need it will be skipped"
          continue
        fi
        required+=("$name ($purpose)"); commands+=" $name" ;;
    esac
  done
  if ((${#required[@]})); then
    local list
    list=$(printf ', %s' "${required[@]}")
    if command -v apt-get >/dev/null; then
      fail 2 "these packages are missing: ${list:2}; install them as root: apt-get install$commands"
    fi
    fail 2 "these packages are missing: ${list:2}; the names are Debian's, install what your system calls them"
  fi
  printf '%s' "${packages[*]}" >"$stamp"
}

# Sets DRAFTPROOF_PYTHON to an interpreter with python_packages, if one can be had.
find_python() {
  local folder=$root/build/python stamp=$root/build/python/.packages
  if [[ -n ${DRAFTPROOF_PYTHON:-} ]] || ! command -v python3 >/dev/null; then return; fi
  exec 8>"$root/build/.python.lock"
  flock 8
  if [[ ! -f $stamp || $(<"$stamp") != "$python_packages" ]]; then
    say "installing the Python packages $python_packages into build/python"
    # shellcheck disable=SC2086
    if python3 -I -m venv --clear --system-site-packages "$folder" >"$root/build/python.log" 2>&1 &&
      "$folder/bin/python" -I -m pip install --quiet --disable-pip-version-check --retries 1 $python_packages \
        >>"$root/build/python.log" 2>&1; then
      printf '%s' "$python_packages" >"$stamp"
    else
      note "the Python packages $python_packages could not be installed (build/python.log):" \
        "the tests that need them will be skipped"
    fi
  fi
  exec 8>&-
  if [[ -f $stamp ]]; then
    export DRAFTPROOF_PYTHON=$folder/bin/python PATH=$folder/bin:$PATH
  fi
}
