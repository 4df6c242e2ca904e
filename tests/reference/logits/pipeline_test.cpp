// The pipeline against a second one written here in long double and with sorting, all steps on.
#include "reference/logits/pipeline.hpp"

#include "base/dtype.hpp"
#include "tests/support/test.hpp"

namespace {

RowView view_of(const std::vector<float>& row) {
  return {DType::f32, row.data(), static_cast<std::int64_t>(row.size())};
}

struct Case {
  std::vector<float> conditional;
  std::vector<float> unconditional;
  std::vector<Token> prompt;
  std::vector<Token> output;
  std::vector<std::uint32_t> mask;
  std::vector<Token> allowed;
  std::vector<std::vector<Token>> bad;
  std::vector<Token> stop;
  std::vector<LogitBias> bias;
  std::int64_t min_tokens = 0;
  RowParameters parameters;
};

struct ReferenceDistribution {
  std::vector<long double> p;
  std::vector<bool> kept;
  long double kept_mass = 0.0L;
  long double raw_log_total = 0.0L;
  std::vector<long double> raw;
  bool close_call = false;  // a token lies so near a boundary that f32 may decide otherwise
};

ReferenceDistribution reference_distribution(const Case& c) {
  constexpr long double kNone = -std::numeric_limits<long double>::infinity();
  const std::size_t size = c.conditional.size();
  const RowParameters& p = c.parameters;
  std::vector<long double> l(size);
  for (std::size_t i = 0; i < size; ++i) {
    const long double conditional = c.conditional[i];
    const long double unconditional = c.unconditional.empty() ? conditional : c.unconditional[i];
    l[i] = unconditional + p.guidance_scale * (conditional - unconditional);
    if (std::isnan(l[i])) l[i] = kNone;
  }
  ReferenceDistribution distribution;
  distribution.raw = l;
  for (const long double x : l) distribution.raw_log_total += std::exp(x);
  distribution.raw_log_total = std::log(distribution.raw_log_total);

  std::vector<Token> history = c.prompt;
  history.insert(history.end(), c.output.begin(), c.output.end());
  for (std::size_t i = 0; i < size; ++i) {
    const auto token = static_cast<Token>(i);
    const auto has = [&](const std::vector<Token>& ids) { return std::count(ids.begin(), ids.end(), token) > 0; };
    if (!c.allowed.empty() && !has(c.allowed)) l[i] = kNone;
    if (!c.mask.empty() && (c.mask[i / 32] & (1u << (i % 32))) == 0) l[i] = kNone;
    for (const std::vector<Token>& word : c.bad) {
      const std::size_t before = word.size() - 1;
      if (word.back() == token && before <= history.size() &&
          std::equal(word.begin(), word.end() - 1, history.end() - static_cast<std::ptrdiff_t>(before)))
        l[i] = kNone;
    }
    if (static_cast<std::int64_t>(c.output.size()) < c.min_tokens && has(c.stop)) l[i] = kNone;
    for (const LogitBias& b : c.bias)
      if (b.token == token) l[i] += b.value;
    const auto count = std::count(c.output.begin(), c.output.end(), token);
    if (count > 0 || has(c.prompt)) l[i] = l[i] > 0 ? l[i] / p.repetition_penalty : l[i] * p.repetition_penalty;
    l[i] -= static_cast<long double>(p.frequency_penalty) * static_cast<long double>(count);
    if (count > 0) l[i] -= p.presence_penalty;
    l[i] /= p.temperature;
  }

  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return l[a] > l[b]; });
  while (!order.empty() && std::isinf(l[order.back()])) order.pop_back();
  std::vector<long double> e(size);
  long double total = 0.0L;
  for (const std::size_t i : order) total += e[i] = std::exp(l[i] - l[order[0]]);

  const auto near = [](long double a, long double b) { return std::fabs(a - b) < 1e-4L * std::fabs(b); };
  distribution.kept.assign(size, false);
  for (std::size_t r = 0; r < order.size(); ++r) {
    const bool in_top_k = p.filters.top_k == 0 || r < static_cast<std::size_t>(p.filters.top_k);
    const bool in_min_p = e[order[r]] >= p.filters.min_p;  // relative to the first, whose e is 1
    if (r > 0 && (near(e[order[r]], e[order[r - 1]]) || near(e[order[r]], p.filters.min_p)))
      distribution.close_call = true;
    distribution.kept[order[r]] = in_top_k && in_min_p;
  }
  if (p.filters.top_p < 1.0f) {
    const std::vector<bool> seen =
        p.filters.order == FilterOrder::joint ? std::vector<bool>(size, true) : distribution.kept;
    long double seen_total = 0.0L;
    for (const std::size_t i : order) seen_total += seen[i] ? e[i] : 0.0L;
    long double before = 0.0L;
    for (const std::size_t i : order) {
      if (near(before, p.filters.top_p * seen_total)) distribution.close_call = true;
      if (!(before < p.filters.top_p * seen_total)) distribution.kept[i] = false;
      if (seen[i]) before += e[i];
    }
  }
  long double kept_total = 0.0L;
  for (const std::size_t i : order) kept_total += distribution.kept[i] ? e[i] : 0.0L;
  distribution.kept_mass = kept_total / total;
  distribution.p.assign(size, 0.0L);
  for (const std::size_t i : order)
    if (distribution.kept[i]) distribution.p[i] = e[i] / kept_total;
  return distribution;
}

