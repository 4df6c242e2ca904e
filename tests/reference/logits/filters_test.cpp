// Filters against a slow oracle: sort, then the definitions with exact rationals over the row's integer masses.
#include "reference/logits/filters.hpp"

#include <boost/multiprecision/cpp_int.hpp>

#include "tests/support/test.hpp"

using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;

namespace {

// The float as the fraction that it is, from its bits.
cpp_rational exact(float x) {
  int exponent = 0;
  const cpp_int digits(static_cast<std::int64_t>(std::ldexp(static_cast<double>(std::frexp(x, &exponent)), 24)));
  exponent -= 24;
  return exponent >= 0 ? cpp_rational(digits << exponent, 1) : cpp_rational(digits, cpp_int(1) << -exponent);
}

cpp_int ceiling(const cpp_rational& x) {
  return (numerator(x) + denominator(x) - 1) / denominator(x);
}

struct Oracle {
  const std::vector<float>& logits;
  std::vector<std::uint64_t> mass;
  std::vector<std::size_t> order;  // (value descending, id ascending), tokens that are not masked

  Oracle(const std::vector<float>& l, const LogitsDistribution& row) : logits(l), mass(l.size()) {
    for (std::size_t i = 0; i < l.size(); ++i) {
      if (std::isinf(l[i])) continue;
      mass[i] = row.mass(static_cast<Token>(i));
      order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return l[a] > l[b]; });
  }

  // The tokens of `among` (in order) of which less than `limit` of `measure` stands strictly before them; under
  // keep_all, before the first token of their value.
  template <class Measure>
  std::vector<bool> prefix(const std::vector<std::size_t>& among, const cpp_rational& limit, Ties ties,
                           Measure measure) const {
    std::vector<bool> kept(logits.size(), false);
    const cpp_int ceil_of_limit = ceiling(limit);  // before < limit iff before < ceil(limit): before is an integer
    cpp_int before = 0;
    cpp_int before_value = 0;
    for (std::size_t r = 0; r < among.size(); ++r) {
      if (r == 0 || logits[among[r]] != logits[among[r - 1]]) before_value = before;
      const cpp_int& counts = ties == Ties::keep_all ? before_value : before;
      kept[among[r]] = r == 0 || counts < ceil_of_limit;
      before += measure(among[r]);
    }
    return kept;
  }

  std::vector<bool> first_tokens(std::int64_t count, Ties ties) const {
    return prefix(order, cpp_rational(count), ties, [](std::size_t) { return 1; });
  }
  std::vector<bool> min_p_set(const FilterParameters& p) const {
    std::vector<bool> kept(logits.size(), false);
    const cpp_int least = ceiling(exact(p.min_p) * mass[order[0]]);
    const auto last = std::min<std::size_t>(static_cast<std::size_t>(p.least_kept), order.size()) - 1;
    if (p.least_kept > 1 && p.min_p != 0.0f && mass[order[last]] < least) return first_tokens(p.least_kept, p.ties);
    for (const std::size_t i : order) kept[i] = p.min_p == 0.0f || mass[i] >= least;
    return kept;
  }
  std::vector<bool> top_k_set(const FilterParameters& p) const {
    const auto all = static_cast<std::int64_t>(order.size());
    return first_tokens(p.top_k == 0 ? all : std::max<std::int64_t>(p.top_k, p.least_kept), p.ties);
  }
  std::vector<bool> top_p_set(const std::vector<bool>& seen, const FilterParameters& p) const {
    if (p.top_p == 1.0f) return seen;  // off, and the tokens without mass stay
    std::vector<std::size_t> among;
    cpp_int total = 0;
    for (const std::size_t i : order) {
      if (!seen[i]) continue;
      among.push_back(i);
      total += mass[i];
    }
    const cpp_rational share =
        p.top_p_denominator == 0 ? exact(p.top_p) : cpp_rational(p.top_p_numerator, p.top_p_denominator);
    std::vector<bool> kept = prefix(among, share * total, p.ties, [&](std::size_t i) { return mass[i]; });
    if (p.least_kept == 1) return kept;
    const std::vector<bool> least = first_tokens(p.least_kept, p.ties);
    for (const std::size_t i : among) kept[i] = kept[i] || least[i];
    return kept;
  }

  std::vector<bool> kept(const FilterParameters& p) const {
    const std::vector<bool> a = min_p_set(p);
    const std::vector<bool> b = top_k_set(p);
    std::vector<bool> first(logits.size());
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = a[i] && b[i];
    if (p.order == FilterOrder::top_k_first) return top_p_set(first, p);
    std::vector<bool> all(logits.size(), false);
    for (const std::size_t i : order) all[i] = true;
    const std::vector<bool> c = top_p_set(all, p);
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = first[i] && c[i];
    return first;
  }
};

