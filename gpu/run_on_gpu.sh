#!/usr/bin/env bash
# Everything that must be learnt on a GPU, in one go: build, regression, compute-sanitizer, benchmark, a peer.
#
#   gpu/run_on_gpu.sh --headers FOLDER [--out FOLDER] [--build-only] [--minutes N]
#
# Needs nvcc 13, CMake, make or ninja, a C++ compiler, and FOLDER with the header-only libraries CLI/ and
# nlohmann/. Nothing else is installed or downloaded; PyTorch is timed where python3 happens to have it. Writes
# OUT/<gpu>-<date>.json (default: gpu/results) and prints a short table last.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
headers="" out=$root/gpu/results build_only=0 minutes=8
fail() { echo "run_on_gpu: error: $1" >&2; exit 2; }
while (($#)); do
  case $1 in
    --headers) headers=${2:?--headers needs a folder}; shift 2 ;;
    --out) out=${2:?--out needs a folder}; shift 2 ;;
    --minutes) minutes=${2:?--minutes needs a number}; shift 2 ;;
    --build-only) build_only=1; shift ;;
    *) fail "'$1' is not an option; --headers FOLDER, --out FOLDER, --minutes N and --build-only are" ;;
  esac
done
[[ -n $headers ]] || fail "--headers FOLDER is needed: a folder with CLI/ and nlohmann/"
headers=$(cd -- "$headers" && pwd)

build=$root/build/gpu
configure=(cmake -S "$root/gpu/standalone" -B "$build" -DCMAKE_BUILD_TYPE=Release "-DDRAFTPROOF_HEADERS=$headers")
if [[ -n ${DRAFTPROOF_GPU_ARCHITECTURES:-} ]]; then
  configure+=("-DDRAFTPROOF_CUDA_ARCHITECTURES=$DRAFTPROOF_GPU_ARCHITECTURES")
else
  configure+=(-U DRAFTPROOF_CUDA_ARCHITECTURES)  # all that are shipped, not those that an earlier run named
fi
mkdir -p "$build"
"${configure[@]}" >"$build/configure.log" 2>&1 || { tail -n 30 "$build/configure.log" >&2; fail "configuring failed"; }
cmake --build "$build" -j "$(nproc)" >"$build/build.log" 2>&1 || { grep -m 5 -A 10 -E "error|warning" "$build/build.log" >&2; fail "the build failed"; }
program=$build/draftproof
if ((build_only)); then echo "built $program"; exit 0; fi

export DRAFTPROOF_REQUIRE_GPU=1
deadline=$((SECONDS + minutes * 60))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- Regression: every case on the GPU, bit for bit, against the golden digests. -----------------------------------------
regression=0
"$program" regress --executor cuda --json >"$work/regress.json" || regression=$?
((regression < 2)) || exit "$regression"  # it said why

# --- compute-sanitizer over the cases that are small enough for it. --------------------------------------------------------
# Each tool gets a share of the time that is left; one that does not end is reported as such.
: >"$work/sanitizer.txt"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck initcheck synccheck; do
    status=0
    timeout $(((deadline - SECONDS) / 6 + 20)) compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$program" regress --executor cuda --filter /V33/ >"$work/$tool.log" 2>&1 || status=$?
    case $status in
      0) echo "$tool clean" ;;
      124) echo "$tool timeout" ;;
      *) echo "$tool findings"; grep -m 20 "=========" "$work/$tool.log" >&2 || true ;;
    esac >>"$work/sanitizer.txt"
  done
else
  echo "compute-sanitizer absent" >>"$work/sanitizer.txt"
fi

# --- Benchmark, and the same work by PyTorch on the same tensors. --------------------------------------------------------------
mkdir -p "$work/inputs"
"$program" bench --device cuda --repeat 100 --write-inputs "$work/inputs" --out "$work/bench.json" >"$work/bench.txt"
echo '{"available": false}' >"$work/peer.json"
if python3 -c "import torch; assert torch.cuda.is_available()" 2>/dev/null; then
  timeout 180 python3 "$root/gpu/bench/peer_pytorch.py" "$work/inputs" >"$work/peer.json" 2>"$work/peer.log" ||
    { tail -n 5 "$work/peer.log" >&2; echo '{"available": false}' >"$work/peer.json"; }
fi

# --- One document, the answers of the programs in it as they are. ----------------------------------------------------------------
value() { sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$work/$1" | head -n 1; }  # of a key, the first
commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)
gpu=$(sed -n '/"gpu": {/,/}/s/^ *"name": "\(.*\)",$/\1/p' "$work/bench.json")
date=$(date +%Y-%m-%d)
sanitizer=$(sed 's/^\([^ ]*\) \(.*\)$/"\1": "\2"/' "$work/sanitizer.txt" | paste -sd , -)
mkdir -p "$out"
file=$out/$(tr '[:upper:]' '[:lower:]' <<<"$gpu" | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//')-$date.json
{
  printf '{\n"gpu": "%s",\n"driver": "%s",\n"commit": "%s",\n"date": "%s",\n"sanitizer": {%s},\n' \
    "$gpu" "${driver:-unknown}" "$commit" "$date" "$sanitizer"
  printf '"regression": ' && cat "$work/regress.json"
  printf ',\n"bench": ' && cat "$work/bench.json"
  printf ',\n"peer": ' && cat "$work/peer.json"
  printf '}\n'
} >"$file.tmp"
mv "$file.tmp" "$file"

echo "$file"
echo "regression: $(value regress.json equal) equal, $(value regress.json different) different, $(value regress.json skipped) skipped"
echo "sanitizer: $(paste -sd , "$work/sanitizer.txt")"
echo "peer: $(cat "$work/peer.json")"
cat "$work/bench.txt"
exit "$regression"
