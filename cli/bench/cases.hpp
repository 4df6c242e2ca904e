// The measurements of `draftproof bench`, by what they exercise.
#pragma once

#include <vector>

#include "cli/bench/case.hpp"
#include "cli/bench/inputs.hpp"
#include "cli/bench/sizes.hpp"
#include "reference/sampling/probability_row.hpp"

namespace draftproof {

// One row of normal logits on one thread: the mass pass by every kernel set that this processor runs, and the pipeline
// with each filter followed by a draw.
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

// The yardstick: the mass kernel alone over a row, tile by tile, as the row's element type comes.
void mass_pass(const RowView& row);

// The row of normal logits that row_cases() measures on.
std::vector<float> bench_row(std::int64_t vocab_size);

}  // namespace draftproof
