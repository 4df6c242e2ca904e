// A request's result is a function of the request: no batch, no place in it, no thread and no instruction set may
// change a bit.
#include "reference/step/batch.hpp"

#include <atomic>

#include "tests/support/random_request.hpp"
#include "tests/support/row_kernel_sets.hpp"
#include "tests/support/test.hpp"

namespace {

struct Batch {
  std::vector<OwnedRequest> owned;
  std::vector<VerifyRequest> requests;
};

Batch random_batch(std::uint64_t seed, const std::vector<std::int64_t>& vocab_sizes) {
  TestRandom random(seed);
  Batch batch;
  for (const std::int64_t vocab_size : vocab_sizes) {
    batch.owned.push_back(random_request(random, vocab_size, vocab_size > 10000 ? 2 : 4));
    batch.requests.push_back(batch.owned.back().request);
  }
  return batch;
}

// Sizes around the edges of vectors and tiles.
std::vector<std::int64_t> sizes() {
  std::vector<std::int64_t> out;
  for (int i = 0; i < 40; ++i)
    for (const std::int64_t v : {1, 7, 31}) out.push_back(v);
  for (int i = 0; i < 6; ++i)
    for (const std::int64_t v : {4095, 4096, 4097}) out.push_back(v);
  out.insert(out.end(), {32000, 128256, 32000});
  return out;
}

void require_same(const std::vector<Emission>& a, const std::vector<Emission>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(same_emission(a[i], b[i]));
  }
}

}  // namespace

TEST_CASE("threads and splits and places of a batch change no bit") {
  const Batch batch = random_batch(701, sizes());
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    VerifyOptions options;
    options.sampler = sampler;
    const std::vector<Emission> expected = verify_batch(batch.requests, options, 1);
    require_same(verify_batch(batch.requests, options, 2), expected);
    require_same(verify_batch(batch.requests, options, 5), expected);

    // One by one, and in two uneven parts.
    std::vector<Emission> parts;
    for (std::size_t begin = 0, count = 1; begin < batch.requests.size(); begin += count, count = count % 29 + 7) {
      count = std::min(count, batch.requests.size() - begin);
      const std::span<const VerifyRequest> part(batch.requests.data() + begin, count);
      for (Emission& e : verify_batch(part, options, 2)) parts.push_back(std::move(e));
    }
    require_same(parts, expected);

    // In another order.
    std::vector<std::size_t> order(batch.requests.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    TestRandom random(702);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    std::vector<VerifyRequest> shuffled;
    for (const std::size_t i : order) shuffled.push_back(batch.requests[i]);
    const std::vector<Emission> found = verify_batch(shuffled, options, 2);
    std::vector<Emission> back(found.size());
    for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = found[i];
    require_same(back, expected);
  }
}

TEST_CASE("a verifier that keeps its buffers emits the bits of a fresh one") {
  const Batch first = random_batch(711, sizes());
  const Batch second = random_batch(712, sizes());
  BatchVerifier verifier(2);
  for (const Batch* batch : {&first, &second, &first})
    require_same(verifier.verify(batch->requests, {}), verify_batch(batch->requests, {}, 1));
}

TEST_CASE("every set of row kernels emits the bits of the scalar one") {
  const Batch batch = random_batch(703, sizes());
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    VerifyOptions options;
    options.sampler = sampler;
    options.all_rows = true;
    std::vector<Emission> expected;  // of the scalar set, which is the first
    for_each_row_kernel_set([&] {
      const std::vector<Emission> emissions = verify_batch(batch.requests, options, 2);
      if (expected.empty()) expected = emissions;
      require_same(emissions, expected);
    });
  }
}

TEST_CASE("the seed and the step of a request do change its tokens") {
  // So that the tests above could have failed.
  Batch batch = random_batch(704, std::vector<std::int64_t>(200, 31));
  const std::vector<Emission> first = verify_batch(batch.requests, {}, 1);
  const auto differing = [&] {
    const std::vector<Emission> second = verify_batch(batch.requests, {}, 1);
    int count = 0;
    for (std::size_t i = 0; i < first.size(); ++i) count += first[i].tokens == second[i].tokens ? 0 : 1;
    return count;
  };
  CHECK(differing() == 0);
  for (VerifyRequest& r : batch.requests) ++r.step;
  CHECK(differing() > 60);
  for (VerifyRequest& r : batch.requests) {
    --r.step;
    r.seed ^= std::uint64_t{1} << 40;  // the upper half of the seed counts (vllm-ascend #9693)
  }
  CHECK(differing() > 60);
}

TEST_CASE("the error of a batch names its lowest wrong request whatever the threads do") {
  Batch batch = random_batch(705, std::vector<std::int64_t>(300, 7));
  for (const std::size_t bad : {290, 120, 121, 250}) batch.requests[bad].parameters.temperature = -1.0f;
  for (const int threads : {1, 2, 4})
    for (int i = 0; i < 5; ++i)
      CHECK_THAT(error_of(ErrorKind::usage, [&] { verify_batch(batch.requests, {}, threads); }),
                 Contains("request 120:"));
}

TEST_CASE("progress is told once for every request") {
  const Batch batch = random_batch(706, std::vector<std::int64_t>(100, 7));
  std::atomic<int> calls{0};
  std::atomic<std::int64_t> largest{0};
  verify_batch(batch.requests, {}, 2, [&](std::int64_t finished) {
    ++calls;
    std::int64_t seen = largest;
    while (finished > seen && !largest.compare_exchange_weak(seen, finished)) {
    }
  });
  CHECK(calls == 100);
  CHECK(largest == 100);
}

TEST_CASE("an empty batch is no error and a batch without threads is one") {
  CHECK(verify_batch({}, {}, 2).empty());
  const Batch batch = random_batch(707, {7});
  for (const int threads : {0, -1})
    CHECK_THAT(error_of(ErrorKind::usage, [&] { verify_batch(batch.requests, {}, threads); }), Contains("threads"));
}