Case random_case(TestRandom& random, std::int64_t vocab_size) {
  Case c;
  c.conditional = normal_row(random, vocab_size);
  RowParameters& p = c.parameters;
  if (random.chance(0.5)) {
    p.guidance_scale = 1.0f + 2.0f * static_cast<float>(random.uniform());
    c.unconditional = normal_row(random, vocab_size);
  }
  if (random.chance(0.5)) {
    p.nan_policy = NanPolicy::as_minus_inf;
    if (vocab_size > 4) c.conditional[static_cast<std::size_t>(random.below(vocab_size))] = kNan;
  }
  const Token safe = random.token(vocab_size);  // no constraint forbids it, so that something is always left
  c.conditional[static_cast<std::size_t>(safe)] = 0.25f;
  c.prompt = random.tokens(random.below(12), vocab_size);
  c.output = random.tokens(random.below(12), vocab_size);
  if (random.chance(0.4)) {
    c.allowed = random.tokens(1 + random.below(vocab_size), vocab_size);
    c.allowed.push_back(safe);
  }
  if (random.chance(0.4)) {
    c.mask.resize(static_cast<std::size_t>((vocab_size + 31) / 32));
    for (std::uint32_t& w : c.mask) w = random.word() | random.word();
    c.mask[static_cast<std::size_t>(safe / 32)] |= 1u << (safe % 32);
  }
  const auto bannable = [&](Token t) { return t != safe; };
  for (std::int64_t i = random.below(4); i > 0; --i) {
    std::vector<Token> word = random.tokens(random.below(2), vocab_size);
    if (!c.output.empty() && random.chance(0.7)) word.assign(1, c.output.back());
    word.push_back(random.token(vocab_size));
    if (bannable(word.back())) c.bad.push_back(word);
  }
  for (const Token t : random.tokens(2, vocab_size))
    if (bannable(t)) c.stop.push_back(t);
  c.min_tokens = random.below(14);
  for (const Token t : random.tokens(random.below(4), vocab_size)) c.bias.push_back({t, random.normal()});
  if (random.chance(0.6)) p.repetition_penalty = 0.5f + 2.0f * static_cast<float>(random.uniform());
  if (random.chance(0.6)) p.frequency_penalty = random.normal() * 0.5f;
  if (random.chance(0.6)) p.presence_penalty = random.normal() * 0.5f;
  if (random.chance(0.7)) p.temperature = 0.3f + 1.5f * static_cast<float>(random.uniform());
  if (random.chance(0.4)) p.filters.top_k = static_cast<std::int32_t>(random.below(vocab_size + 2));
  if (random.chance(0.4)) p.filters.top_p = 0.2f + 0.79f * static_cast<float>(random.uniform());
  if (random.chance(0.4)) p.filters.min_p = 0.3f * static_cast<float>(random.uniform());
  if (random.chance(0.5)) p.filters.order = FilterOrder::top_k_first;
  return c;
}

