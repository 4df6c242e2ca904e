// Chain verification of rows that lie on several devices (twin: reference_executor/shard_verify.cpp over RowShard; as a
// whole verify_across of reference/shard/sharded_verify.hpp).
//
//   stage 0   the owner of a draft says the target's logit (0 of a row that is refused or greedy) and q
//   stage 1   sums of max(p - q, 0) over the tiles of the row in which a request stopped; of a one-hot proposal the
//             draft's mass, in its tile; last, whether a part of the proposal holds no probabilities
//   stage 2   the share of each device of the drawn tile
//   stage 3   its owner finds the token
//   stage 4   outputs
//
// Ladder (bytes that must move: the device's part of one target and one proposal row of a request, once, and a tile of
// both twice):
//   v1 (this)  every stage judges the drafts anew, a block a request, which goes from draft to draft; a block a tile
//       sums residuals, a block a request draws.
//   next: the judgement kept from stage 1 on; a warp a request and a lane a draft, as in chain.cuh.
#pragma once

#include "gpu/kernels/shard_rows.cuh"
#include "gpu/kernels/verify_rows.cuh"
#include "reference/verify/convention.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// The rows of the target or of the proposal.
struct ShardSide {
  static constexpr int kCount = ShardView::kCount;
  ShardView shard;
  CombinedRows rows;

  __device__ DistributionRow row_of(std::int64_t row) const {
    return combined_row(rows, row, shard.temperature_of(row));
  }
  __device__ bool holds(Token token) const { return token >= shard.begin && token < shard.end; }
  __device__ float logit(std::int64_t row, Token token) const {
    return over_temperature(element_at(shard.logits, row, token - shard.begin), shard.temperature_of(row));
  }
  // p of a token whose logit is known.
  __device__ float probability(const DistributionRow& record, std::int64_t row, float logit, Token token) const {
    return probability_in(record, logit, token, rows.exponent(row, token / kTileTokens),
                          reciprocal_total(record.total));
  }
  // p of the tokens from `column` on, 0 where the device has none.
  __device__ void probabilities(const DistributionRow& record, std::int64_t row, std::int64_t column,
                                float (&p)[kCount]) const {
    shard.load(row, column, p);
    const float temperature = shard.temperature_of(row);
    const float reciprocal = reciprocal_total(record.total);
    const std::int32_t exponent = rows.exponent(row, column / kTileTokens);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kCount; ++e)
      p[e] = probability_in(record, over_temperature(p[e], temperature), column + e, exponent, reciprocal);
  }
};

struct ShardDecision {
  std::int32_t num_accepted;
  std::int32_t status;
};

struct ShardVerify {
  Drafts drafts;
  ShardSide target;
  ShardSide proposal;
  std::int32_t proposal_kind;
  std::int32_t stage;
  Global<const std::uint64_t> draft;     // combined messages: of stage 0, ...
  Global<const std::uint64_t> residual;  // ... 1, ...
  Global<const std::int64_t> share;      // ... 2, ...
  Global<const std::int64_t> drawn;      // ... 3
  Global<std::uint64_t> masses;          // message of stage 0 or 1
  Global<std::int64_t> message;          // of stage 2 or 3
  Global<ShardDecision> decisions;       // [requests]
  VerifyOutputs out;

  // Words of a request in stage 1.
  __device__ std::int64_t words() const { return drafts.tiles + 1; }
  __device__ std::int64_t target_row(std::int64_t request, std::int64_t place) const {
    return drafts.target_row(request) + place;
  }
  // A greedy target sees every proposal as one-hot at the draft, and argmax drafting is one.
  __device__ bool is_one_hot(std::int64_t request, std::int64_t place) const {
    if (proposal_kind == DRAFTPROOF_ONE_HOT || target.shard.temperature_of(target_row(request, place)) == 0.0f)
      return true;
    return proposal_kind == DRAFTPROOF_LOGITS && proposal.shard.temperature_of(drafts.first(request) + place) == 0.0f;
  }
};

