#include "reference/sampling/logits_distribution.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>

#include "reference/random/injected.hpp"
#include "tests/reference/sampling/row_distributions.hpp"
#include "tests/support/row_kernel_sets.hpp"
#include "tests/support/test.hpp"

namespace {

using Wide = boost::multiprecision::cpp_bin_float_50;
constexpr double kRounding = 0x1p-24;  // of one binary32 operation, relative

const std::vector<std::size_t> kVocabSizes = {1, 7, 31, 32, 33, 4095, 4096, 4097, 8192, 32000, 50257, 128256};

std::vector<float> normal_row(std::size_t vocab_size, unsigned seed, float spread = 4.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> logits(vocab_size);
  for (float& x : logits) x = normal(random);
  return logits;
}

LogitsDistribution distribution_of(const std::vector<float>& logits) {
  LogitsDistribution distribution;
  distribution.assign(logits, 0);
  return distribution;
}

std::vector<std::uint64_t> masses_in_tiles(const LogitsDistribution& distribution) {
  std::vector<std::uint64_t> masses;
  for (Token i = 0; i < distribution.vocab_size(); ++i) masses.push_back(distribution.mass_in_tile(i));
  return masses;
}

// The slow oracle of a draw: masses of tiles in the row's scale, then tokens of the tile.
Token slow_draw(const LogitsDistribution& distribution, const RandomBlock& block, Token excluded = kPaddingToken) {
  std::vector<std::uint64_t> in_tile = masses_in_tiles(distribution);
  if (excluded >= 0) in_tile[static_cast<std::size_t>(excluded)] = 0;
  std::vector<std::uint64_t> tiles;
  for (std::size_t t = 0; t < distribution.tile_count(); ++t) {
    const std::size_t begin = t * kTileTokens;
    const std::size_t end = std::min(in_tile.size(), begin + kTileTokens);
    float top = -kInfinity;
    for (std::size_t i = begin; i < end; ++i) top = std::max(top, distribution.logit(static_cast<Token>(i)));
    const cpp_int sum = std::accumulate(in_tile.begin() + static_cast<std::ptrdiff_t>(begin),
                                        in_tile.begin() + static_cast<std::ptrdiff_t>(end), cpp_int(0));
    const int shift = top == -kInfinity ? 0 : distribution.exponent() - exp_parts(top).n;
    tiles.push_back(static_cast<std::uint64_t>(cpp_int(sum >> shift)));
  }
  const std::ptrdiff_t begin = interval_of(high_half(block), tiles.begin(), tiles.end()) * kTileTokens;
  const auto first = in_tile.begin() + begin;
  const std::ptrdiff_t count = std::min<std::ptrdiff_t>(in_tile.end() - first, kTileTokens);
  return static_cast<Token>(begin + interval_of(low_half(block), first, first + count));
}

// The softmax in extended precision: sum of exp(x - N ln 2), and log of the sum of exp(x).
template <class Real>
Real scaled_sum(const std::vector<float>& logits, std::int32_t exponent) {
  const Real shift = exponent * log(Real(2));
  Real sum = 0;
  for (const float x : logits)
    if (x > -kInfinity) sum += exp(Real(Real(x) - shift));
  return sum;
}

}  // namespace