// Runs a case through a pipeline; the case and the distribution must outlive each other's use.
struct Prepared {
  History history;
  BadWords words;
  RowInput input;

  explicit Prepared(const Case& c, std::int64_t row = 0)
      : history(c.prompt, c.output, static_cast<std::int64_t>(c.conditional.size())),
        words(c.bad, c.conditional.size()),
        input{view_of(c.conditional),
              std::nullopt,
              c.parameters,
              {c.mask, c.allowed, &words, c.min_tokens, c.stop, c.bias, {}},
              &history,
              row} {
    if (!c.unconditional.empty()) input.unconditional = view_of(c.unconditional);
    validate(input.parameters, "row");
    validate(input.constraints, input.logits.vocab_size, "row");
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
};

std::vector<float> probabilities(const Distribution& distribution) {
  std::vector<float> p(static_cast<std::size_t>(distribution.vocab_size()));
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = distribution.probability(static_cast<Token>(i));
  return p;
}

std::vector<float> distribution_of(const std::vector<float>& logits, const RowParameters& parameters) {
  Pipeline pipeline;
  Distribution distribution;
  RowInput input;
  input.logits = view_of(logits);
  input.parameters = parameters;
  pipeline.run(input, distribution);
  return probabilities(distribution);
}

std::string failure_of(const std::vector<float>& logits, const RowParameters& parameters,
                       const RowConstraints& constraints = {}) {
  return error_of(ErrorKind::input, [&] {
    Pipeline pipeline;
    Distribution distribution;
    RowInput input;
    input.logits = view_of(logits);
    input.parameters = parameters;
    input.constraints = constraints;
    input.row = 23;
    pipeline.run(input, distribution);
  });
}

}  // namespace

TEST_CASE("the pipeline with every step on agrees with a second one in long double") {
  TestRandom random(51);
  Pipeline pipeline;  // one for all rows, as a thread has it
  Distribution distribution;
  int compared = 0;
  for (int i = 0; i < 1500; ++i) {
    const Case c = random_case(random, 1 + random.below(70));
    const ReferenceDistribution expected = reference_distribution(c);
    if (expected.close_call) continue;
    ++compared;
    const Prepared prepared(c, i);
    pipeline.run(prepared.input, distribution);
    CAPTURE(i, c.conditional.size());
    REQUIRE(distribution.kept_count() == std::count(expected.kept.begin(), expected.kept.end(), true));
    REQUIRE(distribution.kept_mass() == Approx(static_cast<double>(expected.kept_mass)).epsilon(1e-4));
    for (std::size_t t = 0; t < expected.p.size(); ++t) {
      const auto token = static_cast<Token>(t);
      REQUIRE((distribution.probability(token) > 0.0f) == static_cast<bool>(expected.kept[t]));
      REQUIRE(static_cast<double>(distribution.probability(token)) ==
              Approx(static_cast<double>(expected.p[t])).epsilon(1e-4).margin(1e-10));
      if (expected.kept[t])
        REQUIRE(static_cast<double>(distribution.log_probability(token)) ==
                Approx(static_cast<double>(std::log(expected.p[t]))).epsilon(1e-5).margin(2e-5));
      const auto raw = static_cast<double>(expected.raw[t] - expected.raw_log_total);
      if (std::isinf(raw))
        REQUIRE(std::isinf(pipeline.raw_log_probability(token)));
      else
        REQUIRE(static_cast<double>(pipeline.raw_log_probability(token)) == Approx(raw).epsilon(1e-5).margin(2e-5));
    }
  }
  CHECK(compared > 1200);
}

