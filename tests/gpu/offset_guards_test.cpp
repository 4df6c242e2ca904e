// Offsets and indices that lie: which of them are invalid, by hand.
#include "gpu/offset_guards.hpp"

#include "gpu/reference_executor/draft_ranges.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

struct Drafts {
  std::int64_t requests, draft_tokens_total, draft_len_max;
  const std::int64_t* cu_num_draft_tokens;
};

std::vector<DraftRange> ranges_of(const std::vector<std::int64_t>& cu, std::int64_t total, std::int64_t len_max) {
  return reference_executor::draft_ranges(Drafts{static_cast<std::int64_t>(cu.size()) - 1, total, len_max, cu.data()});
}
// Which requests are served.
std::vector<int> valid(const std::vector<std::int64_t>& cu, std::int64_t total, std::int64_t len_max) {
  std::vector<int> found;
  for (const DraftRange& range : ranges_of(cu, total, len_max)) found.push_back(range.valid ? 1 : 0);
  return found;
}

TEST_CASE("requests are served whose two offsets are valid", "[device_api][offsets]") {
  using Requests = std::vector<int>;
  CHECK(valid({0, 2, 4, 6, 8}, 8, 2) == Requests{1, 1, 1, 1});
  CHECK(valid({0, 0, 3, 3}, 3, 3) == Requests{1, 1, 1});
  CHECK(valid({1, 2, 4, 6, 8}, 8, 2) == Requests{0, 1, 1, 1});      // does not begin at 0
  CHECK(valid({0, 2, 4, 6, 7}, 8, 2) == Requests{1, 1, 1, 0});      // does not end at the total
  CHECK(valid({0, 2, 9, 6, 8}, 8, 2) == Requests{1, 0, 0, 1});      // beyond the total
  CHECK(valid({0, 2, kMost, 6, 8}, 8, 2) == Requests{1, 0, 0, 1});  //
  CHECK(valid({0, 2, -1, 6, 8}, 8, 2) == Requests{1, 0, 0, 1});     // before the first
  CHECK(valid({0, 2, kLeast, 6, 8}, 8, 2) == Requests{1, 0, 0, 1});
  CHECK(valid({0, 2, 1, 6, 8}, 8, 8) == Requests{1, 0, 0, 1});  // descends
  CHECK(valid({0, 2, 7, 6, 8}, 8, 8) == Requests{1, 1, 0, 0});  // the one behind descends
  CHECK(valid({0, 2, 5, 6, 8}, 8, 2) == Requests{1, 0, 1, 1});  // longer than draft_len_max
  CHECK(valid({0, 0, 0, 3}, 3, 2) == Requests{1, 1, 0});
}

TEST_CASE("whatever the offsets are, every draft has one request", "[device_api][offsets]") {
  const std::vector<std::int64_t> some = {kLeast, -1, 0, 1, 3, 5, 6, 7, 8, 9, kMost};
  std::vector<std::int64_t> cu(4);
  int checked = 0;
  for (std::size_t i = 0; i < some.size() * some.size() * some.size() * some.size(); ++i) {
    std::size_t rest = i;
    for (std::int64_t& offset : cu) {
      offset = some[rest % some.size()];
      rest /= some.size();
    }
    std::int64_t next = 0;
    for (const DraftRange& range : ranges_of(cu, 8, 8)) {
      if (range.begin != next || range.end < range.begin) FAIL("offsets " << Catch::Detail::stringify(cu));
      next = range.end;
      ++checked;
    }
    if (next != 8) FAIL("offsets " << Catch::Detail::stringify(cu));
  }
  CHECK(checked == 3 * 11 * 11 * 11 * 11);
}

TEST_CASE("a list that leads out of its array is invalid and empty", "[device_api][offsets]") {
  const auto elements = [](const ListRange& range) { return std::array<std::int64_t, 2>{range.valid, range.count()}; };
  using Elements = std::array<std::int64_t, 2>;  // valid, count
  CHECK(elements(list_range(2, 5, 5)) == Elements{1, 3});
  CHECK(elements(list_range(5, 5, 5)) == Elements{1, 0});
  CHECK(elements(list_range(2, 6, 5)) == Elements{0, 0});
  CHECK(elements(list_range(-1, 2, 5)) == Elements{0, 0});
  CHECK(elements(list_range(3, 2, 5)) == Elements{0, 0});
  CHECK(elements(list_range(kLeast, kMost, 5)) == Elements{0, 0});
  CHECK(elements(list_range_of_length(2, 3, 5)) == Elements{1, 3});
  CHECK(elements(list_range_of_length(2, 4, 5)) == Elements{0, 0});
  CHECK(elements(list_range_of_length(2, -1, 5)) == Elements{0, 0});
  CHECK(elements(list_range_of_length(kMost, 3, 5)) == Elements{0, 0});
  CHECK(elements(list_range_of_length(-1, 3, 5)) == Elements{0, 0});
}

}  // namespace
