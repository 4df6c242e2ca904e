// The search for the end of a prefix on large and awkward rows, beside its definition: sort, then walk.
#include "reference/logits/prefix.hpp"

#include "reference/logits/filters.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<std::pair<std::string, std::vector<float>>> rows_of(std::size_t vocab_size, std::mt19937& random) {
  std::vector<std::pair<std::string, std::vector<float>>> rows;
  const auto add = [&](const char* name, auto logit) {
    std::vector<float> row(vocab_size);
    for (std::size_t i = 0; i < vocab_size; ++i) row[i] = logit(i);
    rows.emplace_back(name, row);
  };
  std::normal_distribution<float> normal;
  add("normal", [&](std::size_t) { return normal(random); });
  add("spread", [&](std::size_t) { return 20.0f * normal(random); });
  add("nearly flat", [&](std::size_t) { return 0.01f * normal(random); });
  add("all equal", [](std::size_t) { return -3.25f; });
  add("ties", [&](std::size_t) { return static_cast<float>(random() % 5) * 0.5f; });
  add("falling", [](std::size_t i) { return -2.0f * std::log(static_cast<float>(i + 1)); });
  add("rising", [](std::size_t i) { return 1e-4f * static_cast<float>(i); });
  add("one survivor", [&](std::size_t i) { return i == vocab_size / 3 ? 1.0f : -kInfinity; });
  add("mostly masked", [&](std::size_t i) { return i % 997 == 0 ? normal(random) : -kInfinity; });
  add("denormal", [&](std::size_t) { return std::ldexp(static_cast<float>(random() % 1000), -149); });
  add("zeros of both signs", [&](std::size_t) { return random() % 2 == 0 ? 0.0f : -0.0f; });
  add("a peak that a sample misses", [&](std::size_t i) { return i == vocab_size / 2 + 1 ? 30.0f : normal(random); });
  add("tiles of different scales",
      [&](std::size_t i) { return static_cast<float>(i / 4096 % 7) * 9.0f + normal(random); });
  add("huge", [&](std::size_t) { return std::ldexp(normal(random), 26); });
  add("two values a tile", [](std::size_t i) { return i % 2 == 0 ? 0.5f : 0.25f; });
  return rows;
}

// Kept tokens by the definition: the prefix of the sorted tokens in which each has less than `limit` before it.
std::vector<bool> by_definition(const std::vector<Token>& order, const std::vector<std::uint64_t>& measures,
                                std::uint64_t limit) {
  std::vector<bool> kept(measures.size(), false);
  std::uint64_t before = 0;
  for (const Token token : order) {
    if (before >= limit) break;
    kept[static_cast<std::size_t>(token)] = true;
    before += measures[static_cast<std::size_t>(token)];
  }
  return kept;
}

int differences(const LogitsDistribution& row, const std::vector<bool>& kept) {
  int out = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) out += row.is_kept(static_cast<Token>(i)) != kept[i];
  return out;
}

}  // namespace

