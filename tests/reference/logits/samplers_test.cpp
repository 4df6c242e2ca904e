// Further samplers against their definitions, computed another way: in long doubles from probabilities and logarithms,
// where the code under test uses distances of logits and integer sums.
#include "reference/logits/samplers.hpp"

#include "reference/logits/pipeline.hpp"
#include "reference/sampling/distribution.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

using Logits = std::vector<float>;
using Tokens = std::vector<std::size_t>;  // in the total order
using Real = long double;

Logits random_logits(TestRandom& random, std::size_t vocab_size, float scale) {
  Logits logits(vocab_size);
  for (float& x : logits) x = random.below(20) == 0 ? kMasked : scale * random.normal();
  logits[0] = 0.5f;
  return logits;
}

// The row by definition: probabilities over what is left, in the total order.
struct Row {
  Logits logits;
  Tokens left;

  explicit Row(Logits row) : logits(std::move(row)) {
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (logits[i] != kMasked) left.push_back(i);
    std::stable_sort(left.begin(), left.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  }

  std::vector<Real> probabilities() const {
    std::vector<Real> p;
    Real sum = 0;
    for (const std::size_t i : left)
      sum += p.emplace_back(std::exp(static_cast<Real>(logits[i]) - static_cast<Real>(logits[left.front()])));
    for (Real& x : p) x /= sum;
    return p;
  }
  Real entropy() const {
    Real sum = 0;
    for (const Real p : probabilities())
      if (p > 0) sum -= p * std::log(p);
    return sum;
  }
  void keep(const std::vector<bool>& keeps) {
    Tokens kept;
    for (std::size_t i = 0; i < left.size(); ++i)
      if (keeps[i]) kept.push_back(left[i]);
    left = kept;
  }
  template <class Keeps>
  void keep_if(const Keeps& keeps) {
    const std::vector<Real> p = probabilities();
    std::vector<bool> kept;
    for (std::size_t i = 0; i < left.size(); ++i) kept.push_back(i == 0 || keeps(p[i]));
    keep(kept);
  }

  void typical(Real share) {
    const std::vector<Real> p = probabilities();
    const Real h = entropy();
    Tokens order(left.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(-std::log(p[a]) - h) < std::abs(-std::log(p[b]) - h);
    });
    std::vector<bool> kept(left.size(), false);
    Real before = 0;
    for (const std::size_t i : order) {
      if (before >= share) break;
      kept[i] = true;
      before += p[i];
    }
    keep(kept);
  }
};

Tokens kept_by_pipeline(const Logits& logits, const RowParameters& parameters) {
  Pipeline pipeline;
  Distribution distribution;
  RowInput input;
  input.logits = {DType::f32, logits.data(), static_cast<std::int64_t>(logits.size())};
  input.parameters = parameters;
  pipeline.run(input, distribution);
  Tokens kept;
  const LogitsDistribution& row = *distribution.logits_distribution();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<Token>(i);
    if (row.is_kept(token)) kept.push_back(i);
    total += row.mass(token);
  }
  // A tile's sum is brought to the row's scale as a whole.
  CHECK(total <= row.total());
  CHECK(row.total() - total < logits.size());
  CHECK(static_cast<std::int64_t>(kept.size()) == row.kept_count());
  return kept;
}

