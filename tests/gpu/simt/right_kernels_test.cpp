#include "gpu/simt/launch.hpp"
#include "reference/random/philox.hpp"
#include "tests/gpu/simt/block_kernels.cuh"
#include "tests/support/test.hpp"

namespace {

std::vector<std::uint32_t> random_words(std::size_t count) {
  std::vector<std::uint32_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = philox_block(17, static_cast<std::uint32_t>(i), 0, 0, 0).word[0];
  return words;
}

constexpr std::initializer_list<std::uint32_t> kBlockSizes = {1, 31, 32, 33, 64, 1000, 1024};

}  // namespace

TEST_CASE("A block reduction by shuffles and shared memory is right at every block size seed and thread count") {
  constexpr std::uint32_t kBlocks = 5, kPerBlock = 1500;
  const std::vector<std::uint32_t> words = random_words(kBlocks * kPerBlock);
  std::vector<std::uint64_t> right(kBlocks);
  for (std::uint32_t b = 0; b < kBlocks; ++b) {
    const auto first = words.begin() + b * kPerBlock;
    right[b] = std::accumulate(first, first + kPerBlock, std::uint64_t{0});
  }
  const auto values = Buffer<std::uint32_t>::input("values", words);
  for (const std::uint32_t threads : kBlockSizes) {
    for (const std::uint64_t seed : {0, 1, 2}) {
      for (const int os_threads : {1, 3}) {
        INFO("block " << threads << ", seed " << seed << ", OS threads " << os_threads);
        const auto sums = Buffer<std::uint64_t>::output("sums", kBlocks);
        launch({.kernel = "block_sum", .grid = {kBlocks}, .block = {threads}, .seed = seed, .os_threads = os_threads},
               block_sum, values.read_only(), kPerBlock, sums.global());
        CHECK(sums.values() == right);
      }
    }
  }
}

TEST_CASE("A scan in dynamic shared memory is right at every block size") {
  for (const std::uint32_t threads : kBlockSizes) {
    const std::vector<std::uint32_t> words = random_words(threads);
    std::vector<std::uint32_t> right(threads);
    std::partial_sum(words.begin(), words.end(), right.begin());
    const auto values = Buffer<std::uint32_t>::input("values", words);
    const auto sums = Buffer<std::uint32_t>::output("sums", threads);
    launch({.kernel = "block_scan", .block = {threads}, .dynamic_shared_bytes = threads * 4, .seed = threads},
           block_scan, values.read_only(), sums.global());
    INFO("block " << threads);
    CHECK(sums.values() == right);
  }
}

TEST_CASE("A histogram by atomics is the same for every seed and thread count") {
  const std::vector<std::uint32_t> words = random_words(4000);
  std::vector<std::uint64_t> right(16, 0);
  for (const std::uint32_t word : words) ++right[word & 15];
  const auto values = Buffer<std::uint32_t>::input("values", words);
  for (const std::uint64_t seed : {3, 4, 5}) {
    for (const int os_threads : {1, 2, 4}) {
      const auto counts = Buffer<std::uint64_t>::in_out("counts", std::vector<std::uint64_t>(16, 0));
      launch({.kernel = "histogram", .grid = {7}, .block = {96}, .seed = seed, .os_threads = os_threads}, histogram,
             values.read_only(), 4000u, counts.global());
      CHECK(counts.values() == right);
    }
  }
}

TEST_CASE("Bytes and quads may name the same dynamic shared memory one after the other") {
  const std::vector<std::uint32_t> words = random_words(3 * 64);
  std::vector<std::uint32_t> right(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    right[i / 64 * 64 + 63 - i % 64] = __builtin_bswap32(words[i]);
  }
  const auto values = Buffer<std::uint32_t>::input("values", words);
  const auto out = Buffer<std::uint32_t>::output("out", words.size());
  launch({.kernel = "reverse_bytes", .grid = {3}, .block = {64}, .dynamic_shared_bytes = 16 + 256}, reverse_bytes,
         values.read_only(), out.global());
  CHECK(out.values() == right);
}

TEST_CASE("Threads and blocks know their place in three dimensions") {
  const auto places = Buffer<std::uint32_t>::output("places", 2 * 3 * 2 * 4 * 3 * 2);
  launch(
      {.kernel = "places", .grid = {2, 3, 2}, .block = {4, 3, 2}, .os_threads = 2},
      [](Global<std::uint32_t> out) {
        const std::uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        const std::uint32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        out[block * 24 + thread] = block * 24 + thread;
      },
      places.global());
  std::vector<std::uint32_t> right(places.size());
  std::iota(right.begin(), right.end(), 0u);
  CHECK(places.values() == right);
}

