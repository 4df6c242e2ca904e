// Rows across devices, and drafts with them, as inputs of cases: splits, filters, masked and bad rows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpu/regress/inputs.hpp"
#include "gpu/regress/sparse_rows.hpp"
#include "gpu/regress/verify_inputs.hpp"

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
  // far: memory of f32 rows, for a case beyond 2^32 elements.
  draftproof_shard shard(CaseRun& run, std::int32_t device, SparseRows* far = nullptr) const;
  draftproof_parameters filters(CaseRun& run) const;  // without the temperature
  draftproof_randomness randomness(CaseRun& run) const;
  std::vector<std::uint32_t> row_in_step() const;
};

// Drafts whose rows are cut so. The target has logits; a one-hot proposal has no rows.
struct ShardDrafts {
  VerifyInputs whole;
  ShardInputs target;
  ShardInputs proposal;
};
ShardDrafts cut_drafts(VerifyInputs whole, const std::vector<std::int64_t>& cuts);

ShardInputs normal_shards(std::int64_t rows, std::int64_t vocab_size, std::int32_t dtype,
                          std::vector<std::int64_t> cuts);

// Each by what is special of it.
std::vector<std::pair<std::string, ShardInputs>> kinds_of_shards();
std::vector<std::pair<std::string, ShardDrafts>> kinds_of_shard_drafts();
// One of such kinds at random.
ShardInputs random_shards(std::uint64_t seed);
ShardDrafts random_shard_drafts(std::uint64_t seed);

}  // namespace draftproof::regress
