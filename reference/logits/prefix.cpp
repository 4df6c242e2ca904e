#include "reference/logits/prefix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/numerics/order_key.hpp"

namespace draftproof {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Token kLastToken = std::numeric_limits<Token>::max();
constexpr std::size_t kFew = 128;          // a band of so many tokens is sorted
constexpr std::size_t kSampleOfGroup = 8;  // consecutive tokens of each group
// Numbers of groups whose largest logits bound what a sample may miss, tried in turn.
constexpr std::array<std::size_t, 3> kHeavyGroups{16, 64, 256};

// A part of the row to guess from: kSampleOfGroup tokens of each group, at another place in each. `take` gets where
// they begin and how many there are.
template <class Take>
void sample_groups(const LogitsDistribution& row, Take take) {
  const auto vocab_size = static_cast<std::size_t>(row.vocab_size());
  std::size_t place = 0;
  for (std::size_t begin = 0; begin < vocab_size; begin += kGroupTokens) {
    place = (place + 10 * kSampleOfGroup) % kGroupTokens;
    const std::size_t first = std::min(begin + place, vocab_size - 1);
    take(first, std::min(kSampleOfGroup, vocab_size - first));
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

struct SampledBand {
  ValueBand band;
  bool is_sure;  // the sample says where the band's low end is
};

// A histogram of masses by value, from `top` down, whose weight is exp(top) over 2^N; what lies below all bins has next
// to no mass.
class Histogram {
 public:
  Histogram(float top, std::int32_t exponent)
      : top_(top), top_weight_(std::exp(static_cast<double>(top) - 0.6931471805599453 * exponent)) {}

  // Tokens below `limit`, at most kSampleOfGroup of them.
  void add(const float* x, const float* weights, std::size_t count, float scale, float limit) {
    std::array<std::int32_t, kSampleOfGroup> bin;
    for (std::size_t i = 0; i < count; ++i) {
      const float depth = std::min((top_ - x[i]) * kPerUnit, static_cast<float>(kCount));
      bin[i] = static_cast<std::int32_t>(x[i] < limit ? depth : static_cast<float>(kCount));
    }
    for (std::size_t i = 0; i < count; ++i) mass_[static_cast<std::size_t>(bin[i])] += weights[i] * scale;
  }

  // A band between edges of bins, so that a value which many tokens have is in it as a whole. It holds the value down
  // to which the tokens have a share `wanted` of their mass, unless the sample is further off than three times its
  // standard deviation, were it drawn at random; each sampled token stands for `ratio` tokens.
  SampledBand band_around(double wanted, double ratio) const {
    std::array<double, kCount> up_to;
    double sum = 0.0;
    for (std::size_t b = 0; b < kCount; ++b) up_to[b] = sum += static_cast<double>(mass_[b]);
    const auto bin_at = [&](double mass) {
      return static_cast<std::size_t>(std::lower_bound(up_to.begin(), up_to.end(), mass) - up_to.begin());
    };
    double variance = 0.0;      // of (mass above the value - wanted share of the sum)
    double each = top_weight_;  // about the mass of a token of the bin
    const double step = std::exp(-1.0 / static_cast<double>(kPerUnit));
    const std::size_t end = bin_at(wanted * sum);
    for (std::size_t b = 0; b < kCount; ++b, each *= step) {
      const double share = b < end ? 1.0 - wanted : wanted;
      variance += share * share * static_cast<double>(mass_[b]) * each;
    }
    const double width = 3.0 * std::sqrt(variance * (1.0 - 1.0 / ratio)) + 1e-6 * sum;
    const std::size_t first = bin_at(wanted * sum - width);
    const std::size_t last = bin_at(std::min(wanted * sum + width, 0.5 * (1.0 + wanted) * sum));
    return {{top_ - (static_cast<float>(last + 1) + kSlack) / kPerUnit,
             top_ - (static_cast<float>(first) - kSlack) / kPerUnit},
            wanted * sum + width < sum};
  }

 private:
  static constexpr std::size_t kCount = 512;
  static constexpr float kPerUnit = static_cast<float>(kCount) / 24.0f;
  static constexpr float kSlack = 0.01f;  // of a bin, for the rounding of its edges
  float top_;
  double top_weight_;
  std::array<float, kCount + 1> mass_{};  // the last for what is not counted
};

struct Buffers {
  std::array<RowBand, 2> bands;
  std::vector<float> sample;
  std::vector<std::uint64_t> order;
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
  // Several of each, since a minimum waits for the one before it.
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> low;
  std::array<float, kLanes> high;
  low.fill(kInfinity);
  high.fill(-kInfinity);
  std::size_t i = 0;
  for (; i + kLanes <= band.count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float x = band.values[i + lane];
      low[lane] = x < low[lane] ? x : low[lane];
      high[lane] = x > high[lane] ? x : high[lane];
    }
  }
  for (; i < band.count; ++i) {
    low[0] = std::min(low[0], band.values[i]);
    high[0] = std::max(high[0], band.values[i]);
  }
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
}

// The end among the tokens of a band of one value: those of a tile have one mass.
Prefix end_among_equals(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit,
                        std::uint64_t before, const RowBand& band) {
  const float value = band.values[0];
  if (ties == Ties::keep_all) return {{value, kLastToken, 0}, before + measure_within(band, measure)};
  for (std::size_t t = 0;; ++t) {
    const std::uint64_t count = band.tile_end[t] - band.tile_begin(t);
    if (count == 0) continue;
    const std::uint64_t each = measure == Measure::mass ? row.row_mass(band.weights[band.tile_begin(t)], t) : 1;
    if (before + count * each >= limit) {
      const std::uint64_t kept = (limit - before + each - 1) / each;
      return {{value, token_of(row, value, t, static_cast<std::size_t>(kept - 1)), 0}, before + kept * each};
    }
    before += count * each;
  }
}

// The end among the tokens of a band, one by one in their order.
Prefix end_in_order(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit,
                    std::uint64_t before, const RowBand& band) {
  // Values descending, and tokens ascending as the band has them.
  std::vector<std::uint64_t>& order = buffers().order;
  order.resize(band.count);
  for (std::size_t i = 0; i < band.count; ++i)
    order[i] = static_cast<std::uint64_t>(~order_key(band.values[i])) << 32 | i;
  std::sort(order.begin(), order.end());
  const auto place = [&](std::size_t rank) { return static_cast<std::size_t>(order[rank] & 0xffffffffu); };
  const auto tile_of = [&](std::size_t at) {
    return static_cast<std::size_t>(std::upper_bound(band.tile_end.begin(), band.tile_end.end(), at) -
                                    band.tile_end.begin());
  };
  const auto measure_of = [&](std::size_t at) {
    return measure == Measure::mass ? row.row_mass(band.weights[at], tile_of(at)) : 1;
  };
  std::size_t last = 0;
  for (before += measure_of(place(0)); before < limit; before += measure_of(place(last))) ++last;
  const std::size_t at = place(last);
  const float value = band.values[at];
  if (ties == Ties::keep_all) return {{value, kLastToken, 0}, before};
  const std::size_t tile = tile_of(at);
  const auto begin = band.values.begin() + static_cast<std::ptrdiff_t>(band.tile_begin(tile));
  const auto rank = std::count(begin, band.values.begin() + static_cast<std::ptrdiff_t>(at), value);
  return {{value, token_of(row, value, tile, static_cast<std::size_t>(rank)), 0}, before};
}

// Where the end would lie if the measure were spread evenly over the values, and some way to both sides.
ValueBand window_by_spread(const ValueBand& bounds, std::uint64_t limit, std::uint64_t within) {
  const double length = static_cast<double>(bounds.high) - static_cast<double>(bounds.low);
  const double end =
      static_cast<double>(bounds.high) - length * static_cast<double>(limit) / static_cast<double>(within);
  const float low = std::max(bounds.low, static_cast<float>(end - 0.04 * length));
  return {low, std::min(bounds.high, std::max(low, static_cast<float>(end + 0.04 * length)))};
}

// The upper half of the numbers between two values: however values are spread, so many turns as a number has bits end
// the search.
ValueBand upper_half(const ValueBand& bounds) {
  const std::uint32_t low = order_key(bounds.low);
  const std::uint32_t high = order_key(bounds.high);
  const std::uint32_t middle = high - (high - low) / 2;
  return {value_of_key(middle), bounds.high};
}

}  // namespace

ValueBand guess_by_count(const LogitsDistribution& row, std::int64_t k) {
  const std::span<const float> groups = row.group_largest();
  const auto wanted = static_cast<std::size_t>(k);
  // As many groups as tokens have a token of at least this value.
  if (wanted <= groups.size() / 2) return clamped(kth_largest({groups.begin(), groups.end()}, wanted - 1), kInfinity);
  std::vector<float>& sample = buffers().sample;
  sample.clear();
  sample_groups(row, [&](std::size_t first, std::size_t count) {
    const float* x = row.logits_in(first, count, nullptr);
    sample.insert(sample.end(), x, x + count);
  });
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

ValueBand guess_by_mass(const LogitsDistribution& row, float fraction) {
  const std::span<const float> groups = row.group_largest();
  Buffers& own = buffers();
  const auto whole = static_cast<double>(row.mass_bounds().most);
  // A sample could miss the few tokens that have most of the mass: all from a high value on are looked at, more of them
  // where the sample says too little about the others.
  for (const std::size_t heavy_groups : kHeavyGroups) {
    if (groups.size() < 2 * heavy_groups) break;
    own.sample.resize(heavy_groups);
    std::partial_sort_copy(groups.begin(), groups.end(), own.sample.begin(), own.sample.end(), std::greater<>());
    const float heavy = std::max(-kLogitLimit, own.sample.back());
    row.scan(heavy, kInfinity, own.bands[0]);
    const auto heavy_mass = static_cast<double>(own.bands[0].band_mass);
    const double wanted = static_cast<double>(fraction) * whole - heavy_mass;
    if (wanted <= 0.0) return {heavy, kInfinity};
    Histogram histogram(heavy, row.exponent());
    std::size_t sample_size = 0;
    sample_groups(row, [&](std::size_t first, std::size_t count) {
      sample_size += count;
      const std::int64_t shift = row.shift_of(first / kTileTokens);
      if (shift > 60) return;  // below all bins
      histogram.add(row.logits_in(first, count, nullptr), row.unfiltered_weights(first), count,
                    static_cast<float>(exact_power_of_two(static_cast<std::int32_t>(-shift))), heavy);
    });
    const double ratio = static_cast<double>(row.vocab_size()) / static_cast<double>(sample_size);
    const auto [band, is_sure] = histogram.band_around(std::min(1.0, wanted / (whole - heavy_mass)), ratio);
    if (is_sure || heavy_groups == kHeavyGroups.back() || groups.size() < 8 * heavy_groups)
      return clamped(band.low, std::min(band.high, std::nextafter(heavy, -kInfinity)));
  }
  return {-kLogitLimit, kInfinity};
}

std::uint64_t measure_above(const RowBand& band, Measure measure) {
  return measure == Measure::mass ? band.above_mass : static_cast<std::uint64_t>(band.above_count);
}

std::uint64_t measure_within(const RowBand& band, Measure measure) {
  return measure == Measure::mass ? band.band_mass : band.count;
}

Prefix prefix_of_row(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit, RowBand& band) {
  if (measure_above(band, measure) >= limit) {
    row.scan(std::nextafter(band.high, kInfinity), kInfinity, band);
  } else if (measure_above(band, measure) + measure_within(band, measure) < limit) {
    row.scan(-kLogitLimit, std::nextafter(band.low, -kInfinity), band);
  }
  return prefix_of_band(row, ties, measure, limit, band);
}

Prefix prefix_of_band(const LogitsDistribution& row, Ties ties, Measure measure, std::uint64_t limit,
                      const RowBand& band) {
  const RowBand* tokens = &band;
  std::uint64_t before = measure_above(band, measure);
  if (band.count <= kFew) return end_in_order(row, ties, measure, limit, before, band);
  ValueBand bounds = values_of(band);
  bool is_even = true;  // how the values seem to be spread
  for (std::size_t turn = 0; tokens->count > kFew && bounds.low < bounds.high; ++turn) {
    const ValueBand window =
        is_even ? window_by_spread(bounds, limit - before, measure_within(*tokens, measure)) : upper_half(bounds);
    RowBand& next = buffers().bands[turn % 2];
    row.narrow(*tokens, window.low, window.high, next);
    const std::uint64_t above = measure_above(next, measure);
    if (before + above >= limit) {
      row.narrow(*tokens, std::nextafter(window.high, kInfinity), bounds.high, next);
    } else if (before + above + measure_within(next, measure) < limit) {
      row.narrow(*tokens, bounds.low, std::nextafter(window.low, -kInfinity), next);
    }
    before += measure_above(next, measure);
    bounds = values_of(next);
    is_even = !is_even || next.count <= tokens->count / 2;
    tokens = &next;
  }
  return bounds.low < bounds.high ? end_in_order(row, ties, measure, limit, before, *tokens)
                                  : end_among_equals(row, ties, measure, limit, before, *tokens);
}

}  // namespace draftproof
