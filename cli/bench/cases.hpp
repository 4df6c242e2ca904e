// The measurements of `draftproof bench`, by what they exercise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/inputs.hpp"
#include "cli/bench/result.hpp"
#include "reference/sampling/probability_row.hpp"

namespace draftproof {

// How large the measured problems are.

struct BenchSizes {
  std::size_t probe_bytes = std::size_t{512} << 20;  // read to measure bandwidth and to empty the caches
  std::int64_t row_vocab_size = 131072;
  std::int64_t batch = 64;
  std::int64_t draft_len = 5;
  std::int64_t verify_vocab_size = 128256;
  std::int64_t chain_trials = 16'000'000;
  std::int64_t sequence_steps = 2'000'000;
  std::int64_t simulated_requests = 5'000;
};

// For tests of the program: every measurement is taken, none means anything.
inline constexpr BenchSizes kQuickSizes{std::size_t{16} << 20, 8192, 4, 3, 8192, 64'000, 10'000, 100};

// One measurement before it is taken. Cases are listed cheaply; what they work on is made by prepare(), once, when the
// case is due.

// Work that a case times, and how much of it there is.
struct BenchWork {
  std::function<void()> body;
  std::function<void()> mass_pass;  // empty, or timed in turns with the body
  std::function<void()> one_row;    // likewise: the same for one row of activations
  std::optional<std::uint64_t> elements;
  std::optional<std::uint64_t> bytes;
  std::optional<double> acceptance_length;
  std::optional<std::uint64_t> message_bytes;
  std::function<PolicyComparison()> compare;  // empty, or what all repeats but the first came to
};

struct BenchCase {
  std::string name;
  int threads = 1;
  std::optional<BenchGoal> goal;
  bool cold = false;  // the caches are filled with other data before every repeat
  std::function<BenchWork()> prepare;
};

// One row of normal logits on one thread: the mass pass by every kernel set that this processor runs, and the pipeline
// with each filter followed by a draw, whole and over 1, 8 and 64 devices.
std::vector<BenchCase> row_cases(const BenchSizes& sizes);

// The chain verifier over a batch, on each number of threads. `inputs` is made when the first case is prepared.
std::vector<BenchCase> verify_cases(const std::vector<int>& threads,
                                    const std::function<const BenchVerifyInputs&()>& inputs);

// Trials of drafting and verifying a chain of K = 4 at V = 8, counted (exactness/soak).
std::vector<BenchCase> soak_cases(const std::vector<int>& threads, const BenchSizes& sizes);

// Plans and commits of the scheduler over a batch of requests that are replaced as they end, counted in sequence-steps.
std::vector<BenchCase> scheduler_cases(const BenchSizes& sizes);

// The serving simulator on one thread: the static batch, replays and full serving, counted in sequence-steps, and two
// lengths of a trace counted in requests, whose times should be equal.
std::vector<BenchCase> simulator_cases(const BenchSizes& sizes);

// A transformer of the shipped model's sizes with random weights: its matrix products in each format of files, whole
// steps of decoding, prefill, and attention alone. `quick`: a tiny one.
std::vector<BenchCase> forward_cases(const std::vector<int>& threads, bool quick);

// The shipped model: prefill of 512 tokens, and decoding of 32 tokens of one request at temperature 1 with sampling.
// Empty where the model has not been fetched.
std::vector<BenchCase> shipped_model_cases(const std::vector<int>& threads);

// The yardstick: the mass kernel alone over a row, tile by tile, as the row's element type comes.
void mass_pass(const RowView& row);

// The row of normal logits that row_cases() measures on.
std::vector<float> bench_row(std::int64_t vocab_size);

// Policy auto beside plain decoding of the shipped model; none where it is not there.
std::vector<BenchCase> policy_cases(const std::vector<int>& threads, bool quick);

}  // namespace draftproof
