// Trees of a model drafter: one pass a level, the rows of every node those of its path, and siblings for greedy
// requests.
#include "engine/draft/model_drafter.hpp"

#include <catch2/catch.hpp>

#include "engine/decode/decode_step.hpp"
#include "tests/engine/decode/toy_model.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kVocab = 9;

using testing::CountingModel;

SpeculativeStep propose(ModelDrafter& drafter, const std::vector<Token>& context, const DraftPlan& plan,
                        float temperature) {
  DecodingOptions options;
  options.parameters.temperature = temperature;
  PhiloxSource source;
  SpeculativeStep step;
  propose_draft(drafter, {context, context.size()}, plan, options, source, step);
  return step;
}

TEST_CASE("a drafted tree costs one pass a level and proposes each node's children from the row after its path") {
  const std::vector<Token> context{1, 2, 3};
  for (const DraftSampling sampling :
       {DraftSampling::any, DraftSampling::independent, DraftSampling::without_replacement, DraftSampling::greedy}) {
    CountingModel model(kVocab);
    ModelDrafter drafter(model);
    DraftPlan plan{branching_shape({3, 2, 1})};
    plan.sampling = sampling;
    const SpeculativeStep step = propose(drafter, context, plan, 0.9f);
    CHECK(step.draft.tree.size() == 3 + 6 + 6);
    CHECK(model.passes == 3);
    for (std::int32_t node = kRootNode; node < step.draft.tree.size(); ++node) {
      if (step.draft.tree.children(node).empty()) continue;
      std::vector<Token> path = context;
      for (const Token token : step.draft.tree.path(node)) path.push_back(token);
      std::vector<float> row(kVocab);
      model.model.logits(path, row);
      const std::size_t first = DraftTree::row_after(node) * kVocab;
      CHECK(std::equal(row.begin(), row.end(), step.draft.logits.begin() + static_cast<long>(first)));
    }
  }
}

TEST_CASE("a tree for a greedy request has siblings and a chain is greedy") {
  CountingModel model(kVocab);
  ModelDrafter drafter(model);
  const std::vector<Token> context{4, 5};
  DraftPlan tree{branching_shape({2, 2})};
  tree.sampling = DraftSampling::without_replacement;
  const SpeculativeStep step = propose(drafter, context, tree, 0.0f);
  CHECK(step.draft.tree.size() == 6);
  CHECK(step.draft.draft_parameters.temperature == 1.0f);
  CHECK(propose(drafter, context, DraftPlan{chain_shape(3)}, 0.0f).draft.draft_parameters.temperature == 0.0f);
}

TEST_CASE("a drafter that discards its KV drafts the same and computes the prefix again in every step") {
  const DraftPlan plan{chain_shape(3)};
  CountingModel kept(kVocab), discarded(kVocab);
  ModelDrafter keeps(kept), discards(discarded);
  discards.discard_kv();
  std::vector<Token> context(40, 2);
  std::int64_t in_full = 0;
  for (int step = 0; step < 10; ++step) {
    CHECK(propose(keeps, context, plan, 0.9f).draft.tree.tokens ==
          propose(discards, context, plan, 0.9f).draft.tree.tokens);
    in_full += static_cast<std::int64_t>(context.size()) + 1 + 2;  // with the start token; the last draft is not read
    context.push_back(static_cast<Token>(step % 3));
  }
  CHECK(discarded.computed == in_full);
  CHECK(kept.computed < 41 + 10 * 4);
}

}  // namespace
}  // namespace draftproof