std::vector<bool> kept_set(const LogitsDistribution& row) {
  std::vector<bool> kept(static_cast<std::size_t>(row.vocab_size()));
  for (Token i = 0; i < row.vocab_size(); ++i) kept[static_cast<std::size_t>(i)] = row.is_kept(i);
  return kept;
}

LogitsDistribution filtered(const std::vector<float>& logits, const FilterParameters& p) {
  LogitsDistribution row;
  row.assign(logits, 0);
  apply_filters(p, row);
  return row;
}

std::vector<Token> kept_tokens(const std::vector<float>& logits, const FilterParameters& p) {
  const LogitsDistribution row = filtered(logits, p);
  std::vector<Token> kept;
  for (Token i = 0; i < row.vocab_size(); ++i)
    if (row.is_kept(i)) kept.push_back(i);
  return kept;
}

FilterParameters random_parameters(TestRandom& random, std::int64_t vocab_size) {
  constexpr std::array<float, 9> kTopP{1.0f, 0.9f, 0.5f, 0.1f, 1e-6f, 0x1p-149f, 1.0f - 0x1p-24f, 0.7f, 0.999f};
  constexpr std::array<float, 8> kMinP{0.0f, 0.0f, 0.05f, 0.5f, 1.0f, 1e-6f, 0x1p-126f, 1.0f - 0x1p-24f};
  FilterParameters p;
  if (random.chance(0.7)) p.top_k = static_cast<std::int32_t>(random.below(vocab_size + 2));
  p.top_p = random.chance(0.3) ? static_cast<float>(random.uniform() * 0.999 + 0.0005)
                               : kTopP[static_cast<std::size_t>(random.below(kTopP.size()))];
  p.min_p = kMinP[static_cast<std::size_t>(random.below(kMinP.size()))];
  p.order = random.chance(0.5) ? FilterOrder::joint : FilterOrder::top_k_first;
  p.ties = random.chance(0.5) ? Ties::exact_k : Ties::keep_all;
  if (random.chance(0.2)) p.least_kept = 1 + random.below(std::min<std::int64_t>(vocab_size + 2, 300));
  if (p.top_p != 1.0f && random.chance(0.2)) {
    p.top_p_denominator = static_cast<std::uint32_t>(2 + random.below(1'000'000'000));
    p.top_p_numerator =
        static_cast<std::uint32_t>(1 + random.below(static_cast<std::int64_t>(p.top_p_denominator) - 1));
    p.top_p = static_cast<float>(static_cast<double>(p.top_p_numerator) / p.top_p_denominator);
    p.top_p = std::min(p.top_p, 1.0f - 0x1p-24f);
  }
  return p;
}

void check_against_oracle(const std::vector<float>& logits, const FilterParameters& p) {
  LogitsDistribution row;
  row.assign(logits, 0);
  const Oracle oracle(logits, row);
  const std::vector<bool> expected = oracle.kept(p);
  apply_filters(p, row);
  const std::vector<bool> found = kept_set(row);
  CAPTURE(logits.size(), p.top_k, p.top_p, p.min_p, p.least_kept, p.top_p_denominator, static_cast<int>(p.order),
          static_cast<int>(p.ties));
  const auto wrong = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
  CAPTURE(wrong);
  REQUIRE(found == expected);
  REQUIRE(row.kept_count() == std::count(expected.begin(), expected.end(), true));
  REQUIRE(row.kept_count() >= 1);
  REQUIRE(row.total() > 0);
}

}  // namespace

TEST_CASE("the fraction of a total is rounded up exactly") {
  TestRandom random(1);
  std::vector<float> fractions{1.0f,      0.0f, 0.5f, 1.0f - 0x1p-24f, std::numeric_limits<float>::min(),
                               0x1p-149f, 0.1f, 0.9f};
  for (int i = 0; i < 2000; ++i) {
    float x = 0.0f;
    const std::uint32_t bits = random.word() % 0x3f800001u;  // every float of [0, 1]
    std::memcpy(&x, &bits, sizeof x);
    fractions.push_back(x);
  }
  std::vector<std::uint64_t> totals{0, 1, 2, 3, std::uint64_t{1} << 44, ~std::uint64_t{0}, std::uint64_t{1} << 63};
  for (int i = 0; i < 20; ++i)
    totals.push_back(((std::uint64_t{random.word()} << 32) | random.word()) >> random.below(64));
  for (const float fraction : fractions) {
    for (const std::uint64_t total : totals) {
      CAPTURE(fraction, total);
      REQUIRE(cpp_int(ceil_of_fraction(fraction, total)) == ceiling(exact(fraction) * total));
    }
  }
}

TEST_CASE("filters keep what the sorted definition keeps on thousands of awkward rows") {
  TestRandom random(2);
  int dropped_something = 0;
  for (int i = 0; i < 6000; ++i) {
    CAPTURE(i);
    const std::int64_t vocab_size = 1 + random.below(40);
    const std::vector<float> logits = awkward_row(random, vocab_size);
    const FilterParameters p = random_parameters(random, vocab_size);
    check_against_oracle(logits, p);
    dropped_something += static_cast<std::size_t>(filtered(logits, p).kept_count()) < logits.size() ? 1 : 0;
  }
  CHECK(dropped_something > 2000);
}

TEST_CASE("filters keep what the sorted definition keeps on rows of several tiles") {
  TestRandom random(3);
  for (const std::int64_t vocab_size : {4095, 4096, 4097, 8191, 32000}) {
    for (int i = 0; i < (vocab_size > 10000 ? 6 : 20); ++i) {
      CAPTURE(vocab_size, i);
      check_against_oracle(awkward_row(random, vocab_size), random_parameters(random, vocab_size));
    }
  }
}

TEST_CASE("a token always survives where a lower logit has the larger mass") {
  // exp is correct to 1.3 ulp and not monotone to the last bit: the mass of the larger logit is the smaller one here.
  // min_p = 1 alone would keep only the second token and top_k = 1 only the first.
  const std::vector<float> logits{-0x1.fffa70p-3f, -0x1.fffa72p-3f};
  LogitsDistribution row;
  row.assign(logits, 0);
  REQUIRE(row.mass(0) < row.mass(1));
  for (const FilterOrder order : {FilterOrder::joint, FilterOrder::top_k_first}) {
    const FilterParameters p{1, 1.0f, 1.0f, order, Ties::exact_k};
    CHECK(kept_tokens(logits, p) == std::vector<Token>{0});
    CHECK(kept_tokens(logits, {0, 0x1p-149f, 1.0f, order, Ties::keep_all}) == std::vector<Token>{0});
  }
}

TEST_CASE("equal logits at the boundary: k = 2 keeps two or three as the tie rule says") {
  // flashinfer #3774: [.4, .3, .3, 0] with k = 2 gave three tokens from a value-only pivot.
  const std::vector<float> logits{std::log(0.4f), std::log(0.3f), std::log(0.3f), kMinusInfinity};
  CHECK(kept_tokens(logits, {2, 1.0f, 0.0f, FilterOrder::joint, Ties::exact_k}) == std::vector<Token>{0, 1});
  CHECK(kept_tokens(logits, {2, 1.0f, 0.0f, FilterOrder::joint, Ties::keep_all}) == std::vector<Token>{0, 1, 2});
}

TEST_CASE("top-p keeps the token that crosses the boundary") {
  // flashinfer #2202: the mass before the last token, .89999, is below .9, so that it stays.
  const std::vector<float> below{std::log(0.5f), std::log(0.39999f), std::log(0.10001f)};
  CHECK(kept_tokens(below, {0, 0.9f}) == std::vector<Token>{0, 1, 2});
  const std::vector<float> above{std::log(0.5f), std::log(0.40001f), std::log(0.09999f)};
  CHECK(kept_tokens(above, {0, 0.9f}) == std::vector<Token>{0, 1});
  // llama.cpp #1953 stopped one token short: four equal tokens reach .75 with the third, and beyond it with the fourth.
  const std::vector<float> equal(4, 1.0f);
  CHECK(kept_tokens(equal, {0, 0.74f}) == std::vector<Token>{0, 1, 2});
  CHECK(kept_tokens(equal, {0, 0.75f}) == std::vector<Token>{0, 1, 2});
  CHECK(kept_tokens(equal, {0, 0.75f + 0x1p-24f}) == std::vector<Token>{0, 1, 2, 3});
  CHECK(kept_tokens(equal, {0, 0.25f, 0.0f, FilterOrder::joint, Ties::keep_all}) == std::vector<Token>{0, 1, 2, 3});
}

TEST_CASE("the two filter orders differ where top-p sees the renormalised top-k set") {
  // sglang #36173. Masses .4 .3 .2 .1, k = 2, p = .5: jointly two tokens stand (.4 < .5); renormalised .4/.7 = .57.
  const std::vector<float> logits{std::log(0.4f), std::log(0.3f), std::log(0.2f), std::log(0.1f)};
  CHECK(kept_tokens(logits, {2, 0.5f, 0.0f, FilterOrder::joint}) == std::vector<Token>{0, 1});
  CHECK(kept_tokens(logits, {2, 0.5f, 0.0f, FilterOrder::top_k_first}) == std::vector<Token>{0});
}
