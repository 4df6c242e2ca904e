// Filters without sampling: what is kept under some usual reading passes, what is kept under none is named with its
// mass.
#include "exactness/audit/filter_check.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/sampling/distribution.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();

// Rows of one set of parameters each, and what a filter left of them.
struct Rows {
  std::int64_t vocab_size;
  std::vector<float> logits;
  std::vector<float> filtered;
  std::vector<RowParameters> parameters;

  FilterSample sample() const {
    FilterSample sample;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      VerifyRequest request;
      request.target = {DType::f32, logits.data() + static_cast<std::int64_t>(i) * vocab_size, 1, vocab_size,
                        vocab_size};
      request.parameters = parameters[i];
      sample.rows.push_back(request);
    }
    sample.filtered = {DType::f32, filtered.data(), std::ssize(parameters), vocab_size, vocab_size};
    return sample;
  }
  FilterCheck check() const { return check_filter(sample(), 2); }
};

RowParameters parameters_of(float temperature, std::int32_t top_k, float top_p, float min_p = 0.0f) {
  RowParameters parameters;
  parameters.temperature = temperature;
  parameters.filters.top_k = top_k;
  parameters.filters.top_p = top_p;
  parameters.filters.min_p = min_p;
  return parameters;
}

// As engines do it, in floats: top-k, then top-p over what is left, then min-p. `divide_by_zero`: vLLM's fault (B76),
// where probabilities relative to mean + 10 standard deviations underflow to 0/0, and NaN means that nothing is
// masked.
std::vector<float> filtered_by_floats(const std::vector<float>& logits, const RowParameters& p, bool divide_by_zero) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::vector<float> out(logits.size(), kOut);
  const std::size_t k = p.filters.top_k > 0
                            ? std::min<std::size_t>(logits.size(), static_cast<std::size_t>(p.filters.top_k))
                            : logits.size();
  float reference = logits[order[0]] / p.temperature;
  if (divide_by_zero) {
    float mean = 0.0f, square = 0.0f;
    for (const float x : logits) mean += x / p.temperature / static_cast<float>(logits.size());
    for (const float x : logits) square += std::pow(x / p.temperature - mean, 2.0f) / static_cast<float>(logits.size());
    reference = mean + 10.0f * std::sqrt(square);
  }
  float sum = 0.0f;
  for (std::size_t i = 0; i < k; ++i) sum += std::exp(logits[order[i]] / p.temperature - reference);
  float before = 0.0f;
  for (std::size_t i = 0; i < k; ++i) {
    const float x = logits[order[i]] / p.temperature;
    const float probability = std::exp(x - reference) / sum;
    const bool drop = before >= p.filters.top_p ||
                      probability < p.filters.min_p * (std::exp(logits[order[0]] / p.temperature - reference) / sum);
    before += probability;
    if (!drop) out[order[i]] = x;
  }
  return out;
}

// `of_fault`, if given, sets the parameters of all rows and plants the fault.
Rows random_rows(std::size_t count, std::int64_t vocab_size, float scale, std::uint64_t seed,
                 const std::optional<RowParameters>& of_fault = std::nullopt) {
  TestRandom random(seed);
  Rows rows{vocab_size, {}, {}, {}};
  const float temperatures[] = {1.0f, 0.1f, 0.7f, 2.0f};
  const std::int32_t counts[] = {0, 5, 40};
  const float masses[] = {0.9f, 1.0f, 0.5f, 0.99f, 0.3f};
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> logits;
    for (std::int64_t t = 0; t < vocab_size; ++t) logits.push_back(scale * random.normal());
    rows.parameters.push_back(
        of_fault.value_or(parameters_of(temperatures[i % 4], counts[i % 3], masses[i % 5], i % 7 == 0 ? 0.05f : 0.0f)));
    const std::vector<float> left = filtered_by_floats(logits, rows.parameters.back(), of_fault.has_value());
    rows.logits.insert(rows.logits.end(), logits.begin(), logits.end());
    rows.filtered.insert(rows.filtered.end(), left.begin(), left.end());
  }
  return rows;
}