TEST_CASE("Shuffles and votes give what CUDA specifies in segments and in partial warps") {
  constexpr std::uint32_t kThreads = 40;  // a whole warp and one of eight lanes
  using Row = std::array<std::uint32_t, 8>;
  const auto out = Buffer<Row>::output("out", kThreads);
  launch(
      {.kernel = "collectives", .block = {kThreads}, .seed = 9},
      [](Global<Row> rows) {
        const std::uint32_t lane = threadIdx.x % 32;
        const std::uint32_t mask = threadIdx.x < 32 ? 0xffffffff : 0xff;
        Row r{};
        r[0] = __shfl_sync(mask, lane, 11, 8);  // lane 3 of each segment of eight
        r[1] = __shfl_xor_sync(mask, lane, 5, 8);
        r[2] = __shfl_down_sync(mask, lane, 3, 8);  // its own value at the end of a segment
        r[3] = __shfl_up_sync(mask, lane, 3, 8);
        r[4] = __ballot_sync(0xffffffff, lane % 3 == 0);  // lanes that never existed may be named
        r[5] = static_cast<std::uint32_t>(__any_sync(mask, lane == 9));
        r[6] = static_cast<std::uint32_t>(__all_sync(mask, lane < 8));
        r[7] = static_cast<std::uint32_t>(__shfl_sync(mask, 0x100000000 * lane, 6) >> 32);
        __syncwarp();
        rows[threadIdx.x] = r;
      },
      out.global());
  const std::vector<Row> rows = out.values();
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    const std::uint32_t lane = thread % 32, begin = lane & ~7u;
    const bool whole = thread < 32;
    const Row right = {begin + 3,
                       lane ^ 5,
                       lane - begin + 3 < 8 ? lane + 3 : lane,
                       lane - begin >= 3 ? lane - 3 : lane,
                       whole ? 0x49249249u : 0x49u,
                       whole,
                       !whole,
                       6};
    INFO("thread " << thread);
    CHECK(rows[thread] == right);
  }
}

TEST_CASE("Atomics on words of both widths and signs do what their names say") {
  const auto signed_words = Buffer<std::int32_t>::in_out("signed", std::vector<std::int32_t>{-5, 5, 5, 8});
  const auto wide_words = Buffer<std::uint64_t>::in_out("wide", std::vector<std::uint64_t>{0, ~0ULL, 7, 7});
  launch(
      {.kernel = "atomics", .block = {64}, .seed = 1},
      [](Global<std::int32_t> narrow, Global<std::uint64_t> wide) {
        const int me = static_cast<int>(threadIdx.x);
        atomicAdd(&narrow[0], -1);
        atomicMax(&narrow[1], me);
        atomicMin(&narrow[2], -me);
        atomicExch(&narrow[3], 77);
        atomicOr(&wide[0], std::uint64_t{1} << threadIdx.x);
        atomicAdd(&wide[1], 1);
        for (std::uint64_t seen = 7;;) {  // adds by compare and swap
          const std::uint64_t before = atomicCAS(&wide[2], seen, seen + 2);
          if (before == seen) break;
          seen = before;
        }
        atomicMin(wide + 3, threadIdx.x);
      },
      signed_words.global(), wide_words.global());
  CHECK(signed_words.values() == std::vector<std::int32_t>{-69, 63, -63, 77});
  CHECK(wide_words.values() == std::vector<std::uint64_t>{~0ULL, 63, 135, 0});
}

TEST_CASE("The order of threads follows the seed and nothing else") {
  const auto order_of = [](std::uint64_t seed) {
    const auto next = Buffer<std::uint32_t>::in_out("next", std::vector<std::uint32_t>{0});
    const auto order = Buffer<std::uint32_t>::output("order", 256);
    launch(
        {.kernel = "order", .block = {256}, .seed = seed},
        [](Global<std::uint32_t> ticket, Global<std::uint32_t> out) { out[atomicAdd(ticket, 1)] = threadIdx.x; },
        next.global(), order.global());
    return order.values();
  };
  std::vector<std::uint32_t> ascending(256);
  std::iota(ascending.begin(), ascending.end(), 0u);
  CHECK(order_of(1) == order_of(1));
  CHECK(order_of(1) != order_of(2));
  CHECK(order_of(1) != ascending);
  CHECK(std::is_permutation(ascending.begin(), ascending.end(), order_of(1).begin()));
}