TEST_CASE("Totals and probabilities are the softmax within the stated error for every vocabulary size") {
  for (const std::size_t vocab_size : kVocabSizes) {
    const std::vector<float> logits = normal_row(vocab_size, 51);
    const LogitsDistribution distribution = distribution_of(logits);
    INFO("V = " << vocab_size);
    const long double exact_sum = scaled_sum<long double>(logits, distribution.exponent());
    if (vocab_size <= 4097) {  // the yardstick against 50 digits
      const auto wide = static_cast<long double>(scaled_sum<Wide>(logits, distribution.exponent()));
      CHECK(std::fabs(exact_sum / wide - 1) < 1e-16L);
    }
    const long double sum = std::ldexp(static_cast<long double>(distribution.total()), -kMassBits);
    // 1.3 ulp of f, which is below 1 at worst, and half a unit of mass for each token and one for each tile.
    const double quantum = (0.5 * static_cast<double>(vocab_size) + 32.0) * 0x1p-44;
    CHECK(std::fabs(static_cast<double>(sum / exact_sum - 1)) <= 1.84 * kRounding + quantum);
    // The errors of many tokens cancel.
    if (vocab_size >= 4095) CHECK(std::fabs(static_cast<double>(sum / exact_sum - 1)) <= kRounding);

    double worst_probability = 0.0;
    double worst_log_probability = 0.0;
    double sum_of_probabilities = 0.0;
    const long double log_sum = std::log(exact_sum);
    for (std::size_t i = 0; i < vocab_size; ++i) {
      const Token token = static_cast<Token>(i);
      const long double exact_log =
          static_cast<long double>(logits[i]) - distribution.exponent() * std::log(2.0L) - log_sum;
      const double relative = static_cast<double>(distribution.probability(token) / std::exp(exact_log) - 1);
      worst_probability = std::max(worst_probability, std::fabs(relative));
      const double error = static_cast<double>(distribution.log_probability(token) - exact_log);
      worst_log_probability =
          std::max(worst_log_probability, std::fabs(error) - 0.5 * 0x1p-23 * -static_cast<double>(exact_log));
      sum_of_probabilities += static_cast<double>(distribution.probability(token));
    }
    CAPTURE(worst_probability, worst_log_probability);
    CHECK(worst_probability <= 2 * 1.84 * kRounding + 3 * kRounding);  // f, S, and three roundings
    CHECK(worst_log_probability <= 1.84 * kRounding + quantum);        // S; the rest is one rounding of the result
    CHECK(std::fabs(sum_of_probabilities - 1.0) <= 4 * kRounding);
  }
}

TEST_CASE("Every set of row kernels gives the same distribution and tile probabilities equal those of single tokens") {
  std::vector<std::vector<float>> rows;
  for (const std::size_t vocab_size : {1, 33, 4097, 12289}) rows.push_back(normal_row(vocab_size, 53));
  rows.push_back(normal_row(9000, 55, 200.0f));  // deep tiles
  rows.push_back(normal_row(9000, 57, 1e6f));    // beyond the fast range
  rows.push_back(std::vector<float>(9000, -kInfinity));
  rows.back()[8999] = 3.0f;
  // Weights held at the deepest exponent whose probabilities are still above zero, as subnormal numbers.
  rows.push_back(normal_row(5000, 58));
  for (const std::size_t tile : {0, 4096}) {
    rows.back()[tile] = 20.0f;
    rows.back()[tile + 7] = -72.0f;
  }
  for (const std::vector<float>& logits : rows) {
    const LogitsDistribution first = distribution_of(logits);
    for_each_row_kernel_set([&] {
      const LogitsDistribution distribution = distribution_of(logits);
      CHECK(distribution.exponent() == first.exponent());
      CHECK(distribution.total() == first.total());
      CHECK(masses_in_tiles(distribution) == masses_in_tiles(first));
      std::vector<float> scratch(kTileTokens);
      int wrong = 0;
      for (std::size_t t = 0; t < distribution.tile_count(); ++t) {
        const float* p = distribution.tile_probabilities(t, scratch.data());
        for (std::size_t i = 0; i < kTileTokens && t * kTileTokens + i < logits.size(); ++i) {
          const Token token = static_cast<Token>(t * kTileTokens + i);
          wrong += bit_cast<std::uint32_t>(p[i]) != bit_cast<std::uint32_t>(distribution.probability(token));
          wrong += bit_cast<std::uint32_t>(p[i]) != bit_cast<std::uint32_t>(first.probability(token));
        }
      }
      CHECK(wrong == 0);
    });
  }
  const LogitsDistribution last = distribution_of(rows.back());
  CHECK(last.probability(7) > 0.0f);
  CHECK(last.probability(7) < std::numeric_limits<float>::min());
}

TEST_CASE("Reordering tokens within tiles and whole tiles within a row reorders the masses and keeps the total") {
  std::vector<float> logits = normal_row(3 * kTileTokens, 59);
  for (std::size_t i = 0; i < kTileTokens; ++i) logits[i] -= 20.0f;  // tiles of different exponents
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(61);
  for (auto tile = order.begin(); tile != order.end(); tile += kTileTokens)
    std::shuffle(tile, tile + kTileTokens, random);
  std::rotate(order.begin(), order.begin() + kTileTokens, order.end());
  std::vector<float> moved(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) moved[i] = logits[order[i]];

  const LogitsDistribution distribution = distribution_of(logits);
  const LogitsDistribution distribution_of_moved = distribution_of(moved);
  CHECK(distribution_of_moved.total() == distribution.total());
  CHECK(distribution_of_moved.exponent() == distribution.exponent());
  int wrong = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Token from = static_cast<Token>(order[i]);
    const Token to = static_cast<Token>(i);
    wrong += distribution_of_moved.mass_in_tile(to) != distribution.mass_in_tile(from) ||
             distribution_of_moved.mass(to) != distribution.mass(from) ||
             distribution_of_moved.probability(to) != distribution.probability(from);
  }
  CHECK(wrong == 0);
}

