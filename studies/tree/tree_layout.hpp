// Where the nodes of a draft tree are drawn: a level a column, leaves in rows of their own, every other node in the
// middle of its children. No two edges cross, since siblings keep their order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace draftproof {

struct TreePlace {
  double x = 0.0;  // levels below the context
  double y = 0.0;  // rows; the first leaf has 0
};

// parents [n] as in DraftTree -> [n + 1], the context's place first.
std::vector<TreePlace> tree_layout(std::span<const std::int32_t> parents);

}  // namespace draftproof
