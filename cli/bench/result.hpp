// Result of one measurement of `draftproof bench`, and how it is printed.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "cli/bench/interleaved.hpp"
#include "cli/shared/json_document.hpp"

namespace draftproof {

// A bound on one of the keys of the result's JSON.
struct BenchGoal {
  std::string metric;
  bool at_most = true;  // else at least
  double bound = 0.0;
};

// Two policies of decoding: how many times cheaper the second is, and where the time of steps without prompts went.
struct PolicyComparison {
  UsageRatios ratios;
  std::string why_no_instructions;
  Json plain_steps, policy_steps;
};

struct BenchResult {
  std::string name;
  int threads = 1;
  double ms = 0.0;         // the fastest repeat: the machine may be shared, and noise only ever adds
  double ms_median = 0.0;  // of all repeats
  std::optional<std::uint64_t> elements;
  std::optional<std::uint64_t> bytes;           // that must be read, at least
  std::optional<double> bandwidth_bytes_per_s;  // measured with as many threads
  std::optional<double> mass_pass_ms;           // the mass kernel alone over the same rows
  std::optional<double> one_row_ms;             // the same work for one row of activations
  std::optional<double> pytorch_ms;             // PyTorch's fastest repeat of the same work
  std::optional<double> llama_cpp_ms;           // llama.cpp's, with the same model file
  std::optional<double> acceptance_length;      // of the verified batch: emitted tokens a request
  std::optional<std::uint64_t> message_bytes;   // of a row over devices: vectors that they sum or maximise
  std::optional<PolicyComparison> policy;
  std::optional<BenchGoal> goal;
};

// One entry of `results`; the schema is in docs/json.md.
Json to_json(const BenchResult& result);

// A table for people.
void print_bench_table(std::ostream& out, std::span<const BenchResult> results);

}  // namespace draftproof
