# ./draftproof lint. Read by ./draftproof.

tidy_one() {  # file: silent unless clang-tidy finds something
  local output
  output=$("$root/build/lint/tools/bin/clang-tidy" -p "$root/build/lint" --quiet --extra-arg=-Qunused-arguments \
    "--extra-arg=-idirafter$(g++ -print-file-name=include)" "$1" 2>&1) && return
  # The analyser's core checks cannot be switched off, and find stack addresses in Boost's numbers: what lies in headers of
  # the system is not ours.
  if grep -E ':[0-9]+:[0-9]+: error: |^error: |^Error ' <<<"$output" | grep -qv '^/usr/'; then
    printf '%s\nclang-tidy finds fault with %s\n' "$output" "${1#"$root"/}"
    return 1
  fi
}

install_lint_tools() {  # folder below build/lint, packages: makes sure of an environment of these versions alone
  local tools=$root/build/lint/$1
  (
    flock 9
    if [[ ! -f $tools/.package || $(<"$tools/.package") != "$2" ]]; then
      run_step "$root/build/lint/install.log" "$pip_python" -I -m venv --clear "$tools"
      # shellcheck disable=SC2086  # the packages are words
      run_step "$root/build/lint/install.log" "$tools/bin/python" -I -m pip install --quiet --disable-pip-version-check $2
      printf '%s' "$2" >"$tools/.package"
    fi
  ) 9>"$root/build/lint/.lock" || exit
}

lint_verb() {
  local format_only=0
  if [[ ${1:-} == --format ]]; then format_only=1 && shift; fi
  read_preset "$@"
  if (($#)); then fail 2 "lint: unexpected argument '$1'"; fi
  require_writable "$root/build/lint"
  require_packages "program lint tests"
  local folder folders=() formatted=() analysed=() findings=()
  for folder in "${floors[@]}" web experiments python tests; do
    if [[ -d $root/$folder ]]; then folders+=("$root/$folder"); fi
  done
  mapfile -d '' formatted < <(find "${folders[@]}" -type f \( -name '*.[ch]pp' -o -name '*.h' -o -name '*.cu' -o \
    -name '*.cuh' \) -print0 | sort -z)
  # Tests are formatted, but not analysed: Catch2's macros would cost more time than they could save. gpu/standalone and
  # python have builds of their own. Products of int8 name their instruction set in pragmas that only g++ knows.
  mapfile -d '' analysed < <(find "${folders[@]}" -type f -name '*.cpp' -not -path "$root/tests/*" -not -path "$root/python/*" \
    -not -path "$root/gpu/standalone/*" -not -name 'int8_product_*' -print0 | sort -z)

  say "source format of ${#formatted[@]} files"
  clang-format --dry-run --Werror "${formatted[@]}" || findings+=("clang-format -i would change files")
  # clang-format leaves comments as they are, so that tables keep their form.
  if LC_ALL=C.UTF-8 grep -nE '^.{121,}$' -- "${formatted[@]}" | grep -E '^[^:]+:[0-9]+:[[:space:]]*(//|/?\*)' >&2; then
    findings+=("lines of comments are longer than 120 columns")
  fi

  "$root/gpu/kernel_texts.sh" --check || findings+=("gpu/README.md is out of date")
  local verb page text link name own
  for verb in $(sed -n 's/^    {"\([a-z]*\)", .*/\1/p' "$root/cli/verbs.hpp"); do
    grep -q "\`$verb[\` ]" "$root/docs/commands.md" || findings+=("docs/commands.md lacks the verb $verb")
  done
  own=$(IFS='|' && echo "${floors[*]}|web|experiments|python|tests|docs")
  while IFS= read -r page; do
    text=$(sed -n '/^```/,/^```/!p' "$page")
    while IFS= read -r link; do
      [[ -e ${page%/*}/$link ]] || findings+=("${page#"$root"/} links to $link, which does not exist")
    done < <(grep -oP '\]\(\K(?!https?:)[^)#]+' <<<"$text" | sort -u)
    # NAME and the like stand for what a reader adds; half is the worked example's.
    while IFS= read -r name; do
      [[ -e $root/$name || -e ${page%/*}/$name ]] || findings+=("${page#"$root"/} names $name, which does not exist")
    done < <(grep -oP "\`\K($own)/[\w./-]+(?=\`)" <<<"$text" | grep -vE '/(NAME|FAMILY|ID|half)\b|/NAME_|/half_' | sort -u)
  done < <(find "${folders[@]}" "$root/docs" -name '*.md'; printf '%s\n' "$root"/*.md)

  find_pip || fail 2 "lint: pip is needed; install python3-venv"
  install_lint_tools python "$python_lint_packages"
  say "style and types of Python"
  (cd "$root" && build/lint/python/bin/ruff check --quiet --no-cache .) || findings+=("ruff finds faults in Python")
  (cd "$root" && build/lint/python/bin/mypy --cache-dir build/lint/mypy --no-error-summary python/draftproof) ||
    findings+=("mypy finds faults in python/draftproof")

  if ((format_only)); then
    if ((${#findings[@]})); then fail 1 "lint: ${findings[*]}; see above"; fi
    say "lint: no fault in the format of ${#formatted[@]} files"
    return
  fi

  install_lint_tools tools "$clang_tidy_package"
  (
    flock 9
    cd "$root"
    run_step "$root/build/lint/configure.log" cmake --preset lint
  ) 9>"$root/build/lint/.lock" || exit
  # clang-tidy would have to guess flags of files that are not built here: the dashboard's windows without Dear ImGui.
  local commands=$root/build/lint/compile_commands.json built=() file
  for file in "${analysed[@]}"; do
    if grep -qF "\"file\": \"$file\"" "$commands"; then built+=("$file"); fi
  done
  if ((${#built[@]} < ${#analysed[@]})); then
    say "$((${#analysed[@]} - ${#built[@]})) files are not analysed: they are not built here (./draftproof dash fetches what windows need)"
  fi
  say "static analysis of ${#built[@]} files"
  export root
  export -f tidy_one
  # shellcheck disable=SC2016  # the inner bash expands it
  printf '%s\0' "${built[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy_one "$1"' tidy ||
    findings+=("clang-tidy finds faults")
  if ((${#findings[@]})); then fail 1 "lint: $(printf '%s; ' "${findings[@]}")see above"; fi
  say "lint: no fault in ${#formatted[@]} files"
}
