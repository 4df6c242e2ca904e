#include "reference/verify/sampled_tree.hpp"

#include "exactness/model_pair.hpp"
#include "exactness/rational.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "reference/verify/tree_attention.hpp"
#include "tests/support/test.hpp"

namespace {

using Row = DenseMasses<Rational>;
using TokenDistribution = std::map<std::vector<Token>, Rational>;

const Row kQ{Rational(1, 5), Rational(3, 10), Rational(1, 2)};

// The distribution of a drafted tree's tokens; fails where an address is used twice or the order is not breadth first.
template <class Draw>
TokenDistribution distribution_of(Draw draw) {
  TokenDistribution distribution;
  EnumeratingChance<Rational> chance;
  do {
    const DraftTree tree = draw(chance);
    distribution[tree.tokens] += chance.probability();
    if (chance.reused() > 0) FAIL("an address was used twice");
    const std::vector<std::int32_t> depths = tree_depths(tree.parents);
    if (!std::is_sorted(depths.begin(), depths.end())) FAIL("not breadth first");
  } while (chance.next());
  return distribution;
}

auto constant(const Row& row) {
  return [&row](std::span<const Token>) -> const Row& { return row; };
}

Rational q(Token token) {
  return kQ[static_cast<std::size_t>(token)];
}

}  // namespace

TEST_CASE("shapes of chains and branching trees") {
  CHECK(chain_shape(3).parents == std::vector<std::int32_t>{-1, 0, 1});
  CHECK(branching_shape({2, 3}).parents == std::vector<std::int32_t>{-1, -1, 0, 0, 0, 1, 1, 1});
  CHECK(branching_shape({2, 1, 1}).parents == std::vector<std::int32_t>{-1, -1, 0, 1, 2, 3});
  CHECK(branching_shape({}).parents.empty());
  CHECK(chain_shape(0).parents.empty());
}

TEST_CASE("a drafted chain has the distribution of the draft model") {
  const ModelPair<Rational> models(3, 2, ModelKind::zeros);
  const auto distribution = [&](std::span<const Token> path) -> const Row& { return models.draft(path); };
  for (const auto& [tokens, probability] :
       distribution_of([&](auto& chance) { return draw_chain(distribution, 3, chance); })) {
    Rational product(1);
    std::vector<Token> path;
    for (const Token token : tokens) {
      product *= models.draft(path)[static_cast<std::size_t>(token)];
      path.push_back(token);
    }
    CHECK(probability == product);
  }
}

TEST_CASE("independent children are products and keep their duplicates") {
  const TokenDistribution distribution = distribution_of([](auto& chance) {
    return draw_iid_children(constant(kQ), branching_shape({2, 1}), chance);
  });
  CHECK(distribution.size() == 81);
  for (const auto& [tokens, probability] : distribution)
    CHECK(probability == q(tokens[0]) * q(tokens[1]) * q(tokens[2]) * q(tokens[3]));
}

TEST_CASE("children without replacement follow successive sampling") {
  const TokenDistribution distribution = distribution_of(
      [](auto& chance) { return draw_children_without_replacement(constant(kQ), branching_shape({3}), chance); });
  CHECK(distribution.size() == 6);
  for (const auto& [tokens, probability] : distribution)
    CHECK(probability == q(tokens[0]) * q(tokens[1]) / (1 - q(tokens[0])));
}

TEST_CASE("children without replacement stop where the support is exhausted") {
  const Row one_hot{0, 1, 0};
  EnumeratingChance<Rational> chance;
  const DraftTree tree = draw_children_without_replacement(constant(one_hot), branching_shape({2, 2}), chance);
  CHECK(tree.tokens == std::vector<Token>{1, 1});
  CHECK(tree.parents == std::vector<std::int32_t>{-1, 0});
  const Row two{Rational(1, 2), 0, Rational(1, 2)};
  for (const auto& [tokens, probability] : distribution_of(
           [&](auto& c) { return draw_children_without_replacement(constant(two), branching_shape({3}), c); })) {
    CHECK(tokens.size() == 2);
    CHECK(probability == Rational(1, 2));
  }
}

