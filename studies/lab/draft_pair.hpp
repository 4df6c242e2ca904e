// A target and a draft model after one context: what trees are built from and verified against.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/verify/dense_rows.hpp"
#include "reference/verify/draft_tree.hpp"

namespace draftproof {

using PairRow = DenseMasses<double>;  // probabilities [V], each a float: as a verification step takes them

class DraftPair {
 public:
  virtual ~DraftPair() = default;
  virtual std::int64_t vocab_size() const = 0;
  virtual std::string text(Token token) const = 0;  // fit for one line
  // q after the context and these tokens; valid as long as the object.
  virtual const PairRow& draft(std::span<const Token> path) = 0;
  // p at the root and after every node of a tree [n + 1].
  virtual std::vector<PairRow> targets(const DraftTree& tree) = 0;
  // p of every node's token at its parent [n].
  virtual std::vector<double> target_probabilities(const DraftTree& tree) = 0;
  // (p, q) at some other places of the text, to average over.
  virtual std::vector<std::pair<PairRow, PairRow>> examples() = 0;
};

// Logits of the target are independent normals with the standard deviation `sharpness`, new after every path; those of
// the draft have the same standard deviation and the correlation `quality` with them. So q = p at quality 1, and at 0
// the draft knows nothing.
struct SyntheticPair {
  std::int32_t vocab_size = 16;
  double sharpness = 2.5;
  double quality = 0.9;
  std::uint64_t seed = 1;
};
std::unique_ptr<DraftPair> make_synthetic_pair(const SyntheticPair& settings);

}  // namespace draftproof
