// Coupled verification of chains and of lists: whatever is drafted, the output is plain decoding's over the same noise.
// Bit for bit on production's rows: tests/reference/step/verifier_texts_test.cpp.
#include "reference/verify/coupled.hpp"

#include "exactness/model_pair.hpp"
#include "exactness/rational.hpp"
#include "reference/random/injected.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/coupled_list.hpp"
#include "reference/verify/enumerating_chance.hpp"
#include "reference/verify/sampled_tree.hpp"
#include "tests/support/test.hpp"

namespace {

using Chance = EnumeratingChance<Rational>;
using Rows = DenseRows<Rational>;

// verify(drafts, target rows by node, position, chance) -> TreeOutcome, over two steps with the same drafts: not in
// distribution only, but on every path of the enumeration.
template <class Verify>
void check_plain_decoding(const ModelPair<Rational>& models, const DraftTree& drafts, std::uint32_t num_lists,
                          const Verify& verify) {
  Chance chance;
  Rational total(0);
  do {
    std::vector<Token> text;
    for (int step = 0; step < 2; ++step) {
      Rows target;
      for (std::int32_t node = kRootNode; node < drafts.size(); ++node) {
        std::vector<Token> prefix = text;
        for (const Token token : drafts.path(node)) prefix.push_back(token);
        target.rows.push_back(models.target(prefix));
      }
      const std::vector<Token> emitted =
          emitted_tokens(drafts, verify(drafts, target, static_cast<std::uint32_t>(text.size()), chance));
      text.insert(text.end(), emitted.begin(), emitted.end());
    }
    std::vector<Token> plain;
    while (plain.size() < text.size()) {
      const auto position = static_cast<std::uint32_t>(plain.size());
      plain.push_back(num_lists == 0 ? chance.coupled_race(models.target(plain), position)
                                     : chance.coupled_list_race(models.target(plain), position, num_lists));
    }
    if (plain != text) FAIL("the drafts changed the output");
    total += chance.probability();
  } while (chance.next());
  CHECK(total == 1);
}

constexpr ModelKind kKinds[] = {ModelKind::dense, ModelKind::zeros, ModelKind::one_hot_target};

}  // namespace

TEST_CASE("whatever the drafts are the coupled output is plain decoding with the same noise") {
  const auto verify = [](const DraftTree& drafts, Rows& target, std::uint32_t position, Chance& chance) {
    const ChainOutcome chain = verify_coupled(std::span<const Token>(drafts.tokens), target, position, chance);
    TreeOutcome tree{{}, chain.last_token};
    for (std::uint32_t i = 0; i < chain.num_accepted; ++i) tree.path.push_back(static_cast<std::int32_t>(i));
    return tree;
  };
  for (const ModelKind kind : kKinds)
    for (Token first = kPaddingToken; first < 3; ++first)
      for (Token second = kPaddingToken; second < 3; ++second) {
        const ModelPair<Rational> models(3, 5, kind);
        const DraftTree drafts = DraftTree::chain(std::vector<Token>{first, second});
        check_plain_decoding(models, drafts, 0, verify);
      }
}

TEST_CASE("coupled lists are exact whatever the drafts are") {
  const auto verify = [](const DraftTree& drafts, Rows& target, std::uint32_t position, Chance& chance) {
    return verify_coupled_list(drafts, 2, target, position, chance);
  };
  for (const ModelKind kind : kKinds)
    for (const auto& paths : std::vector<std::vector<std::vector<Token>>>{
             {{0, 1}, {0, 2}}, {{0, 0}, {1, 1}, {2, 2}}, {{1}, {1}}, {{kPaddingToken, 0}, {2, kPaddingToken}}, {}})
      check_plain_decoding(ModelPair<Rational>(3, 2, kind), merge_paths(paths, Duplicates::merged), 2, verify);
}

TEST_CASE("noise of all zeros or all ones gives a token of the support") {
  for (const RandomBlock& block : {InjectedSource::kZeros, InjectedSource::kOnes}) {
    InjectedSource source;
    source.inject(Purpose::gumbel_noise, block);
    AddressedChance<InjectedSource> chance(source, 0, 0);
    DenseRows<double> target{{{0.0, 0.25, 0.75}, {0.0, 0.0, 1.0}}};
    const std::vector<Token> draft{2};
    const ChainOutcome outcome = verify_coupled(draft, target, 0, chance);
    CHECK(outcome.num_accepted == 1);  // equal noise everywhere: the most probable token wins
    CHECK(outcome.last_token == 2);
  }
}
