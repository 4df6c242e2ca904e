#include "reference/logits/prefix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace draftproof {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Token kLastToken = std::numeric_limits<Token>::max();
constexpr std::size_t kFew = 96;            // a band of so many tokens is sorted
constexpr std::size_t kSampleOfGroup = 16;  // consecutive tokens of each group
constexpr std::size_t kHeavyGroups = 64;    // whose largest logits bound what a sample may miss

// A part of the row to guess from: kSampleOfGroup tokens of each group, at another place in each.
void take_sample(const LogitsDistribution& row, std::vector<float>& sample) {
  sample.clear();
  const auto vocab_size = static_cast<std::size_t>(row.vocab_size());
  std::array<float, kSampleOfGroup> scratch;
  std::size_t place = 0;
  for (std::size_t begin = 0; begin < vocab_size; begin += kGroupTokens) {
    place = (place + 5 * kSampleOfGroup) % kGroupTokens;
    const std::size_t first = std::min(begin + place, vocab_size - 1);
    const std::size_t count = std::min(kSampleOfGroup, vocab_size - first);
    const float* x = row.logits_in(first, count, scratch.data());
    sample.insert(sample.end(), x, x + count);
  }
}

float kth_largest(std::vector<float> values, std::size_t k) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(values.begin(), at, values.end(), std::greater<>());
  return *at;
}

ValueBand clamped(float low, float high) {
  return {std::max(low, -kLogitLimit), std::max(high, -kLogitLimit)};
}

// The bins of a histogram of masses by value, from the largest logit down; what lies below all of them has next to
// none.
struct Bins {
  static constexpr std::size_t kCount = 512;
  static constexpr float kRange = 24.0f;
  static constexpr float kPerUnit = static_cast<float>(kCount) / kRange;
  float top;
  std::array<float, kCount> mass{};

  std::size_t of(float x) const {
    return static_cast<std::size_t>(std::min((top - x) * kPerUnit, static_cast<float>(kCount - 1)));
  }
  // The value above which there is `target` of mass, `before` of it above all bins.
  float value_at(double target, double before) const {
    if (target <= before) return kInfinity;
    for (std::size_t b = 0; b < kCount; ++b) {
      const double here = static_cast<double>(mass[b]);
      if (before + here >= target) {
        const double part = (target - before) / here;
        return static_cast<float>(static_cast<double>(top) - (static_cast<double>(b) + part) / kPerUnit);
      }
      before += here;
    }
    return -kInfinity;
  }
};

struct Buffers {
  std::array<RowBand, 2> bands;
  RowBand sums;
  std::vector<float> sample;
  std::vector<float> weights;
};

Buffers& buffers() {
  thread_local Buffers buffers;
  return buffers;
}

// The token that is the occurrence number `rank` of `value` in a tile.
Token token_of(const LogitsDistribution& row, float value, std::size_t tile, std::size_t rank) {
  const std::size_t begin = tile * kTileTokens;
  const std::size_t count = std::min<std::size_t>(kTileTokens, static_cast<std::size_t>(row.vocab_size()) - begin);
  std::array<float, kTileTokens> scratch;
  const float* x = row.logits_in(begin, count, scratch.data());
  std::size_t i = 0;
  for (;; ++i)
    if (x[i] == value && rank-- == 0) return static_cast<Token>(begin + i);
}

// The least and the largest value of a band's tokens: closer than its bounds, which lie between values.
ValueBand values_of(const RowBand& band) {
  ValueBand out{band.values[0], band.values[0]};
  for (std::size_t i = 1; i < band.count; ++i) {
    out.low = std::min(out.low, band.values[i]);
    out.high = std::max(out.high, band.values[i]);
  }
  return out;
}

// The end among the tokens of a band of one value: those of a tile have one mass.
KeptSet end_among_equals(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit,
                         std::uint64_t before, const RowBand& band) {
  const float value = band.values[0];
  if (ties == Ties::keep_all) return {value, kLastToken, 0};
  for (std::size_t t = 0;; ++t) {
    const std::uint64_t count = band.tile_end[t] - band.tile_begin(t);
    if (count == 0) continue;
    std::uint64_t each = 1;
    if (measure == Measure::mass) {
      float weight = 0.0f;
      row.weights_of(t, &value, 1, &weight);
      each = row.row_mass(weight, t);
    }
    if (before + count * each >= limit)
      return {value, token_of(row, value, t, static_cast<std::size_t>((limit - before + each - 1) / each - 1)), 0};
    before += count * each;
  }
}

