// A text computed in one pass, in a cache of its own: what every other way of computing it is compared with.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/model/gathered_batch.hpp"

namespace draftproof::testing {

struct TextAlone {
  ForwardOutput out;
  std::unique_ptr<KvCache> kv;  // position p in slot p
};

// Logits after the tokens `wanted`, features behind `hidden_layers`.
inline TextAlone forward_alone(LanguageModel& model, std::span<const Token> tokens,
                               std::span<const std::int32_t> wanted = {},
                               std::span<const std::int32_t> hidden_layers = {}) {
  GatheredBatch batch;
  batch.add_chain(tokens, 0);
  batch.contexts.emplace_back();
  batch.wanted.assign(wanted.begin(), wanted.end());
  TextAlone text{{}, model.make_kv_cache(batch.size() + kKvBlockSlots)};
  model.forward(batch.view(hidden_layers), *text.kv, text.out);
  return text;
}

}  // namespace draftproof::testing
