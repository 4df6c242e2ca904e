#include "engine/decode/generate.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "engine/decode/paired_run.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kBlocksMax = std::int64_t{1} << 20;  // 16 Mi tokens

// Room for everything that the request can become.
SchedulerOptions room_for(const ActiveRequest& request, const LanguageModel& target) {
  const std::int64_t nodes = std::int64_t{request.plan.num_paths} * request.plan.shape.size();
  std::int64_t blocks = 0;
  for (const std::vector<Token>& stream : request.streams) {
    const std::int64_t longest = std::min<std::int64_t>(
        static_cast<std::int64_t>(stream.size()) + output_len_max(request), target.context_len_max());
    blocks += blocks_for(longest + nodes) + 1;
  }
  SchedulerOptions options;
  options.num_blocks = static_cast<std::int32_t>(std::min<std::int64_t>(blocks, kBlocksMax));
  options.context_len_max = std::numeric_limits<std::int32_t>::max();
  options.token_budget = std::numeric_limits<std::int32_t>::max();
  return options;
}

}  // namespace

Generation generate(LanguageModel& target, Drafter* drafter, const DecodingOptions& options,
                    std::span<const Token> prompt, StepSampler& sampler) {
  const ActiveRequest request(0, target, prompt, options, drafter != nullptr);
  SpeculationPolicy policy;
  if (drafter != nullptr) policy = SpeculationPolicy(whole_drafts(options, "tree"));
  EngineOptions engine_options{room_for(request, target), policy, false};
  Engine engine(target, drafter, sampler, std::move(engine_options));
  const std::uint64_t id = engine.submit(prompt, options);
  engine.run();
  Generation generation = *engine.take(id);
  if (generation.failure) std::rethrow_exception(generation.failure);
  return generation;
}

}  // namespace draftproof