TEST_CASE("a filter in floats passes on every row, at any vocabulary") {
  for (const std::int64_t vocab_size : {1, 2, 33, 1000, 50257}) {
    const FilterCheck check = random_rows(vocab_size > 10'000 ? 12 : 200, vocab_size, 2.5f, 5).check();
    INFO(check.sentence);
    CHECK(check.holds);
  }
}

TEST_CASE("B76, top-p that is silently off at low temperature, is found at once with all that it kept") {
  const FilterCheck check = random_rows(60, 1000, 3.0f, 6, parameters_of(0.1f, 0, 0.9f)).check();
  CHECK_FALSE(check.holds);
  REQUIRE_FALSE(check.failing.empty());
  const FilterRow& worst = check.rows[static_cast<std::size_t>(check.failing.front())];
  CHECK(worst.fault == FilterFault::wrong_set);
  CHECK(worst.kept_count == 1000);
  CHECK(worst.wrongly_kept_count == 1000 - worst.expected_count);
  CHECK(worst.distance > 0.05);
}

TEST_CASE("a token too many and a token too few are named with their mass") {
  const float ln = std::log(2.0f);
  Rows rows{4, {2 * ln, ln, 0.0f, 0.0f}, {2 * ln, ln, 0.0f, kOut}, {parameters_of(1.0f, 2, 1.0f)}};
  FilterRow row = rows.check().rows[0];
  CHECK(row.wrongly_kept == std::vector<Token>{2});
  CHECK(row.wrongly_kept_mass == Approx(0.125));
  CHECK(row.distance == Approx(1.0 / 7.0));
  rows.filtered = {2 * ln, kOut, kOut, kOut};
  row = rows.check().rows[0];
  CHECK(row.wrongly_dropped == std::vector<Token>{1});
  CHECK(row.wrongly_dropped_mass == Approx(0.25));
  // The right set with other values, and values shifted by a constant.
  rows.filtered = {2 * ln, 1.5f * ln, kOut, kOut};
  CHECK(rows.check().rows[0].fault == FilterFault::wrong_values);
  rows.filtered = {2 * ln - 7.0f, ln - 7.0f, kOut, kOut};
  CHECK(rows.check().holds);
  rows.filtered = {2 * ln, std::nanf(""), kOut, kOut};
  CHECK(rows.check().rows[0].fault == FilterFault::not_a_number);
}

TEST_CASE("ties at a cut may be broken in either direction, but not all be dropped") {
  Rows rows{4, {1.0f, 0.0f, 0.0f, 0.0f}, {}, {parameters_of(1.0f, 2, 1.0f)}};
  for (const std::vector<float>& kept :
       {std::vector<float>{1.0f, 0.0f, kOut, kOut}, {1.0f, kOut, kOut, 0.0f}, {1.0f, 0.0f, 0.0f, 0.0f}}) {
    rows.filtered = kept;
    CHECK(rows.check().holds);
  }
  rows.filtered = {1.0f, kOut, kOut, kOut};
  CHECK_FALSE(rows.check().holds);
  rows.filtered = {kOut, 0.0f, 0.0f, 0.0f};
  CHECK_FALSE(rows.check().holds);
  // Greedy rows: any of the largest, and nothing else.
  rows = {3, {1.0f, 1.0f, 0.0f}, {kOut, 1.0f, kOut}, {parameters_of(0.0f, 0, 1.0f)}};
  CHECK(rows.check().holds);
  rows.filtered = {1.0f, kOut, 0.0f};
  CHECK_FALSE(rows.check().holds);
}

TEST_CASE("sums of 100,003 near-equal floats, 0.0025 off at their end, are within the tolerance") {
  constexpr std::int64_t kVocab = 100'003;
  Rows rows{kVocab, {}, {}, {parameters_of(1.0f, 0, 0.97f)}};
  for (std::int64_t t = 0; t < kVocab; ++t)
    rows.logits.push_back(-0.003f * static_cast<float>(t) / static_cast<float>(kVocab));
  rows.filtered = filtered_by_floats(rows.logits, rows.parameters[0], false);
  const FilterCheck check = rows.check();
  INFO(check.sentence);
  CHECK(check.holds);
  const auto kept = std::count_if(rows.filtered.begin(), rows.filtered.end(), [](float x) { return x != kOut; });
  CHECK(std::abs(kept - check.rows[0].expected_count) > 100);  // the sums do drift
}

TEST_CASE("usual readings: what all keep and what some keep, by hand") {
  const std::vector<float> p{0.4f, 0.3f, 0.2f, 0.1f, 0.4f, 0.2f, 0.2f, 0.2f, 1.0f, 1.0f, 1.0f, 1e-7f};
  Rows rows{4, {}, {}, {parameters_of(1.0f, 2, 0.5f), parameters_of(1.0f, 2, 1.0f), parameters_of(1.0f, 0, 1.0f)}};
  for (const float x : p) rows.logits.push_back(std::log(x));
  const UsualReadings found = usual_readings(rows.sample(), 2);
  // Of what top-k leaves, the first token has 0.57, over the whole row 0.4; of three equal tokens one or all are kept;
  // without a filter all stay.
  CHECK(found.must == std::vector<std::uint8_t>{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1});
  CHECK(found.may == std::vector<std::uint8_t>{1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("min_tokens_to_keep: the first tokens stay whatever the filters say, and no others") {
  const std::vector<float> logits{std::log(0.5f), std::log(0.25f), std::log(0.15f), std::log(0.1f)};
  for (std::size_t kept = 1; kept <= 4; ++kept) {
    INFO(kept << " tokens are kept");
    std::vector<float> filtered = logits;
    std::fill(filtered.begin() + static_cast<std::ptrdiff_t>(kept), filtered.end(), kOut);
    Rows rows{4, logits, filtered, {parameters_of(1.0f, 1, 0.3f, 0.9f)}};
    rows.parameters[0].samplers.min_tokens_to_keep = 3.0f;
    CHECK(rows.check().holds == (kept == 3));
  }
}

TEST_CASE("filtered logits of another shape are refused") {
  Rows rows{3, {1.0f, 1.0f, 0.0f}, {1.0f, 1.0f, 0.0f}, {parameters_of(1.0f, 0, 1.0f)}};
  FilterSample sample = rows.sample();
  sample.filtered.vocab_size = 2;
  CHECK_THAT(error_of(ErrorKind::usage, [&] { check_filter(sample, 1); }),
             Contains("filtered_logits: has shape [1, 2]; expected [1, 3]"));
}

TEST_CASE("further samplers are checked too, and their faults are found") {
  // Typical-p, an epsilon cutoff and XTC, by the row of the reference; then each with one token too many, or too few.
  TestRandom random(21);
  Rows rows{40, {}, {}, {}};
  for (int i = 0; i < 30; ++i) {
    std::vector<float> logits;
    for (int t = 0; t < 40; ++t) logits.push_back(2.0f * random.normal());
    RowParameters p = parameters_of(0.8f, 0, 1.0f);
    if (i % 3 == 0) p.samplers.typical_p = 0.7f;
    if (i % 3 == 1) p.samplers.epsilon_cutoff = 0.02f;
    if (i % 3 == 2) p.samplers.xtc_probability = 1.0f;
    rows.parameters.push_back(p);
    RowInput input;
    input.logits = {DType::f32, logits.data(), 40};
    input.parameters = p;
    Pipeline pipeline;
    Distribution left;
    pipeline.run(input, left);
    for (Token t = 0; t < 40; ++t) {
      rows.logits.push_back(logits[static_cast<std::size_t>(t)]);
      rows.filtered.push_back(left.probability(t) > 0.0f ? logits[static_cast<std::size_t>(t)] / 0.8f : kOut);
    }
  }
  const FilterCheck sound = rows.check();
  INFO(sound.sentence);
  CHECK(sound.holds);
  for (std::size_t i = 0; i < 30; ++i) {
    float* const row = rows.filtered.data() + 40 * i;
    float* const dropped = std::find(row, row + 40, kOut);
    const bool adds = i % 2 == 0 && dropped != row + 40;
    float* const changed = adds ? dropped : std::find_if(row, row + 40, [](float x) { return x != kOut; });
    *changed = adds ? rows.logits[static_cast<std::size_t>(changed - rows.filtered.data())] / 0.8f : kOut;
  }
  CHECK(rows.check().failing.size() == 30);
}

}  // namespace
