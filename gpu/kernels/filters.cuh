// Filters of a row, one block a row (twin: reference/logits/filters.cpp and LogitsDistribution::keep).
//
//   logits [rows, vocab_size], tile_sum and tile_exponent [rows, tiles] of the unfiltered rows
//     -> tile_sum over the kept tokens, DistributionRow [rows]
//
// Ladder (bytes that must move: vocab_size * sizeof(element) a row and pass, from L2 after the first):
//   v2 (this)  joint top-p's tokens below a bound from S cost a load and a comparison. The others: one pass into
//       linear buckets (prefix_search.cuh), one to list the tokens of the bucket in which the filters end, one to add
//       up what is kept; a filter of kept tokens costs no exponential of the others. min-p alone needs the last alone.
//       Buckets of a radix select would take three passes: most tokens share a few of them.
//   next: a cluster of blocks a row, its logits kept in shared memory between the passes.
#pragma once

#include "gpu/kernels/parameters.cuh"
#include "gpu/kernels/prefix_search.cuh"
#include "reference/numerics/fraction.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// Mass m_i of each token in the scale of the row, where top-p needs it; tokens that min-p dropped before are left out.
struct FilterMeasure {
  std::int32_t row_exponent;
  bool has_mass;
  std::uint64_t least_mass;

  __device__ bool counts(float, std::int64_t, std::int32_t) const { return true; }
  __device__ std::uint64_t mass(float x, std::int32_t tile_exponent) const {
    if (!has_mass) return 0;
    const std::uint64_t mass = row_scale(mass_in_tile(x, tile_exponent), row_exponent, tile_exponent);
    return mass < least_mass ? 0 : mass;
  }
};

__device__ inline std::uint64_t top_p_limit(const Parameters& p, std::uint64_t total) {
  if (p.top_p == 1.0f) return kNoMassLimit;
  const std::uint64_t limit = ceil_of_fraction(p.top_p, total);
  return limit > 0 ? limit : 1;
}

// A value below which no token is in the nucleus. Sigma m_i is at least S - V, since each of V tokens loses less than 1
// in the scale of the row. Tokens below the value have at most q + 1 each, V (q + 1) together, which is less than what
// stands outside of the nucleus, Sigma m_i - ceil(top_p Sigma m_i): that does not fall as Sigma m_i grows. So those
// above have what the nucleus needs. -infinity where nothing is known.
__device__ inline float lowest_of_nucleus(float top_p, const DistributionRow& row, std::int64_t vocab_size) {
  constexpr std::int32_t kNearExponent = 90000;  // beyond it floats are too coarse for the margin
  const auto tokens = static_cast<std::uint64_t>(vocab_size);
  if (row.total <= tokens || row.exponent > kNearExponent || row.exponent < -kNearExponent) return negative_infinity();
  const std::uint64_t least = row.total - tokens;
  const std::uint64_t each = (least - ceil_of_fraction(top_p, least)) / tokens;  // q + 2
  if (each < 3) return negative_infinity();
  const float bits = approximate_log2(static_cast<float>(each - 2)) + static_cast<float>(row.exponent - kMassBits);
  const float value = bits * exp_constants::kLn2High;
  return value - 0.01f - 1e-6f * (value < 0.0f ? -value : value);  // of rounding, generously
}

// Fills in where the kept tokens end: last_value, last_token and least_mass.
template <class Element>
__device__ inline void find_kept(const RowReader<Element>& reader, const Parameters& p, DistributionRow& row) {
  const float first_value = reader.first_value(row.exponent);
  if (p.min_p != 0.0f) row.least_mass = ceil_of_fraction(p.min_p, mass_in_tile(first_value, row.exponent));
  if (p.top_k == 0 && p.top_p == 1.0f) return;

  const bool has_nucleus = p.top_p != 1.0f;
  const FilterMeasure measure{row.exponent, has_nucleus, p.top_k_first ? row.least_mass : 0};
  PrefixSearch<Element, FilterMeasure, true> search(reader, measure, first_value, p.keeps_ties);
  // In the joint order the limit is a share of Sigma m_i over the row, which lies between S - V and S: the least is
  // tried, and Sigma m_i itself is added up where a limit up to V above it would end elsewhere. After top-k the limit
  // is a share of what that left.
  const bool is_joint = has_nucleus && !p.top_k_first;
  const auto tokens = static_cast<std::uint64_t>(reader.vocab_size());
  PrefixLimits limits{p.top_k == 0 ? kNoCountLimit : static_cast<std::uint32_t>(p.top_k), kNoMassLimit};
  if (is_joint) limits.mass = top_p_limit(p, row.total > tokens ? row.total - tokens : 0);
  search.restart(is_joint ? lowest_of_nucleus(p.top_p, row, reader.vocab_size()) : negative_infinity());
  if (has_nucleus && p.top_k_first && p.top_k == 0) limits.mass = top_p_limit(p, search.mass());
  Prefix prefix = search.find(limits);
  bool again = false;
  if (has_nucleus && p.top_k_first && p.top_k != 0) {
    limits = {kNoCountLimit, top_p_limit(p, prefix.mass)};
    again = true;
  } else if (is_joint && prefix.mass >= limits.mass && prefix.mass - limits.mass <= tokens) {
    search.restart(negative_infinity());
    limits.mass = top_p_limit(p, search.mass());
    again = true;
  }
  if (again) prefix = search.find(limits);
  if (!prefix.reached) return;
  row.last_value = value_of_packed(prefix.last);
  row.last_token = p.keeps_ties ? 0x7fffffff : token_of_packed(prefix.last);
}

