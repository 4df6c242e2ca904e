// Draws beside lists, as servers state them: sound ones, and one fault for each test.
#include "exactness/audit/listed.hpp"

#include "tests/exactness/audit/found_tests.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::size_t kListWidth = 6;
constexpr std::int64_t kTextLen = 20;

// A server's draw: the rank for a row and a uniform number.
using ListedSampler = std::function<std::int64_t(std::span<const double>, double u)>;

std::int64_t inverse(std::span<const double> row, double u) {
  std::size_t rank = 0;
  while (rank < row.size() && u >= row[rank]) u -= row[rank++];
  return static_cast<std::int64_t>(rank);
}

// Lists of 6 tokens, of which 4 to 6 are kept; the last kept is the shell. Texts of 20 tokens. `rest` of the mass lies
// beyond the lists. `repeats` gives each second draw of a text the number of the first.
ListedSample listed(std::uint64_t seed, std::int64_t draws, const ListedSampler& sampler, double rest = 0.0,
                    bool repeats = false) {
  TestRandom random(seed);
  ListedSample sample;
  sample.width = kListWidth;
  double u = 0.0;
  for (std::int64_t i = 0; i < draws; ++i) {
    const auto kept = rest > 0.0 ? kListWidth : static_cast<std::size_t>(4 + random.below(3));
    std::vector<double> row(kListWidth, 0.0);
    double sum = 0.0;
    for (std::size_t k = 0; k < kept; ++k) sum += row[k] = std::exp(1.2 * static_cast<double>(random.normal()));
    std::ranges::sort(row, std::greater());
    for (double& p : row) p *= (1.0 - rest) / sum;
    for (std::size_t k = 0; k < kListWidth; ++k) sample.ids.push_back(static_cast<std::int64_t>((k * 5 + 3) % 7));
    if (!repeats || i % 2 == 0) u = random.uniform();
    sample.ranks.push_back(std::min(sampler(row, u), static_cast<std::int64_t>(rest > 0.0 ? kListWidth : kept - 1)));
    sample.probabilities.insert(sample.probabilities.end(), row.begin(), row.end());
    sample.rest.push_back(rest);
    sample.shell_from.push_back(static_cast<std::int64_t>(kept) - 1);
    sample.texts.push_back(i / kTextLen);
    sample.positions.push_back(i % kTextLen);
  }
  return sample;
}

TEST_CASE("draws beside lists pass if sound, and each fault is found by its test") {
  CHECK(rejecting(audit_listed(listed(1, 4000, inverse), {.alpha = suite_level(10)}).tests).empty());
  CHECK(rejecting(audit_listed(listed(2, 4000, inverse, 0.1), {.alpha = suite_level(10)}).tests).empty());

  const ListedSampler flatter = [](std::span<const double> row, double u) {  // a temperature of 1.3
    std::vector<double> other;
    double sum = 0.0;
    for (const double p : row) sum += other.emplace_back(p > 0.0 ? std::pow(p, 1.0 / 1.3) : 0.0);
    for (double& p : other) p /= sum;
    return inverse(other, u);
  };
  const Audit hot = audit_listed(listed(3, 4000, flatter), {});
  CHECK(rejects(hot, "score"));
  CHECK(find(hot, "score")->statistic < 0.0);

  const ListedSampler cut = [](std::span<const double> row, double u) {  // without the last kept token
    std::vector<double> other(row.begin(), row.end());
    const auto last = std::ranges::find(other, 0.0) - 1;
    const double mass = 1.0 - *last;
    *last = 0.0;
    return inverse(other, u * mass);
  };
  const Audit small = audit_listed(listed(4, 1500, cut), {});
  CHECK(rejects(small, "shell"));
  CHECK(rejects(small, "edge"));

  const Audit repeated = audit_listed(listed(5, 600, inverse, 0.0, true), {});
  CHECK(rejects(repeated, "pairs_rank_1"));
  CHECK_FALSE(rejects(repeated, "pairs_rank_2"));
  CHECK(find(repeated, "pairs_rank_1")->n == 30 * 19);  // within texts alone

  const ListedSampler within = [](std::span<const double> row, double u) {  // never a token beyond the list
    return std::min<std::int64_t>(inverse(row, u), kListWidth - 1);
  };
  CHECK(rejects(audit_listed(listed(6, 1000, within, 0.1), {}), "rest"));

  ListedSample outside = listed(7, 50, inverse);
  outside.outside = 1;
  const Audit one = audit_listed(outside, {});
  CHECK(rejecting(one.tests) == std::set<std::string>{"outside"});
  CHECK(one.observations == 51);
}

TEST_CASE("lists accuse sound servers no more often than the level") {
  int accused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    accused +=
        rejecting(audit_listed(listed(100 + seed, 400, inverse), {.alpha = 0.05, .seed = seed}).tests).empty() ? 0 : 1;
  CHECK(possible_rates(accused, 300).low <= 0.05);
}

TEST_CASE("lists that are no distributions are refused by row") {
  const auto message = [](const std::function<void(ListedSample&)>& spoil) {
    ListedSample sample = listed(8, 3, inverse);
    spoil(sample);
    return error_of(ErrorKind::usage, [&] { audit_listed(sample, {}); });
  };
  CHECK(message([](ListedSample& s) { s.probabilities[6] += 0.5; }).find("row 1 sums to 1.5") != std::string::npos);
  CHECK(message([](ListedSample& s) { std::swap(s.probabilities[0], s.probabilities[1]); }).find("does not fall") !=
        std::string::npos);
  CHECK(message([](ListedSample& s) { s.ranks[2] = 9; }).find("row 2 has 9") != std::string::npos);
  CHECK(message([](ListedSample& s) { s.texts.pop_back(); }).find("has 2 elements; expected 3") != std::string::npos);
  CHECK(audit_listed({}, {}).verdict == AuditVerdict::inconclusive);
}

}  // namespace
