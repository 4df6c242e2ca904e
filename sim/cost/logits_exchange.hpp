// Cost of sampling over T GPUs that hold V / T logits of each row: a gather of the logits in bfloat16,
// or the messages of rows across devices (docs/shards.md). Not a term of the roofline: published step times contain the
// gather, so that fitted constants hold it already.
//
//   gather     a ring: each GPU receives 2 V (T - 1) / T bytes a row
//   messages   ring all-reduces: each GPU sends twice (T - 1) / T of the bytes; a collective's latency a round
#pragma once

#include "sim/cost/engine_profile.hpp"
#include "sim/cost/gpu.hpp"

namespace draftproof {

struct LogitsExchange {
  double gather_bytes = 0.0;  // that a GPU receives in a step
  double gather_ns = 0.0;
  double messages_bytes = 0.0;  // that a GPU sends in a step
  double messages_ns = 0.0;
};

// rows: of a step, B (K + 1) with K drafts. bytes_per_row, rounds: Traffic of one row (reference/shard/devices.hpp);
// all rows share the rounds. gpus: 1 or more; one GPU says nothing.
inline LogitsExchange logits_exchange(const Gpu& gpu, const EngineProfile& engine, double gpus, double rows,
                                      double vocab_size, double bytes_per_row, double rounds) {
  if (gpus <= 1.0) return {};
  const double share = (gpus - 1.0) / gpus;
  const double latency_ns = engine.value(EngineConstant::collective_ms) * 1e6;
  LogitsExchange out;
  out.gather_bytes = rows * 2.0 * vocab_size * share;
  out.gather_ns = out.gather_bytes / gpu.link_bandwidth * 1e9 + latency_ns;
  out.messages_bytes = rows * 2.0 * share * bytes_per_row;
  out.messages_ns = out.messages_bytes / gpu.link_bandwidth * 1e9 + rounds * latency_ns;
  return out;
}

}  // namespace draftproof
