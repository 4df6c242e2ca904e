#!/usr/bin/env bash
# Shows on any machine with nvcc that gpu/run_on_gpu.sh would find all it needs on a bare one: builds gpu/standalone with a
# folder that holds the two header-only libraries alone, and looks in the dependency files for any other library.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

if ! command -v nvcc >/dev/null; then
  echo "check_standalone: SKIPPED: nvcc is not installed"
  exit 0
fi
folder=$PWD/build/gpu-headers
rm -rf "$folder"
mkdir -p "$folder"
for header in CLI/CLI.hpp nlohmann/json.hpp; do
  found=$(echo "#include <$header>" | g++ -std=c++20 -x c++ -M - | tr ' \\' '\n\n' | sed -n "\\#/$header\$#p" | sort -u)
  if [[ ! -f $found ]]; then
    echo "check_standalone: error: the compiler does not find <$header>" >&2
    exit 2
  fi
  cp -Rp "${found%/*}" "$folder/${header%%/*}"
done

# For all architectures, every warning and every register spill an error.
gpu/run_on_gpu.sh --headers "$folder" --build-only

# Headers included from /usr/include beside the C and C++ libraries of the compiler.
foreign=$(find build/gpu -name '*.d' -exec cat {} + | tr ' \\' '\n\n' |
  grep -oE '^/usr/(local/)?include/[^/]+/' | sort -u | grep -vE '/(c\+\+|[a-z0-9_]+-linux-gnu|linux|asm|asm-generic|bits|sys|gnu)/$' || true)
if [[ -n $foreign ]]; then
  echo "check_standalone: these headers came from elsewhere than the folder given:" >&2
  echo "$foreign" >&2
  exit 1
fi
status=0
build/gpu/draftproof regress --executor cuda || status=$?
((status == 0 || status == 4)) || exit "$status"  # 4: there is no GPU here
echo "check_standalone: built with the compiler, nvcc, CMake and two header-only libraries"
