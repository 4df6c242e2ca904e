// Cases whose elements lie beyond 2^32, for every call but some: of the calls on rows across devices the first has one,
// the verifiers of chains and blocks have theirs beside their other cases, and a tree mask is written whole, so that
// one of that size would be 17 GB of stores.
#pragma once

#include <vector>

#include "gpu/regress/case.hpp"

namespace draftproof::regress {

RegressCase far_mass_pass_case();
RegressCase far_guidance_case();
RegressCase far_sample_case();
RegressCase far_logprobs_case();
std::vector<RegressCase> far_verify_tree_cases();
RegressCase far_kv_commit_case();
RegressCase far_shard_prepare_case();

}  // namespace draftproof::regress