Tokens sorted(Tokens tokens) {
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

// `set` of the parameters and `define` of the row must agree, over vocabularies of one tile and of several.
template <class Set, class Define>
void compare(std::uint64_t seed, const Set& set, const Define& define) {
  TestRandom random(seed);
  for (int round = 0; round < 150; ++round) {
    const std::size_t vocab_size = round % 10 == 0 ? 9000 : static_cast<std::size_t>(2 + random.below(60));
    const Logits logits = random_logits(random, vocab_size, 2.0f);
    RowParameters parameters;
    Row row(logits);
    const float number = static_cast<float>(random.uniform());
    set(parameters.samplers, number);
    define(row, static_cast<Real>(number));
    INFO("round " << round << ", " << vocab_size << " tokens, number " << number);
    REQUIRE(kept_by_pipeline(logits, parameters) == sorted(row.left));
  }
}

TEST_CASE("typical-p keeps the tokens whose surprise is nearest to the entropy") {
  compare(
      1, [](SamplerParameters& p, float x) { p.typical_p = 0.05f + 0.9f * x; },
      [](Row& row, Real x) { row.typical(static_cast<Real>(0.05f + 0.9f * static_cast<float>(x))); });
  // It may drop the likeliest token: p = (.6, .1, .1, .1, .1), entropy 1.23, surprises .51 and 2.3.
  Logits logits{std::log(0.6f)};
  logits.resize(5, std::log(0.1f));
  RowParameters parameters;
  parameters.samplers.typical_p = 0.3f;
  CHECK(kept_by_pipeline(logits, parameters) == Tokens{0});
  Logits flat{std::log(0.34f), std::log(0.33f)};
  flat.resize(35, std::log(0.01f));
  CHECK(kept_by_pipeline(flat, parameters) == Tokens{1});
}

TEST_CASE("epsilon and eta cutoffs keep what has enough probability, eta the less the larger the entropy") {
  compare(
      2, [](SamplerParameters& p, float x) { p.epsilon_cutoff = 0.2f * x; },
      [](Row& row, Real x) {
        const auto e = static_cast<Real>(0.2f * static_cast<float>(x));
        row.keep_if([&](Real p) { return p >= e; });
      });
  compare(
      3, [](SamplerParameters& p, float x) { p.eta_cutoff = 0.1f * x; },
      [](Row& row, Real x) {
        const auto e = static_cast<Real>(0.1f * static_cast<float>(x));
        const Real limit = std::min(e, std::sqrt(e) * std::exp(-row.entropy()));
        row.keep_if([&](Real p) { return p >= limit; });
      });
}

TEST_CASE("top-n-sigma keeps logits within n standard deviations of the largest, at every temperature the same") {
  const auto define = [](Row& row, Real n) {
    Real mean = 0, square = 0;
    for (const std::size_t i : row.left) mean += static_cast<Real>(row.logits[i]) / static_cast<Real>(row.left.size());
    for (const std::size_t i : row.left) {
      const Real off = static_cast<Real>(row.logits[i]) - mean;
      square += off * off / static_cast<Real>(row.left.size());
    }
    const Real least = static_cast<Real>(row.logits[row.left.front()]) - n * std::sqrt(square);
    std::vector<bool> kept;
    for (const std::size_t i : row.left) kept.push_back(static_cast<Real>(row.logits[i]) >= least);
    row.keep(kept);
  };
  compare(
      4, [](SamplerParameters& p, float x) { p.top_n_sigma = 0.1f + x; },
      [&](Row& row, Real x) { define(row, static_cast<Real>(0.1f + static_cast<float>(x))); });
  TestRandom random(5);
  const Logits logits = random_logits(random, 500, 3.0f);
  RowParameters parameters;
  parameters.samplers.top_n_sigma = 1.0f;
  const Tokens warm = kept_by_pipeline(logits, parameters);
  for (const float temperature : {0.25f, 0.5f, 4.0f}) {
    parameters.temperature = temperature;
    CHECK(kept_by_pipeline(logits, parameters) == warm);
  }
  // Logits as far apart as floats go do not overflow.
  CHECK(kept_by_pipeline({0.0f, -3e38f, -2e38f}, parameters) == Tokens{0});
}

TEST_CASE("smoothing bends logits by a square and a cube of their distance from the largest") {
  TestRandom random(6);
  for (const float curve : {1.0f, 1.5f, 3.0f}) {
    Logits logits = random_logits(random, 100, 2.0f);
    const Logits before = logits;
    SamplerParameters parameters;
    parameters.smoothing_factor = 0.3f;
    parameters.smoothing_curve = curve;
    apply_before_filters(parameters, logits);
    const Real largest = *std::max_element(before.begin(), before.end());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (before[i] == kMasked) {
        CHECK(logits[i] == kMasked);
        continue;
      }
      const Real difference = static_cast<Real>(before[i]) - largest;
      const Real k = (3 - static_cast<Real>(curve)) / 2, s = (static_cast<Real>(curve) - 1) / 2;
      const Real f = static_cast<Real>(0.3f);
      const Real bent = -(k * f * difference * difference) + s * f * difference * difference * difference + largest;
      CHECK(logits[i] == Approx(static_cast<double>(bent)).epsilon(1e-6).margin(1e-6));
    }
  }
}

