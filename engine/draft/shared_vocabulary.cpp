#include "engine/draft/shared_vocabulary.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kLookbehind = 10;  // transformers' target_lookbehind

// Without the first bytes of a last character that is not complete.
std::string_view whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

using Key = std::pair<bool, std::string_view>;  // special; how it is written, or its bytes

Key key_of(const VocabularyEntry& entry) {
  return {entry.is_special, entry.is_special ? entry.text : entry.bytes};
}

// The last of tokens that are alike: in vocabularies of SentencePiece bytes come before characters.
std::map<Key, Token> tokens_by_key(const Tokenizer& tokenizer, std::int64_t vocab_size) {
  std::map<Key, Token> tokens;
  for (Token token = 0; token < std::min(tokenizer.vocab_size(), vocab_size); ++token)
    if (const Key key = key_of(tokenizer.entry(token)); !key.second.empty()) tokens[key] = token;
  return tokens;
}

std::vector<std::pair<Token, Token>> shared_by(const std::map<Key, Token>& of_draft,
                                               const std::map<Key, Token>& of_target) {
  std::vector<std::pair<Token, Token>> shared;
  for (const auto& [key, token] : of_target)
    if (const auto found = of_draft.find(key); found != of_draft.end()) shared.emplace_back(token, found->second);
  return shared;
}

struct SessionCache final : KvCache {
  SessionCache(std::unique_ptr<KvCache> of_tokens, LanguageModel& draft)
      : tokens(std::move(of_tokens)), session(draft) {}
  std::int64_t num_slots() const override { return tokens->num_slots(); }
  void copy_slot(std::int64_t from, std::int64_t to) override { tokens->copy_slot(from, to); }
  std::vector<std::byte> slot_bytes(std::int64_t slot) const override { return tokens->slot_bytes(slot); }

  std::unique_ptr<KvCache> tokens;
  ModelSession session;
};

}  // namespace

SharedVocabularyModel::SharedVocabularyModel(std::shared_ptr<LanguageModel> draft, const Tokenizer& draft_tokenizer,
                                             const Tokenizer& target_tokenizer, std::int64_t target_vocab_size,
                                             const std::string& where)
    : draft_(std::move(draft)),
      vocab_size_(target_vocab_size),
      spelled_(static_cast<std::size_t>(target_vocab_size)),
      alone_(*draft_),
      row_(static_cast<std::size_t>(draft_->vocab_size())) {
  const std::map<Key, Token> drafted = tokens_by_key(draft_tokenizer, draft_->vocab_size());
  shared_ = shared_by(drafted, tokens_by_key(target_tokenizer, vocab_size_));
  counts_ = {std::ssize(shared_), draft_tokenizer.vocab_size(), target_tokenizer.vocab_size()};
  if (shared_.empty())
    throw input_error(where, "cannot draft: none of the " + std::to_string(draft_tokenizer.vocab_size()) +
                                 " tokens of its tokenizer is one of the target's " +
                                 std::to_string(target_tokenizer.vocab_size()) +
                                 "; expected a draft model that shares tokens with the target");
  std::size_t longest = 0;
  for (const auto& [key, token] : drafted) longest = std::max(longest, key.second.size());
  for (Token token = 0; token < std::min(target_tokenizer.vocab_size(), vocab_size_); ++token) {
    auto [is_special, rest] = key_of(target_tokenizer.entry(token));
    while (!rest.empty()) {
      std::size_t length = std::min(rest.size(), longest);
      auto found = drafted.find({is_special, is_special ? rest : rest.substr(0, length)});
      while (found == drafted.end() && !is_special && length > 1)
        found = drafted.find({false, rest.substr(0, --length)});
      if (found != drafted.end()) spelled_[static_cast<std::size_t>(token)].push_back(found->second);
      rest.remove_prefix(is_special ? rest.size() : length);
    }
  }
}

void SharedVocabularyModel::logits(std::span<const Token> context, std::span<float> out) {
  context_.clear();
  for (const Token token : context)
    if (token >= 0 && token < vocab_size_) {
      const std::vector<Token>& spelled = spelled_[static_cast<std::size_t>(token)];
      context_.insert(context_.end(), spelled.begin(), spelled.end());
    }
  if (context_.empty() && !draft_->start_token())
    std::ranges::fill(row_, 0.0f);  // it has no row yet
  else
    session_->logits(context_, row_);
  std::ranges::fill(out, -std::numeric_limits<float>::infinity());
  for (const auto& [token, drafted] : shared_)
    out[static_cast<std::size_t>(token)] = row_[static_cast<std::size_t>(drafted)];
}