TEST_CASE("top-k and top-p end where sorting says on large and awkward rows") {
  std::mt19937 random(307);
  for (const std::size_t vocab_size : {std::size_t{1}, std::size_t{2}, std::size_t{257}, std::size_t{4097},
                                       std::size_t{40000}, std::size_t{131072}, std::size_t{1} << 19}) {
    if (kSanitized && vocab_size > 100000) continue;
    for (const auto& [name, logits] : rows_of(vocab_size, random)) {
      INFO(name << ", V = " << vocab_size);
      LogitsDistribution whole;
      whole.assign(logits, 0);
      std::vector<Token> order;
      std::vector<std::uint64_t> masses(vocab_size);
      const std::vector<std::uint64_t> ones(vocab_size, 1);
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < vocab_size; ++i) {
        if (!whole.is_kept(static_cast<Token>(i))) continue;
        order.push_back(static_cast<Token>(i));
        total += masses[i] = whole.mass(static_cast<Token>(i));
      }
      std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
      });
      const bool is_huge = vocab_size > 200000;
      for (const float top_p : {0x1p-149f, 0.1f, 0.5f, 0.9f, 0.999f, 0.99999f, 1.0f - 0x1p-24f}) {
        if (is_huge && top_p != 0.9f && top_p != 0.999f) continue;
        LogitsDistribution row;
        row.assign(logits, 0);
        FilterParameters parameters;
        parameters.top_p = top_p;
        apply_filters(parameters, row);
        const std::uint64_t limit = std::max<std::uint64_t>(1, ceil_of_fraction(top_p, total));
        INFO("top_p " << top_p);
        const std::vector<bool> kept = by_definition(order, masses, limit);
        CHECK(differences(row, kept) == 0);
        CHECK(row.kept_count() == std::count(kept.begin(), kept.end(), true));
        // The sums are those of a restriction that looks at every token.
        LogitsDistribution again;
        again.assign(logits, 0);
        const auto last = static_cast<std::size_t>(row.kept_count()) - 1;
        again.keep({logits[static_cast<std::size_t>(order[last])], order[last], 0});
        CHECK(again.total() == row.total());
        for (std::size_t t = 0; t < row.tile_count(); ++t) CHECK(again.tile_mass(t) == row.tile_mass(t));
      }
      for (const std::size_t k : {std::size_t{1}, std::size_t{50}, vocab_size / 100, vocab_size / 2, vocab_size - 1}) {
        if (k == 0 || k >= order.size() || (is_huge && k != 50 && k != vocab_size / 2)) continue;
        LogitsDistribution row;
        row.assign(logits, 0);
        FilterParameters parameters;
        parameters.top_k = static_cast<std::int32_t>(k);
        apply_filters(parameters, row);
        INFO("top_k " << k);
        CHECK(differences(row, by_definition(order, ones, k)) == 0);
        CHECK(row.kept_count() == static_cast<std::int64_t>(k));
      }
    }
  }
}

TEST_CASE("the end of a prefix does not depend on where it was guessed to be") {
  std::mt19937 random(311);
  for (const auto& [name, logits] : rows_of(20000, random)) {
    INFO(name);
    LogitsDistribution row;
    row.assign(logits, 0);
    row.weigh();
    const float some = std::max(-kLogitLimit, logits[random() % logits.size()]);
    const float other = std::max(-kLogitLimit, logits[random() % logits.size()]);
    for (const Measure measure : {Measure::count, Measure::mass}) {
      RowBand all;
      row.scan(-kLogitLimit, kInfinity, all);
      const std::uint64_t whole = measure_within(all, measure);
      for (const double part : {0.0, 0.2, 0.7, 0.99, 1.0}) {
        const std::uint64_t limit =
            std::clamp<std::uint64_t>(static_cast<std::uint64_t>(part * static_cast<double>(whole)), 1, whole);
        const Prefix expected = prefix_of_band(row, Ties::exact_k, measure, limit, all);
        const KeptSet& set = expected.set;
        // The last token reaches the limit, and every limit up to what it reaches has the same prefix.
        CHECK(expected.measure >= limit);
        CHECK(prefix_of_band(row, Ties::exact_k, measure, expected.measure, all).set.last_token == set.last_token);
        for (const auto& [low, high] :
             {std::pair{kInfinity, kInfinity}, std::pair{some, some},
              std::pair{std::min(some, other), std::max(some, other)}, std::pair{-kLogitLimit, -kLogitLimit}}) {
          RowBand band;
          row.scan(low, high, band);
          const Prefix got = prefix_of_row(row, Ties::exact_k, measure, limit, band);
          CHECK(got.set.last_value == set.last_value);
          CHECK(got.set.last_token == set.last_token);
          CHECK(got.measure == expected.measure);
        }
      }
    }
  }
}

TEST_CASE("the bounds of a row's masses hold their sum, which is that of its tokens") {
  std::mt19937 random(313);
  int inexact = 0;
  for (const auto& [name, logits] : rows_of(20000, random)) {
    INFO(name);
    LogitsDistribution row;
    row.assign(logits, 0);
    row.weigh();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) sum += row.mass(static_cast<Token>(i));
    CHECK(row.sum_of_masses() == sum);
    CHECK(row.mass_bounds().least <= sum);
    CHECK(row.mass_bounds().most >= sum);
    inexact += row.mass_bounds().most > sum;
  }
  CHECK(inexact > 3);
}
