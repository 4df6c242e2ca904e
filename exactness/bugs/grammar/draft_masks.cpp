// Masks of drafts that are not those of the state behind them: a position late, the next request's, the flat order of a
// tree, none for the bonus row; and masks that allow the end or half a token too much.
#include <array>
#include <string_view>
#include <utility>

#include "exactness/bugs/grammar/family.hpp"

namespace draftproof {

Finding find_wrong_masks(const EngineMasks& masks) {
  const auto step = [masks](const Models& models, const TokenString& prefix, std::int32_t draft_len,
                            ExactChance& chance) {
    const ToyGrammar grammar = toy_grammar(models.vocab_size());
    const Models constrained = proof_steps::masked_models(models, masks(grammar, prefix, draft_len), nullptr);
    return proof_steps::chain_step(proof_steps::chain)(constrained, prefix, draft_len, chance);
  };
  return find_wrong_distribution({.draft_len = 2}, step, proof_steps::target_under_grammar);
}

namespace {

Hunt mask_hunt(EngineMasks faulty_masks) {
  return {Detector::enumeration, [faulty_masks = std::move(faulty_masks)](bool faulty) {
            return find_wrong_masks(faulty ? faulty_masks : sound_masks());
          }};
}

// The row behind a draft gets the mask of the row before it.
RowMask late_masks(const ToyGrammar& grammar, const TokenString& prefix, std::int32_t) {
  return [&grammar, length = prefix.size()](std::span<const Token> tokens) {
    return grammar.mask(grammar.after(tokens.size() > length ? tokens.first(tokens.size() - 1) : tokens));
  };
}

// The loop over the drafts fills a mask for each, and the row behind the last has none.
RowMask masks_without_bonus(const ToyGrammar& grammar, const TokenString& prefix, std::int32_t draft_len) {
  const std::size_t bonus = prefix.size() + static_cast<std::size_t>(draft_len);
  return [&grammar, bonus](std::span<const Token> tokens) {
    return grammar.mask(tokens.size() == bonus ? ToyGrammar::kDead : grammar.after(tokens));
  };
}

// The end token is ordinary vocabulary to the grammar, and legal wherever some text is.
RowMask masks_with_end(const ToyGrammar& grammar, const TokenString&, std::int32_t) {
  return [&grammar](std::span<const Token> tokens) {
    std::vector<std::uint32_t> mask = grammar.mask(grammar.after(tokens));
    mask[static_cast<std::size_t>(grammar.end) / 32] |= 1u << (grammar.end % 32);
    return mask;
  };
}

// B97: a grammar over characters, "a" and "b" in turn, and tokens of one or two of them.

constexpr std::array<std::string_view, 5> kTexts{"a", "b", "ab", "bb", "aa"};
enum class Matched : std::uint8_t { all_characters, first_character };

// The mask behind a character (0: none yet).
std::vector<std::uint32_t> text_mask(char last, Matched matched) {
  std::uint32_t word = 0;
  for (std::size_t token = 0; token < kTexts.size(); ++token) {
    const std::string_view text = kTexts[token].substr(0, matched == Matched::all_characters ? 2 : 1);
    char before = last;
    bool legal = true;
    for (const char character : text) legal = legal && std::exchange(before, character) != character;
    if (legal) word |= 1u << token;
  }
  return {word};
}

RowMask text_masks(Matched matched) {
  return [matched](std::span<const Token> tokens) {
    return text_mask(tokens.empty() ? '\0' : kTexts[static_cast<std::size_t>(tokens.back())].back(), matched);
  };
}

Finding find_illegal_merge(bool faulty) {
  const auto step = [faulty](const Models& models, const TokenString& prefix, std::int32_t draft_len,
                             ExactChance& chance) {
    const RowMask mask = text_masks(faulty ? Matched::first_character : Matched::all_characters);
    const Models constrained = proof_steps::masked_models(models, mask, mask);
    return proof_steps::chain_step(proof_steps::chain)(constrained, prefix, draft_len, chance);
  };
  const auto expected = [](const DenseMasses<Rational>& p, const TokenString& prefix) {
    return proof_steps::masked(p, text_masks(Matched::all_characters)(prefix));
  };
  return find_wrong_distribution({.vocab_size = static_cast<std::int32_t>(kTexts.size())}, step, expected);
}

// B95: two distinct children of every node from bare rows. Masks by the state along each node's path, or by one state
// that is taken through the nodes in their order, as if the tree were a chain.
EnumeratedStep masked_tree_step(bool faulty) {
  return [faulty](const Models& models, const TokenString& prefix, std::int32_t, ExactChance& chance) {
    const ToyGrammar grammar = toy_grammar(models.vocab_size());
    const auto draw = draw_children_without_replacement(proof_steps::draft_distribution(models, prefix),
                                                        branching_shape({2, 1}), chance);
    const DraftTree& tree = draw;
    const std::int32_t committed = grammar.after(prefix);
    const auto state_behind = [&](std::int32_t node) {
      const std::span<const Token> in_order(tree.tokens);
      return faulty ? grammar.after(in_order.first(static_cast<std::size_t>(node) + 1), committed)
                    : grammar.after(tree.path(node), committed);
    };
    DenseRows<Rational> target;
    for (std::int32_t node = kRootNode; node < tree.size(); ++node)
      target.rows.push_back(proof_steps::masked(models.target(proof_steps::joined(prefix, tree.path(node))),
                                                grammar.mask(state_behind(node))));
    const auto proposal = proof_steps::rows_of(tree, proof_steps::draft_distribution(models, prefix));
    return proof_steps::step_of(tree, verify_tree(tree, target, proposal, proof_steps::rrsw, chance));
  };
}

Finding find_wrong_tree_masks(bool faulty) {
  return find_wrong_distribution({.draft_len = 2}, masked_tree_step(faulty), proof_steps::target_under_grammar);
}

}  // namespace

std::vector<Bug> draft_mask_bugs() {
  return {
      {.id = "B92",
       .source = "sglang #25361",
       .fault = "masks are made from a state that lags behind: the row behind a draft has the mask of the row before "
                "it",
       .hunts = {mask_hunt(late_masks)}},
      {.id = "B95",
       .source = "TensorRT-LLM #18892",
       .fault = "a tree's masks are made along the flat list of its nodes, so that a second child has a state that "
                "its sibling has moved",
       .hunts = {{Detector::enumeration, find_wrong_tree_masks}}},
      {.id = "B96",
       .source = "vllm #52146",
       .fault = "an end token that the grammar was not told of is allowed wherever text is, and ends a string that "
                "is not complete",
       .hunts = {mask_hunt(masks_with_end)}},
      {.id = "B97",
       .source = "llguidance #366",
       .fault =
           "mask and matcher disagree about merged tokens: the mask looks at the first character, and the rest is not "
           "legal",
       .hunts = {{Detector::enumeration, find_illegal_merge}}},
      {.id = "B100",
       .source = "vllm #44292",
       .fault = "the row behind the last draft has no mask, and the bonus token is any",
       .hunts = {mask_hunt(masks_without_bonus)}}};
}

}  // namespace draftproof
