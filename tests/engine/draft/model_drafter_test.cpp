// Trees of a model drafter: one pass a level, the rows of every node those of its path, and siblings for greedy
// requests. Drafts of a model with another tokenizer: their tokens; the emitted distribution, as fractions.
#include "engine/draft/model_drafter.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "engine/decode/decode_step.hpp"
#include "engine/draft/shared_vocabulary.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "tests/engine/decode/toy_model.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kVocab = 9;

using testing::CountingModel;
using testing::ToyModel;

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

Tokenizer tokenizer_of(const std::vector<std::string>& texts) {
  Tokenizer::Parts parts;
  for (const std::string& text : texts) {
    const bool is_special = text.starts_with('<');
    parts.vocabulary.push_back({text, is_special ? "" : text, is_special, is_special});
  }
  return Tokenizer(std::move(parts));
}

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// Shared by hand: a (0, 3), b (1, 1), <end> (4, 0). Its row 6 and the target's row 5 belong to no token.
struct OtherTokenizer {
  static constexpr std::int64_t kTargetVocab = 6;
  Tokenizer of_target = tokenizer_of({"a", "b", "ab", "c", "<end>"});
  Tokenizer of_draft = tokenizer_of({"<end>", "b", "zz", "a", "abz", "<c>"});
  std::shared_ptr<CountingModel> draft = std::make_shared<CountingModel>(7);
  SharedVocabularyModel model{draft, of_draft, of_target, kTargetVocab, "draft"};
};

TEST_CASE("a draft model with another tokenizer reads the context in its tokens and drafts those that both have") {
  OtherTokenizer other;
  // "ab" is spelled a, b; nothing spells "c".
  const std::vector<Token> context{2, 0, 3, 4, 1}, spelled{3, 1, 3, 0, 1};
  std::vector<float> row(6), own(7);
  other.model.logits(context, row);
  other.draft->model.logits(spelled, own);
  CHECK(row == std::vector<float>{own[3], own[1], kImpossible, kImpossible, own[0], kImpossible});

  for (const bool is_tree : {false, true}) {
    ModelDrafter drafter(other.model);
    DraftPlan plan{is_tree ? branching_shape({3, 2}) : chain_shape(4)};
    plan.sampling = is_tree ? DraftSampling::independent : DraftSampling::drawn;
    const SpeculativeStep step = propose(drafter, context, plan, 2.0f);
    CHECK(step.draft.tree.size() >= 4);
    for (const Token token : step.draft.tree.tokens) CHECK((token == 0 || token == 1 || token == 4));
  }
  // A chain reads the context once, and then a token a draft.
  other.draft->computed = 0;
  ModelDrafter drafter(other.model);
  propose(drafter, context, DraftPlan{chain_shape(4)}, 2.0f);
  CHECK(other.draft->computed == 1 + 5 + 3);
  CHECK_THROWS_WITH(
      SharedVocabularyModel(other.draft, tokenizer_of({"<c>", "d"}), other.of_target, 6, "draft"),
      "draft: cannot draft: none of the 2 tokens of its tokenizer is one of the target's 5; expected a draft model "
      "that shares tokens with the target");
}

TEST_CASE("what is emitted after drafts over another vocabulary follows the target, as fractions") {
  OtherTokenizer other;
  ToyModel target(OtherTokenizer::kTargetVocab, 1, 3, 1);
  const auto weights = [](ContextModel& model, const TokenString& prefix) {
    std::vector<float> row(static_cast<std::size_t>(model.vocab_size()));
    model.logits(prefix, row);
    DenseMasses<Rational> masses;
    for (const float logit : row)
      masses.emplace_back(static_cast<int>(64.0 * std::exp(static_cast<double>(logit) / 4)));
    return masses;
  };
  std::map<TokenString, DenseMasses<Rational>> rows;
  const TargetDistribution p = [&](const TokenString& prefix) -> const DenseMasses<Rational>& {
    return rows.try_emplace(prefix, normalised(weights(target, prefix))).first->second;
  };
  // `lost`: a planted fault, what q is divided by beside the shared tokens' weights.
  const auto emitted = [&](const Rational& lost) {
    OutputDistribution distribution;
    EnumeratingChance<Rational> chance;
    do {
      TokenString draft;
      DenseRows<Rational> targets, proposals;
      for (std::uint32_t i = 0; i < 2; ++i) {
        targets.rows.push_back(p(draft));
        proposals.rows.push_back(normalised(weights(other.model, draft)));
        const Token token = chance.draw(proposals.rows.back(), i, Purpose::draft_sample);
        for (Rational& mass : proposals.rows.back()) mass /= 1 + lost;
        draft.push_back(token);
      }
      targets.rows.push_back(p(draft));
      const ChainOutcome outcome = verify_chain(std::span<const Token>(draft), targets, proposals, chance);
      draft.resize(outcome.num_accepted);
      draft.push_back(outcome.last_token);
      distribution[draft] += chance.probability();
    } while (chance.next());
    return distribution;
  };
  CHECK_FALSE(first_difference(emitted(0), p, OtherTokenizer::kTargetVocab));
  CHECK(first_difference(emitted(Rational(1, 4)), p, OtherTokenizer::kTargetVocab));
}

}  // namespace
}  // namespace draftproof
