#include "reference/step/draft_plan.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr std::int32_t kWidthMax = 64;
constexpr std::size_t kDepthMax = 64;

void require_nodes(std::int64_t nodes, const std::string& where) {
  if (nodes > kDraftNodesMax)
    throw usage_error(
        where, "the draft has " + std::to_string(nodes) + " nodes; expected at most " + std::to_string(kDraftNodesMax));
}

bool takes_branches(const VerifierInfo& info) {
  return info.draft != DraftForm::chain && !info.takes_paths();
}

}  // namespace

std::int32_t DraftPlan::draft_len_max() const {
  return DraftTree(std::vector<Token>(shape.parents.size(), 0), shape.parents).depth_max();
}

DraftPlan plan_for(const VerifierChoice& verifier, const std::optional<TreeShape>& tree, int num_speculative_tokens,
                   const std::string& where) {
  const VerifierInfo& info = verifier.info();
  DraftPlan plan{tree ? *tree : chain_shape(num_speculative_tokens), info.proposal};
  if (tree && !tree->is_chain() && !takes_branches(info))
    throw usage_error(where, "verifier " + std::string(info.name) + " takes " +
                                 (info.takes_paths() ? "independent paths" : "a chain") +
                                 ", and the tree has branches; expected no tree, or verifier " +
                                 verifier_names(takes_branches));
  if (info.takes_paths()) plan.num_paths = static_cast<std::int32_t>(verifier.parameter("paths"));
  plan.coupled = info.is_coupled();
  require_nodes(std::int64_t{plan.num_paths} * plan.shape.size(), where);
  return plan;
}

TreeShape parse_tree(std::string_view text, const std::string& where) {
  const auto fail = [&]() -> Error {
    return usage_error(where, "is \"" + std::string(text) + "\"; expected numbers of children from 1 to " +
                                  std::to_string(kWidthMax) + ", one for each of at most " + std::to_string(kDepthMax) +
                                  " levels, as in 3x2x1");
  };
  std::vector<std::int32_t> widths;
  std::int64_t level = 1;
  std::int64_t nodes = 0;
  for (std::string_view rest = text;;) {
    const std::string_view part = rest.substr(0, rest.find('x'));
    std::int32_t width = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), width);
    if (part.empty() || error != std::errc{} || end != part.data() + part.size() || width < 1 || width > kWidthMax ||
        widths.size() == kDepthMax)
      throw fail();
    widths.push_back(width);
    level = std::min<std::int64_t>(level * width, kDraftNodesMax + 1);
    nodes += level;
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  require_nodes(nodes, where);
  return branching_shape(widths);
}

}  // namespace draftproof
