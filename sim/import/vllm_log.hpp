// Lines that vLLM prints of speculation. The forms, all of them with timestamps and prefixes of any kind:
//
//   SpecDecoding metrics: Mean acceptance length: 2.62, Accepted throughput: ..., Drafted throughput: ...,
//     Accepted: 141 tokens, Drafted: 435 tokens, Per-position acceptance rate: 0.782, 0.494, ..., Avg Draft acceptance
//     rate: 32.4%
//       one window of time a line; fields in any order, and earlier versions have fewer of them. The rates are
//       unconditional, the length has the bonus token and is that of steps with a draft.
//   Speculative metrics: Draft acceptance rate: 0.642, System efficiency: 0.598, Number of speculative tokens: 3,
//     Number of accepted tokens: 8547, Number of draft tokens: 13311, Number of emitted tokens: 10616
//       (0.3 to 0.8) counters since the start. Their "accepted tokens" count drafts behind a rejected one too, so that
//       only the emitted ones give the acceptance length: emitted / (draft tokens / K).
//   vllm bench serve and the offline examples: "Acceptance length: 2.69", "Drafts: 3221", "Position 0: 73.21",
//     "num_drafts: 36593", "acceptance at token 0: 0.75", and the steps without a draft,
//     "num_tokens_generated_without_sd: 821"; or "Number of draft proposals: 321", "Number of draft tokens generated:
//     963", "Acceptance rate at token 0: 0.75". A line like these that is not known is counted as not used
//
// Lines "Avg generation throughput: 57.4 tokens/s, Running: 1 reqs" give the throughput, and with the accepted
// throughput beside them how many steps had no draft.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

bool is_vllm_log(std::string_view text);
// Errors (input) naming the line: a field that is no number, a rate outside [0, 1] or above the one before it, rates
// that contradict the acceptance length of their line; and where no line says enough, unless `plain` and one has a
// throughput: its data has no window. A last line without its end that is malformed is left out.
// K is `drafts` where no line says it; 0: not known.
AcceptanceData read_vllm_log(std::string_view text, const std::string& name, bool plain = false,
                             std::int32_t drafts = 0);

}  // namespace draftproof