TEST_CASE("XTC drops all but the least likely of the top choices, when its coin says so") {
  for (const bool excludes : {true, false})
    compare(
        7,
        [&](SamplerParameters& p, float x) {
          p.xtc_threshold = 0.3f * x;
          p.xtc_probability = 0.25f;
          p.xtc_uniform = excludes ? 0.2499f : 0.25f;
        },
        [&](Row& row, Real x) {
          const auto threshold = static_cast<Real>(0.3f * static_cast<float>(x));
          const std::vector<Real> p = row.probabilities();
          const auto top = std::count_if(p.begin(), p.end(), [&](Real q) { return q >= threshold; });
          if (!excludes || top < 2) return;
          std::vector<bool> kept(p.size(), true);
          for (std::ptrdiff_t i = 0; i + 1 < top; ++i) kept[static_cast<std::size_t>(i)] = false;
          row.keep(kept);
        });
  RowParameters parameters;
  parameters.samplers.xtc_probability = 0.5f;
  CHECK_THROWS_WITH(validate(parameters, "row 3"), Contains("row 3") && Contains("xtc_uniform"));
  parameters.samplers.xtc_probability = 1.0f;  // no coin is needed
  CHECK_NOTHROW(validate(parameters, "row 3"));
}

TEST_CASE("Mirostat keeps what its state allows, by surprise or by a fitted exponent") {
  compare(
      8,
      [](SamplerParameters& p, float x) {
        p.mirostat = 2.0f;
        p.mirostat_mu = 0.5f + 6.0f * x;
      },
      [](Row& row, Real x) {
        const auto mu = static_cast<Real>(0.5f + 6.0f * static_cast<float>(x));
        row.keep_if([&](Real p) { return -std::log2(p) <= mu; });
      });
  compare(
      9,
      [](SamplerParameters& p, float x) {
        p.mirostat = 1.0f;
        p.mirostat_mu = 0.5f + 6.0f * x;
      },
      [](Row& row, Real x) {
        const std::vector<Real> p = row.probabilities();
        Real product = 0, square = 0;
        for (std::size_t i = 0; i + 1 < p.size() && i < 99; ++i) {
          const Real t = std::log(static_cast<Real>(i + 2) / static_cast<Real>(i + 1));
          product += t * std::log(p[i] / p[i + 1]);
          square += t * t;
        }
        const Real s = product / square, e = s - 1;
        const auto mu = static_cast<Real>(0.5f + 6.0f * static_cast<float>(x));
        const Real k = std::pow(e * std::exp2(mu) / (1 - std::pow(static_cast<Real>(row.logits.size()), -e)), 1 / s);
        std::vector<bool> kept(p.size());
        for (std::size_t i = 0; i < p.size(); ++i) kept[i] = i == 0 || static_cast<Real>(i + 1) <= std::floor(k);
        row.keep(kept);
      });
  // A token of probability 1/8 was a surprise of 3 bits where 5 were wanted.
  CHECK(next_mirostat_mu(10.0, 5.0, 0.1, 0.125) == Approx(10.2));
}

TEST_CASE("p-less keeps what is as likely as two draws are to agree, top-H a prefix within a share of the entropy") {
  for (const bool norm : {false, true})
    compare(
        12, [&](SamplerParameters& p, float) { p.p_less = norm ? 2.0f : 1.0f; },
        [&](Row& row, Real) {
          Real squares = 0;
          for (const Real p : row.probabilities()) squares += p * p;
          const auto v = static_cast<Real>(row.logits.size());
          const Real threshold = norm ? (v * squares - 1) / (v - 1) : squares;
          row.keep_if([&](Real p) { return p >= threshold; });
        });
  compare(
      13, [](SamplerParameters& p, float x) { p.top_h = 0.05f + 0.9f * x; },
      [](Row& row, Real x) {
        const Real most = static_cast<Real>(0.05f + 0.9f * static_cast<float>(x)) * row.entropy();
        std::vector<bool> kept;
        Real mass = 0, sum = 0;  // of q = p / mass: -Sigma q log q = log mass - Sigma p log p / mass
        bool goes_on = true;
        for (const Real p : row.probabilities()) {
          mass += p;
          sum += p > 0 ? p * std::log(p) : 0;
          goes_on = goes_on && (kept.empty() || std::log(mass) - sum / mass <= most);
          kept.push_back(goes_on);
        }
        row.keep(kept);
      });
}

TEST_CASE("cutoffs leave min_tokens_to_keep") {
  compare(
      14,
      [](SamplerParameters& p, float x) {
        p.epsilon_cutoff = 0.2f * x;
        p.min_tokens_to_keep = 4.0f;
      },
      [](Row& row, Real x) {
        const std::vector<Real> p = row.probabilities();
        std::vector<bool> kept;
        for (std::size_t i = 0; i < p.size(); ++i)
          kept.push_back(i < 4 || p[i] >= static_cast<Real>(0.2f * static_cast<float>(x)));
        row.keep(kept);
      });
}

