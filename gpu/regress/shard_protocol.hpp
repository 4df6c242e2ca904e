// Rows across devices, from the first message to the token, by one executor on the host: what the messages of each call
// are combined to. Cases of the calls take these as inputs, and a test compares the tokens with those of whole rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/regress/shard_inputs.hpp"

namespace draftproof::regress {

// One round of shard_select: what goes in, the same on every device.
struct ShardRound {
  std::int32_t filter;
  std::int32_t round;
  std::vector<std::uint64_t> combined;
  std::vector<draftproof_shard_search> search;
  std::vector<draftproof_shard_kept> kept;
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

struct ShardVerifyMessages {
  ShardMessages target, proposal;  // nothing is drawn of them
  std::vector<std::uint64_t> draft, residual;
  std::vector<std::int64_t> share, drawn;
  std::vector<std::int32_t> num_accepted;  // of the first device, as those after it
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  std::vector<std::int32_t> status;
  std::int64_t bytes = 0;  // of the five stages' messages
};

// Arguments of the calls on the rows of one side, for one device each: they read what was combined before, and write to
// new arrays of the run. For random calls outputs begin with the same bytes everywhere: a refused call leaves them.
class ShardCalls {
 public:
  ShardCalls(CaseRun& run, const ShardInputs& in, SparseRows* far = nullptr, bool is_random = false)
      : run_(run), in_(in), far_(far), is_random_(is_random) {}

  draftproof_shard_prepare_arguments prepare(std::int32_t device);
  draftproof_shard_summarise_arguments summarise(std::int32_t device, const ShardMessages& m, bool is_filtered);
  draftproof_shard_select_arguments select(std::int32_t device, const ShardMessages& m, const ShardRound& at);
  draftproof_shard_draw_arguments draw(std::int32_t device, const ShardMessages& m, std::int32_t stage);
  draftproof_shard_rows rows(std::int32_t device, const ShardMessages& m);

  std::int64_t words_of_draw(std::int32_t stage) const;
  std::int64_t words_of_round(std::int32_t filter, std::int32_t round) const;  // 0 of the last

 private:
  friend class ShardVerifyCalls;
  template <class T>
  T* output(const char* name, std::int64_t count);
  const draftproof_shard& shard(std::int32_t device);

  CaseRun& run_;
  const ShardInputs& in_;
  SparseRows* far_;
  bool is_random_;
  std::vector<draftproof_shard> shards_;  // [devices] once one is asked for
};

class ShardVerifyCalls {
 public:
  ShardVerifyCalls(CaseRun& run, const ShardDrafts& in, SparseRows* far = nullptr, bool is_random = false)
      : run_(run), in_(in), target_(run, in.target, far, is_random), proposal_(run, in.proposal, nullptr, is_random) {}

  draftproof_shard_verify_arguments verify(std::int32_t device, const ShardVerifyMessages& m, std::int32_t stage);
  std::int64_t words(std::int32_t stage) const;  // of the message of a stage

 private:
  CaseRun& run_;
  const ShardDrafts& in_;
  ShardCalls target_;
  ShardCalls proposal_;
};

// settings: of an executor on the host. Error (internal): devices disagree about tokens, log-probabilities or statuses.
ShardMessages across_devices(const ShardInputs& in, const draftproof_settings& settings);
ShardVerifyMessages verified_across_devices(const ShardDrafts& in, const draftproof_settings& settings);

// The calls, each beside its cases.
void call_shard_prepare(const draftproof_shard_prepare_arguments& a, const draftproof_settings& settings);
void call_shard_summarise(const draftproof_shard_summarise_arguments& a, const draftproof_settings& settings);
void call_shard_select(const draftproof_shard_select_arguments& a, const draftproof_settings& settings);
void call_shard_draw(CaseRun& run, draftproof_shard_draw_arguments a);
void call_shard_verify(CaseRun& run, draftproof_shard_verify_arguments a);

// Kinds of inputs with the messages of the reference.
struct ShardCase {
  std::string what;
  ShardInputs in;
  ShardMessages messages;
};
const std::vector<ShardCase>& shard_cases();

}  // namespace draftproof::regress
