// B36: a tree's target rows are sliced wrongly.
#include <algorithm>
#include <ranges>
#include <string>

#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/proof/distribution_text.hpp"
#include "exactness/proof/steps.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

constexpr std::int32_t kBranching = 2;

// Rows as the walk down the tree asks for them: by node, or, as if the tree were a chain, the next slice every time.
// For nodes in breadth-first order this is right for the root and its first child alone.
template <class Number>
class SlicedRows {
 public:
  SlicedRows(const DenseRows<Number>& rows, bool faulty) : rows_(rows), faulty_(faulty) {}

  const DenseMasses<Number>& row(std::uint32_t node_row) const { return rows_.row(faulty_ ? next_++ : node_row); }

 private:
  const DenseRows<Number>& rows_;
  bool faulty_;
  mutable std::uint32_t next_ = 0;  // verify_tree reads rows as constants
};

// E: two independent children, one child each, judged by recursive rejection.
EnumeratedStep tree_step(bool faulty) {
  const auto draw = [](const auto& distribution, std::int32_t, ExactChance& chance) {
    return draw_iid_children(distribution, branching_shape({kBranching, 1}), chance);
  };
  const auto verify = [faulty](const DraftTree& tree, const ExactRows& target, const ExactRows& proposal,
                               ExactChance& chance) {
    return verify_tree(tree, SlicedRows<Rational>(target, faulty), proposal, proof_steps::rrs, chance);
  };
  return proof_steps::tree_step(draw, verify);
}

// R: trees of distinct children under a greedy target whose choice differs from prefix to prefix: what a tree emits
// against plain greedy decoding, one token after another, each from the row of its own prefix. Cases are trees.
Finding find_misread_rows(bool faulty) {
  constexpr std::int32_t kTreeVocabSize = 4;
  constexpr std::uint64_t kTrees = 256;
  return first_evidence("trees", std::views::iota(std::uint64_t{0}, kTrees), [faulty](std::uint64_t seed) {
    const auto greedy_distribution = [&](std::span<const Token> path) {
      std::uint32_t context = 1;
      for (const Token token : path) context = context * (kTreeVocabSize + 1) + static_cast<std::uint32_t>(token) + 1;
      DenseMasses<double> distribution(kTreeVocabSize, 0.0);
      distribution[philox_block(seed, 0, context, 0, static_cast<std::uint32_t>(Purpose::simulator)).word[0] %
                   kTreeVocabSize] = 1.0;
      return distribution;
    };
    const auto draft_distribution = [](std::span<const Token>) {
      return DenseMasses<double>(kTreeVocabSize, 1.0 / kTreeVocabSize);
    };
    PhiloxSource source;
    AddressedChance<PhiloxSource> chance(source, seed, 0);
    const DraftTree tree =
        draw_children_without_replacement(draft_distribution, branching_shape({kBranching, kBranching}), chance);
    const DenseRows<double> target = proof_steps::rows_of(tree, greedy_distribution);
    const DenseRows<double> proposal = proof_steps::rows_of(tree, draft_distribution);
    const TokenString emitted = emitted_tokens(
        tree, verify_tree(tree, SlicedRows<double>(target, faulty), proposal, proof_steps::naive, chance));
    TokenString decoded;
    while (decoded.size() < emitted.size()) {
      const DenseMasses<double> distribution = greedy_distribution(decoded);
      decoded.push_back(static_cast<Token>(std::ranges::max_element(distribution) - distribution.begin()));
    }
    if (emitted == decoded) return std::string();
    return "tree " + std::to_string(seed) + " emits " + text_of(emitted) + ", token by token it is " + text_of(decoded);
  });
}

}  // namespace

std::vector<Bug> tree_row_bugs() {
  return {{.id = "B36",
           .source = "TensorRT-LLM #15098",
           .fault = "the target rows of a tree are sliced as if it were a chain: a second child is judged by the first "
                    "one's row",
           .hunts = {{Detector::enumeration,
                      [](bool faulty) { return find_wrong_distribution({.draft_len = 2}, tree_step(faulty)); }},
                     {Detector::ragged, find_misread_rows}}}};
}

}  // namespace draftproof
