#include "engine/grammar/draft_mask.hpp"

#include "tests/engine/grammar/toy_grammar.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocabOfMasks = 101;  // four words of a mask
constexpr std::size_t kWordsOfMasks = 4;
constexpr Token kEndOfMasks = 100;

DraftTree random_tree(std::mt19937& random, const ToyGrammar& grammar, std::vector<Token> before) {
  DraftTree tree;
  const std::int32_t size = static_cast<std::int32_t>(random() % 12);
  for (std::int32_t node = 0; node < size; ++node) {
    const std::int32_t parent = static_cast<std::int32_t>(random() % static_cast<std::size_t>(node + 1)) - 1;
    // Mostly what the grammar allows, or all paths would leave it at once.
    std::vector<Token> path = before;
    if (parent != kRootNode)
      for (const Token token : tree.path(parent)) path.push_back(token);
    Token token = static_cast<Token>(random() % kVocabOfMasks);
    const int state = grammar.state_after(path);
    for (int tries = 0; tries < 50 && (state == ToyGrammar::kRefused || !grammar.allows(state, token)); ++tries)
      token = static_cast<Token>(random() % kVocabOfMasks);
    tree.add(token, parent);
  }
  return tree;
}

TEST_CASE("the mask of every row of a draft is that of its own path, and drafts leave no trace in the state") {
  std::int64_t refused = 0, ended = 0, allowed_rows = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto grammar = ToyGrammar::random(random, kVocabOfMasks, kEndOfMasks);
    const auto state = grammar->start();
    std::vector<Token> before;
    for (int i = 0; i < 5; ++i) {
      const auto token = static_cast<Token>(random() % kVocabOfMasks);
      if (token != kEndOfMasks && state->accept(token)) before.push_back(token);
    }
    const DraftTree tree = random_tree(random, *grammar, before);
    std::vector<std::uint32_t> own;
    for (std::size_t word = 0; seed % 3 == 0 && word < kWordsOfMasks; ++word)
      own.push_back(static_cast<std::uint32_t>(random()));
    std::vector<std::uint32_t> masks;
    std::vector<std::int32_t> nodes;
    {
      DraftMask mask(*state, kVocabOfMasks);
      fill_masks(mask, tree, own, kVocabOfMasks, masks);
      nodes = allowed_nodes(mask, tree);
    }
    REQUIRE(masks.size() == (tree.tokens.size() + 1) * kWordsOfMasks);
    std::vector<std::int32_t> expected_nodes;
    for (std::int32_t node = kRootNode; node < tree.size(); ++node) {
      std::vector<Token> path = before;
      if (node != kRootNode)
        for (const Token token : tree.path(node)) path.push_back(token);
      const int at = grammar->state_after(path);
      if (at != ToyGrammar::kRefused && node != kRootNode) expected_nodes.push_back(node);
      refused += at == ToyGrammar::kRefused;
      ended += at == grammar->ended();
      bool same = true;
      for (Token token = 0; token < kVocabOfMasks; ++token) {
        const auto word = static_cast<std::size_t>(token) / 32;
        const bool free = at == ToyGrammar::kRefused || at == grammar->ended();  // rows that nothing comes from
        bool allowed = free || grammar->allows(at, token);
        if (!own.empty()) allowed = allowed && (own[word] >> (token % 32) & 1u) != 0;
        const std::size_t row = DraftTree::row_after(node);
        same = same && (masks[row * kWordsOfMasks + word] >> (token % 32) & 1u) == (allowed ? 1u : 0u);
        allowed_rows += allowed && !free;
      }
      CHECK(same);
    }
    CHECK(nodes == expected_nodes);
    // As a state that never saw a draft.
    std::vector<std::uint32_t> after(kWordsOfMasks), fresh(kWordsOfMasks);
    const auto other = grammar->start();
    for (const Token token : before) REQUIRE(other->accept(token));
    state->allowed(after), other->allowed(fresh);
    CHECK(after == fresh);
    CHECK(state->is_complete() == other->is_complete());
  }
  CHECK(refused > 50);
  CHECK(ended > 20);
  CHECK(allowed_rows > 5000);
}

TEST_CASE("a row keeps what the grammar allows of it, and stays whole where nothing of it is allowed") {
  ToyGrammar rule;
  rule.next = {{1, ToyGrammar::kRefused, 0}, {ToyGrammar::kRefused, 0, ToyGrammar::kRefused}};
  rule.accepting = {false, false};
  const auto grammar = std::make_shared<ToyGrammar>(rule);
  const auto state = grammar->start();
  DraftMask mask(*state, 3);
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::vector<float> row{1.0f, 2.0f, 3.0f};
  mask.apply({}, row);
  CHECK(row == std::vector<float>{1.0f, kNone, 3.0f});
  row = {1.0f, 2.0f, 3.0f};
  mask.apply(std::vector<Token>{0}, row);
  CHECK(row == std::vector<float>{kNone, 2.0f, kNone});
  row = {1.0f, kNone, 3.0f};  // of a head that drafts no token 1
  mask.apply(std::vector<Token>{0}, row);
  CHECK(row == std::vector<float>{1.0f, kNone, 3.0f});
  CHECK(mask.forced_after({}) == kPaddingToken);
  CHECK(mask.forced_after(std::vector<Token>{0}) == 1);
  CHECK(mask.forced_after(std::vector<Token>{1}) == kPaddingToken);
}

TEST_CASE("one token alone is forced and two are not, and a row keeps them, in whatever words of the mask they stand") {
  const std::vector<Token> tokens{0, 31, 32, 63, 64, 95, 96, 129};
  for (const Token first : tokens)
    for (const Token second : tokens) {
      ToyGrammar rule;
      rule.next = {std::vector<int>(130, ToyGrammar::kRefused)};
      rule.next[0][static_cast<std::size_t>(first)] = rule.next[0][static_cast<std::size_t>(second)] = 0;
      rule.accepting = {false};
      const auto state = std::make_shared<ToyGrammar>(rule)->start();
      DraftMask mask(*state, 130);
      CHECK(mask.forced_after({}) == (first == second ? first : kPaddingToken));
      std::vector<float> row(130, 1.0f);
      mask.apply({}, row);
      for (Token token = 0; token < 130; ++token)
        if ((row[static_cast<std::size_t>(token)] == 1.0f) != (token == first || token == second))
          FAIL(first << " and " << second << ": token " << token);
    }
}

}  // namespace
