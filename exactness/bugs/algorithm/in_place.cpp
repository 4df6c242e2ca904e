// B31/32: a row is edited in place, and what reads it afterwards takes it for the model's.
#include <array>
#include <ranges>
#include <string>
#include <utility>

#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

// Temperature 1/2 as exact numbers have it: p^2, divided by its sum.
template <class Number>
DenseMasses<Number> at_half_temperature(const DenseMasses<Number>& p) {
  DenseMasses<Number> squares;
  for (const Number& x : p) squares.push_back(Number(x * x));
  return normalised(std::move(squares));
}

// Rows that are tempered when they are asked for, in a copy or in place. Chain verification asks for a rejected row
// twice: for the coin and for the residual.
struct TemperedRows {
  ExactRows rows;
  bool in_place;

  ExactMasses masses(std::uint32_t row) {
    ExactMasses tempered = at_half_temperature(rows.row(row));
    if (in_place) rows.rows[row] = tempered;
    return tempered;
  }
  Rational probability(std::uint32_t row, Token token) { return masses(row)[static_cast<std::size_t>(token)]; }
};
ExactMasses residual_masses(TemperedRows& target, const ExactRows& proposal, std::uint32_t row) {
  return positive_difference(target.masses(row), proposal.row(row));
}

// E: one draft at temperature 1/2.
Finding find_tempered_twice(bool faulty) {
  return find_wrong_token_distribution(at_half_temperature(plain_target()), [&](ExactChance& chance) {
    TemperedRows target{{{plain_target(), plain_target()}}, faulty};
    ExactRows proposal{{plain_draft()}};
    return verify_one_draft(proposal.masses(0), target, proposal, chance);
  });
}

// The residual of a draft without probabilities is p without the drafted token: its mass is set to 0, in a copy or in
// the rows that all requests of one prompt share.
struct SharedRows {
  DenseRows<double>& rows;
  bool in_place;

  double probability(std::uint32_t row, Token token) const { return rows.probability(row, token); }
  const DenseMasses<double>& masses(std::uint32_t row) const { return rows.masses(row); }
};
struct DraftedToken {
  Token token;
  double probability(std::uint32_t, Token asked) const { return asked == token ? 1.0 : 0.0; }
};
DenseMasses<double> residual_masses(SharedRows& target, const DraftedToken& proposal, std::uint32_t row) {
  DenseMasses<double> copy = target.rows.row(row);
  DenseMasses<double>& masses = target.in_place ? target.rows.rows[row] : copy;
  masses[static_cast<std::size_t>(proposal.token)] = 0.0;
  return masses;
}

// D: every request of a batch against the same request verified by the reference over rows of its own.
Finding find_edited_rows(bool faulty) {
  constexpr std::uint64_t kRequests = 256;
  const DenseRows<double> rows{{{0.2, 0.5, 0.3}, {0.6, 0.3, 0.1}}};
  DenseRows<double> batch_rows = rows;
  SharedRows shared{batch_rows, faulty};
  PhiloxSource source;
  return first_evidence("requests", std::views::iota(std::uint64_t{0}, kRequests), [&](std::uint64_t request) {
    AddressedChance<PhiloxSource> chance(source, derive_seed(0, request), 0);
    const std::array<Token, 1> drafted{static_cast<Token>(request % 3)};
    const std::span<const Token> draft(drafted);
    DraftedToken proposal{drafted.front()};
    const ChainOutcome outcome = verify_chain(draft, shared, proposal, chance);
    DenseRows<double> own_rows = rows;
    DenseRows<double> one_hot{{{0.0, 0.0, 0.0}}};
    one_hot.rows.front()[static_cast<std::size_t>(drafted.front())] = 1.0;
    const ChainOutcome expected = verify_chain(draft, own_rows, one_hot, chance);
    if (outcome.num_accepted == expected.num_accepted && outcome.last_token == expected.last_token)
      return std::string();
    return "request " + std::to_string(request) + " accepts " + std::to_string(outcome.num_accepted) +
           " and ends with token " + std::to_string(outcome.last_token) + "; with rows of its own " +
           std::to_string(expected.num_accepted) + " and token " + std::to_string(expected.last_token);
  });
}

}  // namespace

std::vector<Bug> in_place_edit_bugs() {
  return {{.id = "B31/32",
           .source = "vllm #16952, vllm-ascend #2881",
           .fault = "rows are divided by the temperature, or a drafted token's mass is zeroed, in place: whoever reads "
                    "them next gets the edited row",
           .hunts = {{Detector::differential, find_edited_rows}, {Detector::enumeration, find_tempered_twice}},
           .rows_sampler = sampler_with([](OneDraft& draft) {
             draft.requested = draft.target = at_half_temperature(draft.target);
             draft.drafted = draft.proposal = at_half_temperature(draft.proposal);
             draft.residual = positive_difference(at_half_temperature(draft.target), draft.proposal);
           })}};
}

}  // namespace draftproof
