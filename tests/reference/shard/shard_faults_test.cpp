// Bugs that samplers across devices have had, planted: each gives another token than the whole row somewhere.
#include "tests/reference/shard/random_shards.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

struct FaultCase {
  std::vector<float> row;
  std::vector<TokenRange> ranges;
  RowParameters parameters;
  std::uint64_t seed;
  Sampler sampler;
};

RowView view(std::span<const float> row) {
  return {DType::f32, row.data(), static_cast<std::int64_t>(row.size())};
}

Distribution processed(std::span<const float> row, const RowParameters& parameters) {
  Distribution distribution;
  LogitsDistribution& logits = distribution.make_logits_distribution();
  logits.assign(view(row), parameters.temperature, 0);
  apply_filters(parameters.filters, logits);
  return distribution;
}

template <class Masses>
Token drawn(const FaultCase& c, const Masses& masses) {
  PhiloxSource source;
  AddressedChance<> chance(source, c.seed, 0, c.sampler);
  return chance.draw(masses, 0, Purpose::target_sample);
}

Token of_whole(const FaultCase& c, std::span<const float> row) {
  const Distribution distribution = processed(row, c.parameters);
  return drawn(c, DistributionMasses(distribution));
}

Token across_devices(const FaultCase& c) {
  const Devices devices(c.ranges);
  const SplitRow split(c.row, DType::f32, devices);
  ShardedRow row(devices);
  RowInput input;
  input.parameters = c.parameters;
  row.run(input, split.parts());
  return drawn(c, ShardedMasses(row));
}

std::span<const float> part(const FaultCase& c, std::size_t d) {
  return std::span(c.row).subspan(static_cast<std::size_t>(c.ranges[d].begin),
                                  static_cast<std::size_t>(c.ranges[d].size()));
}

bool is_masked(std::span<const float> logits) {
  return std::all_of(logits.begin(), logits.end(), [](float x) { return x == kMinusInfinity; });
}

// exp(x - maximum) with the maximum of the rank, added to those of others.
Token own_maximum(const FaultCase& c) {
  std::vector<float> row;
  for (std::size_t d = 0; d < c.ranges.size(); ++d) {
    if (part(c, d).empty()) continue;
    const float largest = *std::max_element(part(c, d).begin(), part(c, d).end());
    for (const float x : part(c, d)) row.push_back(largest == kMinusInfinity ? x : x - largest);
  }
  return of_whole(c, row);
}

// The k first by value alone, of equals those of the last rank first.
Token ties_by_rank(const FaultCase& c) {
  if (c.parameters.filters.top_k == 0) return of_whole(c, c.row);
  const Devices devices(c.ranges);
  std::vector<Token> order(c.row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](Token t) { return c.row[static_cast<std::size_t>(t)]; };
  std::sort(order.begin(), order.end(), [&](Token a, Token b) {
    if (value(a) != value(b)) return value(a) > value(b);
    return devices.owner(a) != devices.owner(b) ? devices.owner(a) > devices.owner(b) : a < b;
  });
  FaultCase left = c;
  left.parameters.filters.top_k = 0;
  for (std::size_t i = static_cast<std::size_t>(c.parameters.filters.top_k); i < order.size(); ++i)
    left.row[static_cast<std::size_t>(order[i])] = kMinusInfinity;
  return of_whole(left, left.row);
}

// V / T rounded up: the last rank's tokens behind V have logit 0 and may be drawn.
Token padded_vocabulary(const FaultCase& c) {
  std::vector<float> row = c.row;
  row.resize((row.size() + c.ranges.size() - 1) / c.ranges.size() * c.ranges.size(), 0.0f);
  return of_whole(c, row);
}

// Each rank's race has the noise of its own positions, so that all ranks have the same.
Token one_seed(const FaultCase& c) {
  if (c.sampler == Sampler::inverse) return of_whole(c, c.row);
  const Distribution whole = processed(c.row, c.parameters);
  RaceWinner best = RaceWinner::none();
  for (const TokenRange& range : c.ranges) {
    for (Token t = range.begin; t < range.end; ++t) {
      if (!whole.logits_distribution()->is_kept(t)) continue;
      const auto place = static_cast<std::uint32_t>(t - range.begin);
      const RandomBlock block = PhiloxSource().block(c.seed, {place / 4, 0, 0, Purpose::target_sample});
      const double score =
          static_cast<double>(whole.logits_distribution()->logit(t)) + gumbel_noise(block.word[place % 4]);
      if (score > best.score) best = {score, t};
    }
  }
  return static_cast<Token>(best.token);
}

// Each rank keeps top_p of its own mass.
Token nucleus_of_rank(const FaultCase& c) {
  FaultCase left = c;
  left.parameters.filters.top_p = 1.0f;
  FilterParameters own;
  own.top_p = c.parameters.filters.top_p;
  for (std::size_t d = 0; d < c.ranges.size(); ++d) {
    if (part(c, d).empty() || is_masked(part(c, d))) continue;
    LogitsDistribution rank;
    rank.assign(view(part(c, d)), c.parameters.temperature, 0);
    apply_filters(own, rank);
    for (Token t = c.ranges[d].begin; t < c.ranges[d].end; ++t)
      if (!rank.is_kept(t - c.ranges[d].begin)) left.row[static_cast<std::size_t>(t)] = kMinusInfinity;
  }
  return of_whole(left, left.row);
}

std::int64_t rows_that_differ(const std::function<Token(const FaultCase&)>& sampler, const FilterParameters& filters) {
  std::int64_t different = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    TestRandom random(seed);
    const std::int64_t vocab_size = 2 + random.below(30);
    FaultCase c{awkward_row(random, vocab_size),
                random_split(random, vocab_size),
                {},
                seed,
                random.chance(0.5) ? Sampler::inverse : Sampler::race};
    c.parameters.filters = filters;
    different += sampler(c) != of_whole(c, c.row) ? 1 : 0;
  }
  return different;
}

TEST_CASE("known bugs of sampling across devices give other tokens than the whole row, and shards do not", "[shard]") {
  FilterParameters top_k;
  top_k.top_k = 2;
  FilterParameters top_p;
  top_p.top_p = 0.6f;
  for (const FilterParameters& filters : {FilterParameters{}, top_k, top_p})
    CHECK(rows_that_differ(across_devices, filters) == 0);
  CHECK(rows_that_differ(own_maximum, {}) > 0);
  CHECK(rows_that_differ(ties_by_rank, top_k) > 0);
  CHECK(rows_that_differ(padded_vocabulary, {}) > 0);
  CHECK(rows_that_differ(one_seed, {}) > 0);
  CHECK(rows_that_differ(nucleus_of_rank, top_p) > 0);
}

}  // namespace
}  // namespace draftproof::testing
