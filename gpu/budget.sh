#!/usr/bin/env bash
# Counts the instructions of the hot loops in the machine code that gpu/check_standalone.sh built, predicts their times on GPUs,
# and compares both with gpu/golden/budget.txt: a kernel that gets heavier is a failure to explain.
#
#   gpu/budget.sh [--update]
#
# Needs nvdisasm and cuobjdump; where CUDA came without them they are taken from the Python package index into build/.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

if ! command -v nvcc >/dev/null; then
  echo "budget: SKIPPED: nvcc is not installed"
  exit 0
fi
if (($# > 1)) || [[ $# == 1 && $1 != --update ]]; then
  echo "budget: error: '$*' is not an option; --update is" >&2
  exit 2
fi
objects=$(find build/gpu -name '*.cu.o' -path '*operations*' 2>/dev/null || true)
if [[ -z $objects ]]; then
  echo "budget: error: no machine code in build/gpu; run gpu/check_standalone.sh first" >&2
  exit 2
fi

tools=$PWD/build/disassembler
PATH=$PATH:$(dirname -- "$(readlink -f -- "$(command -v nvcc)")")
if ! command -v nvdisasm >/dev/null || ! command -v cuobjdump >/dev/null; then
  if ! compgen -G "$tools/lib/*/site-packages/nvidia/cu13/bin/nvdisasm" >/dev/null; then
    rm -rf "$tools"
    python3 -I -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps \
      nvidia-cuda-nvdisasm==13.2.51 nvidia-cuda-cuobjdump==13.2.51 >&2 || {
      rm -rf "$tools"
      echo "budget: error: nvdisasm and cuobjdump are missing, and pip could not install them" >&2
      exit 2
    }
  fi
  PATH=$PATH:$(dirname -- "$(compgen -G "$tools/lib/*/site-packages/nvidia/cu13/bin/nvdisasm")")
fi

code=$(mktemp -d)
trap 'rm -rf "$code"' EXIT
disassemble() {  # object: writes NAME.ARCHITECTURE.sass
  local object name file architecture
  object=$(readlink -f -- "$1")
  name=$(basename -- "$object" .cu.o)
  mkdir "$code/$name"
  (cd "$code/$name" && cuobjdump -xelf all "$object" >/dev/null)
  for file in "$code/$name"/*.cubin; do
    architecture=$(grep -oE 'sm_[0-9]+' <<<"${file##*/}" | tail -n 1)
    nvdisasm -c "$file" >"$code/$name.$architecture.sass"
  done
}
export -f disassemble
export code
xargs -n 1 -P "$(nproc)" bash -euo pipefail -c 'disassemble "$1"' disassemble <<<"$objects"
compiler=$(nvcc --version | sed -n 's/.* V\([0-9.]*\)$/\1/p')
python3 gpu/budget/budget.py --code "$code" --compiler "$compiler" --stored gpu/golden/budget.txt "$@"