TEST_CASE(
    "Draws agree with a slow oracle in exact integers, at the endpoints of random words and at every border too") {
  std::vector<float> three_tiles = normal_row(2 * kTileTokens + 100, 67);
  for (std::size_t i = 0; i < kTileTokens; ++i) three_tiles[i] -= 6.0f;
  std::vector<float> gaps = normal_row(4 * kTileTokens, 71);
  std::fill(gaps.begin(), gaps.begin() + kTileTokens, -kInfinity);                     // nothing in the first tile
  std::fill(gaps.begin() + 2 * kTileTokens, gaps.begin() + 3 * kTileTokens, -100.0f);  // less than a unit
  std::fill(gaps.begin() + 3 * kTileTokens + 9, gaps.end(), -kInfinity);               // a masked end
  std::vector<float> few(2 * kTileTokens + 50, -kInfinity);
  few[kTileTokens + 3] = 1.0f;
  few[kTileTokens + 9] = 0.0f;
  few[kTileTokens + 11] = -200.0f;     // kept, and without mass
  few[2 * kTileTokens + 20] = -60.0f;  // a tile with less than one unit in the row's scale
  const std::vector<float> one_tile = {0.5f, -kInfinity, -1.0f, 2.0f, -30.0f, 2.0f, -kInfinity};
  std::mt19937_64 random(73);
  for (const std::vector<float>& logits : {normal_row(9, 65), one_tile, three_tiles, gaps, few}) {
    const LogitsDistribution distribution = distribution_of(logits);
    std::vector<RandomBlock> blocks;
    for (int i = 0; i < 60; ++i) blocks.push_back(block_of(random(), random()));
    for (const std::uint64_t high : {std::uint64_t{0}, ~std::uint64_t{0}})
      for (const std::uint64_t low : {std::uint64_t{0}, ~std::uint64_t{0}}) blocks.push_back(block_of(high, low));
    // Both sides of every border between tiles, and between the tokens of a row of one tile.
    const bool is_one_tile = distribution.tile_count() == 1;
    const std::size_t pieces = is_one_tile ? logits.size() : distribution.tile_count();
    std::uint64_t reached = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
      reached += is_one_tile ? distribution.mass_in_tile(static_cast<Token>(i)) : distribution.tile_mass(i);
      if (reached == 0 || reached == distribution.total()) continue;
      const std::uint64_t first = first_word_at(reached, distribution.total());
      for (const std::uint64_t word : {first - 1, first})
        blocks.push_back(block_of(is_one_tile ? 5 : word, is_one_tile ? word : 5));
    }
    int wrong = 0;
    for (const RandomBlock& block : blocks)
      for (const Token excluded : {kPaddingToken, static_cast<Token>(random() % logits.size())})
        wrong += distribution.draw(block, excluded) != slow_draw(distribution, block, excluded);
    CHECK(wrong == 0);
  }
}

TEST_CASE("An excluded token is never drawn unless it is alone") {
  const std::vector<float> logits = normal_row(20, 75);
  const LogitsDistribution distribution = distribution_of(logits);
  std::uint64_t before = 0;
  for (Token excluded = 0; excluded < 20; ++excluded) {
    const std::uint64_t without = distribution.total() - distribution.mass_in_tile(excluded);
    CHECK(distribution.total_without(excluded) == without);
    // The border where the excluded token would stand.
    if (before < without)
      CHECK(distribution.draw(block_of(0, first_word_at(before, without)), excluded) == excluded + 1);
    before += distribution.mass_in_tile(excluded);
  }
  std::vector<float> alone(5000, -kInfinity);
  alone[4500] = 2.0f;
  const LogitsDistribution only = distribution_of(alone);
  CHECK(only.total_without(4500) == 0);
  CHECK(only.draw(InjectedSource::kZeros, 4500) == 4500);
  CHECK(only.draw(InjectedSource::kOnes, 4500) == 4500);
  CHECK(only.draw(InjectedSource::kOnes, 0) == 4500);
  CHECK(only.probability(4500) == 1.0f);
  CHECK(std::fabs(only.log_probability(4500)) <= 1.84f * 0x1p-24f);
  CHECK(only.log_probability(0) == -kInfinity);
}

