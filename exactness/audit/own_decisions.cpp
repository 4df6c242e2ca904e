#include "exactness/audit/own_decisions.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "exactness/audit/tests.hpp"
#include "reference/step/verify_step_of.hpp"
#include "reference/verify/block.hpp"
#include "reference/verify/sibling_rules/naive_sampling.hpp"
#include "reference/verify/traversal.hpp"

namespace draftproof {
namespace {

using Masses = DenseMasses<double>;

double rate_of(double p, double q) {
  return p > 0.0 ? (p < q ? p / q : 1.0) : 0.0;
}

// The distributions of a step, made when they are first asked for.
class NormalisedRows {
 public:
  explicit NormalisedRows(StepRows& rows)
      : rows_(rows), target_(rows.request().rows()), proposal_(rows.request().rows()) {}

  const Masses& target(std::uint32_t row) {
    if (!target_[row]) target_[row] = normalised_distribution(rows_.target(row));
    return *target_[row];
  }
  const Masses& proposal(std::uint32_t row) {
    if (!proposal_[row]) proposal_[row] = normalised_distribution(rows_.proposal(row));
    return *proposal_[row];
  }
  const DraftTree& tree() const { return rows_.request().draft; }

 private:
  StepRows& rows_;
  std::vector<std::optional<Masses>> target_;
  std::vector<std::optional<Masses>> proposal_;
};

// Rows as the templates ask for them; the target's may be off by a factor.
struct TargetView {
  NormalisedRows& rows;
  double factor;

  Masses row(std::uint32_t r) const { return scaled(rows.target(r), factor); }
  Masses masses(std::uint32_t r) const { return row(r); }
  double probability(std::uint32_t r, Token token) const {
    return rows.target(r)[static_cast<std::size_t>(token)] * factor;
  }
};
struct ProposalView {
  NormalisedRows& rows;

  // A leaf proposes nothing.
  Masses row(std::uint32_t r) const {
    return rows.tree().children(static_cast<std::int32_t>(r) - 1).empty() ? Masses() : rows.proposal(r);
  }
  Masses masses(std::uint32_t r) const { return row(r); }
  double probability(std::uint32_t r, Token token) const { return rows.proposal(r)[static_cast<std::size_t>(token)]; }
};

// A Chance whose coins fall as `accepts` says; it notes their rates, and what the last token is drawn from.
template <class Accepts>
class PrescribedCoins {
 public:
  struct Coin {
    std::uint32_t row;
    double rate;
  };

  explicit PrescribedCoins(Accepts accepts) : accepts_(std::move(accepts)) {}

  bool accept(double p, double q, std::uint32_t row) {
    coins_.push_back({row, rate_of(p, q)});
    return accepts_(row);
  }
  // No token at all, so that no rule descends to a drafted one.
  Token draw(const Masses& masses, std::uint32_t, Purpose) {
    last_ = masses;
    return kPaddingToken;
  }

  const std::vector<Coin>& coins() const { return coins_; }
  Masses& last() { return last_; }

 private:
  Accepts accepts_;
  std::vector<Coin> coins_;
  Masses last_;
};

Decision decision(std::int32_t depth, double rate, bool accepted) {
  return {depth, rate, Doubt::open, accepted};
}

// All coins are thrown. That of the last accepted draft passed and those after it failed; of those before nothing is
// known. From the last one backwards each is a coin given what is known.
OwnOutcome follow_block(NormalisedRows& rows, double factor, std::span<const std::int32_t> path) {
  const DraftTree& tree = rows.tree();
  const auto num_accepted = static_cast<std::uint32_t>(path.size());
  PrescribedCoins chance([&](std::uint32_t row) { return row + 1 == num_accepted; });
  TargetView target{rows, factor};
  ProposalView proposal{rows};
  verify_block(std::span<const Token>(tree.tokens), target, proposal, chance);
  OwnOutcome outcome;
  outcome.last = std::move(chance.last());
  outcome.num_accepted.assign(chance.coins().size() + 1, 0.0);
  double all_failed = 1.0;
  for (std::size_t i = chance.coins().size(); i > 0; --i) {
    const double rate = chance.coins()[i - 1].rate;
    outcome.num_accepted[i] = all_failed * rate;
    all_failed *= 1.0 - rate;
    if (i >= num_accepted)
      outcome.decisions.push_back(decision(static_cast<std::int32_t>(i) - 1, rate, i == num_accepted));
  }
  outcome.num_accepted[0] = all_failed;
  return outcome;
}

// Leaves are accepted or deleted one after the other.
OwnOutcome follow_traversal(NormalisedRows& rows, double factor, std::span<const std::int32_t> path) {
  const DraftTree& tree = rows.tree();
  const std::int32_t end = path.empty() ? kRootNode : path.back();
  const auto is_end = [&](std::uint32_t node) { return static_cast<std::int32_t>(node) == end; };
  PrescribedCoins chance(is_end);
  verify_traversal(tree, TargetView{rows, factor}, ProposalView{rows}, chance);
  OwnOutcome outcome;
  outcome.last = std::move(chance.last());
  for (const auto& coin : chance.coins())
    outcome.decisions.push_back(
        decision(tree.depth(static_cast<std::int32_t>(coin.row)) - 1, coin.rate, is_end(coin.row)));
  return outcome;
}

// At each node of the path: a sibling is descended to by its coin, or, where all coins failed, because the token that
// was drawn there is its own.
template <class Rule>
OwnOutcome follow_siblings(NormalisedRows& rows, double factor, std::span<const std::int32_t> path, Rule rule) {
  const DraftTree& tree = rows.tree();
  const TargetView target{rows, factor};
  const ProposalView proposal{rows};
  OwnOutcome outcome;
  std::int32_t node = kRootNode;
  for (std::size_t depth = 0;; ++depth) {
    const std::vector<std::int32_t> nodes = tree.children(node);
    std::vector<Token> siblings;
    for (const std::int32_t child : nodes) siblings.push_back(tree.tokens[static_cast<std::size_t>(child)]);
    const std::uint32_t row = DraftTree::row_after(node);
    PrescribedCoins chance([](std::uint32_t) { return false; });
    rule(target.row(row), proposal, siblings, nodes, row, chance);
    std::vector<double> by_coin(nodes.size(), 0.0);
    double all_failed = 1.0;
    for (const auto& coin : chance.coins()) {
      const auto j = std::find(nodes.begin(), nodes.end(), static_cast<std::int32_t>(coin.row)) - nodes.begin();
      by_coin[static_cast<std::size_t>(j)] = all_failed * coin.rate;
      all_failed *= 1.0 - coin.rate;
    }
    Masses last = std::move(chance.last());
    const double total = total_of(last);
    const bool stops = depth == path.size();
    double left = 1.0;
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      double& drawn = last[static_cast<std::size_t>(siblings[j])];
      const double reached = by_coin[j] + (total > 0.0 ? all_failed * std::exchange(drawn, 0.0) / total : 0.0);
      const bool taken = !stops && path[depth] == nodes[j];
      outcome.decisions.push_back(
          decision(static_cast<std::int32_t>(depth), left > 0.0 ? std::min(1.0, reached / left) : 0.0, taken));
      left -= reached;
      if (taken) break;
    }
    if (stops) {
      outcome.last = std::move(last);
      return outcome;
    }
    node = path[depth];
  }
}

// Called by with_template with the verifier's rule.
struct FollowSiblings {
  NormalisedRows& rows;
  double factor;
  std::span<const std::int32_t> path;

