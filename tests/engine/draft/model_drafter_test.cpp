// Trees of a model drafter: one pass a level, the rows of every node those of its path, and siblings for greedy
// requests. Drafts of a model with another tokenizer: their tokens; the emitted distribution, as fractions.
#include "engine/draft/model_drafter.hpp"

#include "engine/decode/decode_step.hpp"
#include "engine/draft/shared_vocabulary.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocab = 9;

SpeculativeStep propose(Drafter& drafter, const std::vector<Token>& context, const DraftPlan& plan, float temperature) {
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

// At each place the longest token.
class LongestMatch final : public TextEncoder {
 public:
  explicit LongestMatch(std::vector<std::string> texts) : texts_(std::move(texts)) {}
  void encode(std::string_view text, bool, std::vector<Token>& ids) const override {
    while (!text.empty()) {
      std::size_t length = 0;
      for (std::size_t i = 0; i < texts_.size(); ++i) {
        if (texts_[i].size() <= length || texts_[i].front() == '<' || !text.starts_with(texts_[i])) continue;
        if (length == 0) ids.emplace_back();
        ids.back() = static_cast<Token>(i);
        length = texts_[i].size();
      }
      text.remove_prefix(std::max<std::size_t>(length, 1));
    }
  }

 private:
  std::vector<std::string> texts_;
};

Tokenizer tokenizer_of(const std::vector<std::string>& texts) {
  Tokenizer::Parts parts;
  parts.encoder = std::make_unique<LongestMatch>(texts);
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

DenseMasses<Rational> weights(ContextModel& model, const TokenString& prefix) {
  std::vector<float> row(static_cast<std::size_t>(model.vocab_size()));
  model.logits(prefix, row);
  DenseMasses<Rational> masses;
  for (const float logit : row) masses.emplace_back(static_cast<int>(64.0 * std::exp(static_cast<double>(logit) / 4)));
  return masses;
}

TEST_CASE("what is emitted after drafts over another vocabulary follows the target, as fractions") {
  OtherTokenizer other;
  ToyModel target(OtherTokenizer::kTargetVocab, 1, 3, 1);
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

// Writes a text, whatever it has read.
class Writer final : public ContextModel {
 public:
  Writer(std::int64_t vocab_size, std::vector<Token> text) : vocab_size_(vocab_size), text_(std::move(text)) {}
  std::int64_t vocab_size() const override { return vocab_size_; }
  void logits(std::span<const Token> context, std::span<float> out) override {
    if (!reads_from) reads_from = context.size(), read.assign(context.begin(), context.end());
    std::ranges::fill(out, 0.0f);
    out[static_cast<std::size_t>(text_[(context.size() - *reads_from) % text_.size()])] = 1.0f;
  }

  std::optional<std::size_t> reads_from;  // length of the first context
  std::vector<Token> read;

 private:
  std::int64_t vocab_size_;
  std::vector<Token> text_;
};

TEST_CASE("string-level matching drafts in the target's tokens what the draft model writes in tokens of its own") {
  const auto of_target = std::make_shared<const Tokenizer>(
      tokenizer_of({"a", "b", "ab", "c", "<end>", "\xc3", "\xa4", "\xc3\xa4", "<x>", "bc"}));
  const auto of_draft = std::make_shared<const Tokenizer>(
      tokenizer_of({"<end>", "abc", "b", "\xc3\xa4\xc3", "a", "zz", "\xa4", "c", "ca"}));
  std::vector<Token> read;
  const auto drafts = [&](std::vector<Token> text, const std::vector<Token>& context, std::int32_t length) {
    const auto writer = std::make_shared<Writer>(of_draft->vocab_size(), std::move(text));
    StringMatchDrafter drafter(writer, of_draft, of_target, 12);
    const SpeculativeStep step = propose(drafter, context, DraftPlan{chain_shape(length)}, 0.0f);
    CHECK(step.draft.proposal_kind == ProposalKind::one_hot);
    CHECK(step.draft.logits.empty());
    read = writer->read;
    return step.draft.tree.tokens;
  };
  // The context "c", "ab", <end>, "a" as the draft model has it; "abc" and "b", which no token of the target spells.
  CHECK(drafts({1, 2}, {3, 2, 4, 0}, 2) == std::vector<Token>{2, 3});
  CHECK(read == std::vector<Token>{8, 2, 0, 4});
  CHECK(drafts({1, 2}, {3, 2, 4, 0}, 8) == std::vector<Token>{2, 3, 1, 2, 3, 1, 2, 3});
  // Behind "a", "b" begins as "ab" would; the draft stands by itself.
  CHECK(drafts({2, 7}, {0}, 2) == std::vector<Token>{9});
  // A character's first byte without the others is left out, a token that the target has not ends nothing else.
  CHECK(drafts({3}, {0}, 1) == std::vector<Token>{7});
  CHECK(drafts({3, 6}, {0}, 2) == std::vector<Token>{7, 7});
  CHECK(drafts({4, 0}, {1}, 4) == std::vector<Token>{0, 4});
  CHECK(drafts({0}, {1}, 4) == std::vector<Token>{4});
  CHECK(drafts({4, 5}, {1}, 2).empty());  // "zz" cannot be spelled
  CHECK(drafts({1}, {8}, 2) == std::vector<Token>{2, 3});
  const StringMatchDrafter drafter(std::make_shared<Writer>(9, std::vector<Token>{1}), of_draft, of_target, 12);
  REQUIRE(drafter.shared_tokens());
  CHECK(drafter.shared_tokens()->shared == 5);  // a, b, c, <end> and a byte
  CHECK(drafter.shared_tokens()->of_draft == 9);
  CHECK(drafter.shared_tokens()->of_target == 10);
}

TEST_CASE("what is emitted after drafts matched as strings follows the target, as fractions") {
  ToyModel target(OtherTokenizer::kTargetVocab, 1, 3, 1);
  StringMatchDrafter drafter(std::make_shared<CountingModel>(5),
                             std::make_shared<const Tokenizer>(tokenizer_of({"<end>", "b", "c", "a", "abc"})),
                             std::make_shared<const Tokenizer>(tokenizer_of({"a", "b", "ab", "c", "<end>"})),
                             OtherTokenizer::kTargetVocab);
  std::size_t drafted = 0;
  for (Token first = 0; first < 5; ++first)
    for (Token second = 0; second < 4; ++second) {
      const TokenString context{first, second};
      std::map<TokenString, DenseMasses<Rational>> rows;
      const TargetDistribution p = [&](const TokenString& suffix) -> const DenseMasses<Rational>& {
        TokenString prefix = context;
        prefix.insert(prefix.end(), suffix.begin(), suffix.end());
        return rows.try_emplace(suffix, normalised(weights(target, prefix))).first->second;
      };
      const std::vector<Token> draft = propose(drafter, context, DraftPlan{chain_shape(2)}, 1.0f).draft.tree.tokens;
      drafted += draft.size();
      // q: the proposal that the verifier gets. A planted fault gives it the target's own row.
      const auto emitted = [&](bool as_one_hot) {
        OutputDistribution distribution;
        EnumeratingChance<Rational> chance;
        do {
          DenseRows<Rational> targets, proposals;
          TokenString out;
          for (const Token token : draft) {
            targets.rows.push_back(p(out));
            DenseMasses<Rational> q(OtherTokenizer::kTargetVocab);
            q[static_cast<std::size_t>(token)] = 1;
            proposals.rows.push_back(as_one_hot ? q : p(out));
            out.push_back(token);
          }
          targets.rows.push_back(p(out));
          const ChainOutcome outcome = verify_chain(std::span<const Token>(draft), targets, proposals, chance);
          out.resize(outcome.num_accepted);
          out.push_back(outcome.last_token);
          distribution[out] += chance.probability();
        } while (chance.next());
        return distribution;
      };
      CHECK_FALSE(first_difference(emitted(true), p, OtherTokenizer::kTargetVocab));
      CHECK(draft.empty() != first_difference(emitted(false), p, OtherTokenizer::kTargetVocab).has_value());
    }
  CHECK(drafted > 20);
}

}  // namespace