// The end among the tokens of a band, one by one in their order.
KeptSet end_in_order(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit,
                     std::uint64_t before, const RowBand& band) {
  std::vector<std::uint64_t> measures(band.count, 1);
  if (measure == Measure::mass) {
    std::vector<float>& weights = buffers().weights;
    weights.resize(band.count);
    for (std::size_t t = 0; t < band.tile_end.size(); ++t) {
      const std::size_t begin = band.tile_begin(t);
      if (begin == band.tile_end[t]) continue;
      row.weights_of(t, band.values.data() + begin, band.tile_end[t] - begin, weights.data() + begin);
      for (std::size_t i = begin; i < band.tile_end[t]; ++i) measures[i] = row.row_mass(weights[i], t);
    }
  }
  std::vector<std::size_t> order(band.count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Tokens come in ascending order of id, which a stable sort keeps among equal values.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return band.values[a] > band.values[b]; });
  std::size_t last = 0;
  for (before += measures[order[0]]; before < limit; before += measures[order[last]]) ++last;
  const std::size_t at = order[last];
  const float value = band.values[at];
  if (ties == Ties::keep_all) return {value, kLastToken, 0};
  const auto tile = static_cast<std::size_t>(std::upper_bound(band.tile_end.begin(), band.tile_end.end(), at) -
                                             band.tile_end.begin());
  const auto begin = band.values.begin() + static_cast<std::ptrdiff_t>(band.tile_begin(tile));
  const auto rank = std::count(begin, band.values.begin() + static_cast<std::ptrdiff_t>(at), value);
  return {value, token_of(row, value, tile, static_cast<std::size_t>(rank)), 0};
}

}  // namespace

ValueBand guess_by_count(LogitsDistribution& row, std::int64_t k) {
  const std::span<const float> groups = row.group_largest();
  const auto wanted = static_cast<std::size_t>(k);
  // As many groups as tokens have a token of at least this value.
  if (wanted <= groups.size() / 2) return clamped(kth_largest({groups.begin(), groups.end()}, wanted - 1), kInfinity);
  std::vector<float>& sample = buffers().sample;
  take_sample(row, sample);
  const double expected =
      static_cast<double>(k) * static_cast<double>(sample.size()) / static_cast<double>(row.vocab_size());
  const double width = 4.0 * std::sqrt(expected) + 4.0;
  const double last = static_cast<double>(sample.size()) - 1.0;
  const float high =
      expected - width < 0.0 ? kInfinity : kth_largest(sample, static_cast<std::size_t>(expected - width));
  const float low =
      expected + width > last ? -kInfinity : kth_largest(sample, static_cast<std::size_t>(expected + width));
  return clamped(low, high);
}