TEST_CASE("greedy children are the best ones and one draw from the rest") {
  const TokenDistribution distribution =
      distribution_of([](auto& chance) { return draw_greedy_children(constant(kQ), branching_shape({2}), chance); });
  CHECK(distribution == TokenDistribution{{{2, 0}, Rational(2, 5)}, {{2, 1}, Rational(3, 5)}});
  const Row two{Rational(1, 2), 0, Rational(1, 2)};
  CHECK(distribution_of([&](auto& c) { return draw_greedy_children(constant(two), branching_shape({3}), c); }) ==
        TokenDistribution{{{0, 2}, 1}});  // nothing is left to draw
  CHECK(distribution_of([](auto& c) { return draw_greedy_children(constant(kQ), branching_shape({1}), c); }).size() ==
        3);
}

TEST_CASE("the most probable children stand in order with ties by id and without impossible tokens") {
  const Row row{Rational(1, 4), Rational(1, 2), 0, Rational(1, 4)};
  CHECK(top_k_children(constant(row), branching_shape({2})).tokens == std::vector<Token>{1, 0});
  CHECK(top_k_children(constant(row), branching_shape({4})).tokens == std::vector<Token>{1, 0, 3});
  const DraftTree tree = top_k_children(constant(row), branching_shape({2, 2}));
  CHECK(tree.tokens == std::vector<Token>{1, 0, 1, 0, 1, 0});
  CHECK(tree.parents == std::vector<std::int32_t>{-1, -1, 0, 0, 1, 1});
}

TEST_CASE("merged paths are a prefix tree in order of first appearance") {
  const std::vector<std::vector<Token>> paths{{2, 0}, {1, 1}, {2, 1}, {2, 0}};
  const DraftTree merged = merge_paths(paths, Duplicates::merged);
  CHECK(merged.tokens == std::vector<Token>{2, 1, 0, 1, 1});
  CHECK(merged.parents == std::vector<std::int32_t>{-1, -1, 0, 0, 1});
  const DraftTree kept = merge_paths(paths, Duplicates::kept);
  CHECK(kept.tokens == std::vector<Token>{2, 1, 2, 2, 0, 1, 0, 1});
  CHECK(kept.parents == std::vector<std::int32_t>{-1, -1, -1, -1, 0, 0, 0, 1});
  CHECK(merge_paths({}, Duplicates::merged).size() == 0);
  const DraftTree ragged = merge_paths({{1}, {1, 2}, {}}, Duplicates::merged);
  CHECK(ragged.tokens == std::vector<Token>{1, 2});
}

TEST_CASE("the distinct first tokens of independent paths are drawn without replacement") {
  // Given that two distinct tokens appeared among three draws, their order has the distribution of successive sampling.
  const TokenDistribution distribution =
      distribution_of([](auto& chance) { return draw_merged_paths(constant(kQ), 3, 1, chance, Duplicates::merged); });
  Rational total(0);
  TokenDistribution first;  // by the first two tokens, where there are two
  for (const auto& [tokens, probability] : distribution) {
    CHECK(std::set<Token>(tokens.begin(), tokens.end()).size() == tokens.size());
    total += probability;
    if (tokens.size() >= 2) first[{tokens[0], tokens[1]}] += probability;
  }
  CHECK(total == 1);
  for (Token x = 0; x < 3; ++x)
    for (Token y = 0; y < 3; ++y) {
      if (x == y) continue;
      const Rational given_first = first[{x, y}] / q(x);
      CHECK(given_first == (1 - q(x) * q(x)) * q(y) / (1 - q(x)));  // not all three are x, and the other one is y
    }
}

TEST_CASE("paths through one prefix continue independently") {
  const TokenDistribution distribution =
      distribution_of([](auto& chance) { return draw_merged_paths(constant(kQ), 2, 2, chance, Duplicates::kept); });
  for (const auto& [tokens, probability] : distribution) {
    REQUIRE(tokens.size() == 4);
    Rational product(1);
    for (const Token token : tokens) product *= q(token);
    CHECK(probability == product);
  }
}