TEST_CASE("a pipeline that has processed other rows gives the bits of a fresh one") {
  TestRandom random(52);
  Pipeline used;
  Distribution used_distribution;
  for (int i = 0; i < 300; ++i) {
    Case c = random_case(random, 1 + random.below(70));
    if (random.chance(0.2)) c.parameters.temperature = 0.0f;
    const Prepared prepared(c);
    used.run(prepared.input, used_distribution);
    Pipeline fresh;
    Distribution fresh_distribution;
    fresh.run(prepared.input, fresh_distribution);
    CAPTURE(i);
    REQUIRE(probabilities(used_distribution) == probabilities(fresh_distribution));
    REQUIRE(used.raw_log_probability(0) == fresh.raw_log_probability(0));
  }
}

TEST_CASE("a temperature near zero is greedy and a huge one uniform") {
  const std::vector<float> logits{0.5f, 2.0f, 1.875f, -3.0f};
  RowParameters p;
  p.temperature = 1e-3f;
  CHECK(distribution_of(logits, p) == std::vector<float>{0.0f, 1.0f, 0.0f, 0.0f});
  p.temperature = 1e12f;
  for (const float x : distribution_of(logits, p)) CHECK(x == Approx(0.25f).epsilon(1e-6));
  p.temperature = 0.0f;
  p.filters.top_k = 3;
  CHECK(distribution_of(logits, p) == std::vector<float>{0.0f, 1.0f, 0.0f, 0.0f});
}

TEST_CASE("top_k of one is the greedy choice whatever the temperature and the ties") {
  // vllm #5404, #41598.
  TestRandom random(54);
  for (int i = 0; i < 300; ++i) {
    const std::vector<float> logits = awkward_row(random, 1 + random.below(30));
    RowParameters greedy;
    greedy.temperature = 0.0f;
    const std::vector<float> choice = distribution_of(logits, greedy);
    const auto first = std::max_element(logits.begin(), logits.end()) - logits.begin();
    REQUIRE(choice[static_cast<std::size_t>(first)] == 1.0f);
    RowParameters one;
    one.filters.top_k = 1;
    for (const float t : {0.01f, 0.7f, 1.0f, 50.0f}) {
      one.temperature = t;
      const std::vector<float> found = distribution_of(logits, one);
      for (std::size_t k = 0; k < found.size(); ++k) REQUIRE(found[k] == Approx(choice[k]).margin(1e-6));
    }
  }
}

TEST_CASE("filters act on the tempered distribution") {
  // mlc-llm #951, tt-metal #25341. At temperature 2 the distribution of (ln 16, ln 4, ln 1) is (4, 2, 1)/7: .9 keeps
  // all three, while the untempered (16, 4, 1)/21 would lose the last.
  const std::vector<float> logits{std::log(16.0f), std::log(4.0f), 0.0f};
  RowParameters p;
  p.temperature = 2.0f;
  p.filters.top_p = 0.9f;
  const std::vector<float> found = distribution_of(logits, p);
  CHECK(found[0] == Approx(4.0f / 7.0f).epsilon(1e-6));
  CHECK(found[2] == Approx(1.0f / 7.0f).epsilon(1e-6));
  p.temperature = 1.0f;
  CHECK(distribution_of(logits, p)[2] == 0.0f);
}

