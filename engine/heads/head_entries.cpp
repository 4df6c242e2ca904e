#include "engine/heads/head_entries.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace draftproof {

HeadEntries::HeadEntries(const DraftHead& head, std::int32_t num_blocks)
    : kv_(head.make_cache(num_blocks * kKvBlockSlots + kScratchSlots)),
      scratch_(num_blocks * kKvBlockSlots),
      of_token_(head.feature_layers().size() * static_cast<std::size_t>(head.description().target_width)),
      first_entry_(head.description().family == HeadFamily::dflash ? 0 : 1),
      keeps_last_alone_(head.description().family == HeadFamily::medusa),
      blocks_(static_cast<std::size_t>(num_blocks)) {}

void HeadEntries::copy_block(std::int32_t from, std::int32_t to) {
  blocks_[static_cast<std::size_t>(to)] = blocks_[static_cast<std::size_t>(from)];
  for (std::int64_t i = 0; kv_ && i < kKvBlockSlots; ++i)
    kv_->copy_slot(from * kKvBlockSlots + i, to * kKvBlockSlots + i);
}

void HeadEntries::forget(std::uint64_t request) {
  for (std::int32_t s = 0; s < 2; ++s) ends_.erase({request, s});
}

// Memory that was written before is at hand; new memory would be mapped page by page while the target's step waits.
void HeadEntries::begin_block(Block& block) {
  block.features.clear();
  block.filled = block.stored = 0;
  const std::size_t whole = keeps_last_alone_ ? of_token_ : of_token_ * kKvBlockSlots;
  if (block.features.capacity() >= whole) return;
  if (spare_.empty()) return block.features.reserve(whole);
  block.features = std::move(spare_.back());
  spare_.pop_back();
}

// The last token's are what the next block begins with; the others have become entries.
void HeadEntries::drop_features(Block& block) {
  if (block.stored != kKvBlockSlots || block.filled != kKvBlockSlots || block.features.size() <= of_token_) return;
  std::vector<float> last(block.features.end() - static_cast<std::ptrdiff_t>(of_token_), block.features.end());
  block.features.clear();
  spare_.push_back(std::exchange(block.features, std::move(last)));
}

void HeadEntries::keep(const ComputedTokens& of, std::span<const float> features) {
  if (of.rows.empty()) return;
  if (of.first > 0) this->features(of.kv, of.first - 1);
  const std::int64_t end = of.first + std::ssize(of.rows);
  ends_[{of.request, of.stream_index}] = end;
  for (std::int64_t p = of.first; p < end; ++p) {
    Block& in = block(of.kv, p);
    if (p % kKvBlockSlots == 0) begin_block(in);
    if (in.filled != p % kKvBlockSlots) throw Error(ErrorKind::internal, "head", "a block is filled behind its place");
    if (keeps_last_alone_) in.features.clear();
    const auto row = static_cast<std::size_t>(of.rows[static_cast<std::size_t>(p - of.first)]);
    const std::span<const float> shown = features.subspan(row * of_token_, of_token_);
    in.features.insert(in.features.end(), shown.begin(), shown.end());
    ++in.filled;
    drop_features(in);
  }
}

std::span<const float> HeadEntries::features(const StreamContext& of, std::int64_t position) {
  const Block& in = block(of, position);
  const std::int64_t first = in.filled - std::ssize(in.features) / static_cast<std::int64_t>(of_token_);
  const std::int64_t place = position % kKvBlockSlots;
  if (place < first || place >= in.filled)
    throw Error(ErrorKind::internal, "head", "tokens follow others that it was never shown");
  return std::span<const float>(in.features).subspan(static_cast<std::size_t>(place - first) * of_token_, of_token_);
}

bool HeadEntries::reaches(const HeadStream& stream) const {
  const auto found = ends_.find({stream.request, stream.stream_index});
  return found != ends_.end() && found->second == stream.newest() && stream.kv.length == stream.newest() &&
         stream.newest() != 0;
}

std::int64_t HeadEntries::lacking_from(const HeadStream& stream) {
  std::int64_t full = 0;
  while (full < stream.newest() / kKvBlockSlots && stores(stream, full)) ++full;
  const std::int64_t begin = full * kKvBlockSlots;
  // The newest token's block was another's before where the newest token is its first.
  const std::int32_t stored = begin == stream.newest() ? 0 : block(stream.kv, begin).stored;
  return std::max(begin + stored, first_entry_);
}

void HeadEntries::mark_stored(const HeadStream& stream, std::int64_t begin, std::int64_t end) {
  for (std::int64_t first = begin / kKvBlockSlots * kKvBlockSlots; first < end; first += kKvBlockSlots) {
    Block& in = block(stream.kv, first);
    in.stored = static_cast<std::int32_t>(std::min<std::int64_t>(end - first, kKvBlockSlots));
    drop_features(in);
  }
}

}  // namespace draftproof