ValueBand guess_by_mass(LogitsDistribution& row, float fraction) {
  const std::span<const float> groups = row.group_largest();
  Buffers& own = buffers();
  Bins bins{*std::max_element(groups.begin(), groups.end()), {}};
  const TileMass scale{0, row.exponent(), row.exponent(), 0};

  // The mass of all tokens from a high value on is exact; a sample could miss the few that have most of it.
  float heavy = kInfinity;
  double heavy_mass = 0.0;
  std::array<float, kGroupTokens + kBandSlack> band;
  std::array<float, kGroupTokens> scratch;
  if (groups.size() >= 2 * kHeavyGroups) {
    heavy = std::max(-kLogitLimit, kth_largest({groups.begin(), groups.end()}, kHeavyGroups - 1));
    const float below = std::nextafter(heavy, -kInfinity);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g] < heavy) continue;
      const std::size_t begin = g * kGroupTokens;
      const std::size_t count = std::min(kGroupTokens, static_cast<std::size_t>(row.vocab_size()) - begin);
      const float* x = row.logits_in(begin, count, scratch.data());
      heavy_mass += static_cast<double>(
          row_kernels().tile_band(x, count, scale, 0, kInfinity, std::max(below, -kLogitLimit), band.data()).above);
    }
    heavy_mass *= 0x1p-44;
  }

  take_sample(row, own.sample);
  own.weights.resize(own.sample.size());
  row_kernels().tile_weights(own.sample.data(), own.sample.size(), row.exponent(), own.weights.data());
  const double ratio = static_cast<double>(row.vocab_size()) / static_cast<double>(own.sample.size());
  for (std::size_t i = 0; i < own.sample.size(); ++i)
    if (own.sample[i] < heavy) bins.mass[bins.of(own.sample[i])] += own.weights[i];
  double total = heavy_mass;
  for (float& mass : bins.mass) {
    mass *= static_cast<float>(ratio);
    total += static_cast<double>(mass);
  }
  const double target = static_cast<double>(fraction) * total;
  // The variance of (mass above - fraction of the total), were the sample drawn at random.
  double variance = 0.0;
  double before = heavy_mass;
  double each = 1.0;  // about the mass of a token of the bin
  const double step = std::exp(-1.0 / static_cast<double>(Bins::kPerUnit));
  for (std::size_t b = 0; b < Bins::kCount; ++b, each *= step) {
    const double here = static_cast<double>(bins.mass[b]);
    const double share = before < target ? 1.0 - static_cast<double>(fraction) : static_cast<double>(fraction);
    variance += share * share * here * each * ratio;
    before += here;
  }
  const double width = 3.0 * std::sqrt(variance) + 1e-6 * total;
  const float high = bins.value_at(target - width, heavy_mass);
  const float low = bins.value_at(target + width, heavy_mass);
  return clamped(low == kInfinity ? heavy : low, high);
}

std::uint64_t measure_above(const RowBand& band, Measure measure) {
  return measure == Measure::mass ? band.above_mass : static_cast<std::uint64_t>(band.above_count);
}

std::uint64_t measure_within(const LogitsDistribution& row, const RowBand& band, Measure measure) {
  if (measure == Measure::count) return band.count;
  RowBand& sums = buffers().sums;
  row.narrow(band, kInfinity, kInfinity, sums);
  return sums.mass;
}

KeptSet prefix_of_row(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit, RowBand& band) {
  if (measure_above(band, measure) >= limit) {
    row.scan(std::nextafter(band.high, kInfinity), kInfinity, band);
  } else if (measure_above(band, measure) + measure_within(row, band, measure) < limit) {
    row.scan(-kLogitLimit, std::nextafter(band.low, -kInfinity), band);
  }
  return prefix_of_band(row, ties, measure, limit, band);
}

KeptSet prefix_of_band(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit,
                       const RowBand& band) {
  const RowBand* tokens = &band;
  std::uint64_t before = measure_above(band, measure);
  if (band.count <= kFew) return end_in_order(row, ties, measure, limit, before, band);
  std::uint64_t within = measure_within(row, band, measure);
  ValueBand bounds = values_of(band);
  for (std::size_t turn = 0; tokens->count > kFew && bounds.low < bounds.high; ++turn) {
    // Where the end would lie if the measure were spread evenly over the values.
    const double length = static_cast<double>(bounds.high) - static_cast<double>(bounds.low);
    const double end =
        static_cast<double>(bounds.high) - length * static_cast<double>(limit - before) / static_cast<double>(within);
    float low = std::max(bounds.low, static_cast<float>(end - 0.08 * length));
    float high = std::min(bounds.high, std::max(low, static_cast<float>(end + 0.08 * length)));
    RowBand& next = buffers().bands[turn % 2];
    row.narrow(*tokens, low, high, next);
    const std::uint64_t above = measure_above(next, measure);
    std::uint64_t next_within = above + before >= limit ? 0 : measure_within(row, next, measure);
    if (before + above >= limit) {
      row.narrow(*tokens, std::nextafter(high, kInfinity), bounds.high, next);
    } else if (before + above + next_within < limit) {
      row.narrow(*tokens, bounds.low, std::nextafter(low, -kInfinity), next);
      next_within = 0;
    }
    if (next.count == tokens->count) break;  // no value lies between: sorting ends it
    before += measure_above(next, measure);
    within = next_within != 0 ? next_within : measure_within(row, next, measure);
    bounds = values_of(next);
    tokens = &next;
  }
  return bounds.low < bounds.high ? end_in_order(row, ties, measure, limit, before, *tokens)
                                  : end_among_equals(row, ties, measure, limit, before, *tokens);
}

}  // namespace draftproof
