#include "reference/logits/logprobs.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "reference/logits/filters.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/test_random.hpp"

using namespace draftproof;
using Catch::Contains;

TEST_CASE("top logprobs are the head of a stable sort with the sampled token and its rank") {
  TestRandom random(41);
  for (int i = 0; i < 500; ++i) {
    const std::int64_t vocab_size = 1 + random.below(30);
    const std::vector<float> logits = awkward_row(random, vocab_size);
    LogitsDistribution row;
    row.assign(logits, 0);
    FilterParameters filters;
    if (random.chance(0.5)) filters.top_k = static_cast<std::int32_t>(random.below(vocab_size + 1));
    apply_filters(filters, row);

    std::vector<Token> order;
    long double total = 0.0L;
    for (Token t = 0; t < vocab_size; ++t) {
      if (!row.is_kept(t)) continue;
      order.push_back(t);
      total += std::exp(static_cast<long double>(logits[static_cast<std::size_t>(t)]));
    }
    std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });

    const std::int64_t n = random.below(6);
    const auto position = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(order.size())));
    const Token sampled = order[position];
    const std::vector<TokenLogprob> found = top_logprobs(row, n, sampled);
    const std::size_t listed = std::min(static_cast<std::size_t>(n), order.size());
    CAPTURE(i, n, vocab_size);
    REQUIRE(found.size() == listed + (position < listed ? 0 : 1));
    for (std::size_t r = 0; r < found.size(); ++r) {
      const std::size_t rank = r < listed ? r : position;
      REQUIRE(found[r].token == order[rank]);
      REQUIRE(found[r].rank == static_cast<std::int64_t>(rank) + 1);
      const long double expected =
          static_cast<long double>(logits[static_cast<std::size_t>(order[rank])]) - std::log(total);
      REQUIRE(static_cast<double>(found[r].logprob) ==
              Approx(static_cast<double>(expected)).epsilon(1e-6).margin(2e-6));
    }
  }
}

TEST_CASE("top logprobs refuse a negative count and a token outside the vocabulary") {
  const std::vector<float> logits{1.0f, 2.0f};
  LogitsDistribution row;
  row.assign(logits, 0);
  CHECK_THAT(error_of(ErrorKind::usage, [&] { top_logprobs(row, -1, 0); }), Contains("n is -1"));
  CHECK_THAT(error_of(ErrorKind::usage, [&] { top_logprobs(row, 1, 2); }), Contains("[0, 2)"));
  CHECK_THAT(error_of(ErrorKind::usage, [&] { top_logprobs(row, 1, kPaddingToken); }), Contains("-1"));
}