// floor(fraction * total) for fraction in (0, 1) (twin: floor_of_product).
__device__ inline std::uint64_t floor_of_fraction(float fraction, std::uint64_t total) {
  const std::uint32_t bits = bit_cast<std::uint32_t>(fraction);
  const std::uint32_t exponent = bits >> 23;  // 0: a subnormal, of which the product with any mass is below 1
  const std::uint64_t digits = (bits & 0x7fffffu) | 0x800000u;
  if (exponent < 63) return 0;  // the product is below 2^88
  return static_cast<std::uint64_t>(static_cast<Unsigned128>(digits) * total >> (150u - exponent));
}

// Numbers of reference/logits/filters.hpp's TopPRule.
inline constexpr std::uint8_t kTopPThrough = 2;
inline constexpr std::uint8_t kTopPAscending = 3;

// What top-p looks at by another rule: the tokens with mass that are left of a row.
struct RuleMeasure {
  DistributionRow left;

  __device__ bool counts(float x, std::int64_t token, std::int32_t tile_exponent) const {
    return is_kept(left, x, token, tile_exponent);
  }
  __device__ std::uint64_t mass(float x, std::int32_t tile_exponent) const {
    return row_scale(mass_in_tile(x, tile_exponent), left.exponent, tile_exponent);
  }
};

// The prefix with whose last token the rule's limit is reached.
template <class Element, bool kReverses>
__device__ inline Prefix prefix_of_rule(const RowReader<Element>& reader, const RuleMeasure& measure, float first_value,
                                        const Parameters& p, bool keeps_ties) {
  PrefixSearch<Element, RuleMeasure, false, kReverses> search(reader, measure, first_value, keeps_ties);
  const std::uint64_t limit =
      p.top_p_rule == kTopPAscending ? top_p_limit(p, search.mass()) : floor_of_fraction(p.top_p, search.mass()) + 1;
  return search.find({kNoCountLimit, limit});
}

// The last id of the last value that `through` keeps, where `crossing` is the packed_first of the token that crosses
// top_p: those before it, or it alone where none is.
template <class Element>
__device__ inline Token last_before(const RowReader<Element>& reader, const RuleMeasure& measure, bool keeps_ties,
                                    std::uint64_t crossing) {
  std::uint32_t before = 0;  // 1: tokens of larger values stand there, 2: one of its own
  reader.for_each([&](float x, std::int64_t token, std::int32_t exponent) {
    const std::uint64_t packed = packed_first(x, token);
    if (packed <= crossing || !measure.counts(x, token, exponent)) return;
    before = Max{}(before, packed >> 32 == crossing >> 32 ? 2u : 1u);
  });
  before = block_reduce(before, Max{});
  if (keeps_ties) return before == 1 ? -1 : 0x7fffffff;
  return before == 0 ? token_of_packed(crossing) : token_of_packed(crossing) - 1;
}

// As find_kept, where top-p has another rule than the first: the set need not be a prefix (twin: apply_with_rule).
template <class Element>
__device__ inline void find_kept_by_rule(const RowReader<Element>& reader, const Parameters& p, DistributionRow& row) {
  RuleMeasure measure{row};  // joint: the whole row
  Parameters others = p;
  others.top_p = 1.0f;
  if (others.filters()) find_kept(reader, others, row);
  if (row.least_mass == 0) row.least_mass = 1;
  if (p.top_k_first) measure.left = row;
  if (measure.left.least_mass == 0) measure.left.least_mass = 1;
  const float first_value = reader.first_value(row.exponent);
  const bool is_through = p.top_p_rule == kTopPThrough;
  const bool reverses = p.top_p_rule == kTopPAscending && !p.keeps_ties;  // with them the order of ties is no matter
  const Prefix prefix =
      reverses ? prefix_of_rule<Element, true>(reader, measure, first_value, p, false)
               : prefix_of_rule<Element, false>(reader, measure, first_value, p, p.keeps_ties && !is_through);
  Token first_token = 0;
  Token last_token = 0x7fffffff;
  if (is_through) {
    last_token = last_before(reader, measure, p.keeps_ties, prefix.last);
  } else if (reverses) {
    first_token = static_cast<Token>(reader.vocab_size() - 1 - token_of_packed(prefix.last));
  } else if (!p.keeps_ties) {
    last_token = token_of_packed(prefix.last);
  }
  const float value = value_of_packed(prefix.last);
  if (value < row.last_value) return;
  row.last_token = value > row.last_value ? last_token : Min{}(last_token, row.last_token);
  row.first_token = first_token;
  row.last_value = value;
  if (value != first_value || row.first_token <= row.last_token) return;
  // Of ties at the top top-k has kept the first ids, and top-p the last: the first token stays.
  Token first = 0x7fffffff;
  reader.for_each([&](float x, std::int64_t token, std::int32_t) {
    if (x == first_value) first = Min{}(first, static_cast<Token>(token));
  });
  row.first_token = 0;
  row.last_token = block_reduce(first, Min{});
}

