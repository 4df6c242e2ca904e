#!/usr/bin/env bash
# Everything that must be learnt on a GPU, in one go: build, then regression and random calls, benchmark, the profile of its worst
# kernel, and after these compute-sanitizer, other people's kernels, a peer. The first three are there if the machine is lost early.
#
#   gpu/run_on_gpu.sh --headers FOLDER [--out FOLDER] [--build-only] [--minutes N]
#   gpu/run_on_gpu.sh --program PROGRAM [--out FOLDER] [--minutes N]
#
# Needs nvcc 13, CMake, make or ninja, a C++ compiler, and FOLDER with the header-only libraries CLI/ and nlohmann/, and boost/ where
# --library shall judge distributions. Nothing else is installed or downloaded; PyTorch is timed where python3 happens to have it.
# PROGRAM: what --build-only has built elsewhere, with the folder lib/ beside it; DRAFTPROOF_COMMIT says of which commit, where
# git cannot. Writes OUT/<gpu>-<date>.json (default: gpu/results)
# and prints a short table last.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
headers="" program="" out=$root/gpu/results build_only=0 minutes=8
fail() { echo "run_on_gpu: error: $1" >&2; exit 2; }
while (($#)); do
  case $1 in
    --headers) headers=${2:?--headers needs a folder}; shift 2 ;;
    --program) program=${2:?--program needs a file}; shift 2 ;;
    --out) out=${2:?--out needs a folder}; shift 2 ;;
    --minutes) minutes=${2:?--minutes needs a number}; shift 2 ;;
    --build-only) build_only=1; shift ;;
    *) fail "'$1' is not an option; --headers FOLDER, --program PROGRAM, --out FOLDER, --minutes N and --build-only are" ;;
  esac
done
[[ -z $headers || -z $program ]] || fail "--headers builds what --program brings; give one of them"

build() {
  local build=$root/build/gpu
  [[ -n $headers ]] || fail "--headers FOLDER is needed: a folder with CLI/ and nlohmann/"
  headers=$(cd -- "$headers" && pwd)
  local configure=(cmake -S "$root/gpu/standalone" -B "$build" -DCMAKE_BUILD_TYPE=Release "-DDRAFTPROOF_HEADERS=$headers")
  if [[ -n ${DRAFTPROOF_GPU_ARCHITECTURES:-} ]]; then
    configure+=("-DDRAFTPROOF_CUDA_ARCHITECTURES=$DRAFTPROOF_GPU_ARCHITECTURES")
  else
    configure+=(-U DRAFTPROOF_CUDA_ARCHITECTURES)  # all that are shipped, not those that an earlier run named
  fi
  mkdir -p "$build"
  "${configure[@]}" >"$build/configure.log" 2>&1 || { tail -n 30 "$build/configure.log" >&2; fail "configuring failed"; }
  cmake --build "$build" -j "$(nproc)" >"$build/build.log" 2>&1 ||
    { grep -m 5 -A 10 -E "error|warning" "$build/build.log" >&2; fail "the build failed"; }
  program=$build/draftproof
}
[[ -n $program ]] || build
if ((build_only)); then echo "built $program"; exit 0; fi

export DRAFTPROOF_REQUIRE_GPU=1
deadline=$((SECONDS + minutes * 60))
left() { local seconds=$((deadline - SECONDS)); echo $((seconds > 20 ? seconds : 20)); }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- Regression: every case on the GPU, bit for bit, against the golden digests; then random calls, in a few processes. --------
regression=0
regress() { "$program" regress --executor cuda --golden "$root/gpu/golden/digests.txt" "$@"; }
regress --json >"$work/regress.json" || regression=$?
((regression < 2)) || exit "$regression"  # it said why
random_calls=4000
for ((first = 1; first < random_calls; first += 500)); do
  "$program" regress --executor cuda --random 500 --seed "$first" --json >"$work/random-$first.json" &
done
wait
random_equal=$(cat "$work"/random-*.json | grep -c '"verdict": "equal"' || true)
((random_equal == random_calls)) || { cat "$work"/random-*.json | grep '"finding": "' >&2 || true; regression=1; }

