// The pipeline and a draw as a call: launch_pipeline, then kernels/sample.cuh, kernels/race.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/sample.cuh"
#include "gpu/operations/launch_distribution.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

PipelineInput sample_input(const draftproof_sample_arguments& a) {
  PipelineInput input = pipeline_input(a, a.rows, a.logits);
  input.counts_kept = a.kept_count != nullptr;
  return input;
}

struct SampleScratch {
  PipelineScratch pipeline;
  Global<std::uint64_t> winner_score;  // null: drawn by inverse mass
  Global<Token> winner_token;

  static SampleScratch in(OperationMemory& memory, const draftproof_sample_arguments& a) {
    SampleScratch scratch{PipelineScratch::in(memory, sample_input(a)), nullptr, nullptr};
    if (a.sampler != DRAFTPROOF_RACE) return scratch;
    const std::int64_t tiles = tiles_of(a.vocab_size);
    scratch.winner_score = memory.scratch<std::uint64_t>("winner_score", a.rows * tiles);
    scratch.winner_token = memory.scratch<Token>("winner_token", a.rows * tiles);
    return scratch;
  }
};

}  // namespace

std::int64_t sample_workspace_bytes(const draftproof_sample_arguments& a) {
  OperationMemory memory = OperationMemory::measuring();
  SampleScratch::in(memory, a);
  return memory.workspace_bytes();
}

void sample(const draftproof_sample_arguments& a, const draftproof_settings& settings) {
  if (a.rows == 0) return;
  OperationMemory memory(a.workspace);
  PipelineInput input = sample_input(a);
  add_rows(memory, a, input);
  const SampleScratch scratch = SampleScratch::in(memory, a);
  const LogitsDistribution distribution = launch_pipeline(settings, memory, input, scratch.pipeline);

  const Randomness random{memory.input("seed", a.randomness.seed, a.requests),
                          memory.input("step", a.randomness.step, a.requests),
                          memory.input("row_in_step", a.row_in_step, a.rows), static_cast<std::uint32_t>(a.purpose)};
  const std::uint32_t threads = block_threads(settings, 256);
  if (scratch.winner_score != nullptr) {
    const std::int64_t tiles = a.rows * distribution.tiles;
    const std::uint32_t threads_of_tile = tiles >= kManyTiles ? block_threads(settings, 32) : threads;
    launch(describe(settings, "race_tiles", tiles, threads_of_tile), race_tiles, distribution, random,
           scratch.winner_score, scratch.winner_token);
  }
  SampledRows out{distribution, random, scratch.winner_score, scratch.winner_token, nullptr, nullptr, nullptr,
                  nullptr,      nullptr};
  out.tokens = memory.output("tokens", a.tokens, a.rows);
  out.logprobs = memory.output("logprobs", a.logprobs, a.rows);
  out.kept_mass = memory.output("kept_mass", a.kept_mass, a.rows);
  out.kept_count = memory.output("kept_count", a.kept_count, a.rows);
  out.status = memory.output("status", a.status, a.rows);
  launch(describe(settings, "sample_rows", a.rows, threads), sample_rows, out);
  if (a.probabilities != nullptr) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(a.probabilities) % 16 == 0 && a.probabilities_stride % 4 == 0;
    launch(describe(settings, "write_probabilities", a.rows * distribution.tiles, threads), write_probabilities,
           distribution,
           memory.output_rows("probabilities", a.probabilities, a.rows, a.probabilities_stride, a.vocab_size),
           a.probabilities_stride, aligned);
  }
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
