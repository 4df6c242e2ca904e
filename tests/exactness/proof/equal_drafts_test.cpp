#include "exactness/proof/equal_drafts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace draftproof;

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
  // One node, and the row of the accepted child.
  CHECK(row_of(rows, "rrs", "2 siblings, independent").target_rows == 1 + Rational(19, 25));
  CHECK(std::ranges::is_sorted(rows, [](const EqualDraftsRow& a, const EqualDraftsRow& b) {
    return a.budget != b.budget ? a.budget < b.budget : a.tokens > b.tokens;
  }));
}
