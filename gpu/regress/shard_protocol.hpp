// Rows across devices, from the first message to the token, by one executor on the host: what the messages of each call
// are combined to. Cases of the calls take these as inputs, and a test compares the tokens with those of whole rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {

// Rows [rows, vocab_size] cut into devices at `cuts`, ascending from 0 to vocab_size; equal ones make an empty device.
struct ShardInputs : ParameterLists {
  std::int64_t rows = 0;
  std::int64_t vocab_size = 0;
  std::int32_t dtype = DRAFTPROOF_F32;
  std::vector<float> logits;
  std::vector<std::int64_t> cuts;
  std::int32_t sampler = DRAFTPROOF_INVERSE;
  std::uint64_t seed = 1;

  std::int32_t devices() const { return static_cast<std::int32_t>(cuts.size()) - 1; }
  std::int64_t tiles() const { return (vocab_size + 4095) / 4096; }
  bool has_filters() const { return !top_k.empty() || !top_p.empty() || !min_p.empty(); }
  draftproof_shard shard(CaseRun& run, std::int32_t device) const;
  draftproof_parameters filters(CaseRun& run) const;  // without the temperature
  draftproof_randomness randomness(CaseRun& run) const;
  std::vector<std::uint32_t> row_in_step() const;
};

// One round of shard_select: what goes in, the same on every device.
struct ShardRound {
  std::int32_t filter;
  std::int32_t round;
  std::vector<std::uint64_t> combined;
  std::vector<draftproof_shard_search> search;
  std::vector<draftproof_shard_kept> kept;

  static std::int64_t words(std::int32_t filter, std::int32_t round, std::int32_t devices);
};

struct ShardMessages {
  std::vector<std::int32_t> tile_exponent;              // [rows, tiles + 1]
  std::vector<std::int64_t> largest;                    // [rows]
  std::vector<std::vector<std::int32_t>> own_exponent;  // [devices]
  std::vector<std::vector<std::uint64_t>> own_sum;      // [devices]
  std::vector<ShardRound> rounds;                       // none without filters
  std::vector<draftproof_shard_kept> kept;              // [rows]; none without filters
  std::vector<std::uint64_t> tile_sum;                  // [rows, tiles], over the kept tokens
  std::vector<std::int64_t> drawn[2];                   // of stages 0 and 1
  std::vector<std::vector<std::int64_t>> winner;        // [devices], after stage 0
  std::vector<std::int32_t> tokens;                     // [rows], of the first device
  std::vector<float> logprobs;
  std::vector<std::int32_t> status;
  std::int64_t bytes = 0;  // of the messages of all rows, as combined
};

// settings: of an executor on the host. Error (internal): devices disagree about tokens, log-probabilities or statuses.
ShardMessages across_devices(const ShardInputs& in, const draftproof_settings& settings);

// The calls, each beside its cases.
void call_shard_prepare(const draftproof_shard_prepare_arguments& a, const draftproof_settings& settings);
void call_shard_summarise(const draftproof_shard_summarise_arguments& a, const draftproof_settings& settings);
void call_shard_select(const draftproof_shard_select_arguments& a, const draftproof_settings& settings);
void call_shard_draw(CaseRun& run, draftproof_shard_draw_arguments a);

// Inputs of many kinds: splits (cuts inside tiles, at ties, empty devices), filters, masked and bad rows. The messages
// are those of the reference.
struct ShardCase {
  std::string what;
  ShardInputs in;
  ShardMessages messages;
};
std::vector<ShardCase> shard_cases();
// One of these kinds at random.
ShardInputs random_shards(std::uint64_t seed);

}  // namespace draftproof::regress
