#include "studies/lab/text_pair.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "engine/model/model_session.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/step/dense_step_rows.hpp"
#include "studies/speculate/model_shelf.hpp"

namespace draftproof {
namespace {

using Path = std::vector<Token>;

// Rows of one of the two models, processed with a temperature.
class Reader {
 public:
  Reader(LanguageModel& model, float temperature) : session_(model) { parameters_.temperature = temperature; }

  std::int64_t vocab_size() const { return session_.vocab_size(); }

  PairRow row(std::span<const Token> context) {
    logits_.resize(static_cast<std::size_t>(vocab_size()));
    session_.logits(context, logits_);
    return process(0);
  }
  // At the context and after each node [n + 1].
  std::vector<PairRow> rows(std::span<const Token> context, const DraftTree& tree) {
    logits_.resize((tree.tokens.size() + 1) * static_cast<std::size_t>(vocab_size()));
    session_.tree_logits(context, tree.tokens, tree.parents, logits_);
    std::vector<PairRow> rows;
    for (std::size_t i = 0; i <= tree.tokens.size(); ++i) rows.push_back(process(i));
    return rows;
  }

 private:
  PairRow process(std::size_t row) {
    RowInput input;
    input.logits = {DType::f32, logits_.data() + row * static_cast<std::size_t>(vocab_size()), vocab_size()};
    input.parameters = parameters_;
    input.row = {static_cast<std::int64_t>(row), "logits", static_cast<std::int64_t>(row)};
    pipeline_.run(input, distribution_);
    return dense_row(distribution_);
  }

  ModelSession session_;
  RowParameters parameters_;
  std::vector<float> logits_;
  Pipeline pipeline_;
  Distribution distribution_;
};

class TextPair final : public DraftPair {
 public:
  explicit TextPair(const TextPairSettings& settings)
      : settings_(settings),
        model_(borrow_text_model(settings.model, {}, "--model")),
        draft_model_(draft_model()),
        target_(*model_->model, settings.temperature),
        draft_(*draft_model_, settings.temperature == 0.0f ? 1.0f : settings.temperature),
        context_(model_->tokenizer->encode(settings.prompt)) {
    if (context_.empty()) throw usage_error("--prompt", "is empty; expected a text to continue");
  }

  const TextPairSettings& settings() const { return settings_; }
  std::int64_t vocab_size() const override { return target_.vocab_size(); }

  std::string text(Token token) const override {
    const VocabularyEntry& entry = model_->tokenizer->entry(token);
    if (entry.bytes.empty()) return printable_line(entry.text);  // of special tokens
    std::string shown;
    for (const char c : entry.bytes) shown += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
    return printable_line(shown);
  }

  const PairRow& draft(std::span<const Token> path) override {
    const auto [found, is_new] = draft_rows_.try_emplace(Path(path.begin(), path.end()));
    if (is_new) found->second = draft_.row(with(path));
    return found->second;
  }

  std::vector<PairRow> targets(const DraftTree& tree) override { return target_.rows(context_, tree); }

  std::vector<double> target_probabilities(const DraftTree& tree) override {
    // Only inner nodes whose rows no earlier tree has asked for: with the nodes above them, in one forward pass.
    DraftTree inner;
    std::vector<std::int32_t> inner_node(tree.tokens.size() + 1, kRootNode);
    bool is_missing = !target_rows_.contains({});
    for (std::int32_t node = 0; node < tree.size(); ++node) {
      if (tree.children(node).empty()) continue;
      const auto at = static_cast<std::size_t>(node);
      inner_node[at + 1] = inner.add(tree.tokens[at], inner_node[DraftTree::row_after(tree.parents[at])]);
      is_missing |= !target_rows_.contains(tree.path(node));
    }
    if (is_missing) {
      std::vector<PairRow> rows = target_.rows(context_, inner);
      for (std::int32_t node = kRootNode; node < inner.size(); ++node)
        target_rows_.try_emplace(inner.path(node), std::move(rows[DraftTree::row_after(node)]));
    }
    std::vector<double> probabilities;
    for (std::size_t i = 0; i < tree.tokens.size(); ++i)
      probabilities.push_back(target_rows_.at(tree.path(tree.parents[i]))[static_cast<std::size_t>(tree.tokens[i])]);
    return probabilities;
  }

  std::vector<std::pair<PairRow, PairRow>> examples() override {
    constexpr std::size_t kExamples = 32;
    const std::size_t first = context_.size() > kExamples ? context_.size() - kExamples : 1;
    const auto behind = std::span(context_).subspan(first);
    const DraftTree chain = DraftTree::chain(behind);
    std::vector<PairRow> p = target_.rows(std::span(context_).first(first), chain);
    std::vector<PairRow> q = draft_.rows(std::span(context_).first(first), chain);
    std::vector<std::pair<PairRow, PairRow>> examples;
    for (std::size_t i = 0; i < p.size(); ++i) examples.emplace_back(std::move(p[i]), std::move(q[i]));
    return examples;
  }

 private:
  std::shared_ptr<LanguageModel> draft_model() const {
    const DrafterChoice choice = parse_drafter(settings_.drafter, "--drafter");
    if (!choice.has_probabilities())
      throw usage_error("--drafter", "is " + settings_.drafter +
                                         ", whose drafts have no probabilities; expected model:PATH, layer_skip:LIST, "
                                         "requantised:BITS or ngram:ORDER");
    return make_draft_model(choice, *model_, {}, "--drafter");
  }
  const Path& with(std::span<const Token> path) {
    longer_ = context_;
    longer_.insert(longer_.end(), path.begin(), path.end());
    return longer_;
  }

  TextPairSettings settings_;
  std::shared_ptr<TextModel> model_;
  std::shared_ptr<LanguageModel> draft_model_;
  Reader target_, draft_;
  Path context_, longer_;
  std::map<Path, PairRow> draft_rows_, target_rows_;
};

}  // namespace

std::shared_ptr<DraftPair> borrow_text_pair(const TextPairSettings& settings) {
  struct Kept {
    std::mutex mutex;
    std::shared_ptr<TextPair> pair;  // null while it is lent
  };
  // Held by every loan too: who borrows may outlive what is static.
  static const auto kept = std::make_shared<Kept>();
  std::shared_ptr<TextPair> pair;
  {
    const std::lock_guard lock(kept->mutex);
    pair = std::move(kept->pair);
  }
  if (pair && !(pair->settings() == settings)) pair = nullptr;
  if (!pair) pair = std::make_shared<TextPair>(settings);
  TextPair* const lent = pair.get();
  return {lent, [pair = std::move(pair), kept = kept](TextPair*) mutable {
            const std::lock_guard lock(kept->mutex);
            kept->pair = std::move(pair);
          }};
}

}  // namespace draftproof
