#include "sim/acceptance/verifier_rates.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/error.hpp"
#include "engine/draft/planned_tree.hpp"
#include "reference/numerics/natural_sin_cos.hpp"
#include "reference/step/draft_plan.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {
namespace {

using Row = DenseMasses<double>;
using Chance = AddressedChance<PhiloxSource>;

// The seed of the pairs and coins of a sample, apart from those of requests.
std::uint64_t seed_of_sample(std::uint64_t seed, std::int32_t sample) {
  return derive_seed(~seed, static_cast<std::uint64_t>(sample));
}

RowMatrix matrix_of(const std::vector<float>& values, std::int64_t vocab_size) {
  return {DType::f32, values.data(), static_cast<std::int64_t>(values.size()) / vocab_size, vocab_size, vocab_size};
}

// Runs the verifier on drafts of one plan.
class Trials {
 public:
  Trials(const VerifierRatesOptions& options, const DraftPlan& plan, std::uint64_t seed)
      : options_(options), plan_(plan), seed_(seed) {
    verify_.verifier = options.verifier;
    verify_.logprobs = verify_.raw_logprobs = false;
    const Row target = synthetic_row({options.pairs.vocab_size, options.pairs.zipf, 0.0}, 0, 0);
    target_row_.assign(target.begin(), target.end());
  }

  // One sample: throws what the verifier has against the draft.
  void check() { accepted_of(0); }
  // survival [depth]
  std::vector<double> run() {
    const auto depth = static_cast<std::size_t>(plan_.draft_len_max());
    std::vector<std::int64_t> counts(depth);
    for (std::int32_t sample = 0; sample < options_.samples; ++sample) {
      const std::uint32_t accepted = accepted_of(sample);
      for (std::size_t i = 0; i < std::min<std::size_t>(accepted, depth); ++i) ++counts[i];
    }
    std::vector<double> survival;
    for (const std::int64_t count : counts)
      survival.push_back(static_cast<double>(count) / static_cast<double>(options_.samples));
    return survival;
  }

 private:
  std::uint32_t accepted_of(std::int32_t sample) {
    const std::uint64_t seed = seed_of_sample(seed_, sample);
    Chance chance(source_, seed, 0);
    rows_.clear();
    const auto row_after = [&](std::span<const Token> path) -> const Row& {
      const auto [found, is_new] = rows_.try_emplace(std::vector<Token>(path.begin(), path.end()));
      if (is_new) found->second = synthetic_row(options_.pairs, seed, static_cast<std::uint32_t>(rows_.size()));
      return found->second;
    };
    VerifyRequest request;
    request.draft = draw_planned_tree(plan_, row_after, chance);
    const auto vocab_size = static_cast<std::int64_t>(options_.pairs.vocab_size);
    const std::int32_t proposal_rows = request.draft.size() + (request.draft.is_chain() ? 0 : 1);
    target_.clear();
    proposal_.clear();
    for (std::int32_t row = 0; row <= request.draft.size(); ++row)
      target_.insert(target_.end(), target_row_.begin(), target_row_.end());
    for (std::int32_t row = 0; row < proposal_rows; ++row)
      for (const double q : row_after(request.draft.path(row - 1))) proposal_.push_back(static_cast<float>(q));
    request.target_is_probabilities = true;
    request.target = matrix_of(target_, vocab_size);
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = matrix_of(proposal_, vocab_size);
    request.seed = seed;
    if (sample == 0) validate(request, options_.verifier, 0);
    return verify_step(request, verify_, source_, workspace_).num_accepted;
  }

  const VerifierRatesOptions& options_;
  const DraftPlan& plan_;
  std::uint64_t seed_;
  VerifyOptions verify_;
  PhiloxSource source_;
  StepWorkspace workspace_;
  std::map<std::vector<Token>, Row> rows_;  // of this sample, by path
  std::vector<float> target_row_, target_, proposal_;
};

}  // namespace

std::vector<double> synthetic_row(const SyntheticPairs& pairs, std::uint64_t seed, std::uint32_t row) {
  std::vector<double> masses(static_cast<std::size_t>(pairs.vocab_size));
  for (std::size_t i = 0; i < masses.size(); ++i) masses[i] = -pairs.zipf * std::log(static_cast<double>(i + 1));
  for (std::size_t i = 0; i < masses.size() && pairs.noise > 0.0; i += 2) {  // Box and Muller
    const RandomBlock block =
        philox_block(seed, static_cast<std::uint32_t>(i), row, 0, static_cast<std::uint32_t>(Purpose::simulator));
    const double radius = pairs.noise * std::sqrt(-2.0 * std::log1p(-uniform_53(high_half(block))));
    const SinCos direction = natural_sin_cos(2.0 * std::numbers::pi * uniform_53(low_half(block)));
    masses[i] += radius * direction.cos;
    if (i + 1 < masses.size()) masses[i + 1] += radius * direction.sin;
  }
  double total = 0.0;
  for (double& mass : masses) total += mass = std::exp(mass);
  for (double& mass : masses) mass /= total;
  return masses;
}

VerifierRates::VerifierRates(const VerifierRatesOptions& options, std::uint64_t seed, const std::string& where)
    : options_(options), where_(where), seed_(seed) {
  for (std::int32_t drafts = 0; drafts <= options.drafts_max; ++drafts)
    add(plan_for(options.verifier, std::nullopt, drafts, where));
  if (options.tree) add(plan_for(options.verifier, options.tree, 0, where));
}

void VerifierRates::add(const DraftPlan& plan) {
  Trials(options_, plan, seed_).check();
  tables_.emplace_back(plan);
}

const VerifierRates::Tabulated& VerifierRates::tabulated(std::int32_t nodes, std::int32_t depth) const {
  const auto is_of = [&](std::size_t i) {
    return i < tables_.size() && tables_[i].nodes == nodes && tables_[i].depth == depth;
  };
  const auto chain = static_cast<std::size_t>(depth);
  const std::size_t last = tables_.size() - 1;
  if (!is_of(chain) && !is_of(last))
    throw usage_error(where_, "the verifier is not tried on a draft of " + std::to_string(nodes) + " nodes and " +
                                  std::to_string(depth) +
                                  " levels; expected a chain within `drafts`, or the shape of `tree`");
  Tabulated& found = tables_[is_of(chain) ? chain : last];
  std::call_once(found.once, [&] {
    found.survival = Trials(options_, found.plan, seed_).run();
    found.table = SurvivalTable<10>(found.survival);
  });
  return found;
}

std::int32_t VerifierRates::accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                                     std::int32_t depth) const {
  const Tabulated& of_draft = tabulated(nodes, depth);
  return of_draft.table.accepted(acceptance_block(state.seed, AcceptanceWords::step, place.output_len).word[0]);
}

std::vector<double> VerifierRates::survival(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  return tabulated(nodes, depth).survival;
}

}  // namespace draftproof