// q of a draft that the device holds, by all threads of the block.
__device__ inline float proposed(const ShardVerify& v, std::int64_t request, std::int64_t place, Token token) {
  if (v.is_one_hot(request, place)) return 1.0f;
  const std::int64_t row = v.drafts.first(request) + place;
  if (v.proposal_kind == DRAFTPROOF_PROBABILITIES)
    return element_at(v.proposal.shard.logits, row, token - v.proposal.shard.begin);
  const DistributionRow record = v.proposal.row_of(row);
  if (record.status != DRAFTPROOF_ROW_OK) return 0.0f;
  return v.proposal.probability(record, row, v.proposal.logit(row, token), token);
}

// Stage 0. Grid: requests blocks.
__global__ void say_shard_drafts(const __grid_constant__ ShardVerify v) {
  const std::int64_t request = blockIdx.x;
  const DraftRange range = draft_range_by_block(v.drafts.cu_num_draft_tokens, v.drafts.shape, request);
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const Token token = v.drafts.tokens[i];
    std::uint64_t word = 0;
    if (range.valid && v.target.holds(token)) {  // the same in all threads
      const DistributionRow record = v.target.row_of(i + request);
      const bool is_plain = record.status == DRAFTPROOF_ROW_OK && record.greedy_token == DRAFTPROOF_NO_TOKEN;
      const float logit = is_plain ? v.target.logit(i + request, token) : 0.0f;
      const float q = proposed(v, request, i - range.begin, token);
      word = static_cast<std::uint64_t>(bit_cast<std::uint32_t>(logit)) << 32 | bit_cast<std::uint32_t>(q);
    }
    if (threadIdx.x == 0) v.masses[i] = word;
  }
}

__device__ inline float drafted_logit(const ShardVerify& v, std::int64_t request, std::int64_t place) {
  const std::uint64_t word = v.draft[v.drafts.first(request) + place];
  return bit_cast<float>(static_cast<std::uint32_t>(word >> 32));
}

// p and q of a draft, by all threads of the block; every thread gets them. The target row is read first.
__device__ inline DraftChances chances_of_draft(const ShardVerify& v, std::int64_t request, std::int32_t place) {
  const std::int64_t proposal_row = v.drafts.first(request) + place;
  const std::int64_t target_row = v.target_row(request, place);
  const DistributionRow record = v.target.row_of(target_row);
  DraftChances out{0.0f, 1.0f, record.status};
  if (out.status != DRAFTPROOF_ROW_OK) return out;
  out.p = v.target.probability(record, target_row, drafted_logit(v, request, place), v.drafts.tokens[proposal_row]);
  if (v.is_one_hot(request, place)) return out;
  if (v.proposal_kind == DRAFTPROOF_LOGITS) out.status = v.proposal.row_of(proposal_row).status;
  if (out.status != DRAFTPROOF_ROW_OK) return out;
  const std::uint64_t word = v.draft[proposal_row];
  out.q = bit_cast<float>(static_cast<std::uint32_t>(word));
  if (!is_probability(out.q)) out.status = DRAFTPROOF_ROW_BAD_PROBABILITY;
  return out;
}

// Where each request stops, the same on every device. In stage 1 its message is cleared. Grid: requests blocks.
__global__ void judge_shard_drafts(const __grid_constant__ ShardVerify v) {
  const std::int64_t request = blockIdx.x;
  if (v.stage == 1)
    for (std::int64_t w = threadIdx.x; w < v.words(); w += blockDim.x) v.masses[request * v.words() + w] = 0;
  ShardDecision decision{0, DRAFTPROOF_ROW_BAD_ID};
  if (drafts_valid(v.drafts, request)) {  // the same in all warps
    decision.status = DRAFTPROOF_ROW_OK;
    const std::int32_t length = v.drafts.length(request);
    bool stopped = false;
    while (decision.num_accepted < length && !stopped) {
      const std::int32_t place = decision.num_accepted;
      const DraftChances chances = chances_of_draft(v, request, place);
      decision.status = chances.status;
      stopped = chances.status != DRAFTPROOF_ROW_OK ||
                !accepts(Convention::draftproof, static_cast<double>(chances.p), static_cast<double>(chances.q),
                         v.drafts.random(request, place, Purpose::accept));
      if (!stopped) ++decision.num_accepted;
    }
    if (!stopped) decision.status = v.target.row_of(v.target_row(request, length)).status;
  }
  if (threadIdx.x == 0) v.decisions[request] = decision;
}

// The two rows in which a request stopped.
struct ShardPair {
  static constexpr int kCount = ShardSide::kCount;
  const ShardVerify& v;
  std::int64_t target_row;
  std::int64_t proposal_row;
  DistributionRow target;
  DistributionRow proposal;  // of logits