// Adds up what is kept: total and kept_count of the row, the sums of its tiles.
template <class Element>
__device__ inline void add_up_kept(const RowReader<Element>& reader, Global<std::uint64_t> tile_sum,
                                   DistributionRow& row) {
  constexpr std::int64_t kTilesMax = kVocabularyLimit / kTileTokens;
  constexpr std::int64_t kWarpTokens = 32 * RowReader<Element>::kCount;  // of one tile
  DRAFTPROOF_SHARED(std::uint64_t, kept_sum, kTilesMax);
  for (std::int64_t t = threadIdx.x; t < kTilesMax; t += blockDim.x) kept_sum[t] = 0;
  __syncthreads();
  std::uint32_t count = 0;
  for (std::int64_t begin = warp_of_thread() * kWarpTokens; begin < reader.vocab_size();
       begin += warps_of_block() * kWarpTokens) {
    const std::int64_t column = begin + lane_of_thread() * RowReader<Element>::kCount;
    const std::int32_t exponent = reader.tile_exponent(begin);
    float x[RowReader<Element>::kCount];
    reader.load(column, x);
    std::uint64_t sum = 0;
    DRAFTPROOF_UNROLL
    for (int i = 0; i < RowReader<Element>::kCount; ++i) {
      if (!is_kept(row, x[i], column + i, exponent)) continue;
      sum += mass_in_tile(x[i], exponent);
      ++count;
    }
    if (__any_sync(kAllLanes, sum != 0) == 0) continue;
    sum = warp_reduce(sum, Sum{});
    if (lane_of_thread() == 0) atomicAdd(&kept_sum[begin / kTileTokens], sum);
  }
  __syncthreads();
  row.kept_count = static_cast<std::int32_t>(block_reduce(count, Sum{}));
  std::uint64_t total = 0;
  for (std::int64_t t = threadIdx.x; t * kTileTokens < reader.vocab_size(); t += blockDim.x) {
    const std::uint64_t sum = kept_sum[t];
    tile_sum[t] = sum;
    total += row_scale(sum, row.exponent, reader.tile_exponent(t * kTileTokens));
  }
  row.total = block_reduce(total, Sum{});
}

struct FilterRows {
  RowsView logits;
  ParametersView parameters;
  RowRequests row_requests;
  Global<const std::int32_t> row_status;  // what edit_tokens says of the row; null: nothing was edited
  std::int64_t vocab_size;
  std::int64_t tiles;
  bool counts_kept;  // kept_count is wanted of unfiltered rows too
  Global<std::uint64_t> tile_sum;
  Global<std::int32_t> tile_exponent;
  Global<DistributionRow> rows;
};

// kByRule: requests give a rule of top-p. Grid: rows blocks.
template <class Element, bool kByRule>
__global__ void __launch_bounds__(512, kByRule ? 1 : 2) filter_rows(FilterRows f) {
  const std::int64_t row = blockIdx.x;
  const Parameters p = parameters_of(f.parameters, f.row_requests.of(row));
  std::int32_t status = p.valid ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_PARAMETER;
  if (!f.row_requests.valid(row)) status = DRAFTPROOF_ROW_BAD_ID;
  if (f.row_status != nullptr) status = f.row_status[row];
  DistributionRow out = row_of_tiles(row, f.tiles, p.temperature, status, f.tile_sum, f.tile_exponent);
  const Global<const std::int32_t> tile_exponent = f.tile_exponent + row * f.tiles;
  const RowReader<Element> reader(f.logits, row, f.vocab_size, p.temperature, tile_exponent);
  if (out.status == DRAFTPROOF_ROW_OK && out.greedy_token == DRAFTPROOF_NO_TOKEN) {
    bool by_rule = false;
    if constexpr (kByRule) {
      by_rule = p.top_p_rule != 0 && p.top_p != 1.0f;
      if (by_rule) find_kept_by_rule(reader, p, out);
    }
    if (p.filters() && !by_rule) find_kept(reader, p, out);
    if (p.filters() || f.counts_kept) add_up_kept(reader, f.tile_sum + row * f.tiles, out);
  }
  if (threadIdx.x == 0) f.rows[row] = out;
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
