#include "reference/exactness/mutants/large_chain.hpp"

#include <memory>
#include <utility>

#include "reference/exactness/mutants/fixed_rows.hpp"
#include "reference/exactness/mutants/usual_tests.hpp"
#include "reference/verify/convention.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

LargeChain sound_large_chain() {
  const std::vector<double>& p = usual_target_distribution();
  const std::vector<double>& q = usual_draft_distribution();
  return {p, q, p, q, positive_difference(p, q)};
}

bool sound_coin(double p, double q, const RandomBlock& coin) {
  return accepts(Convention::draftproof, p, q, coin);
}

LargeSampler large_chain_sampler(const LargeChain& chain, CoinRule coin) {
  struct Tables {
    LargeChain chain;
    CumulativeTable drafted, residual;
    CoinRule coin;
  };
  const auto tables = std::make_shared<const Tables>(
      Tables{chain, CumulativeTable(chain.drafted), CumulativeTable(chain.residual), std::move(coin)});
  return {chain.requested, [tables](std::uint64_t draw) {
            const std::uint64_t seed = derive_seed(0, draw);
            const PhiloxSource source;
            const Token token = tables->drafted.draw(source.block(seed, {0, 0, 0, Purpose::draft_sample}));
            const auto x = static_cast<std::size_t>(token);
            if (tables->coin(tables->chain.target[x], tables->chain.proposal[x],
                             source.block(seed, {0, 0, 0, Purpose::accept})))
              return token;
            return tables->residual.draw(source.block(seed, {0, 0, 0, Purpose::residual}));
          }};
}

}  // namespace draftproof
