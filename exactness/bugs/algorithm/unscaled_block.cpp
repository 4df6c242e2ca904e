// B80: block verification whose residual lacks the weight of the path.
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exactness/audit/audit.hpp"
#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/proof/steps.hpp"
#include "reference/random/philox.hpp"
#include "reference/verify/block.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

// The tests of block verification, with this fault.
template <class Number, class Chance>
ChainOutcome verify_block_unscaled(std::span<const Token> draft, DenseRows<Number>& target, DenseRows<Number>& proposal,
                                   Chance& chance) {
  // The sound run's coins; what it draws is not looked at.
  struct Coins {
    Chance& chance;
    bool accept(const Number& p, const Number& q, std::uint32_t row) { return chance.accept(p, q, row); }
    Token draw(const DenseMasses<Number>&, std::uint32_t, Purpose) { return kPaddingToken; }
  } coins{chance};
  const std::uint32_t accepted = verify_block(draft, target, proposal, coins).num_accepted;
  if (accepted == draft.size())
    return {accepted, chance.draw(target.masses(accepted), accepted, Purpose::target_sample)};
  return {accepted, chance.draw(residual_masses(target, proposal, accepted), accepted, Purpose::residual)};
}

constexpr EnumerationHunt kUnscaledHunt{.draft_len = 2};

EnumeratedStep unscaled_block_step(bool faulty) {
  return proof_steps::chain_step(
      [faulty](std::span<const Token> draft, ExactRows& target, ExactRows& proposal, ExactChance& chance) {
        return faulty ? verify_block_unscaled(draft, target, proposal, chance)
                      : verify_block(draft, target, proposal, chance);
      });
}

// Steps of K = 3 over rows that depend on the position alone, as an audit is given them.
struct AuditedRows {
  static constexpr std::int64_t kVocab = 4;
  std::array<float, 16> target{0.3f, 0.5f, 0.1f, 0.1f, 0.5f, 0.3f, 0.15f, 0.05f,
                               0.4f, 0.3f, 0.2f, 0.1f, 0.1f, 0.2f, 0.3f,  0.4f};
  std::array<float, 12> draft{0.5f, 0.3f, 0.1f, 0.1f, 0.2f, 0.2f, 0.3f, 0.3f, 0.3f, 0.2f, 0.2f, 0.3f};
};

StepSample steps_of_block(bool faulty, std::int64_t steps) {
  const auto stored = std::make_shared<const AuditedRows>();
  StepSample sample;
  sample.begins = {0};
  DenseRows<double> target, proposal;
  for (std::size_t row = 0; row < 4; ++row) {
    const auto cut = [&](const auto& all) {
      return DenseMasses<double>(all.begin() + static_cast<std::ptrdiff_t>(4 * row),
                                 all.begin() + static_cast<std::ptrdiff_t>(4 * row + 4));
    };
    target.rows.push_back(normalised(cut(stored->target)));
    if (row < 3) proposal.rows.push_back(normalised(cut(stored->draft)));
  }
  PhiloxSource source;
  for (std::int64_t b = 0; b < steps; ++b) {
    VerifyRequest request;
    request.target_is_probabilities = true;
    request.target = {DType::f32, stored->target.data(), 4, AuditedRows::kVocab, AuditedRows::kVocab};
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = {DType::f32, stored->draft.data(), 3, AuditedRows::kVocab, AuditedRows::kVocab};
    AddressedChance<PhiloxSource> chance(source, derive_seed(80, static_cast<std::uint64_t>(b)), 0);
    for (std::uint32_t row = 0; row < 3; ++row)
      request.draft.add(chance.draw(proposal.rows[row], row, Purpose::draft_sample),
                        static_cast<std::int32_t>(row) - 1);
    const std::span<const Token> draft(request.draft.tokens);
    const ChainOutcome outcome =
        faulty ? verify_block_unscaled(draft, target, proposal, chance) : verify_block(draft, target, proposal, chance);
    for (std::uint32_t i = 0; i < outcome.num_accepted; ++i) sample.tokens.push_back(draft[i]);
    sample.tokens.push_back(outcome.last_token);
    sample.begins.push_back(sample.tokens.size());
    sample.requests.push_back(std::move(request));
  }
  sample.keeps = stored;
  return sample;
}

// O: what was emitted, as of a lossless verifier of which nothing is known, or as of block verification.
Finding find_by_audit(bool faulty, const AssumedVerifier& verifier, std::int64_t steps) {
  AuditOptions options;
  options.alpha = 1e-9;
  options.verifier = verifier;
  const Audit audit = audit_steps(steps_of_block(faulty, steps), options);
  Finding finding{audit.verdict == AuditVerdict::biased, audit.observations, "steps", {}};
  if (finding.caught) finding.evidence = audit.sentence;
  return finding;
}

}  // namespace

Bug unscaled_block_bug() {
  return {"B80",
          "a test of this project's own audit",
          "block verification draws the recovered token from max(p - q, 0) without the weight of the path: strings of "
          "three tokens are off, shorter ones hardly",
          {{Detector::enumeration,
            [](bool faulty) { return find_wrong_distribution(kUnscaledHunt, unscaled_block_step(faulty)); }},
           {Detector::output, [](bool faulty) { return find_by_audit(faulty, std::nullopt, 64'000); }},
           {Detector::output, [](bool faulty) { return find_by_audit(faulty, Verifier::block, 8'000); }}},
          {},
          "the first token has the target's distribution"};
}

}  // namespace draftproof
