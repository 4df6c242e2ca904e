# The verbs test and test-python. Read by ./draftproof.

# Prepares what tests need beside the compiler; sets module_python where the Python module can be built.
prepare_tests() {
  require_packages "program figures tests dash" dash
  fetch imgui || note "the tests of the dashboard will be skipped"
  fetch xgrammar || note "the tests of grammars will be skipped"
  fetch jinja || note "the tests of chat templates will be skipped"
  find_python
  test_options=("-DDRAFTPROOF_ALL_TESTS=$all_tests")
  use_module || note "the tests of the Python module will be skipped"
}

# Under sanitizers not the programs, whose tests run in release, nor what the tests' own lines are compiled to, which is release's;
# the stamp is that of the last target.
build_tests() {  # preset
  build release all
  if [[ $1 == release ]]; then return; fi
  local test_options=("${test_options[@]}" "-DDRAFTPROOF_TEST_OBJECTS=$root/build/release/test_objects.txt")
  local sanitized=(draftproof_tests draftproof_fuzz)
  if [[ $all_tests == ON ]]; then sanitized=(all draftproof_fuzz); fi
  if [[ -n $module_python ]]; then sanitized=(_core "${sanitized[@]}"); fi
  build asan "${sanitized[@]}"
}

run_ctest() {  # preset, arguments of ctest
  start_display
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  # A quarter of the time of tests that allocate much went into stacks of allocations and 256 MB of freed blocks.
  export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=4:quarantine_size_mb=4:thread_local_quarantine_size_kb=64}
  ctest --test-dir "$root/build/$1" --output-on-failure --no-tests=error -j "$(($(nproc) + 1))" "${@:2}"
}

# Says how long a step took.
timed() {  # name command...
  local begin=$SECONDS status=0
  "${@:2}" || status=$?
  note "$1: $((SECONDS - begin)) s$( ((status == 0)) || echo ", failed" )"
  return "$status"
}

# So that a verb that fails ends itself alone.
in_subshell() ( "$@" )

# A check of --all that fails does not keep the later ones from running: their hours are not to be spent twice.
failed_checks=()
check() {  # name command...
  local status=0
  timed "$@" || status=$?
  if ((status)); then
    failed_checks+=("$1")
    [[ $all_tests == ON ]] || exit "$status"
  fi
}

# Runs two commands side by side, since neither keeps all cores busy; what the first says comes behind. Fails where either does.
side_by_side() {  # command... -- command...
  local status=0 log=$root/build/side_by_side.log pid first=()
  while [[ $1 != -- ]]; do first+=("$1"); shift; done
  "${first[@]}" >"$log" 2>&1 &
  pid=$!
  "${@:2}" || status=$?
  wait "$pid" || status=$?
  cat "$log"
  return "$status"
}

check_sanitized() {  # inputs a reader, calls
  timed "sanitizer tests" run_ctest asan || return
  timed "damaged files" "$root/build/asan/draftproof_fuzz" all "$1" || return
  if [[ -n $module_python ]]; then timed "hostile calls" hostile_calls --calls "$2"; fi
}

check_module() {
  if [[ -n $module_python ]]; then timed "tests of the Python module" python_tests "$root/python/tests"; fi
}

# Servers of today's engines on loopback: fails where one deviates in what its engine.toml does not name.
audit_servers() (
  fetch smollm2 && (experiment engines --servers) || (($? == 4))  # 4: a busy machine did not get far enough
)