  // By all threads of the block.
  __device__ ShardPair(const ShardVerify& verify, std::int64_t request, std::int64_t place,
                       const DistributionRow& record)
      : v(verify),
        target_row(v.target_row(request, place)),
        proposal_row(v.drafts.first(request) + place),
        target(record),
        proposal(v.proposal_kind == DRAFTPROOF_LOGITS ? v.proposal.row_of(proposal_row) : unfiltered_row()) {}

  // max(p - q, 0) of the tokens from `column` on, 0 where the device has none; false: one of them is no probability.
  __device__ bool load(std::int64_t column, float (&residual)[kCount]) const {
    float q[kCount];
    bool valid = true;
    if (v.proposal_kind == DRAFTPROOF_LOGITS) {
      v.proposal.probabilities(proposal, proposal_row, column, q);
    } else {
      v.proposal.shard.load(proposal_row, column, q);
    }
    v.target.probabilities(target, target_row, column, residual);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kCount; ++e) {
      const bool is_here = column + e >= v.target.shard.begin && column + e < v.target.shard.end;
      valid = valid && (!is_here || is_probability(q[e]));
      residual[e] = is_here ? positive_part_of_difference(residual[e], q[e]) : 0.0f;
    }
    return valid;
  }
};

// visit(column) for the eights of columns that hold tokens of the device's part of a tile, by all threads.
template <class Visit>
__device__ inline void for_each_eight(const ShardView& shard, std::int64_t tile, Visit visit) {
  constexpr std::int64_t kCount = ShardView::kCount;
  const std::int64_t end = shard.end_in(tile);
  for (std::int64_t column = shard.begin_in(tile) / kCount * kCount + threadIdx.x * kCount; column < end;
       column += blockDim.x * kCount)
    visit(column);
}

// Stage 1. Grid: requests * tiles of the device blocks.
__global__ void sum_shard_residuals(const __grid_constant__ ShardVerify v) {
  const ShardView& shard = v.target.shard;
  const std::int64_t request = blockIdx.x / static_cast<std::uint32_t>(shard.device_tiles);
  const std::int64_t tile = shard.first_tile + blockIdx.x % static_cast<std::uint32_t>(shard.device_tiles);
  const ShardDecision decision = v.decisions[request];
  const std::int32_t place = decision.num_accepted;
  if (decision.status != DRAFTPROOF_ROW_OK || place == v.drafts.length(request)) return;
  const std::int64_t row = v.target_row(request, place);
  const DistributionRow record = v.target.row_of(row);
  if (record.greedy_token != DRAFTPROOF_NO_TOKEN) return;
  const std::int64_t at = request * v.words();
  if (v.is_one_hot(request, place)) {
    const Token token = v.drafts.tokens[v.drafts.first(request) + place];
    if (threadIdx.x == 0 && v.target.holds(token) && token / kTileTokens == tile)
      v.masses[at + tile] =
          kept_mass_in_tile(record, v.target.logit(row, token), token, v.target.rows.exponent(row, tile));
    return;
  }
  const ShardPair pair(v, request, place, record);
  ResidualSum residual;
  bool valid = true;
  for_each_eight(shard, tile, [&](std::int64_t column) {
    float x[ShardPair::kCount];
    valid = pair.load(column, x) && valid;
    DRAFTPROOF_UNROLL
    for (const float one : x) residual.add(one);
  });
  const bool is_refused = block_any(!valid);
  const std::uint64_t sum = block_reduce(is_refused ? 0 : residual.sum(), Sum{});
  if (threadIdx.x != 0) return;
  v.masses[at + tile] = sum;
  if (is_refused) atomicAdd(&v.masses[at + v.drafts.tiles], std::uint64_t{1});
}

// A device whose part of a proposal is refused says so, and no sums. Grid: requests blocks.
__global__ void refuse_shard_residuals(const __grid_constant__ ShardVerify v) {
  const std::int64_t at = blockIdx.x * v.words();
  const std::uint64_t refused = v.masses[at + v.drafts.tiles];
  if (refused == 0) return;  // the same in all threads
  __syncthreads();
  for (std::int64_t w = threadIdx.x; w < v.words(); w += blockDim.x) v.masses[at + w] = w == v.drafts.tiles ? 1 : 0;
}

