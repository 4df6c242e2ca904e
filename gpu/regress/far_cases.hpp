// Cases whose elements lie beyond 2^32, for every call but one: the verifiers of chains and blocks have theirs beside
// their other cases, and a tree mask is written whole, so that one of that size would be 17 GB of stores.
#pragma once

#include <functional>
#include <vector>

#include "gpu/regress/case.hpp"

namespace draftproof::regress {

RegressCase far_mass_pass_case();
RegressCase far_guidance_case();
RegressCase far_sample_case();
RegressCase far_logprobs_case();
std::vector<RegressCase> far_verify_tree_cases();
RegressCase far_kv_commit_case();
class ShardCalls;
struct ShardMessages;
RegressCase far_shard_case(const char* name, std::function<void(CaseRun&, ShardCalls&, const ShardMessages&)> call);
RegressCase far_shard_verify_case();

}  // namespace draftproof::regress
