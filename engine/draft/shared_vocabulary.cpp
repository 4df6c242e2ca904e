#include "engine/draft/shared_vocabulary.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "base/error.hpp"

namespace draftproof {
namespace {

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
  for (const auto& [key, token] : tokens_by_key(target_tokenizer, vocab_size_))
    if (const auto found = drafted.find(key); found != drafted.end()) shared_.emplace_back(token, found->second);
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

}  // namespace draftproof