TEST_CASE("samplers run one after the other, each over what is left") {
  compare(
      10,
      [](SamplerParameters& p, float) {
        p.typical_p = 0.9f;
        p.epsilon_cutoff = 0.01f;
        p.mirostat = 2.0f;
        p.mirostat_mu = 3.0f;
      },
      [](Row& row, Real) {
        row.typical(static_cast<Real>(0.9f));
        row.keep_if([](Real p) { return p >= static_cast<Real>(0.01f); });
        row.keep_if([](Real p) { return -std::log2(p) <= 3; });
      });
}

TEST_CASE("what is kept does not depend on the order of the tokens, and draws follow the masses that are left") {
  TestRandom random(11);
  const Logits logits = random_logits(random, 5000, 2.0f);
  std::vector<std::size_t> place(logits.size());  // token i stands at place[i]
  std::iota(place.begin(), place.end(), 0);
  for (std::size_t i = place.size(); i > 1; --i)
    std::swap(place[i - 1], place[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  Logits shuffled(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) shuffled[place[i]] = logits[i];
  RowParameters parameters;
  parameters.samplers.top_n_sigma = 2.5f;
  parameters.samplers.typical_p = 0.8f;
  parameters.samplers.eta_cutoff = 1e-3f;
  Tokens moved;
  for (const std::size_t token : kept_by_pipeline(logits, parameters)) moved.push_back(place[token]);
  CHECK(kept_by_pipeline(shuffled, parameters) == sorted(moved));

  Pipeline pipeline;
  Distribution distribution;
  RowInput input;
  input.logits = {DType::f32, logits.data(), 5000};
  input.parameters = parameters;
  pipeline.run(input, distribution);
  const LogitsDistribution& row = *distribution.logits_distribution();
  double sum = 0.0;
  for (Token token = 0; token < 5000; ++token) {
    const double p = static_cast<double>(distribution.probability(token));
    CHECK((p > 0.0) == row.is_kept(token));
    CHECK(p == Approx(static_cast<double>(row.mass(token)) / static_cast<double>(row.total())).epsilon(1e-5));
    sum += p;
  }
  CHECK(sum == Approx(1.0).epsilon(1e-5));
  for (std::uint64_t i = 0; i < 2000; ++i)
    REQUIRE(row.is_kept(row.draw(PhiloxSource().block(i, {0, 0, 0, Purpose::target_sample}))));
}

TEST_CASE("samplers that are off, or drop nothing, change no bit") {
  TestRandom random(12);
  const Logits logits = random_logits(random, 300, 2.0f);
  RowParameters open, wide;
  wide.samplers.typical_p = std::nextafter(1.0f, 0.0f);
  wide.samplers.epsilon_cutoff = 1e-20f;
  wide.samplers.xtc_threshold = 1.0f;
  wide.samplers.xtc_probability = 1.0f;
  const auto probabilities = [&](const RowParameters& parameters) {
    Pipeline pipeline;
    Distribution distribution;
    RowInput input;
    input.logits = {DType::f32, logits.data(), 300};
    input.parameters = parameters;
    pipeline.run(input, distribution);
    std::vector<float> p;
    for (Token token = 0; token < 300; ++token) p.push_back(distribution.probability(token));
    return p;
  };
  CHECK(probabilities(open) == probabilities(wide));
}

TEST_CASE("a top_p of 0 keeps the first token, as engines have it") {
  RowParameters parameters;
  parameters.filters.top_p = top_p_of_engine(0.0f);
  CHECK_NOTHROW(validate(parameters, "row"));
  CHECK(kept_by_pipeline({1.0f, 3.0f, 3.0f, 2.0f}, parameters) == Tokens{1});
  CHECK(top_p_of_engine(0.5f) == 0.5f);
}

TEST_CASE("parameters of samplers out of range are named with what is expected") {
  const auto refused = [](float SamplerParameters::*value, float number) {
    RowParameters parameters;
    parameters.samplers.*value = number;
    return error_of(ErrorKind::usage, [&] { validate(parameters, "request 2"); });
  };
  for (const SamplerParameterName& name : sampler_parameter_names()) {
    INFO(name.name);
    if (name.name == "xtc_uniform") continue;  // looked at beside a probability only
    CHECK_THAT(refused(name.value, std::numeric_limits<float>::quiet_NaN()),
               Contains("request 2") && Contains(std::string(name.name)) && Contains("expected"));
  }
  CHECK_THAT(refused(&SamplerParameters::mirostat, 3.0f), Contains("0 (off), 1 or 2"));
  CHECK_THAT(refused(&SamplerParameters::typical_p, 0.0f), Contains("(0, 1]"));
}

}  // namespace