# --- Benchmark, and what limits the kernel that is furthest from its bytes, where Nsight Compute is here. -------------------------
mkdir -p "$work/inputs"
"$program" bench --device cuda --repeat 100 --write-inputs "$work/inputs" --out "$work/bench.json" >"$work/bench.txt"
# Below 32 MB a launch takes longer than the bytes.
worst=$(awk -F'"' '/"name":/ { name = $4 } /"what":/ { what = $4 } /"bytes":/ { split($3, bytes, /[ :,]+/) }
  /"share_of_bandwidth":/ { split($3, share, /[ :,]+/); if (bytes[2] >= 32e6 && (least == "" || share[2] + 0 < least)) { least = share[2] + 0; worst = name " " what } }
  END { print worst }' "$work/bench.json")
if command -v ncu >/dev/null && [[ -n $worst ]]; then
  timeout 60 ncu --section SpeedOfLight --section Occupancy --section WarpStateStats --launch-count 8 \
    "$program" bench --device cuda --filter "$worst" --repeat 1 >"$work/profile.txt" 2>&1 || true
fi

# --- compute-sanitizer over the cases that are small enough for it, and over random calls. --------------------------------------
# One that does not end in its share of the time that is left is reported as such.
: >"$work/sanitizer.txt"
if command -v compute-sanitizer >/dev/null; then
  share=$(($(left) / 4))  # of each tool's two runs; the other half is for what comes after
  for tool in memcheck racecheck initcheck synccheck; do
    {
      status=0
      under_tool() {
        timeout "$share" compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" regress --executor cuda "$@" \
          >>"$work/$tool.log" 2>&1 || status=$?
      }
      under_tool --golden "$root/gpu/golden/digests.txt" --filter /V33/
      under_tool --random 150 --seed 7
      case $status in
        0) echo "$tool clean" ;;
        124) echo "$tool timeout" ;;
        *) echo "$tool findings"; grep -m 20 "=========" "$work/$tool.log" >&2 || true ;;
      esac >>"$work/sanitizer.txt"
    } &
  done
  wait
else
  echo "compute-sanitizer absent" >>"$work/sanitizer.txt"
fi

# --- A library of kernels as somebody else would write them, in the memory of the GPU. ------------------------------------------
library='{"available": false}'
if command -v nvcc >/dev/null; then
  nvcc -shared -Xcompiler -fPIC -arch=native -I"$root/gpu" "$root/gpu/skeleton/cuda/kernels.cu" -o "$work/libkernels.so"
  timeout "$(($(left) / 2))" "$program" regress --library "$work/libkernels.so" --json >"$work/library.json" || true
  [[ ! -s $work/library.json ]] || library=$(cat "$work/library.json")
fi

# --- The same work by PyTorch on the same tensors. -----------------------------------------------------------------------------
echo '{"available": false}' >"$work/peer.json"
if (cd "$root" && python3 -c "import torch; assert torch.cuda.is_available()") 2>/dev/null; then
  timeout "$(left)" python3 "$root/gpu/bench/peer_pytorch.py" "$work/inputs" >"$work/peer.json" 2>"$work/peer.log" ||
    { tail -n 5 "$work/peer.log" >&2; echo '{"available": false}' >"$work/peer.json"; }
fi

# --- One document, the answers of the programs in it as they are. ----------------------------------------------------------------
value() { sed -n "s/^ *\"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$work/$1" | head -n 1; }  # of a key, the first
commit=${DRAFTPROOF_COMMIT:-$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)}
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)
gpu=$(sed -n '/"gpu": {/,/}/s/^ *"name": "\(.*\)",$/\1/p' "$work/bench.json")
date=$(date +%Y-%m-%d)
sanitizer=$(sed 's/^\([^ ]*\) \(.*\)$/"\1": "\2"/' "$work/sanitizer.txt" | paste -sd , -)
compact() { sed '/^  "rows": \[$/,/^  \],\{0,1\}$/ { /^  \]/!d; s/^  \]/  "rows": []/ }' | tr -d '\n' | sed 's/  */ /g'; }  # without the cases, which golden/ holds
kernels=$("$root/gpu/kernel_texts.sh" | sed 's/^\([^ ]*\) \(.*\)$/"\1": "\2"/' | paste -sd , -)
mkdir -p "$out"
file=$out/$(tr '[:upper:]' '[:lower:]' <<<"$gpu" | tr -cs 'a-z0-9' '-' | sed 's/^-//; s/-$//')-$date.json
{
  printf '{\n"gpu": "%s",\n"driver": "%s",\n"commit": "%s",\n"date": "%s",\n"kernels": {%s},\n"sanitizer": {%s},\n' \
    "$gpu" "${driver:-unknown}" "$commit" "$date" "$kernels" "$sanitizer"
  printf '"regression": ' && compact <"$work/regress.json"
  printf ',\n"random": {"calls": %s, "equal": %s}' "$random_calls" "$random_equal"
  printf ',\n"library": ' && compact <<<"$library"
  printf ',\n"bench": ' && cat "$work/bench.json"
  printf ',\n"peer": ' && cat "$work/peer.json"
  printf '}\n'
} >"$file.tmp"
mv "$file.tmp" "$file"

echo "$file"
echo "regression: $(value regress.json equal) equal, $(value regress.json different) different, $(value regress.json skipped) skipped"
echo "random calls: $random_equal of $random_calls equal"
echo "sanitizer: $(paste -sd , "$work/sanitizer.txt")"
echo "peer: $(cat "$work/peer.json")"
if [[ -s $work/profile.txt ]]; then cp "$work/profile.txt" "${file%.json}-profile.txt"; echo "profile of $worst: ${file%.json}-profile.txt"; fi
cat "$work/bench.txt"
exit "$regression"