// What the last token of a request is drawn from, and where the draw falls.
struct ShardLastToken {
  ShardDecision decision;
  std::int64_t row;  // of the target
  DistributionRow record;
  bool is_residual;    // of a proposal row; else the target's own masses ...
  Token excluded;      // ... without this token
  bool draws;          // false: of a greedy row, and where nothing but `excluded` has mass
  std::int32_t tile;   // where it falls: a tile, ...
  std::uint64_t left;  // ... and the mass of it that stands before the token
};

// By all threads of a block of kShardVerifyThreads; every thread gets it.
__device__ inline ShardLastToken last_token(const ShardVerify& v, std::int64_t request) {
  ShardLastToken out{};
  out.decision = v.decisions[request];
  out.excluded = DRAFTPROOF_NO_TOKEN;
  if (out.decision.status != DRAFTPROOF_ROW_OK) return out;
  const std::int32_t place = out.decision.num_accepted;
  const bool is_bonus = place == v.drafts.length(request);
  const std::int64_t tiles = v.drafts.tiles;
  if (!is_bonus && v.residual[request * v.words() + tiles] != 0) {
    out.decision = {0, DRAFTPROOF_ROW_BAD_PROBABILITY};
    return out;
  }
  out.row = v.target_row(request, place);
  out.record = v.target.row_of(out.row);
  if (out.record.greedy_token != DRAFTPROOF_NO_TOKEN) return out;
  const bool has_tile = threadIdx.x < tiles;
  const std::uint64_t said =
      !is_bonus && has_tile ? static_cast<std::uint64_t>(v.residual[request * v.words() + threadIdx.x]) : 0;
  const bool is_one_hot = !is_bonus && v.is_one_hot(request, place);
  std::uint64_t sum = said;
  std::uint64_t mass = said;
  std::uint64_t total = 0;
  if (!is_bonus && !is_one_hot) total = block_reduce(said, CappedSum{});
  out.is_residual = total != 0;
  if (!out.is_residual) {
    if (is_one_hot) out.excluded = v.drafts.tokens[v.drafts.first(request) + place];
    const std::uint64_t own =
        has_tile ? static_cast<std::uint64_t>(v.target.rows.tile_sum[out.row * tiles + threadIdx.x]) : 0;
    sum = is_one_hot ? own - said : own;
    mass = has_tile ? row_scale(sum, out.record.exponent, v.target.rows.exponent(out.row, threadIdx.x)) : 0;
    total = block_reduce(mass, CappedSum{});
  }
  out.draws = total != 0;
  if (!out.draws) return out;
  const RandomBlock random = v.drafts.random_of_last_token(request, place);
  out.tile = draw_tile(mass, total, random);
  out.left = multiply_high(low_half(random), block_broadcast(threadIdx.x == static_cast<std::uint32_t>(out.tile), sum));
  return out;
}

inline constexpr std::uint32_t kShardVerifyThreads = 256;  // at least the devices, and the tiles

// visit_tile(masses_at) with the masses of the eight tokens from a column on, in the scale of the drawn tile.
template <class Visit>
__device__ inline void with_masses(const ShardVerify& v, std::int64_t request, const ShardLastToken& last,
                                   Visit visit_tile) {
  constexpr int kCount = ShardView::kCount;
  const ShardView& shard = v.target.shard;
  const auto is_outside = [&](std::int64_t column) { return column + kCount <= shard.begin || column >= shard.end; };
  if (last.is_residual) {
    const ShardPair pair(v, request, last.decision.num_accepted, last.record);
    return visit_tile([&](std::int64_t column, std::uint64_t(&mass)[kCount]) {
      float x[kCount] = {};
      if (!is_outside(column)) pair.load(column, x);
      DRAFTPROOF_UNROLL
      for (int e = 0; e < kCount; ++e) mass[e] = residual_mass(static_cast<double>(x[e]));
    });
  }
  const float temperature = shard.temperature_of(last.row);
  const std::int32_t exponent = v.target.rows.exponent(last.row, last.tile);
  visit_tile([&](std::int64_t column, std::uint64_t(&mass)[kCount]) {
    DRAFTPROOF_UNROLL
    for (std::uint64_t& m : mass) m = 0;
    if (is_outside(column)) return;
    float x[kCount];
    shard.load(last.row, column, x);
    DRAFTPROOF_UNROLL
    for (int e = 0; e < kCount; ++e)
      if (column + e != last.excluded)
        mass[e] = kept_mass_in_tile(last.record, over_temperature(x[e], temperature), column + e, exponent);
  });
}