TEST_CASE("No probability exceeds 1 and that of a lone token is 1 or the float before it") {
  // A kernel that checks probabilities would refuse a row with anything above 1.
  int ones = 0;
  int below = 0;
  int wrong = 0;
  for (int i = -4000; i < 4000; ++i) {
    const float x = static_cast<float>(i) * 0.0037f;
    for (const std::vector<float>& logits : {std::vector<float>{x}, std::vector<float>{x, x - 17.0f, x - 35.0f}}) {
      const float p = distribution_of(logits).probability(0);
      wrong += !(p <= 1.0f);
      if (logits.size() > 1) continue;
      ones += p == 1.0f;
      below += p == std::nextafter(1.0f, 0.0f);
    }
  }
  CHECK(wrong == 0);
  CHECK(ones + below == 8000);
  CHECK(ones > below);
  CHECK(below > 0);
}

TEST_CASE("Keeping every token changes no bit and keeping some leaves the masses of those alone") {
  const std::vector<float> logits = normal_row(5000, 79);
  const LogitsDistribution whole = distribution_of(logits);
  LogitsDistribution distribution = whole;
  distribution.keep({-kInfinity, 4999, 0});
  CHECK(distribution.total() == whole.total());
  CHECK(masses_in_tiles(distribution) == masses_in_tiles(whole));
  CHECK(distribution.kept_mass() == 1.0);
  CHECK(distribution.probability(17) == whole.probability(17));

  distribution.keep({1.5f, 0, whole.mass(5)});
  int wrong = 0;
  std::int64_t kept = 0;
  double kept_probability = 0.0;
  for (Token i = 0; i < 5000; ++i) {
    const float x = logits[static_cast<std::size_t>(i)];
    const bool stands = x > 1.5f && whole.mass(i) >= whole.mass(5);
    kept += stands;
    if (stands) kept_probability += static_cast<double>(whole.probability(i));
    wrong += distribution.is_kept(i) != stands;
    wrong += distribution.mass_in_tile(i) != (stands ? whole.mass_in_tile(i) : 0);
    wrong += !stands && (distribution.probability(i) != 0.0f || distribution.log_probability(i) != -kInfinity);
  }
  CHECK(wrong == 0);
  CHECK(kept > 10);
  CHECK(kept < 4990);
  CHECK(distribution.kept_count() == kept);
  CHECK(distribution.kept_mass() == Approx(kept_probability).epsilon(1e-6));
}

TEST_CASE("What is left where the likeliest are dropped is as exact as a row of its own") {
  for (const float temperature : {1.0f, 0.1f}) {
    std::vector<float> logits(6000, -kInfinity);
    for (const auto& [token, x] : {std::pair{3, 0.0f}, {9, -28.0f}, {11, -28.5f}, {5000, -29.0f}, {5001, -60.0f}})
      logits[static_cast<std::size_t>(token)] = x * temperature;
    LogitsDistribution distribution;
    distribution.assign({DType::f32, logits.data(), 6000}, temperature, 0);
    const double whole = 1.0 + std::exp(-28.0) + std::exp(-28.5) + std::exp(-29.0);
    distribution.keep({-50.0f, 0, 0});
    std::vector<std::uint8_t> allowed(6000, 1);
    allowed[3] = 0;
    distribution.keep_only(allowed);
    CHECK(distribution.kept_count() == 3);
    CHECK_FALSE(distribution.is_kept(3));
    CHECK_FALSE(distribution.is_kept(5001));
    const double left = std::exp(-28.0) + std::exp(-28.5) + std::exp(-29.0);
    CHECK(distribution.kept_mass() == Approx(left / whole).epsilon(1e-5));
    for (const auto& [token, x] : {std::pair{9, -28.0}, {11, -28.5}, {5000, -29.0}}) {
      CHECK(static_cast<double>(distribution.probability(token)) == Approx(std::exp(x) / left).epsilon(2e-5));
      CHECK(static_cast<double>(distribution.log_probability(token)) == Approx(x - std::log(left)).epsilon(1e-5));
      CHECK(static_cast<double>(distribution.unfiltered_log_normaliser().log_probability(static_cast<float>(x))) ==
            Approx(x - std::log(whole)).epsilon(1e-5));
    }
    CHECK(distribution.draw(InjectedSource::kOnes) == 5000);
  }
}

