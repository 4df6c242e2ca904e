#include "reference/sampling/distribution.hpp"

#include <boost/multiprecision/cpp_int.hpp>

#include "reference/random/injected.hpp"
#include "tests/reference/sampling/row_distributions.hpp"
#include "tests/support/row_kernel_sets.hpp"
#include "tests/support/test.hpp"

using boost::multiprecision::cpp_rational;

namespace {

// Random probabilities that sum to about 1; some zero, some tiny.
std::vector<float> random_row(std::size_t vocab_size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> weights(vocab_size);
  double total = 0.0;
  for (double& w : weights) {
    w = random() % 5 == 0 ? 0.0 : std::exp(-static_cast<double>(random() % 3000) / 100.0);
    total += w;
  }
  std::vector<float> row(vocab_size);
  for (std::size_t i = 0; i < vocab_size; ++i) row[i] = static_cast<float>(weights[i] / total);
  return row;
}

// --- The oracle: exact fractions, rounded where the contract rounds. ---

cpp_rational power_of_two(int k) {
  return k >= 0 ? cpp_rational(cpp_int(1) << k) : cpp_rational(cpp_int(1), cpp_int(1) << -k);
}
cpp_int nearest_even(const cpp_rational& x) {
  const cpp_int below = numerator(x) / denominator(x);
  const cpp_rational rest = x - below;
  const cpp_rational half(1, 2);
  return below + ((rest > half || (rest == half && below % 2 != 0)) ? 1 : 0);
}
// To binary32, subnormals kept.
cpp_rational rounded_to_single(const cpp_rational& x) {
  if (x == 0) return x;
  int exponent = 0;
  while (x < power_of_two(exponent)) --exponent;
  const int unit = std::max(exponent - 23, -149);
  return cpp_rational(nearest_even(x * power_of_two(-unit))) * power_of_two(unit);
}
cpp_int residual_of(float p, float q) {
  const cpp_rational difference = cpp_rational(p) - cpp_rational(q);
  return difference > 0 ? nearest_even(rounded_to_single(difference) * power_of_two(kResidualBits)) : cpp_int(0);
}

// Draws by the oracle's masses: tiles by the high half, tokens by the low half.
Token slow_draw(const std::vector<cpp_int>& masses, const RandomBlock& block) {
  std::vector<cpp_int> tiles((masses.size() + kTileTokens - 1) / kTileTokens);
  for (std::size_t i = 0; i < masses.size(); ++i) tiles[i / kTileTokens] += masses[i];
  const std::ptrdiff_t tile = interval_of(high_half(block), tiles.begin(), tiles.end());
  const auto begin = masses.begin() + tile * kTileTokens;
  const auto end = masses.end() - begin < kTileTokens ? masses.end() : begin + kTileTokens;
  return static_cast<Token>(tile * kTileTokens + interval_of(low_half(block), begin, end));
}

// Random words, the endpoints, and both sides of each border between tokens of a one-tile row.
std::vector<RandomBlock> hard_blocks(const std::vector<cpp_int>& masses) {
  std::vector<RandomBlock> blocks{InjectedSource::kZeros, InjectedSource::kOnes, InjectedSource::kSmallest};
  std::mt19937_64 random(91);
  for (int i = 0; i < 20; ++i) blocks.push_back(block_of(random(), random()));
  if (masses.size() > 64) return blocks;
  cpp_int total = 0;
  for (const cpp_int& mass : masses) total += mass;
  cpp_int position = 0;
  for (const cpp_int& mass : masses) {
    position += mass;
    if (position == 0 || position == total) continue;
    const std::uint64_t first = first_word_at(position, total);
    blocks.push_back(block_of(random(), first));
    blocks.push_back(block_of(random(), first - 1));
  }
  return blocks;
}

template <class Masses>
std::vector<double> log_weights_of(const Masses& masses) {
  std::vector<double> all;
  masses.for_each_log_weight([&](Token first, std::span<const double> tile) {
    CHECK(static_cast<std::size_t>(first) == all.size());
    CHECK(tile.size() <= static_cast<std::size_t>(kTileTokens));
    all.insert(all.end(), tile.begin(), tile.end());
  });
  return all;
}

}  // namespace

