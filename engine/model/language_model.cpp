#include "engine/model/language_model.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

[[noreturn]] void fail(const char* what, std::size_t i, std::int64_t is, const std::string& expected) {
  throw input_error("token " + std::to_string(i) + " of the batch",
                    std::string(what) + " is " + std::to_string(is) + "; expected " + expected);
}

std::string range(std::int64_t end) {
  return "one in [0, " + std::to_string(end) + ")";
}

void check_contexts(const ForwardBatch& batch, std::int64_t num_slots) {
  for (std::size_t s = 0; s < batch.contexts.size(); ++s) {
    const StreamContext& context = batch.contexts[s];
    const std::string where = "stream " + std::to_string(s) + " of the batch";
    const auto blocks = static_cast<std::int64_t>(context.blocks.size());
    if (context.length < 0 || context.length > blocks * kKvBlockSlots)
      throw input_error(where, "its context has " + std::to_string(context.length) + " tokens; expected at most the " +
                                   std::to_string(blocks * kKvBlockSlots) + " of its blocks");
    for (std::int64_t b = 0; b * kKvBlockSlots < context.length; ++b) {
      const std::int64_t block = context.blocks[static_cast<std::size_t>(b)];
      if (block < 0 || block >= num_slots / kKvBlockSlots)
        throw input_error(where, "block " + std::to_string(b) + " is " + std::to_string(block) + "; expected " +
                                     range(num_slots / kKvBlockSlots));
    }
  }
}

// No slot is written twice, and none that a context holds.
void check_slots(const ForwardBatch& batch) {
  std::vector<std::int64_t> written(batch.slots.begin(), batch.slots.end());
  std::ranges::sort(written);
  if (const auto twice = std::ranges::adjacent_find(written); twice != written.end())
    throw input_error("batch", "two tokens have slot " + std::to_string(*twice) + "; expected a slot for each");
  for (const StreamContext& context : batch.contexts)
    for (std::int64_t p = 0; p < context.length; p += kKvBlockSlots) {
      const std::int64_t first = context.slot(p);
      const auto found = std::ranges::lower_bound(written, first);
      if (found != written.end() && *found < first + std::min(kKvBlockSlots, context.length - p))
        throw input_error("batch", "slot " + std::to_string(*found) +
                                       " is to be written and holds a committed token; expected another slot");
    }
}

}  // namespace

void validate(const ForwardBatch& batch, const BatchLimits& limits) {
  const std::int64_t num_slots = limits.num_slots;
  const std::size_t n = batch.tokens.size();
  if (batch.positions.size() != n || batch.streams.size() != n || batch.parents.size() != n || batch.slots.size() != n)
    throw input_error("batch", "its arrays have different lengths; expected " + std::to_string(n) + " of each");
  check_contexts(batch, num_slots);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t parent = batch.parents[i];
    const std::int32_t stream = batch.streams[i];
    const auto streams = static_cast<std::int64_t>(batch.contexts.size());
    const Token token = batch.tokens[i];
    if ((token < 0 || token >= limits.vocab_size) && token != limits.start_token)
      fail("it", i, token, range(limits.vocab_size));
    if (stream < 0 || stream >= streams) fail("its stream", i, stream, range(streams));
    if (parent < kContextParent || parent >= static_cast<std::int64_t>(i))
      fail("its parent", i, parent, "a token before it, or -1 for the context");
    const auto of_parent = static_cast<std::size_t>(parent);
    if (parent != kContextParent && batch.streams[of_parent] != stream)
      fail("its parent's stream", i, batch.streams[of_parent], std::to_string(stream) + ", its own");
    const std::int64_t position = parent == kContextParent ? batch.contexts[static_cast<std::size_t>(stream)].length
                                                           : std::int64_t{batch.positions[of_parent]} + 1;
    if (batch.positions[i] != position) fail("its position", i, batch.positions[i], std::to_string(position));
    if (batch.slots[i] < 0 || batch.slots[i] >= num_slots) fail("its slot", i, batch.slots[i], range(num_slots));
  }
  check_slots(batch);
  for (const std::int32_t wanted : batch.wanted)
    if (wanted < 0 || static_cast<std::size_t>(wanted) >= n)
      throw input_error("batch", "logits are wanted after token " + std::to_string(wanted) + "; expected " +
                                     range(static_cast<std::int64_t>(n)));
  std::int32_t before = 0;
  for (const std::int32_t layer : batch.hidden_layers) {
    if (layer <= before || layer > limits.num_hidden_layers)
      throw input_error("batch", "hidden features of layer " + std::to_string(layer) + " are asked for after " +
                                     std::to_string(before) + "; expected ascending layers from 1 to " +
                                     std::to_string(limits.num_hidden_layers));
    before = layer;
  }
}

}  // namespace draftproof
