// How much devices exchange, and that a process which holds one shard alone needs no more.
#include "reference/shard/devices.hpp"

#include <barrier>
#include <mutex>
#include <thread>

#include "tests/reference/shard/random_shards.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

TEST_CASE("a row says at most 1 KiB between devices to draw a token, 16 KiB with filters", "[shard]") {
  constexpr std::int64_t kVocab = 128'256;
  TestRandom random(1);
  const std::vector<float> logits = normal_row(random, kVocab, 3.0f);
  for (const std::size_t count : {1, 2, 3, 8, 16, 32, 64}) {
    Devices devices(even_split(kVocab, count));
    const SplitRow split(logits, DType::bf16, devices);
    ShardedRow row(devices);
    const auto traffic = [&](const FilterParameters& filters, Sampler sampler) {
      devices.clear_traffic();
      RowInput input;
      input.parameters.filters = filters;
      row.run(input, split.parts());
      PhiloxSource source;
      AddressedChance<> chance(source, 1, 0, sampler);
      const Token token = chance.draw(ShardedMasses(row), 0, Purpose::target_sample);
      row.log_probability(token);
      return devices.traffic();
    };
    FilterParameters both;
    both.top_k = 50;
    both.top_p = 0.9f;
    FilterParameters all = both;
    all.top_k = 5'000;
    all.min_p = 1e-6f;
    all.order = FilterOrder::top_k_first;
    INFO(count << " devices");
    CHECK(traffic({}, Sampler::inverse).bytes <= 1024);
    CHECK(traffic({}, Sampler::race).bytes <= 1024);
    CHECK(traffic(both, Sampler::inverse).bytes <= 16 * 1024);
    CHECK(traffic(all, Sampler::race).bytes <= 16 * 1024);
    if (count != 8) continue;
    // The table of sharded_row.hpp: 16,032 tokens a device cut tiles.
    CHECK(traffic({}, Sampler::inverse).bytes <= 4 * 32 + 4 + 8 * 32 + 2 * 8 + 8 + 8);
    CHECK(traffic({}, Sampler::inverse).rounds <= 5);
    CHECK(traffic(both, Sampler::inverse).bytes <= 412 + 8 * 50 * 8 + 4 * 2048 + 8 * 8 + 8 + 8 * 32 + 16);
  }
}

TEST_CASE("ranges of tokens must follow one another from 0 on", "[shard]") {
  const auto error = [](std::vector<TokenRange> ranges) {
    return error_of(ErrorKind::input, [&] { Devices devices(std::move(ranges)); });
  };
  CHECK_THAT(error({{0, 5}, {6, 9}}), Contains("shard 1") && Contains("from 5 on"));
  CHECK_THAT(error({{0, 5}, {5, 4}}), Contains("[5, 4)"));
  CHECK_THAT(error({{0, 0}}), Contains("they hold 0 tokens"));
  CHECK_THAT(error({{0, (1 << 19) + 1}}), Contains("1 to 524288"));
}

// Processes as threads: each knows its own shard, and vectors alone pass between them.
class Meeting {
 public:
  explicit Meeting(std::size_t processes) : barrier_(static_cast<std::ptrdiff_t>(processes)) {}

  template <class Number, class Combine>
  void meet(std::vector<Number>& shared, std::span<Number> own, const Combine& combine) {
    {
      const std::lock_guard lock(mutex_);
      if (shared.empty())
        shared.assign(own.begin(), own.end());
      else
        for (std::size_t i = 0; i < own.size(); ++i) shared[i] = combine(shared[i], own[i]);
    }
    barrier_.arrive_and_wait();
    std::copy(shared.begin(), shared.end(), own.begin());
    barrier_.arrive_and_wait();
    {
      const std::lock_guard lock(mutex_);
      shared.clear();
    }
    barrier_.arrive_and_wait();
  }

  std::vector<std::uint64_t> words;
  std::vector<std::int32_t> numbers;

 private:
  std::barrier<> barrier_;
  std::mutex mutex_;
};

class Threads final : public Collectives {
 public:
  explicit Threads(Meeting& meeting) : meeting_(meeting) {}
  void sum(std::span<std::uint64_t> words) override { meeting_.meet(meeting_.words, words, std::plus<>()); }
  void largest(std::span<std::int32_t> numbers) override {
    meeting_.meet(meeting_.numbers, numbers, [](std::int32_t a, std::int32_t b) { return std::max(a, b); });
  }

 private:
  Meeting& meeting_;
};

TEST_CASE("processes that hold one shard each draw what one process draws, and throw what it throws", "[shard]") {
  constexpr std::size_t kProcesses = 3;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    TestRandom random(seed);
    const std::int64_t vocab_size = 3 + random.below(9000);
    const std::vector<TokenRange> ranges = even_split(vocab_size, kProcesses);
    std::vector<float> logits = awkward_row(random, vocab_size);
    if (seed % 8 == 7)
      logits[static_cast<std::size_t>(random.below(vocab_size))] = std::numeric_limits<float>::quiet_NaN();
    OwnedInput input = random_input(random, vocab_size);
    const Devices all(ranges);
    const SplitRow split(logits, random_dtype(random), all);
    const auto answer = [&](const Devices& devices) -> std::string {
      ShardedRow row(devices);
      try {
        row.run(input.input, split.parts());
      } catch (const RowError& error) {
        return error.what();
      }
      PhiloxSource source;
      AddressedChance<> chance(source, seed, 0, seed % 2 == 0 ? Sampler::inverse : Sampler::race);
      const Token token = chance.draw(ShardedMasses(row), 0, Purpose::target_sample);
      return std::to_string(token) + " " + std::to_string(row.log_probability(token));
    };
    Meeting meeting(kProcesses);
    std::vector<std::string> answers(kProcesses);
    std::vector<std::thread> processes;
    for (std::size_t here = 0; here < kProcesses; ++here)
      processes.emplace_back([&, here] {
        Threads threads(meeting);
        answers[here] = answer(Devices(ranges, threads, here));
      });
    for (std::thread& process : processes) process.join();
    const std::string alone = answer(all);
    for (const std::string& own : answers) REQUIRE(own == alone);
  }
}

}  // namespace
}  // namespace draftproof::testing
