#include "engine/draft/suffix_tree.hpp"

#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr std::int32_t kRoot = 0;
constexpr int kDepthLimit = 1024;
constexpr std::size_t kSlotsAtFirst = 64;

std::uint64_t key(std::int32_t node, Token token) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 | static_cast<std::uint32_t>(token);
}

}  // namespace

SuffixTree::SuffixTree(int depth_max) : depth_max_(depth_max), children_(kSlotsAtFirst) {
  if (depth_max < 2 || depth_max > kDepthLimit)
    throw usage_error("suffix decoding", "the depth is " + std::to_string(depth_max) + "; expected 2 to " +
                                             std::to_string(kDepthLimit) + " tokens");
  nodes_.push_back({.token = kPaddingToken, .depth = 0, .count = 2, .text = -1});
}

std::size_t SuffixTree::slot_of(std::uint64_t key) const {
  // Fibonacci hashing: the upper bits of a product are those that all bits of the key reach.
  std::size_t slot = static_cast<std::size_t>(key * 0x9E3779B97F4A7C15u >> 32) & (children_.size() - 1);
  while (children_[slot].child >= 0 && children_[slot].key != key) slot = (slot + 1) & (children_.size() - 1);
  return slot;
}

std::int32_t SuffixTree::child(std::int32_t node, Token token) const {
  return children_[slot_of(key(node, token))].child;
}

std::int32_t SuffixTree::add_child(std::int32_t node, Token token, std::int64_t text) {
  const auto added = static_cast<std::int32_t>(nodes_.size());
  nodes_.push_back({.token = token, .depth = at(node).depth + 1, .next_sibling = at(node).first_child, .text = text});
  at(node).first_child = added;
  if (2 * nodes_.size() > children_.size()) {
    std::vector<Slot> old(2 * children_.size());
    old.swap(children_);
    for (const Slot& slot : old)
      if (slot.child >= 0) children_[slot_of(slot.key)] = slot;
  }
  children_[slot_of(key(node, token))] = {key(node, token), added};
  return added;
}

// Another occurrence of `child` was seen behind `node`.
void SuffixTree::counted(std::int32_t node, std::int32_t child) {
  Node& parent = at(node);
  ++parent.continued;
  const std::int32_t best = parent.best_child;
  if (best < 0 || at(child).count > at(best).count ||
      (at(child).count == at(best).count && at(child).token < at(best).token))
    parent.best_child = child;
}

void SuffixTree::append(Token token) {
  const auto position = static_cast<std::int64_t>(text_.size());
  text_.push_back(token);
  open_.push_back(kRoot);
  std::size_t kept = 0;
  for (const std::int32_t node : open_) {
    if (at(node).depth == depth_max_ || at(node).count == 1) continue;  // too long, or found in the text if need be
    std::int32_t next = child(node, token);
    if (next < 0) {
      next = add_child(node, token, position + 1);
    } else if (++at(next).count == 2 && at(next).depth < depth_max_) {
      const std::int64_t first = at(next).text;
      if (text_[static_cast<std::size_t>(first)] != kPaddingToken)
        counted(next, add_child(next, text_[static_cast<std::size_t>(first)], first + 1));
    }
    counted(node, next);
    open_[kept++] = next;
  }
  open_.resize(kept);
}

void SuffixTree::end_document() {
  text_.push_back(kPaddingToken);
  ++borders_;
  open_.clear();
}

std::optional<SuffixTree::Continuation> SuffixTree::in_text(std::int32_t node, std::int64_t text) const {
  if (static_cast<std::size_t>(text) >= text_.size()) return std::nullopt;
  const Token token = text_[static_cast<std::size_t>(text)];
  if (token == kPaddingToken) return std::nullopt;
  return Continuation{token, 1, 1, {node, text + 1}};
}

std::optional<SuffixTree::Place> SuffixTree::find(std::span<const Token> string) const {
  Place place;
  if (string.size() > static_cast<std::size_t>(depth_max_)) return std::nullopt;
  for (const Token token : string) {
    if (place.text >= 0 || at(place.node).count == 1) {
      const auto next = in_text(place.node, place.text >= 0 ? place.text : at(place.node).text);
      if (!next || next->token != token) return std::nullopt;
      place = next->place;
    } else {
      place.node = child(place.node, token);
      if (place.node < 0) return std::nullopt;
    }
  }
  return place;
}

std::vector<SuffixTree::Place> SuffixTree::ends() const {
  std::vector<Place> places;
  for (auto node = open_.rbegin(); node != open_.rend() && at(*node).count > 1; ++node) places.push_back({*node, -1});
  return places;
}

std::optional<SuffixTree::Continuation> SuffixTree::most_frequent(const Place& place) const {
  const Node& node = at(place.node);
  if (place.text >= 0) return in_text(place.node, place.text);
  if (node.count == 1) return in_text(place.node, node.text);
  if (node.best_child < 0) return std::nullopt;
  return Continuation{at(node.best_child).token, at(node.best_child).count, node.continued, {node.best_child, -1}};
}

std::vector<SuffixTree::Continuation> SuffixTree::continuations(const Place& place) const {
  const Node& node = at(place.node);
  std::vector<Continuation> all;
  if (place.text >= 0 || node.count == 1) {
    if (const auto next = most_frequent(place)) all.push_back(*next);
    return all;
  }
  for (std::int32_t c = node.first_child; c >= 0; c = at(c).next_sibling)
    all.push_back({at(c).token, at(c).count, node.continued, {c, -1}});
  return all;
}

}  // namespace draftproof