// Stage 2. Grid: requests blocks of kShardVerifyThreads.
__global__ void share_last_tokens(const __grid_constant__ ShardVerify v) {
  const std::int64_t request = blockIdx.x;
  const ShardView& shard = v.target.shard;
  for (std::int64_t d = threadIdx.x; d < shard.devices; d += blockDim.x) v.message[request * shard.devices + d] = 0;
  const ShardLastToken last = last_token(v, request);
  if (!last.draws || shard.begin_in(last.tile) >= shard.end_in(last.tile)) return;
  std::uint64_t share = 0;
  with_masses(v, request, last, [&](auto masses_at) {
    for_each_eight(shard, last.tile, [&](std::int64_t column) {
      std::uint64_t mass[ShardView::kCount];
      masses_at(column, mass);
      DRAFTPROOF_UNROLL
      for (const std::uint64_t m : mass) share += m;
    });
  });
  share = block_reduce(share, Sum{});
  if (threadIdx.x == 0) v.message[request * shard.devices + shard.device] = static_cast<std::int64_t>(share);
}

// Stage 3. Grid: requests blocks of kShardVerifyThreads.
__global__ void find_last_tokens(const __grid_constant__ ShardVerify v) {
  const std::int64_t request = blockIdx.x;
  const ShardLastToken last = last_token(v, request);
  Token token = DRAFTPROOF_NO_TOKEN;
  if (last.draws) {  // the same in all threads
    const OwnShare own = own_share(v.target.shard, v.share, request, last.left);
    if (own.is_here)
      with_masses(v, request, last,
                  [&](auto masses_at) { token = token_of_tile<ShardView::kCount>(last.tile, own.left, masses_at); });
  }
  if (threadIdx.x != 0) return;
  v.message[request] = kNobody;
  if (token == DRAFTPROOF_NO_TOKEN) return;
  v.message[request] = drawn_message(
      token, log_probability_of(v.target.logit(last.row, token), last.record.exponent, log_total(last.record.total)));
}

// Stage 4. Grid: requests blocks of kShardVerifyThreads.
__global__ void emit_shard_tokens(const __grid_constant__ ShardVerify v) {
  const std::int64_t request = blockIdx.x;
  const ShardLastToken last = last_token(v, request);
  const std::int32_t status = last.decision.status;
  if (status != DRAFTPROOF_ROW_OK) return emit_refusal(v.out, request, status, threadIdx.x, blockDim.x);
  const std::int32_t num_accepted = last.decision.num_accepted;
  const std::int64_t places = v.out.draft_len_max + 1;
  for (std::int64_t i = threadIdx.x; i < places; i += blockDim.x) {
    if (i <= num_accepted) continue;
    v.out.tokens[request * places + i] = DRAFTPROOF_NO_TOKEN;
    if (v.out.logprobs != nullptr) v.out.logprobs[request * places + i] = negative_infinity();
  }
  for (std::int32_t i = 0; i <= num_accepted; ++i) {
    const DistributionRow record = v.target.row_of(v.target_row(request, i));
    if (threadIdx.x != 0) continue;
    Token token = last.excluded;
    float logprob = 0.0f;
    if (record.greedy_token != DRAFTPROOF_NO_TOKEN) {
      token = record.greedy_token;  // an accepted draft is this token
    } else if (i == num_accepted && last.draws) {
      const std::int64_t drawn = v.drawn[request];
      token = -1 - static_cast<Token>(drawn >> 32);
      logprob = bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(drawn)));
    } else {
      if (i < num_accepted) token = v.drafts.tokens[v.drafts.first(request) + i];
      logprob = log_probability_of(drafted_logit(v, request, i), record.exponent, log_total(record.total));
    }
    v.out.tokens[request * places + i] = token;
    if (v.out.logprobs != nullptr) v.out.logprobs[request * places + i] = logprob;
  }
  if (threadIdx.x != 0) return;
  v.out.num_accepted[request] = num_accepted;
  v.out.status[request] = DRAFTPROOF_ROW_OK;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
