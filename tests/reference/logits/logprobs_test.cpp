#include "reference/logits/logprobs.hpp"

#include "reference/logits/filters.hpp"
#include "tests/support/test.hpp"

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
    // Ids of any place, one of them twice: each is listed once, behind the others.
    std::vector<std::size_t> asked{position};
    std::vector<Token> ids;
    for (std::int64_t more = random.below(4); more > 0; --more) {
      asked.push_back(static_cast<std::size_t>(random.below(static_cast<std::int64_t>(order.size()))));
      ids.insert(ids.end(), 2, order[asked.back()]);
    }
    const std::vector<TokenLogprob> found = top_logprobs(row, n, sampled, ids);
    const std::size_t listed = std::min(static_cast<std::size_t>(n), order.size());
    std::vector<std::size_t> ranks(listed);
    std::iota(ranks.begin(), ranks.end(), std::size_t{0});
    for (const std::size_t at : asked)
      if (std::find(ranks.begin(), ranks.end(), at) == ranks.end()) ranks.push_back(at);
    CAPTURE(i, n, vocab_size);
    REQUIRE(found.size() == ranks.size());
    for (std::size_t r = 0; r < found.size(); ++r) {
      const std::size_t rank = ranks[r];
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
  CHECK_THAT(error_of(ErrorKind::usage, [&] { top_logprobs(row, 1, 0, std::array<Token, 1>{5}); }), Contains("is 5"));
}
