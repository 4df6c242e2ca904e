#include "engine/model/ngram_language_model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.hpp"

namespace draftproof {
namespace {

class TokenCache final : public KvCache {
 public:
  explicit TokenCache(std::int64_t num_slots) : tokens_(static_cast<std::size_t>(num_slots), kPaddingToken) {}

  std::int64_t num_slots() const override { return static_cast<std::int64_t>(tokens_.size()); }
  void copy_slot(std::int64_t from, std::int64_t to) override { at(to) = at(from); }
  std::vector<std::byte> slot_bytes(std::int64_t slot) const override {
    std::vector<std::byte> bytes(sizeof(Token));
    std::memcpy(bytes.data(), &tokens_[static_cast<std::size_t>(slot)], sizeof(Token));
    return bytes;
  }
  Token& at(std::int64_t slot) { return tokens_[static_cast<std::size_t>(slot)]; }

 private:
  std::vector<Token> tokens_;
};

constexpr std::size_t kSlots = std::size_t{1} << 13;  // 8 MiB of rows at most

// FNV-1a over the tokens. It picks the slot only, so it cannot change a result.
std::size_t slot_of(std::span<const Token> context) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const Token token : context) hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001b3u;
  return static_cast<std::size_t>((hash ^ (hash >> 32)) % kSlots);
}

}  // namespace

std::unique_ptr<KvCache> ContextModel::make_kv_cache(std::int64_t num_slots) const {
  return std::make_unique<TokenCache>(num_slots);
}

void ContextModel::forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) {
  auto& cache = dynamic_cast<TokenCache&>(kv);
  validate(batch, {.vocab_size = vocab_size(), .num_slots = cache.num_slots(), .start_token = start_token()});
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) cache.at(batch.slots[i]) = batch.tokens[i];
  const auto width = static_cast<std::size_t>(vocab_size());
  out.hidden.clear();
  out.logits.resize(batch.wanted.size() * width);
  for (std::size_t w = 0; w < batch.wanted.size(); ++w) {
    const std::int32_t last = batch.wanted[w];
    const StreamContext& context =
        batch.contexts[static_cast<std::size_t>(batch.streams[static_cast<std::size_t>(last)])];
    path_.resize(static_cast<std::size_t>(batch.positions[static_cast<std::size_t>(last)]) + 1);
    for (std::int64_t p = 0; p < context.length; ++p) path_[static_cast<std::size_t>(p)] = cache.at(context.slot(p));
    for (std::int32_t node = last; node != kContextParent; node = batch.parents[static_cast<std::size_t>(node)]) {
      const auto i = static_cast<std::size_t>(node);
      path_[static_cast<std::size_t>(batch.positions[i])] = cache.at(batch.slots[i]);
    }
    logits(std::span<const Token>(path_).subspan(path_.front() == kPaddingToken ? 1 : 0),
           std::span(out.logits).subspan(w * width, width));
  }
}

NgramLanguageModel::NgramLanguageModel(const NgramModel& model) : model_(model), slots_(kSlots) {}

void NgramLanguageModel::logits(std::span<const Token> context, std::span<float> out) {
  const std::size_t used = std::min(context.size(), static_cast<std::size_t>(model_.order()) - 1);
  const std::span<const Token> key = context.last(used);
  Slot& slot = slots_[slot_of(key)];
  if (slot.row.size() != out.size() || !std::equal(key.begin(), key.end(), slot.context.begin(), slot.context.end())) {
    model_.logits(key, out);
    slot.context.assign(key.begin(), key.end());
    slot.row.assign(out.begin(), out.end());
    return;
  }
  std::copy(slot.row.begin(), slot.row.end(), out.begin());
}

}  // namespace draftproof
