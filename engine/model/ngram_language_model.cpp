#include "engine/model/ngram_language_model.hpp"

#include <algorithm>
#include <cstddef>

namespace draftproof {
namespace {

constexpr std::size_t kSlots = std::size_t{1} << 13;  // 8 MiB of rows at most

// FNV-1a over the tokens. It picks the slot only, so it cannot change a result.
std::size_t slot_of(std::span<const Token> context) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const Token token : context) hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001b3u;
  return static_cast<std::size_t>((hash ^ (hash >> 32)) % kSlots);
}

}  // namespace

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
