// Planted races: each is found under every seed, and its repaired twin is not accused.
#include "tests/gpu/simt/fault_of.hpp"
#include "tests/support/test.hpp"

namespace {

enum class Between { nothing, barrier, warp };

template <Between kind>
void separate() {
  if constexpr (kind == Between::barrier) __syncthreads();
  if constexpr (kind == Between::warp) __syncwarp();
}

// Each thread writes its word and reads its neighbour's.
template <Between between>
void neighbour(Global<std::uint32_t> out) {
  DRAFTPROOF_SHARED(std::uint32_t, words, 64);
  words[threadIdx.x] = threadIdx.x;
  separate<between>();
  out[threadIdx.x] = words[threadIdx.x ^ 1];
}

// Two reductions in a row: everyone reads the total of the first while thread 0 may already write the second.
template <Between after_read>
void two_totals(Global<std::uint32_t> out) {
  DRAFTPROOF_SHARED(std::uint32_t, total, 1);
  std::uint32_t sum = 0;
  for (std::uint32_t round = 1; round <= 2; ++round) {
    if (threadIdx.x == 0) total[0] = round;
    __syncthreads();
    sum += total[0];
    separate<after_read>();
  }
  out[threadIdx.x] = sum;
}

LaunchDescription block_of(const char* kernel, std::uint32_t threads) {
  return {.kernel = kernel, .grid = {2}, .block = {threads}};
}

}  // namespace

TEST_CASE("A shared word read without a barrier after its write is a race") {
  const auto out = Buffer<std::uint32_t>::output("out", 64);
  const std::string message =
      fault_of({.kernel = "neighbour", .block = {64}}, neighbour<Between::nothing>, out.global());
  // Which of the two comes first depends on the seed: unwritten memory is read, or a word is written that was read.
  CHECK_THAT(message, Contains("shared array words: element "));
  launch({.kernel = "neighbour", .block = {64}}, neighbour<Between::barrier>, out.global());
  CHECK(out.values()[6] == 7);
}

TEST_CASE("A meeting of the warp orders its lanes and no others") {
  const auto out = Buffer<std::uint32_t>::output("out", 64);
  launch({.kernel = "neighbour", .block = {64}}, neighbour<Between::warp>, out.global());
  CHECK(out.values()[63] == 62);
  const auto across = [](Global<std::uint32_t> to) {
    DRAFTPROOF_SHARED(std::uint32_t, words, 64);
    words[threadIdx.x] = 0;
    __syncthreads();
    words[threadIdx.x] = threadIdx.x;
    __syncwarp();
    to[threadIdx.x] = words[threadIdx.x ^ 32];
  };
  const std::string message = fault_of({.kernel = "across", .block = {64}}, across, out.global());
  CHECK_THAT(message, Contains("race on shared array words: element ") && Contains("with no barrier between them"));
}

TEST_CASE("Meetings of part of a warp order the lanes that met") {
  const auto out = Buffer<std::uint32_t>::output("out", 32);
  const auto halves = [](std::uint32_t other) {
    return [other](Global<std::uint32_t> to) {
      DRAFTPROOF_SHARED(std::uint32_t, words, 32);
      words[threadIdx.x] = 0;
      __syncwarp();
      words[threadIdx.x] = threadIdx.x;
      __syncwarp(threadIdx.x < 16 ? 0xffff : 0xffff0000);
      to[threadIdx.x] = words[threadIdx.x ^ other];
    };
  };
  launch({.kernel = "halves", .block = {32}}, halves(8), out.global());
  CHECK(out.values()[3] == 11);
  CHECK_THAT(fault_of({.kernel = "halves", .block = {32}}, halves(16), out.global()),
             Contains("race on shared array words"));
}

