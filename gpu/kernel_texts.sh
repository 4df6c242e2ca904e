#!/usr/bin/env bash
# Prints each operation with a digest of its kernels' text: operations/NAME.hpp and the sources of gpu/ and reference/ that it
# includes, without comments and spaces. A result of a GPU holds for an operation as long as its digest is that of gpu/results.
#
#   gpu/kernel_texts.sh              NAME DIGEST, a line each
#   gpu/kernel_texts.sh --state      rows of a table: the last GPU that ran this text, or that it changed since
#   gpu/kernel_texts.sh --check      fails where gpu/README.md holds other rows
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

digest_of() {  # name
  local files=("gpu/operations/$1.hpp") at=0 included
  while ((at < ${#files[@]})); do
    while read -r included; do
      # The interface, which declares all operations, is no kernel's text.
      case $included in gpu/kernels/* | gpu/operations/* | gpu/device.hpp | reference/*) ;; *) continue ;; esac
      [[ " ${files[*]} " == *" $included "* ]] || files+=("$included")
    done < <(sed -n 's/^#include "\(.*\)"$/\1/p' "${files[at]}")
    at=$((at + 1))
  done
  printf '%s\n' "${files[@]}" | LC_ALL=C sort | xargs sed 's,//.*$,,' | tr -d '[:space:]' | sha256sum | cut -c 1-16
}

operations=$(sed -n 's/^ *\(PLAIN\|WITH_WORKSPACE\)(\([a-z_]*\), draftproof_.*$/\2/p' gpu/operation_table.hpp)
state() {
  local name state result ran where
  for name in $operations; do
    state="no GPU yet"
    for result in gpu/results/*.json; do
      ran=$(sed -n "s/^\"kernels\": .*\"$name\": \"\([0-9a-f]*\)\".*$/\1/p" "$result")
      [[ -n $ran ]] || continue
      where=$(sed -n 's/^"\(gpu\|date\)": "\(.*\)",$/\2/p' "$result" | paste -sd ' ' -)
      if [[ $ran == "$(digest_of "$name")" ]]; then state=$where; else state="changed since $where"; fi
    done
    echo "| \`$name\` | $state |"
  done
}

case ${1:-} in
  "") for name in $operations; do echo "$name $(digest_of "$name")"; done ;;
  --state) state ;;
  --check)
    state | while read -r line; do
      grep -qxF "$line" gpu/README.md || { echo "gpu/README.md lacks the line '$line'; gpu/kernel_texts.sh --state prints all" >&2; exit 1; }
    done ;;
  *) echo "kernel_texts: '$1' is not one of --state, --check" >&2; exit 2 ;;
esac
