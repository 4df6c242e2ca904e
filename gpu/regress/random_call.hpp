// The arrays of one call with random arguments.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "gpu/regress/case.hpp"
#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {

// A stream of random words, the same on every machine.
class RandomWords {
 public:
  explicit RandomWords(std::uint64_t seed) : noise_(seed) {}
  std::uint32_t word() { return noise_.word(next_++); }
  std::int64_t below(std::int64_t n) { return noise_.below(next_++, n); }
  bool chance(double probability) { return noise_.uniform(next_++) < probability; }
  float normal() { return static_cast<float>(noise_.normal(next_++)); }

 private:
  Noise noise_;
  std::uint64_t next_ = 0;
};

// Makes the arrays of a call.
class RandomCall {
 public:
  RandomCall(CaseRun& case_run, std::uint64_t seed) : run(case_run), random(seed) {
    constexpr double kWrong[] = {0.0, 0.0, 0.01, 0.05, 0.2};
    wrong_ = kWrong[random.below(5)];
  }

  CaseRun& run;
  RandomWords random;

  bool is_wrong() { return random.chance(wrong_); }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(values.size())))];
  }
  std::int64_t wrong_index() {
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    return one_of<std::int64_t>({-1, -2, 1, 2, 3, 7, kFar, -kFar, std::numeric_limits<std::int64_t>::max(),
                                 std::numeric_limits<std::int64_t>::min()});
  }
  std::int32_t wrong_id() { return static_cast<std::int32_t>(wrong_index() >> (random.chance(0.5) ? 32 : 0)); }
  float wrong_number() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return one_of<float>({std::nanf(""), kInfinity, -kInfinity, -1.0f, 2.0f, 3e38f, -3e38f, 1e-45f, -0.0f, 0.0f});
  }

  template <class T>
  const T* input(const std::vector<T>& values) {
    return run.input(values);
  }
  // [count] of make().
  template <class T, class Make>
  const T* input(std::int64_t count, Make make) {
    std::vector<T> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(make());
    return run.input(values);
  }
  template <class T, class Make>
  const T* maybe(std::int64_t count, Make make, double probability = 0.4) {
    return random.chance(probability) ? input<T>(count, make) : nullptr;
  }
  // Begins with the same bytes for every executor: a call that is refused, or padding, leaves them.
  template <class T>
  T* output(const std::string& name, std::int64_t count) {
    return run.in_out(name, std::vector<T>(static_cast<std::size_t>(count), static_cast<T>(kPoison)));
  }
  template <class T>
  T* maybe_output(const std::string& name, std::int64_t count) {
    return random.chance(0.6) ? output<T>(name, count) : nullptr;
  }

  // Makes the call. What it is refused for is compared like an output.
  template <class Call>
  void compare(Call call) {
    try {
      call(run.settings());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::usage) throw;
      const std::string message = error.what();
      run.in_out("refusal", std::vector<char>(message.begin(), message.end()));
    }
  }

 private:
  static constexpr int kPoison = -91;
  double wrong_;
};

// Calls on rows across devices (random_shard_calls.cpp).
void random_shard_prepare(RandomCall& call);
void random_shard_summarise(RandomCall& call);
void random_shard_select(RandomCall& call);
void random_shard_draw(RandomCall& call);
void random_shard_verify(RandomCall& call);

}  // namespace draftproof::regress
