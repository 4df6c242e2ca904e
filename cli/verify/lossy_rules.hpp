// `draftproof verify --lossy`: lossy rules on the steps of one trace, with the same coins: what acceptance each gains,
// and how far its first tokens are from the target.
#pragma once

#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "reference/step/lossy_distance.hpp"
#include "reference/trace/trace.hpp"

namespace draftproof {

// Those of kComparedLossyRules. Errors (usage) at --lossy: the drafts are trees, or there
// are none.
std::vector<LossyRule> lossy_rules(const Trace& trace, int threads);

Json json_of(const std::vector<LossyRule>& rules);
// Accepted drafts over distance, a point a rule.
std::string lossy_figure(const std::vector<LossyRule>& rules);

}  // namespace draftproof
