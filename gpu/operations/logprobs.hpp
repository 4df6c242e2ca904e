// Log-probabilities as a call: launch_pipeline, then kernels/logprobs.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/logprobs.cuh"
#include "gpu/operations/instances.hpp"
#include "gpu/operations/launch_distribution.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
std::int64_t logprobs_workspace_bytes(const draftproof_logprobs_arguments& a) {
  OperationMemory memory = OperationMemory::measuring();
  PipelineScratch::in(memory, pipeline_input(a, a.rows, a.logits));
  return memory.workspace_bytes();
}

void logprobs(const draftproof_logprobs_arguments& a, const draftproof_settings& settings) {
  if (a.rows == 0) return;
  OperationMemory memory(a.workspace);
  PipelineInput input = pipeline_input(a, a.rows, a.logits);
  add_rows(memory, a, input);
  const PipelineScratch scratch = PipelineScratch::in(memory, input);
  const LogitsDistribution distribution = launch_pipeline(settings, memory, input, scratch);

  LogprobRows out{};
  out.distribution = distribution;
  out.n = a.n;
  out.sampled = memory.input("sampled", a.sampled, a.rows);
  out.ids = memory.input("ids", a.ids, a.ids_count);
  out.ids_count = a.ids_count;
  out.ids_offsets = memory.input("ids_offsets", a.ids_offsets, a.requests + 1);
  out.ids_max = a.ids_max;
  const std::int64_t places = a.rows * (a.n + 1 + a.ids_max);
  out.tokens = memory.output("tokens", a.tokens, places);
  out.logprobs = memory.output("logprobs", a.logprobs, places);
  out.ranks = memory.output("ranks", a.ranks, places);
  out.status = memory.output("status", a.status, a.rows);
  with_element(distribution.logits.dtype, [&](auto element) {
    launch(describe(settings, "logprob_rows", a.rows, block_threads(settings, 512)), logprob_rows<decltype(element)>,
           out);
    if (a.ids_max > 0)
      launch(describe(settings, "logprob_ids", a.rows, block_threads(settings, 512)), logprob_ids<decltype(element)>,
             out);
  });
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