TEST_CASE("A row of half-precision probabilities is read as its exact values") {
  const std::vector<float> values = {0.5f, 0.25f, 0.125f, 0.0625f, 0.0f, 0.0625f};
  std::vector<std::uint16_t> f16;
  std::vector<std::uint16_t> bf16;
  for (const float x : values) {
    f16.push_back(f32_to_f16(x));
    bf16.push_back(f32_to_bf16(x));
  }
  for (const auto& [dtype, data] : {std::pair<DType, const void*>{DType::f32, values.data()},
                                    {DType::f16, f16.data()},
                                    {DType::bf16, bf16.data()}}) {
    const RowView view{dtype, data, static_cast<std::int64_t>(values.size())};
    Distribution distribution;
    distribution.make_probabilities(view, 0);
    INFO(dtype_name(dtype));
    CHECK(distribution.vocab_size() == 6);
    CHECK(distribution.tile_count() == 1);
    CHECK(distribution.kept_count() == 5);
    CHECK(distribution.kept_mass() == 1.0);
    std::vector<float> scratch(kTileTokens);
    const float* tile = distribution.tile_probabilities(0, scratch.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      CHECK(distribution.probability(static_cast<Token>(i)) == values[i]);
      CHECK(element_of(view, static_cast<std::int64_t>(i)) == values[i]);
      CHECK(tile[i] == values[i]);
    }
    CHECK(distribution.log_probability(1) == Approx(-2.0 * std::log(2.0)));
    CHECK(distribution.log_probability(4) == -std::numeric_limits<float>::infinity());
    // Words of the low half at the border between the first two tokens.
    CHECK(DistributionMasses(distribution).draw(block_of(0, (1ull << 63) - 1)) == 0);
    CHECK(DistributionMasses(distribution).draw(block_of(0, 1ull << 63)) == 1);
    CHECK(DistributionMasses(distribution).draw(InjectedSource::kOnes) == 5);
  }
}

