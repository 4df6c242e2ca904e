// Ways to read a trace file. The rows, parameters, masks and histories are the same in all.
#pragma once

#include <cstdint>

namespace draftproof {

enum class TraceKind : std::uint8_t {
  steps,          // verification steps: docs/trace.md
  emitted_steps,  // with what was emitted, output_tokens [B, W] and maybe num_accepted and group: docs/audit.md
  draws,          // single draws, samples and maybe group: a request without drafts for each row: docs/audit.md
  filtered,       // what filters left of the rows, filtered_logits or kept [G, V]: rows as of draws: docs/audit.md
};

}  // namespace draftproof