# Everything that stands between a change and main: both builds with their tests, the Python module's tests and hostile calls,
# damaged files. With --all what is run by hand before a release, too.
test_everything() {
  local inputs=2500 calls=20000
  if [[ $all_tests == ON ]]; then inputs=20000 calls=1000000; fi
  timed "release build" build_tests release || exit
  if [[ $all_tests == ON ]]; then timed "programs of faults" build release faults || exit; fi
  check "release tests, sanitizer build" side_by_side timed "release tests" run_ctest release -- \
    timed "sanitizer build" in_subshell build_tests asan
  check "sanitizer tests, damaged files, hostile calls and the Python module" side_by_side check_sanitized "$inputs" "$calls" -- check_module
  if [[ $all_tests == ON ]]; then
    check "soak" "$root/build/release/draftproof" soak
    check "kernels for every GPU architecture" "$root/gpu/check_standalone.sh"
    check "instruction budget" "$root/gpu/budget.sh"
    check "lint" in_subshell lint_verb
    check "servers of engines" audit_servers
  fi
  if ((${#failed_checks[@]})); then fail 1 "test --all: failed: $(printf '%s; ' "${failed_checks[@]}")see above"; fi
}

# ctest ignores options that it does not know, and runs all tests.
require_ctest_options() {  # arguments of ctest
  local help argument name
  command -v ctest >/dev/null || return 0
  help=$(ctest --help)
  for argument in "$@"; do
    name=${argument%%=*}
    if [[ $name =~ ^-[A-Za-z][0-9]+$ ]]; then name=${name:0:2}; fi  # -j2
    [[ $name == -?* ]] || continue
    [[ $name =~ ^[A-Za-z0-9-]+$ ]] && grep -qE -e "(^|[ ,])$name([^A-Za-z0-9-]|\$)" <<<"$help" ||
      fail 2 "test: '$name' is no option of it; expected --preset release|asan, --all, or an option of ctest --help"
  done
}

test_verb() {
  read_preset "$@"
  case ${rest[0]:-} in
    --all) if ((${#rest[@]} > 1)); then fail 2 "test: unexpected argument '${rest[1]}' behind --all"; fi ;;
    -*) require_ctest_options "${rest[@]}" ;;
  esac
  require_writable "$root/build/$preset"
  if [[ ${rest[0]:-} == --all ]]; then all_tests=ON; fi
  prepare_tests
  case ${rest[0]:-} in
    "") if [[ $# == 0 ]]; then test_everything; return; fi ;;
    --all) test_everything; return ;;
    -*) ;;
    *)  # the name of a test, a sentence
      build_tests "$preset"
      start_display
      for program in draftproof_tests draftproof_viz_tests; do
        program=$root/build/$preset/$program
        if [[ -x $program && $("$program" --list-test-names-only "${rest[0]}" || true) ]]; then exec "$program" "${rest[@]}"; fi
      done
      fail 2 "test: no test of the $preset build is called '${rest[0]}'" ;;
  esac
  build_tests "$preset"
  run_ctest "$preset" "${rest[@]}"
}

# The module's own tests, in the build's tree.
python_tests() {  # files, arguments of pytest; on every core
  PYTHONDONTWRITEBYTECODE=1 DRAFTPROOF_ALL_TESTS=$all_tests DRAFTPROOF_PROGRAM=$root/build/release/draftproof \
    PYTHONPATH=$root/build/release/module "$module_python" -I -c \
    'import os, sys; sys.path.insert(0, os.environ["PYTHONPATH"]); import pytest; sys.exit(pytest.main(sys.argv[1:]))' \
    -q -p no:cacheprovider --dist load --tx "$(nproc)*popen//python='$module_python' -I" "$@"
}

# Calls of the module with sanitizers; their libraries come first in the process.
hostile_calls() {  # arguments of the script
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/build/asan/module ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" \
    "$module_python" "$root/python/tests/hostile_calls.py" "$@"
}

test_python_verb() {
  case ${1:-} in --help | -h) usage_of_launcher; exit 0 ;; esac
  require_writable "$root/build"
  require_packages "program tests"
  find_python
  use_module || fail 2 "test-python: the Python packages $python_packages are needed"
  if [[ ${1:-} == --hostile ]]; then
    build asan _core
    hostile_calls "${@:2}"
  else
    build release _core
    python_tests "$root/python/tests" "$@"
  fi
}
