#include "gpu/regress/cases.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace draftproof::regress {
namespace {

struct Operation {
  const char* name;
  std::vector<RegressCase> (*cases)();
};

constexpr std::array<Operation, 9> kOperations = {{{"mass_pass", mass_pass_cases},
                                                   {"guidance", guidance_cases},
                                                   {"sample", sample_cases},
                                                   {"logprobs", logprobs_cases},
                                                   {"verify_chain", verify_chain_cases},
                                                   {"verify_block", verify_block_cases},
                                                   {"verify_tree", verify_tree_cases},
                                                   {"tree_mask", tree_mask_cases},
                                                   {"kv_commit", kv_commit_cases}}};

}  // namespace

std::vector<RegressCase> cases_named(const std::string& part) {
  const std::string operation = part.substr(0, part.find('/'));
  const bool names_one =
      operation.size() < part.size() &&
      std::any_of(kOperations.begin(), kOperations.end(), [&](const Operation& one) { return operation == one.name; });
  std::vector<RegressCase> cases;
  for (const Operation& one : kOperations) {
    if (names_one && operation != one.name) continue;
    std::vector<RegressCase> more = one.cases();
    std::erase_if(more, [&](const RegressCase& c) { return c.name.find(part) == std::string::npos; });
    std::move(more.begin(), more.end(), std::back_inserter(cases));
  }
  return cases;
}

}  // namespace draftproof::regress