TEST_CASE("a row that cannot be a distribution is an error that names the row, and the column where one is to blame") {
  const std::vector<float> with_nan{1.0f, 2.0f, kNan, 0.5f};
  const std::vector<Token> only{1};
  const std::vector<std::uint32_t> mask{0b01};
  RowConstraints constraints;
  constraints.allowed_ids = only;
  constraints.allowed_mask = mask;
  for (const float temperature : {0.0f, 1.0f, 0.7f}) {
    RowParameters p;
    p.temperature = temperature;
    CHECK_THAT(failure_of(with_nan, p), Contains("row 23, column 2") && Contains("NaN"));
    CHECK_THAT(failure_of({0.0f, kInfinity}, p), Contains("row 23, column 1") && Contains("+inf"));
    CHECK_THAT(failure_of({-kInfinity, -kInfinity}, p), Contains("row 23") && Contains("no token is left"));
    CHECK_THAT(failure_of({1.0f, 1.0f}, p, constraints), Contains("row 23") && Contains("no token is left"));
    CHECK_THAT(failure_of({}, p), Contains("row 23") && Contains("empty"));
    p.nan_policy = NanPolicy::as_minus_inf;
    CHECK(distribution_of(with_nan, p) == distribution_of({1.0f, 2.0f, -kInfinity, 0.5f}, p));
    CHECK(std::isnan(with_nan[2]));  // the caller's row is not written to
    CHECK_THAT(failure_of({0.0f, kInfinity}, p), Contains("row 23, column 1") && Contains("+inf"));
    CHECK_THAT(failure_of({kNan, kNan}, p), Contains("row 23") && Contains("no token is left"));
  }
  RowParameters guided;
  guided.guidance_scale = 2.0f;
  CHECK_THAT(failure_of({1.0f}, guided), Contains("row 23") && Contains("unconditional"));
}

TEST_CASE("a temperature too small for the logits is an error and not a silent greedy") {
  RowParameters p;
  for (const float temperature : {1e-9f, 0x1p-149f}) {
    p.temperature = temperature;
    CHECK_THAT(failure_of({1.0f, 2.0f}, p), Contains("row 23") && Contains("temperature"));
    CHECK_THAT(failure_of({-1.0f, -2.0f}, p), Contains("row 23") && Contains("temperature"));
  }
  // A greedy row blames the NaN and not a large logit before it.
  p.temperature = 0.0f;
  CHECK(distribution_of({1e30f, 2e30f}, p) == std::vector<float>{0.0f, 1.0f});
  CHECK_THAT(failure_of({1e30f, kNan}, p), Contains("column 1") && Contains("NaN"));
}

TEST_CASE("bad logits of guided rows meet the policy after the combination") {
  const std::vector<float> conditional{1.0f, kNan, 0.5f};
  const std::vector<float> unconditional{0.5f, 0.0f, kNan};
  RowInput input;
  input.logits = view_of(conditional);
  input.unconditional = view_of(unconditional);
  input.parameters.guidance_scale = 3.0f;
  input.row = 9;
  Pipeline pipeline;
  Distribution distribution;
  CHECK_THAT(error_of(ErrorKind::input, [&] { pipeline.run(input, distribution); }), Contains("row 9, column 1"));
  input.parameters.nan_policy = NanPolicy::as_minus_inf;
  pipeline.run(input, distribution);
  CHECK(probabilities(distribution) == std::vector<float>{1.0f, 0.0f, 0.0f});
}

TEST_CASE("the raw and the processed logits of the last row can be read back") {
  const std::vector<float> logits{1.0f, 2.0f};
  const std::vector<LogitBias> bias{{0, 3.0f}};
  RowInput input;
  input.logits = view_of(logits);
  input.constraints.logit_bias = bias;
  input.parameters.temperature = 2.0f;
  Pipeline pipeline;
  Distribution distribution;
  pipeline.run(input, distribution);
  const auto as_vector = [](std::span<const float> s) { return std::vector<float>(s.begin(), s.end()); };
  CHECK(as_vector(pipeline.raw_logits()) == logits);
  CHECK(as_vector(pipeline.processed_logits()) == std::vector<float>{2.0f, 1.0f});
  input.parameters.temperature = 0.0f;
  pipeline.run(input, distribution);
  CHECK(as_vector(pipeline.processed_logits()) == std::vector<float>{4.0f, 2.0f});
}
