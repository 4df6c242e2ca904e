#include "exactness/bugs/one_draft.hpp"

#include <memory>
#include <utility>

#include "reference/verify/convention.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {
namespace {

OneDraft sound_draft(const FixedRows& rows) {
  const std::vector<double>& p = rows.target.masses();
  const std::vector<double>& q = rows.proposal.masses();
  return {p, q, p, q, rows.residual.masses()};
}

LargeSampler one_draft_sampler(const OneDraft& draft, CoinRule coin) {
  struct Tables {
    OneDraft draft;
    CumulativeTable drafted, residual;
    CoinRule coin;
  };
  const auto tables = std::make_shared<const Tables>(
      Tables{draft, CumulativeTable(draft.drafted), CumulativeTable(draft.residual), std::move(coin)});
  return {draft.requested, [tables](std::uint64_t draw) {
            const std::uint64_t seed = derive_seed(0, draw);
            const PhiloxSource source;
            const Token token = tables->drafted.draw(source.block(seed, {0, 0, 0, Purpose::draft_sample}));
            const auto x = static_cast<std::size_t>(token);
            if (tables->coin(tables->draft.target[x], tables->draft.proposal[x],
                             source.block(seed, {0, 0, 0, Purpose::accept})))
              return token;
            return tables->residual.draw(source.block(seed, {0, 0, 0, Purpose::residual}));
          }};
}

}  // namespace

bool sound_coin(double p, double q, const RandomBlock& coin) {
  return accepts(Convention::draftproof, p, q, coin);
}

RowsSampler sampler_with(std::function<void(OneDraft&)> fault) {
  return [fault = std::move(fault)](const FixedRowsPointer& rows) {
    OneDraft draft = sound_draft(*rows);
    fault(draft);
    return one_draft_sampler(draft, sound_coin);
  };
}

RowsSampler sampler_with_coin(CoinRule coin) {
  return [coin = std::move(coin)](const FixedRowsPointer& rows) { return one_draft_sampler(sound_draft(*rows), coin); };
}

}  // namespace draftproof