std::unique_ptr<KvCache> SharedVocabularyModel::make_kv_cache(std::int64_t num_slots) const {
  return std::make_unique<SessionCache>(ContextModel::make_kv_cache(num_slots), *draft_);
}

void SharedVocabularyModel::forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) {
  auto& cache = dynamic_cast<SessionCache&>(kv);
  session_ = &cache.session;
  ContextModel::forward(batch, *cache.tokens, out);
  session_ = &alone_;
}

StringMatchDrafter::StringMatchDrafter(std::shared_ptr<LanguageModel> draft,
                                       std::shared_ptr<const Tokenizer> draft_tokenizer,
                                       std::shared_ptr<const Tokenizer> target_tokenizer,
                                       std::int64_t target_vocab_size)
    : draft_(std::move(draft)),
      draft_tokenizer_(std::move(draft_tokenizer)),
      target_tokenizer_(std::move(target_tokenizer)),
      counts_{std::ssize(shared_by(tokens_by_key(*draft_tokenizer_, draft_->vocab_size()),
                                   tokens_by_key(*target_tokenizer_, target_vocab_size))),
              draft_tokenizer_->vocab_size(), target_tokenizer_->vocab_size()},
      session_(*draft_),
      row_(static_cast<std::size_t>(draft_->vocab_size())) {}

// The context in the draft model's tokens: special ones that it writes alike, and texts between.
void StringMatchDrafter::read(std::span<const Token> context) {
  context_.clear();
  const auto encode = [&](std::span<const Token> tokens) {
    const std::vector<Token> own = draft_tokenizer_->encode(target_tokenizer_->decode(tokens), {.add_special = false});
    context_.insert(context_.end(), own.begin(), own.end());
  };
  std::size_t begin = 0;
  for (std::size_t i = 0; i < context.size(); ++i) {
    const VocabularyEntry& entry = target_tokenizer_->entry(context[i]);
    if (!entry.is_special) continue;
    encode(context.subspan(begin, i - begin));
    begin = i + 1;
    if (const auto own = draft_tokenizer_->added_token(entry.text)) context_.push_back(*own);
  }
  encode(context.subspan(begin));
}

// A text in the target's tokens, as they are behind the context's last ones where those stay the same, else by itself.
std::vector<Token> StringMatchDrafter::spelled(std::span<const Token> context, const std::string& text) const {
  for (std::size_t tail = std::min(context.size(), kLookbehind) + 1; tail-- > 0;) {
    const std::span<const Token> before = context.last(tail);
    std::vector<Token> tokens =
        target_tokenizer_->encode(target_tokenizer_->decode(before) + text, {.add_special = false});
    if (tokens.size() < tail || !std::ranges::equal(std::span(tokens).first(tail), before)) continue;
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(tail));
    std::string written;
    for (const Token token : tokens) written += target_tokenizer_->bytes_of(token);
    if (written == text) return tokens;
  }
  return {};
}

void StringMatchDrafter::propose(const DraftContext& context, const DraftPlan& plan, DraftChance&, Draft& out) {
  out.proposal_kind = ProposalKind::one_hot;
  out.draft_parameters = {};
  out.logits.clear();
  out.tree = {};
  // What is no token of the tokenizer has no text.
  std::vector<Token> tokens;
  for (const Token token : context.tokens)
    if (token >= 0 && token < target_tokenizer_->vocab_size()) tokens.push_back(token);
  read(tokens);
  const auto draft_len = static_cast<std::size_t>(plan.draft_len_max());
  if (context_.empty() && !draft_->start_token()) return;
  if (std::ssize(context_) + plan.draft_len_max() + 1 > draft_->context_len_max()) return;
  std::string text;
  std::optional<Token> end;
  for (std::size_t i = 0; i < draft_len && !end; ++i) {
    session_.logits(context_, row_, context.request);
    const auto best = static_cast<Token>(std::ranges::max_element(row_) - row_.begin());
    if (best >= draft_tokenizer_->vocab_size()) break;
    const VocabularyEntry& entry = draft_tokenizer_->entry(best);
    if (entry.is_special) {
      end = target_tokenizer_->added_token(entry.text);
      break;
    }
    text += entry.bytes;
    context_.push_back(best);
  }
  if (discards_kv_) session_.forget(context.request);
  const std::string_view whole = whole_characters(text);
  std::vector<Token> drafts;
  if (!whole.empty()) drafts = spelled(tokens, std::string(whole));
  if (end && whole.size() == text.size() && drafts.empty() == whole.empty()) drafts.push_back(*end);
  drafts.resize(std::min(drafts.size(), draft_len));
  out.tree = DraftTree::chain(drafts);
}

}  // namespace draftproof