TEST_CASE("A barrier missing between the read of a reduction and the next write is a race") {
  for (const std::uint32_t threads : {2u, 33u, 256u}) {
    const auto out = Buffer<std::uint32_t>::output("out", threads);
    const auto description = block_of("two_totals", threads);
    CHECK_THAT(fault_of(description, two_totals<Between::nothing>, out.global()),
               Contains("race on shared array total: element 0: ") && Contains("with no barrier between them"));
    launch({.kernel = "two_totals", .block = {threads}}, two_totals<Between::barrier>, out.global());
    CHECK(out.values() == std::vector<std::uint32_t>(threads, 3));
  }
}

TEST_CASE("Atomics do not race with each other but with plain accesses") {
  const auto sum = Buffer<std::uint32_t>::output("sum", 1);
  const auto counted = [](bool barrier) {
    return [barrier](Global<std::uint32_t> to) {
      DRAFTPROOF_SHARED(std::uint32_t, count, 1);
      if (threadIdx.x == 0) count[0] = 0;
      __syncthreads();
      atomicAdd(&count[0], 1);
      if (barrier) __syncthreads();
      if (threadIdx.x == 5) to[0] = count[0];
    };
  };
  launch({.kernel = "counted", .block = {100}}, counted(true), sum.global());
  CHECK(sum.values()[0] == 100);
  CHECK_THAT(fault_of({.kernel = "counted", .block = {100}}, counted(false), sum.global()),
             Contains("race on shared array count: element 0: ") && Contains("updated atomically"));
}

TEST_CASE("Two threads that write one word race even when they write the same value") {
  const auto flag = Buffer<std::uint32_t>::output("flag", 3);
  const auto everyone = [](Global<std::uint32_t> to) { to[1] = 1; };
  CHECK_THAT(fault_of({.kernel = "everyone", .block = {40}}, everyone, flag.global()),
             Contains("race on buffer flag: element 1: written here and written by thread ("));
}

TEST_CASE("A race on global memory is found between the threads of a block") {
  const auto words = Buffer<std::uint32_t>::in_out("words", std::vector<std::uint32_t>(64, 7));
  const auto shifted = [](bool barrier) {
    return [barrier](Global<std::uint32_t> p) {
      const std::uint32_t next = p[(threadIdx.x + 1) % 64];
      if (barrier) __syncthreads();
      p[threadIdx.x] = next + threadIdx.x;
    };
  };
  CHECK_THAT(fault_of({.kernel = "shifted", .block = {64}}, shifted(false), words.global()),
             Contains("race on buffer words: element "));
  const auto fresh = Buffer<std::uint32_t>::in_out("words", std::vector<std::uint32_t>(64, 7));
  launch({.kernel = "shifted", .block = {64}}, shifted(true), fresh.global());
  CHECK(fresh.values()[10] == 17);
}

TEST_CASE("Neighbouring bytes of one word do not race") {
  const auto out = Buffer<std::uint8_t>::output("out", 96);
  launch(
      {.kernel = "bytes", .block = {96}, .dynamic_shared_bytes = 96},
      [](Global<std::uint8_t> to) {
        DRAFTPROOF_DYNAMIC_SHARED(std::uint8_t, bytes, 0, 96);
        bytes[threadIdx.x] = static_cast<std::uint8_t>(threadIdx.x);
        __syncthreads();
        to[threadIdx.x] = bytes[95 - threadIdx.x];
      },
      out.global());
  CHECK(out.values()[0] == 95);
}

TEST_CASE("Blocks may write one word only if they write the same value") {
  for (const int os_threads : {1, 3}) {
    const auto out = Buffer<std::uint32_t>::output("out", 1);
    const LaunchDescription description{.kernel = "blocks", .grid = {4}, .block = {1}, .os_threads = os_threads};
    launch(
        description, [](Global<std::uint32_t> to) { to[0] = 3; }, out.global());
    launch(
        description, [](Global<std::uint32_t> to) { atomicMax(&to[0], blockIdx.x); }, out.global());
    CHECK(out.values()[0] == 3);
    const auto own = [](Global<std::uint32_t> to) { to[0] = blockIdx.x; };
    CHECK_THAT(fault_of(description, own, out.global()), Contains("buffer out: element 0 is written, but block (") &&
                                                             Contains("has written another value there"));
  }
}
