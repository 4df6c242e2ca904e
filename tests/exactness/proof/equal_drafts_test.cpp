#include "exactness/proof/equal_drafts.hpp"

#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<Rational>;

const EqualDraftsRow& row_of(const std::vector<EqualDraftsRow>& rows, const std::string& verifier,
                             const std::string& drafts) {
  const auto found = std::ranges::find_if(
      rows, [&](const EqualDraftsRow& row) { return row.verifier == verifier && row.drafts == drafts; });
  REQUIRE(found != rows.end());
  return *found;
}

}  // namespace

TEST_CASE("tokens at equal drafts are the golden numbers, and rows read those counted by hand") {
  const Row p{Rational(1, 2), Rational(3, 10), Rational(1, 5)};
  const Row q{Rational(1, 5), Rational(3, 10), Rational(1, 2)};
  const std::vector<EqualDraftsRow> rows = equal_drafts(p, q);
  const auto tokens = [&](const std::string& verifier, const std::string& drafts) {
    return Rational(row_of(rows, verifier, drafts).tokens - 1);
  };
  CHECK(tokens("chain", "chain of 2") == Rational(119, 100));
  CHECK(tokens("block", "chain of 2") == Rational(5, 4));
  CHECK(tokens("rrs", "2 siblings, independent") == Rational(19, 25));
  CHECK(tokens("importance", "2 siblings, independent") == Rational(43, 50));
  CHECK(tokens("rrsw", "2 siblings, without replacement") == Rational(41, 50));
  CHECK(tokens("greedy_draft", "2 siblings, greedy") == Rational(9, 10));
  CHECK(tokens("traversal", "2 paths of 2, merged") == Rational(6799, 5000));
  CHECK(tokens("greedy_multipath", "2 paths of 2, merged") == Rational(3877, 2500));
  // The chain rule reads a row of each for every draft that it reaches, and the bonus row: 1 + 7/10 + 49/100. Block
  // verification reads every row but the bonus row, which it reaches with probability h_2.
  const EqualDraftsRow& chain = row_of(rows, "chain", "chain of 2");
  CHECK(chain.target_rows == 1 + Rational(7, 10) + Rational(49, 100));
  CHECK(chain.proposal_rows == 1 + Rational(7, 10));
  const EqualDraftsRow& block = row_of(rows, "block", "chain of 2");
  CHECK(block.target_rows >= 2);
  CHECK(block.proposal_rows == 2);
  CHECK(row_of(rows, "naive", "2 siblings, independent").proposal_rows == 0);
  for (const EqualDraftsRow& row : rows) {
    INFO(row.verifier << ", " << row.drafts);
    CHECK((row.distance == 0) == row.lossless);
    CHECK(row.first_distance <= row.distance);
  }
  // TV(p, q) = 3/10: the mixture keeps 3/10 of it at weight 7/10, and accepts 1 - 7/10 TV.
  const EqualDraftsRow& mixed = row_of(rows, "ensemble:weight=0.7", "chain of 2");
  CHECK(mixed.first_distance == Rational(9, 100));
  CHECK(mixed.tokens == 1 + Rational(79, 100) + Rational(79 * 79, 10'000));
  // A rejected token 2 stays where the draft after it is accepted: max(q - p, 0) is 3/10 there.
  CHECK(row_of(rows, "fly:window=1,entropy=0", "chain of 2").first_distance == Rational(3, 10) * Rational(7, 10));
  CHECK(row_of(rows, "synthetic:rate=0.9", "chain of 2").first_distance == Rational(27, 100));
  // One node, and the row of the accepted child.
  CHECK(row_of(rows, "rrs", "2 siblings, independent").target_rows == 1 + Rational(19, 25));
  CHECK(std::ranges::is_sorted(rows, [](const EqualDraftsRow& a, const EqualDraftsRow& b) {
    return a.budget != b.budget ? a.budget < b.budget : a.tokens > b.tokens;
  }));
}