TEST_CASE("A row that cannot be a distribution is an error that names the row and the column") {
  LogitsDistribution distribution;
  const auto check_refused = [&](const std::vector<float>& logits, const std::string& where, const std::string& what) {
    CHECK_THAT(error_of(ErrorKind::input, [&] { distribution.assign(logits, 7); }), Contains(where) && Contains(what));
  };
  std::vector<float> logits = normal_row(4100, 83);
  for (const auto& [bad, what] :
       {std::pair(kNan, "NaN"), {kInfinity, "+inf"}, {std::nextafter(kLogitLimit, kInfinity), "temperature 0"}}) {
    logits[4098] = bad;
    check_refused(logits, "row 7, column 4098", what);
  }
  logits[4098] = kLogitLimit;
  CHECK_NOTHROW(distribution.assign(logits, 7));
  check_refused({}, "row 7", "");
  check_refused(std::vector<float>(5, -kInfinity), "row 7", "no token is left");
  check_refused(std::vector<float>(5, -1e30f), "row 7", "no token is left");
  check_refused(std::vector<float>(kVocabularyLimit + 1, 0.0f), "row 7", std::to_string(kVocabularyLimit));
  // After an error the object takes the next row as if nothing had been.
  distribution.assign(normal_row(10, 85), 8);
  CHECK(distribution.total() == distribution_of(normal_row(10, 85)).total());
}

TEST_CASE("The largest vocabulary of equal logits does not overflow the total") {
  // f = 1.4 for x = 0.34: nearly the largest mass a token can have.
  const std::vector<float> logits(static_cast<std::size_t>(kVocabularyLimit), 0.34f);
  const LogitsDistribution distribution = distribution_of(logits);
  CHECK(cpp_int(distribution.total()) == cpp_int(distribution.mass_in_tile(0)) * kVocabularyLimit);
  CHECK(distribution.total() > std::uint64_t{1} << 63);
  CHECK(distribution.probability(5) == Approx(1.0 / static_cast<double>(kVocabularyLimit)).epsilon(4e-7));
  CHECK(distribution.draw(InjectedSource::kOnes) == kVocabularyLimit - 1);
  CHECK(distribution.draw(InjectedSource::kZeros) == 0);
}

TEST_CASE("The greedy choice is the lowest id among the largest logits over tiles and signs of zero") {
  for_each_row_kernel_set([] {
    std::vector<float> logits(3 * kTileTokens, -1.0f);
    logits[kTileTokens + 5] = 2.0f;
    logits[kTileTokens + 6] = 2.0f;
    logits[2 * kTileTokens] = 2.0f;
    CHECK(greedy_token(logits, 0) == kTileTokens + 5);
    logits[9] = 2.0f;
    CHECK(greedy_token(logits, 0) == 9);
    CHECK(greedy_token(std::vector<float>{-1.0f, -0.0f, 0.0f}, 0) == 1);
    CHECK(greedy_token(std::vector<float>{-1.0f, 0.0f, -0.0f}, 0) == 1);
    std::vector<float> zeros(2 * kTileTokens, -1.0f);
    zeros[100] = -0.0f;
    zeros[kTileTokens + 100] = 0.0f;
    CHECK(greedy_token(zeros, 0) == 100);
    CHECK(greedy_token(std::vector<float>{-kInfinity, -1e30f}, 0) == 1);  // finite, so it stands
    CHECK(greedy_token(std::vector<float>{1.0f, 3e38f}, 0) == 1);
    CHECK(greedy_token(std::vector<float>{-5.0f}, 0) == 0);
  });
}

TEST_CASE("A row without a greedy choice is an error that names the row and the column") {
  std::vector<float> late(5000, 0.0f);
  late[4999] = kNan;
  for (const auto& [logits, where] : std::vector<std::pair<std::vector<float>, std::string>>{
           {{0.0f, kNan}, "row 3, column 1"},
           {{1e30f, kNan}, "row 3, column 1"},  // a large logit is not the fault
           {{0.0f, 1.0f, kInfinity}, "row 3, column 2"},
           {{-kInfinity, -kInfinity}, "no token is left"},
           {{}, "row 3"},
           {late, "column 4999"}})
    CHECK_THAT(error_of(ErrorKind::input, [&] { greedy_token(logits, 3); }), Contains(where));
}