  template <class Rule>
  OwnOutcome siblings(Rule rule) const {
    return follow_siblings(rows, factor, path,
                           [&](const Masses& p, const ProposalView& q, auto& tokens, auto& nodes, std::uint32_t row,
                               auto& chance) { rule(p, q.row(row), tokens, nodes, row, chance); });
  }
  template <class Step>
  OwnOutcome step(Step) const {
    throw Error(ErrorKind::internal, "own_outcome", "this verifier judges no siblings");
  }
};

OwnOutcome follow(const VerifierChoice& choice, NormalisedRows& rows, double factor, std::span<const std::int32_t> path,
                  bool greedy_target) {
  const auto by_target_alone = [&] {
    return follow_siblings(rows, factor, path,
                           [](const Masses& p, const ProposalView&, auto& tokens, auto& nodes, std::uint32_t row,
                              auto& chance) { accept_sibling_naive_sampling(p, p, tokens, nodes, row, chance); });
  };
  if (greedy_target) return by_target_alone();
  switch (choice.info().decisions) {
    case Decisions::last_passing:
      return follow_block(rows, factor, path);
    case Decisions::leaf_by_leaf:
      return follow_traversal(rows, factor, path);
    case Decisions::target_draw:
      return by_target_alone();
    case Decisions::coin_per_sibling:
      return with_template(choice, FollowSiblings{rows, factor, path});
    case Decisions::unknown:
    case Decisions::coin_per_draft:
      break;
  }
  throw Error(ErrorKind::internal, "own_outcome", "this verifier's decisions are not known");
}

// A rate this close to 0 or 1 is a sum's rounding.
double without_rounding(double rate) {
  return rate > 1.0 - 1e-9 ? 1.0 : rate < 1e-12 ? 0.0 : rate;
}

Doubt doubt_of(double rate, double low, double high, double tolerance) {
  if (rate == low && rate == high && (rate == 0.0 || rate == 1.0)) return Doubt::none;
  if (rate == 0.0 || rate == 1.0) return Doubt::too_close;
  // Where p and q nearly agree a small residual over a small weight may be anything.
  const double off = std::max(std::abs(low - rate), std::abs(high - rate));
  return off > 0.01 + 8.0 * tolerance ? Doubt::too_close : Doubt::open;
}

}  // namespace

bool has_own_decisions(const VerifierChoice& choice) {
  const Decisions decisions = choice.info().decisions;
  return decisions != Decisions::unknown && decisions != Decisions::coin_per_draft;
}

OwnOutcome own_outcome(const VerifierChoice& choice, StepRows& rows, std::span<const std::int32_t> path,
                       Token last_token, double tolerance) {
  NormalisedRows made(rows);
  const bool greedy_target = has_greedy_target(rows.request());
  OwnOutcome outcome = follow(choice, made, 1.0, path, greedy_target);
  const OwnOutcome low = follow(choice, made, 1.0 - tolerance, path, greedy_target);
  const OwnOutcome high = follow(choice, made, 1.0 + tolerance, path, greedy_target);
  for (std::size_t i = 0; i < outcome.decisions.size(); ++i) {
    Decision& decided = outcome.decisions[i];
    decided.rate = without_rounding(decided.rate);
    decided.doubt = doubt_of(decided.rate, without_rounding(low.decisions[i].rate),
                             without_rounding(high.decisions[i].rate), tolerance);
  }
  const auto has_mass = [&](const Masses& masses) { return masses[static_cast<std::size_t>(last_token)] > 0.0; };
  outcome.impossible_last = !has_mass(outcome.last) && !has_mass(low.last) && !has_mass(high.last);
  return outcome;
}

}  // namespace draftproof
