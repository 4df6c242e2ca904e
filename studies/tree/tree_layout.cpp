#include "studies/tree/tree_layout.hpp"

#include "reference/verify/tree_attention.hpp"

namespace draftproof {

std::vector<TreePlace> tree_layout(std::span<const std::int32_t> parents) {
  const std::vector<std::int32_t> depths = tree_depths(parents);
  std::vector<std::vector<std::size_t>> children(depths.size());  // of rows, row 0 the context's
  for (std::size_t i = 0; i < parents.size(); ++i)
    children[static_cast<std::size_t>(std::int64_t{parents[i]} + 1)].push_back(i + 1);
  std::vector<TreePlace> places(depths.size());
  // Depth first, children in order: leaves are met in the order of their rows. Then from the last node back, since
  // children come behind their parent.
  double next_row = 0.0;
  for (std::vector<std::size_t> open{0}; !open.empty();) {
    const std::size_t row = open.back();
    open.pop_back();
    places[row].x = depths[row];
    if (children[row].empty()) places[row].y = next_row++;
    open.insert(open.end(), children[row].rbegin(), children[row].rend());
  }
  for (std::size_t row = places.size(); row-- > 0;)
    if (!children[row].empty())
      places[row].y = 0.5 * (places[children[row].front()].y + places[children[row].back()].y);
  return places;
}

}  // namespace draftproof
