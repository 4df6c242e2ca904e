#include "engine/draft/tree_builders/sequoia_tree.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr double kNone = -1.0;  // no tree of this size; every tree is worth at least 1
constexpr const char* kWhere = "Sequoia tree";

}  // namespace

SequoiaTrees::SequoiaTrees(std::span<const double> acceptance, std::int32_t num_drafts_max, std::int32_t depth_max)
    : acceptance_(acceptance.begin(), acceptance.end()), num_drafts_max_(num_drafts_max), depth_max_(depth_max) {
  if (num_drafts_max < 0)
    throw usage_error(kWhere, "num_drafts_max is " + std::to_string(num_drafts_max) + "; expected 0 or more");
  if (depth_max < 0) throw usage_error(kWhere, "depth_max is " + std::to_string(depth_max) + "; expected 0 or more");
  double sum = 0.0;
  for (std::size_t b = 0; b < acceptance_.size(); ++b) {
    if (!(acceptance_[b] >= 0.0 && acceptance_[b] <= 1.0))
      throw usage_error(kWhere, "the acceptance of child " + std::to_string(b + 1) + " is " +
                                    std::to_string(acceptance_[b]) + "; expected a probability in [0, 1]");
    sum += acceptance_[b];
  }
  if (sum > 1.0 + 1e-9)
    throw usage_error(kWhere, "the acceptances of all children sum to " + std::to_string(sum) +
                                  "; expected at most 1, since at most one child is accepted");

  const auto width_max = static_cast<std::int32_t>(acceptance_.size());
  const std::int32_t size_max = num_drafts_max_ + 1;
  values_.assign(index(size_max, depth_max_, width_max) + 1, kNone);
  widths_.assign(static_cast<std::size_t>(size_max + 1) * static_cast<std::size_t>(depth_max_ + 1), 0);
  for (std::int32_t d = 0; d <= depth_max_; ++d) {
    value(1, d, 0) = 1.0;
    for (std::int32_t n = 2; n <= size_max && d > 0; ++n) {
      for (std::int32_t b = 1; b <= width_max; ++b)
        for (std::int32_t y = b; y < n; ++y) value(n, d, b) = std::max(value(n, d, b), value_with(y, n, d, b));
      std::int32_t& best =
          widths_[static_cast<std::size_t>(n) * static_cast<std::size_t>(depth_max_ + 1) + static_cast<std::size_t>(d)];
      for (std::int32_t b = 1; b <= width_max; ++b)
        if (value(n, d, b) > value(n, d, best)) best = b;
    }
  }
}

std::size_t SequoiaTrees::index(std::int32_t n, std::int32_t d, std::int32_t b) const {
  const std::size_t widths = acceptance_.size() + 1;
  return (static_cast<std::size_t>(n) * static_cast<std::size_t>(depth_max_ + 1) + static_cast<std::size_t>(d)) *
             widths +
         static_cast<std::size_t>(b);
}

std::int32_t SequoiaTrees::best_width(std::int32_t n, std::int32_t d) const {
  return widths_[static_cast<std::size_t>(n) * static_cast<std::size_t>(depth_max_ + 1) + static_cast<std::size_t>(d)];
}

// n nodes of which `first_part` are the root and its children 1 .. b-1 with all below them.
double SequoiaTrees::value_with(std::int32_t first_part, std::int32_t n, std::int32_t d, std::int32_t b) const {
  const std::int32_t rest = n - first_part;
  const double first = value(first_part, d, b - 1);
  const double child = value(rest, d - 1, best_width(rest, d - 1));
  return first == kNone || child == kNone ? kNone : first + acceptance_[static_cast<std::size_t>(b - 1)] * child;
}

bool SequoiaTrees::fits(std::int32_t num_drafts, std::int32_t depth) const {
  const std::int32_t n = num_drafts + 1;
  return num_drafts >= 0 && num_drafts <= num_drafts_max_ && depth >= 0 && depth <= depth_max_ &&
         value(n, depth, best_width(n, depth)) != kNone;
}

void SequoiaTrees::check(std::int32_t num_drafts, std::int32_t depth) const {
  if (fits(num_drafts, depth)) return;
  throw usage_error(kWhere, "there is no tree of " + std::to_string(num_drafts) + " drafts and depth " +
                                std::to_string(depth) + "; expected at most " + std::to_string(num_drafts_max_) +
                                " drafts, depth " + std::to_string(depth_max_) + " and " +
                                std::to_string(acceptance_.size()) + " children a node");
}

double SequoiaTrees::expected_tokens(std::int32_t num_drafts, std::int32_t depth) const {
  check(num_drafts, depth);
  return value(num_drafts + 1, depth, best_width(num_drafts + 1, depth));
}

TreeShape SequoiaTrees::shape(std::int32_t num_drafts, std::int32_t depth) const {
  check(num_drafts, depth);
  struct Subtree {
    std::int32_t size, depth, node;
  };
  TreeShape shape;
  std::deque<Subtree> queue{{num_drafts + 1, depth, kRootNode}};
  for (; !queue.empty(); queue.pop_front()) {
    const Subtree root = queue.front();
    std::vector<std::int32_t> child_sizes;  // last child first
    std::int32_t n = root.size;
    for (std::int32_t b = best_width(n, root.depth); b > 0; --b) {
      std::int32_t y = b;
      while (value_with(y, n, root.depth, b) != value(n, root.depth, b)) ++y;
      child_sizes.push_back(n - y);
      n = y;
    }
    for (auto size = child_sizes.rbegin(); size != child_sizes.rend(); ++size) {
      shape.parents.push_back(root.node);
      queue.push_back({*size, root.depth - 1, shape.size() - 1});
    }
  }
  return shape;
}

}  // namespace draftproof
