// DRY against the definition, place by place.
#include "reference/logits/dry_penalty.hpp"

#include "reference/logits/pipeline.hpp"
#include "tests/support/test.hpp"

namespace {

using Repeated = std::vector<std::pair<Token, std::int64_t>>;

Repeated by_definition(const std::vector<Token>& context, const std::vector<Token>& breakers, std::int64_t least) {
  const auto is_breaker = [&](Token t) { return std::find(breakers.begin(), breakers.end(), t) != breakers.end(); };
  const auto n = static_cast<std::int64_t>(context.size());
  const auto at = [&](std::int64_t i) { return context[static_cast<std::size_t>(i)]; };
  std::map<Token, std::int64_t> longest;
  for (std::int64_t end = 0; end + 1 < n; ++end) {
    std::int64_t length = 0;
    while (length <= end && at(end - length) == at(n - 1 - length) && !is_breaker(at(n - 1 - length))) ++length;
    const Token next = at(end + 1);
    if (length >= least && !is_breaker(next)) longest[next] = std::max(longest[next], length);
  }
  return {longest.begin(), longest.end()};
}

TEST_CASE("repetitions are those of the definition, with breakers and without") {
  TestRandom random(1);
  for (int round = 0; round < 400; ++round) {
    std::vector<Token> context(static_cast<std::size_t>(random.below(40)));
    for (Token& token : context) token = random.token(1 + round % 4);
    const std::vector<Token> breakers = round % 3 == 0 ? std::vector<Token>{2} : std::vector<Token>{};
    SamplerParameters parameters;
    parameters.dry_allowed_length = static_cast<float>(1 + round % 3);
    INFO("round " << round);
    CHECK(repetitions(context, breakers, parameters) == by_definition(context, breakers, 1 + round % 3));
    parameters.dry_range = 7.0f;
    const std::size_t first = context.size() > 7 ? context.size() - 7 : 0;
    CHECK(
        repetitions(context, breakers, parameters) ==
        by_definition({context.begin() + static_cast<std::ptrdiff_t>(first), context.end()}, breakers, 1 + round % 3));
  }
}

TEST_CASE("a token that would continue a repetition is penalised by its length, in the pipeline too") {
  // "1 2 3 4 ... 1 2 3": three tokens repeat, and 4 would be the next.
  const std::vector<Token> context{1, 2, 3, 4, 0, 1, 2, 3};
  SamplerParameters parameters;
  parameters.dry_multiplier = 0.8f;
  CHECK(repetitions(context, {}, parameters) == Repeated{{4, 3}});
  std::vector<float> logits(6, 1.0f);
  penalise_repetitions(context, {}, parameters, logits);
  CHECK(logits == std::vector<float>{1, 1, 1, 1, static_cast<float>(1.0 - static_cast<double>(0.8f) * 1.75), 1});
  // A breaker between them ends the repetition; a masked token stays masked; no penalty makes an infinity.
  CHECK(repetitions(context, std::vector<Token>{2}, parameters).empty());
  logits[4] = -std::numeric_limits<float>::infinity();
  penalise_repetitions(context, {}, parameters, logits);
  CHECK(logits[4] == -std::numeric_limits<float>::infinity());
  parameters.dry_multiplier = 1e30f;
  parameters.dry_base = 1e30f;
  logits[4] = 0.0f;
  penalise_repetitions(context, {}, parameters, logits);
  CHECK(std::isfinite(logits[4]));

  const History history(std::vector<Token>{1, 2, 3, 4, 0}, std::vector<Token>{1, 2, 3}, 6);
  RowInput input;
  const std::vector<float> row(6, 1.0f);
  input.logits = {DType::f32, row.data(), 6};
  input.parameters.samplers.dry_multiplier = 0.8f;
  input.history = &history;
  Pipeline pipeline;
  Distribution distribution;
  pipeline.run(input, distribution);
  CHECK(distribution.probability(4) == Approx(std::exp(-1.4) / (5.0 + std::exp(-1.4))).epsilon(1e-6));
}

}  // namespace
