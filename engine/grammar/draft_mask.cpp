#include "engine/grammar/draft_mask.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace draftproof {
namespace {

std::size_t words_of(std::int64_t vocab_size) {
  return static_cast<std::size_t>((vocab_size + 31) / 32);
}

bool holds(std::span<const std::uint32_t> mask, Token token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (static_cast<std::uint32_t>(token) % 32) & 1u) != 0;
}

}  // namespace

DraftMask::DraftMask(GrammarState& state, std::int64_t vocab_size)
    : state_(state), mask_(words_of(vocab_size)), vocab_size_(vocab_size) {}

DraftMask::~DraftMask() {
  if (!at_.empty()) state_.roll_back(at_.size());
}

// False: the grammar does not allow the path; the state stands where it leaves it.
bool DraftMask::move_to(std::span<const Token> path) {
  const auto differ = std::ranges::mismatch(at_, path);
  const auto common = static_cast<std::size_t>(differ.in1 - at_.begin());
  if (at_.size() > common) state_.roll_back(at_.size() - common);
  at_.resize(common);
  for (const Token token : path.subspan(common)) {
    if (token < 0 || token >= vocab_size_ || !state_.accept(token)) return false;
    at_.push_back(token);
  }
  return true;
}

std::span<const std::uint32_t> DraftMask::allowed_after(std::span<const Token> path) {
  if (!move_to(path)) return {};
  state_.allowed(mask_);
  if (std::ranges::all_of(mask_, [](std::uint32_t word) { return word == 0; })) return {};
  return mask_;
}

Token DraftMask::forced_after(std::span<const Token> path) {
  Token forced = kPaddingToken;
  const std::span<const std::uint32_t> mask = allowed_after(path);
  for (std::size_t word = 0; word < mask.size(); ++word) {
    if (mask[word] == 0) continue;
    if (forced != kPaddingToken || !std::has_single_bit(mask[word])) return kPaddingToken;
    forced = static_cast<Token>(32 * word) + std::countr_zero(mask[word]);
  }
  return forced;
}

std::string DraftMask::forced_text_after(std::span<const Token> path) {
  return move_to(path) ? state_.forced_text() : std::string();
}

void DraftMask::apply(std::span<const Token> path, std::span<float> logits) {
  const std::span<const std::uint32_t> mask = allowed_after(path);
  if (mask.empty()) return;
  bool some_stay = false;
  for (std::size_t i = 0; i < logits.size() && !some_stay; ++i)
    some_stay = holds(mask, static_cast<Token>(i)) && logits[i] > -std::numeric_limits<float>::infinity();
  if (!some_stay) return;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (!holds(mask, static_cast<Token>(i))) logits[i] = -std::numeric_limits<float>::infinity();
}

void fill_masks(DraftMask& mask, const DraftTree& tree, std::span<const std::uint32_t> allowed, std::int64_t vocab_size,
                std::vector<std::uint32_t>& masks) {
  const std::size_t words = words_of(vocab_size);
  masks.assign((tree.tokens.size() + 1) * words, ~std::uint32_t{0});
  for (std::size_t row = 0; row <= tree.tokens.size(); ++row) {
    const std::span<std::uint32_t> of_row = std::span(masks).subspan(row * words, words);
    const std::vector<Token> path = row == 0 ? std::vector<Token>() : tree.path(static_cast<std::int32_t>(row) - 1);
    if (const std::span<const std::uint32_t> of_path = mask.allowed_after(path); !of_path.empty())
      std::ranges::copy(of_path, of_row.begin());
    for (std::size_t word = 0; word < allowed.size(); ++word) of_row[word] &= allowed[word];
  }
}

std::vector<std::int32_t> allowed_nodes(DraftMask& mask, const DraftTree& tree) {
  std::vector<std::int32_t> nodes;
  std::vector<bool> is_allowed(tree.tokens.size());
  for (std::int32_t node = 0; node < tree.size(); ++node) {
    const std::int32_t parent = tree.parents[static_cast<std::size_t>(node)];
    if (parent != kRootNode && !is_allowed[static_cast<std::size_t>(parent)]) continue;
    if (!mask.allows(tree.path(node))) continue;
    is_allowed[static_cast<std::size_t>(node)] = true;
    nodes.push_back(node);
  }
  return nodes;
}

}  // namespace draftproof
