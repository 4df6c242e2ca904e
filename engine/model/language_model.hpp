// A language model as engines see it: tokens in, rows of logits out, with the keys and values (KV) of what was computed
// kept in slots that the caller manages.
//
//   committed context   positions 0 .. length - 1 of a stream, in the slots of its blocks
//   a batch             n new tokens of any streams, each hanging from a token of the batch or from the committed
//   context
//
// A chunk of a prompt or a chain of drafts is parents = -1, 0, 1, ...; a draft tree has its parent links.
//
// Guarantee: the bits of a row depend on the tokens before it alone, not on the batch around it, on how the tokens
// before it came into the cache, or on threads. So speculation can be compared with plain decoding bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

inline constexpr std::int64_t kKvBlockSlots = 16;
inline constexpr std::int32_t kContextParent = -1;  // hangs from the committed context

// Where the KV of the committed tokens of a stream lies: position p in slot blocks[p / 16] * 16 + p % 16.
struct StreamContext {
  std::span<const std::int32_t> blocks;
  std::int64_t length = 0;

  std::int64_t slot(std::int64_t position) const {
    return std::int64_t{blocks[static_cast<std::size_t>(position / kKvBlockSlots)]} * kKvBlockSlots +
           position % kKvBlockSlots;
  }
};

struct ForwardBatch {
  std::span<const Token> tokens;            // [n]
  std::span<const std::int32_t> positions;  // [n] length of the context + tokens of the batch before it on its path
  std::span<const std::int32_t> streams;    // [n] index into contexts
  std::span<const std::int32_t> parents;    // [n] the token before it, parents[i] < i, or kContextParent
  std::span<const std::int64_t> slots;      // [n] where its KV is written: none of a context of the batch, none twice
  std::span<const StreamContext> contexts;  // [streams]
  std::span<const std::int32_t> wanted;     // [m] the tokens after which logits are asked for
  // The residual stream behind these layers (counted from 1; ascending) is handed out, for drafters with trained heads;
  // the layer behind the last one stands for the last norm, which the language model's head reads.
  std::span<const std::int32_t> hidden_layers;
};

struct ForwardOutput {
  std::vector<float> logits;  // [m, V]
  std::vector<float> hidden;  // [n, hidden_layers, width]
};

// Properties of a model that limit its batches.
struct BatchLimits {
  std::int64_t vocab_size = 0;
  std::int64_t num_slots = 0;             // of the cache
  std::int32_t num_hidden_layers = 0;     // that hand out hidden features
  std::optional<Token> start_token = {};  // may be an id outside the vocabulary
};

// Checks a batch against its own shapes and these limits. Errors (input) name the token of the batch: an id, a
// stream, a parent, a position or a slot outside its range or against the rules above, a context beyond its blocks, a
// layer that there is not.
void validate(const ForwardBatch& batch, const BatchLimits& limits);

// The KV of tokens in all layers.
class KvCache {
 public:
  virtual ~KvCache() = default;
  virtual std::int64_t num_slots() const = 0;
  virtual void copy_slot(std::int64_t from, std::int64_t to) = 0;
  virtual std::vector<std::byte> slot_bytes(std::int64_t slot) const = 0;  // for comparisons
};

// An object holds the buffers of one caller; what is costly (weights, a trained model) is shared between objects.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  virtual std::int64_t vocab_size() const = 0;
  virtual std::int64_t context_len_max() const = 0;  // tokens, prompt and output
  // The token that every context begins with. Nothing: an empty context has no row.
  virtual std::optional<Token> start_token() const = 0;
  virtual std::unique_ptr<KvCache> make_kv_cache(std::int64_t num_slots) const = 0;
  // Computes the batch and leaves its KV in its slots. `kv` must be of this model's making. Errors (input): those of
  // validate(ForwardBatch); a position that the context length does not allow.
  virtual void forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) = 0;
};

}  // namespace draftproof
