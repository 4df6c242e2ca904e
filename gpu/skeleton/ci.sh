#!/usr/bin/env bash
# Builds the kernels and tests them: for any CI. DRAFTPROOF names the program, where it is not on the path; the
# library's memory says whether a GPU is needed. Further arguments go to draftproof regress, as --within or --filter.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
cmake -S . -B build
cmake --build build
status=0
"${DRAFTPROOF:-draftproof}" regress --library build/libkernels.so "$@" || status=$?
# 4: nothing was compared, as without a GPU. That is no success.
if ((status == 4)); then echo "ci: the kernels were NOT tested on this machine" >&2; fi
exit "$status"
