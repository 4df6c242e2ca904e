#include "gpu/regress/cases.hpp"

#include <iterator>
#include <utility>

namespace draftproof::regress {

std::vector<RegressCase> all_cases() {
  std::vector<RegressCase> cases;
  for (const auto list : {mass_pass_cases, guidance_cases, sample_cases, logprobs_cases, verify_chain_cases,
                          verify_block_cases, verify_tree_cases, tree_mask_cases, kv_commit_cases}) {
    std::vector<RegressCase> more = list();
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

}  // namespace draftproof::regress