TEST_CASE("Draws from a row of probabilities follow its exact fixed-point masses") {
  for (const std::size_t vocab_size : {1, 5, 33, 4500}) {
    std::vector<float> p = random_row(vocab_size, 93);
    if (vocab_size == 1) p[0] = 1.0f;
    std::vector<cpp_int> masses;
    for (const float x : p) masses.push_back(residual_of(x, 0.0f));
    const Distribution distribution = probabilities_of(p);
    const std::vector<RandomBlock> blocks = hard_blocks(masses);
    for_each_row_kernel_set([&] {
      int wrong = 0;
      for (const RandomBlock& block : blocks)
        wrong += DistributionMasses(distribution).draw(block) != slow_draw(masses, block);
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("Draws from the residual of two rows follow exact rational masses") {
  for (const std::size_t vocab_size : {2, 6, 40, 4100}) {
    for (unsigned seed = 0; seed < 3; ++seed) {
      const std::vector<float> p = random_row(vocab_size, 200 + seed);
      const std::vector<float> q = random_row(vocab_size, 300 + seed);
      std::vector<cpp_int> masses;
      for (std::size_t i = 0; i < vocab_size; ++i) masses.push_back(residual_of(p[i], q[i]));
      if (std::all_of(masses.begin(), masses.end(), [](const cpp_int& m) { return m == 0; })) continue;
      const Distribution target = probabilities_of(p);
      const Distribution proposal = probabilities_of(q);
      const std::vector<RandomBlock> blocks = hard_blocks(masses);
      for_each_row_kernel_set([&] {
        int wrong = 0;
        for (const RandomBlock& block : blocks)
          wrong += ResidualMasses(target, proposal).draw(block) != slow_draw(masses, block);
        CHECK(wrong == 0);
      });
      const std::vector<double> log_weights = log_weights_of(ResidualMasses(target, proposal));
      REQUIRE(log_weights.size() == vocab_size);
      int wrong = 0;
      for (std::size_t i = 0; i < vocab_size; ++i) {
        const float x = p[i] > q[i] ? p[i] - q[i] : 0.0f;
        const double expected = x > 0.0f ? std::log(static_cast<double>(x)) : kNoWeight;
        wrong += x > 0.0f ? !(std::fabs(log_weights[i] - expected) < 1e-12) : log_weights[i] != kNoWeight;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("The residual of two logits rows is that of their probabilities") {
  std::mt19937 random(95);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> target_logits(4200);
  std::vector<float> draft_logits(4200);
  for (float& x : target_logits) x = normal(random);
  for (std::size_t i = 0; i < draft_logits.size(); ++i) draft_logits[i] = target_logits[i] + normal(random) / 3;
  const Distribution target = logits_of(target_logits);
  const Distribution proposal = logits_of(draft_logits);
  std::vector<float> p;
  std::vector<float> q;
  for (Token i = 0; i < 4200; ++i) {
    p.push_back(target.probability(i));
    q.push_back(proposal.probability(i));
  }
  const Distribution p_row = probabilities_of(p);
  const Distribution q_row = probabilities_of(q);
  int wrong = 0;
  for (const RandomBlock& block : hard_blocks(std::vector<cpp_int>(100))) {
    const Token token = ResidualMasses(target, proposal).draw(block);
    wrong += token != ResidualMasses(p_row, q_row).draw(block);
    wrong += token != ResidualMasses(target, q_row).draw(block);
    wrong += token != ResidualMasses(p_row, proposal).draw(block);
    const auto i = static_cast<std::size_t>(token);
    wrong += !(p[i] > q[i]);
  }
  CHECK(wrong == 0);
}

TEST_CASE("An empty residual draws from the target itself") {
  const std::vector<float> p = {0.25f, 0.0f, 0.5f, 0.25f};
  const Distribution target = probabilities_of(p);
  const std::vector<float> x = {1.0f, 2.0f, 3.0f, 0.0f};
  const Distribution logits = logits_of(x);
  for (const RandomBlock& block : hard_blocks({1, 0, 2, 1})) {
    CHECK(ResidualMasses(target, target).draw(block) == DistributionMasses(target).draw(block));
    CHECK(ResidualMasses(logits, logits).draw(block) == DistributionMasses(logits).draw(block));
  }
  // A difference too small for one unit of mass counts as none.
  const std::vector<float> almost = {0.25f, 0x1p-70f, 0.5f, 0.25f};
  CHECK(ResidualMasses(probabilities_of(almost), target).draw(InjectedSource::kZeros) == 0);
  CHECK(log_weights_of(ResidualMasses(target, target)) == log_weights_of(DistributionMasses(target)));
  CHECK(log_weights_of(ResidualMasses(logits, logits)) == log_weights_of(DistributionMasses(logits)));
}

TEST_CASE("A one-hot proposal takes its token out of a target of either kind") {
  const std::vector<float> x = {0.0f, 1.0f, 2.0f, -1.0f};
  const Distribution logits = logits_of(x);
  const std::vector<float> p = {0.125f, 0.25f, 0.5f, 0.125f};
  const Distribution row = probabilities_of(p);
  for (Token token = 0; token < 4; ++token) {
    const Distribution proposal = one_hot_of(token, 4);
    std::vector<cpp_int> rest;
    std::vector<cpp_int> rest_of_logits;
    for (Token i = 0; i < 4; ++i) {
      rest.push_back(i == token ? cpp_int(0) : residual_of(p[static_cast<std::size_t>(i)], 0.0f));
      rest_of_logits.push_back(i == token ? 0 : logits.logits_distribution()->mass_in_tile(i));
    }
    for (const RandomBlock& block : hard_blocks(rest))
      CHECK(ResidualMasses(row, proposal).draw(block) == slow_draw(rest, block));
    for (const RandomBlock& block : hard_blocks(rest_of_logits))
      CHECK(ResidualMasses(logits, proposal).draw(block) == slow_draw(rest_of_logits, block));
    for (const Distribution* target : {&row, static_cast<const Distribution*>(&logits)}) {
      std::vector<double> expected = log_weights_of(DistributionMasses(*target));
      expected[static_cast<std::size_t>(token)] = kNoWeight;
      CHECK(log_weights_of(ResidualMasses(*target, proposal)) == expected);
    }
  }
}

TEST_CASE("A one-hot proposal on the only token of a target leaves that token") {
  std::vector<float> x(5000, -std::numeric_limits<float>::infinity());
  x[4999] = 1.0f;
  std::vector<float> p(5000, 0.0f);
  p[4999] = 1.0f;
  Distribution logits = logits_of(x);
  const Distribution row = probabilities_of(p);
  const Distribution proposal = one_hot_of(4999, 5000);
  for (const Distribution* target : {static_cast<const Distribution*>(&logits), &row, &proposal}) {
    CHECK(ResidualMasses(*target, proposal).draw(InjectedSource::kZeros) == 4999);
    CHECK(ResidualMasses(*target, proposal).draw(InjectedSource::kOnes) == 4999);
    const std::vector<double> log_weights = log_weights_of(ResidualMasses(*target, proposal));
    CHECK(std::count(log_weights.begin(), log_weights.end(), kNoWeight) == 4999);
    CHECK(log_weights[4999] > kNoWeight);
  }
  // Where the rest is too light for a unit of mass both samplers agree that the token is alone.
  x[10] = -200.0f;
  logits = logits_of(x);
  CHECK(ResidualMasses(logits, proposal).draw(InjectedSource::kOnes) == 4999);
  CHECK(log_weights_of(ResidualMasses(logits, proposal))[4999] > kNoWeight);
}

TEST_CASE("A one-hot target has its whole mass on its token whatever the proposal") {
  const Distribution target = one_hot_of(4100, 4200);
  CHECK(target.probability(4100) == 1.0f);
  CHECK(target.probability(4099) == 0.0f);
  CHECK(target.log_probability(4100) == 0.0f);
  CHECK(target.log_probability(0) == -std::numeric_limits<float>::infinity());
  CHECK(target.kept_count() == 1);
  CHECK(target.vocab_size() == 4200);
  std::vector<float> scratch(kTileTokens, kNan);
  const float* tile = target.tile_probabilities(1, scratch.data());
  for (std::size_t i = 0; i < 4200 - 4096; ++i) CHECK(tile[i] == (i == 4 ? 1.0f : 0.0f));
  CHECK(DistributionMasses(target).draw(InjectedSource::kOnes) == 4100);
  std::vector<float> q(4200, 0.0f);
  q[7] = 0.5f;
  q[4100] = 0.5f;
  CHECK(ResidualMasses(target, probabilities_of(q)).draw(InjectedSource::kZeros) == 4100);
  const std::vector<double> log_weights = log_weights_of(ResidualMasses(target, probabilities_of(q)));
  CHECK(std::count(log_weights.begin(), log_weights.end(), kNoWeight) == 4199);
  CHECK(log_weights_of(DistributionMasses(target))[4100] == 0.0);
}

TEST_CASE("A number that is no probability is an error that names the row and the column in every use") {
  for (const float bad : {kNan, 1.5f, -0.1f, std::numeric_limits<float>::infinity()}) {
    std::vector<float> p(4200, 0x1p-13f);
    p[4150] = bad;
    const std::vector<float> good(4200, 0x1p-13f);
    const Distribution bad_row = probabilities_of(p, 5);
    const Distribution good_row = probabilities_of(good, 4);
    const LogWeightSink sink = [](Token, std::span<const double>) {};
    const std::vector<std::string> messages = {
        error_of(ErrorKind::input, [&] { bad_row.probability(4150); }),
        error_of(ErrorKind::input, [&] { bad_row.kept_count(); }),
        error_of(ErrorKind::input, [&] { DistributionMasses(bad_row).draw(InjectedSource::kZeros); }),
        error_of(ErrorKind::input, [&] { DistributionMasses(bad_row).for_each_log_weight(sink); }),
        error_of(ErrorKind::input, [&] { ResidualMasses(bad_row, good_row).draw(InjectedSource::kZeros); }),
        error_of(ErrorKind::input, [&] { ResidualMasses(good_row, bad_row).draw(InjectedSource::kZeros); }),
        error_of(ErrorKind::input, [&] { ResidualMasses(bad_row, good_row).for_each_log_weight(sink); }),
        error_of(ErrorKind::input, [&] { ResidualMasses(good_row, bad_row).for_each_log_weight(sink); }),
        error_of(ErrorKind::input, [&] { ResidualMasses(bad_row, one_hot_of(3, 4200)).draw(InjectedSource::kZeros); }),
    };
    for (const std::string& message : messages) CHECK(message.find("row 5, column 4150") != std::string::npos);
    CHECK(good_row.probability(4150) == 0x1p-13f);
  }
}

TEST_CASE("A row that sums to more than 3 or to nothing is an error that names the row") {
  const LogWeightSink sink = [](Token, std::span<const double>) {};
  const std::vector<float> heavy = {1.0f, 1.0f, 1.0f, 0x1p-20f};
  const std::vector<float> zeros(10, 0.0f);
  const std::vector<float> three = {1.0f, 1.0f, 1.0f, 0.0f};
  CHECK(DistributionMasses(probabilities_of(three)).draw(InjectedSource::kOnes) == 2);
  for (const auto& [row, words] : {std::pair{&heavy, "more than 3"}, {&zeros, "every probability is 0"}}) {
    const Distribution distribution = probabilities_of(*row, 6);
    const std::vector<std::string> messages = {
        error_of(ErrorKind::input, [&] { DistributionMasses(distribution).draw(InjectedSource::kZeros); }),
        error_of(ErrorKind::input, [&] { DistributionMasses(distribution).for_each_log_weight(sink); }),
        error_of(ErrorKind::input,
                 [&] { ResidualMasses(distribution, probabilities_of(zeros)).draw(InjectedSource::kZeros); }),
        error_of(ErrorKind::input,
                 [&] { ResidualMasses(distribution, probabilities_of(zeros)).for_each_log_weight(sink); }),
    };
    for (const std::string& message : messages) {
      INFO(message);
      CHECK(message.find("row 6") != std::string::npos);
      CHECK(message.find(words) != std::string::npos);
    }
  }
}
