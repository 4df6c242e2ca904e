#include "gpu/regress/invalid_offsets.hpp"

#include <limits>

#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {
namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 40;
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::vector<InvalidOffsets> invalid_draft_offsets(const std::vector<std::int64_t>& cu) {
  const std::size_t last = cu.size() - 1;
  const std::size_t middle = last / 2;
  const std::int64_t total = cu.back();
  std::vector<InvalidOffsets> found;
  const auto add = [&](const std::string& what, std::size_t at, std::int64_t offset) {
    found.push_back({what, cu});
    found.back().offsets[at] = offset;
  };
  add("first_1", 0, 1);
  add("first_negative", 0, -1);
  add("first_far", 0, kFar);
  add("last_short", last, total - 1);
  add("last_beyond", last, total + 1);
  add("last_far", last, kFar);
  add("beyond", middle, total + 1);
  add("far", middle, kFar);
  add("most", middle, kMost);
  add("negative", middle, -1);
  add("far_negative", middle, -kFar);
  add("least", middle, kLeast);
  add("below_the_one_before", middle, cu[middle - 1] - 1);
  add("above_the_one_behind", middle, cu[middle + 1] + 1);
  add("all_drafts", middle, total);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Noise noise(seed + 4000);
    found.push_back({"random_" + std::to_string(seed), cu});
    for (std::size_t i = 0; i <= last; ++i)
      if (noise.below(2 * i, 4) == 0) found.back().offsets[i] = noise.below(2 * i + 1, total + 7) - 3;
  }
  return found;
}

std::vector<InvalidOffsets> invalid_list_offsets(const std::vector<std::int64_t>& offsets, std::int64_t count) {
  std::vector<InvalidOffsets> found = {{"near", offsets}, {"far", offsets}, {"descending", offsets}};
  const std::size_t last = offsets.size() - 1;
  found[0].offsets[1] = -1;
  found[0].offsets[last / 2] = count + 1;
  found[0].offsets[last] = count + 1;
  found[1].offsets[0] = kLeast;
  found[1].offsets[last / 2] = kFar;
  found[1].offsets[last - 1] = kMost;
  found[2].offsets[last / 2] = count;
  found[2].offsets[last - 1] = 0;
  return found;
}

}  // namespace draftproof::regress
