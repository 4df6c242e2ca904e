// B37: block verification by the token-wise rule. B80: its residual lacks the weight of the path.
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "exactness/audit/audit.hpp"
#include "exactness/bugs/algorithm/family.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "exactness/bugs/one_draft.hpp"
#include "exactness/proof/acceptance_oracles.hpp"
#include "exactness/proof/steps.hpp"
#include "reference/random/philox.hpp"
#include "reference/verify/block.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {
namespace {

// The last draft whose own coin passes decides, as in block verification; but the coins are min(1, p/q) of each token,
// and the residual is that of the row alone.
ChainOutcome verify_block_tokenwise(std::span<const Token> draft, ExactRows& target, ExactRows& proposal,
                                    ExactChance& chance) {
  const auto draft_len = static_cast<std::uint32_t>(draft.size());
  std::uint32_t num_accepted = 0;
  for (std::uint32_t row = 0; row < draft_len; ++row)
    if (chance.accept(target.probability(row, draft[row]), proposal.probability(row, draft[row]), row))
      num_accepted = row + 1;
  if (num_accepted == draft_len)
    return {draft_len, chance.draw(target.masses(draft_len), draft_len, Purpose::target_sample)};
  return {num_accepted, chance.draw(residual_masses(target, proposal, num_accepted), num_accepted, Purpose::residual)};
}

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

constexpr EnumerationHunt kHunt{.draft_len = 2};

EnumeratedStep block_step(bool faulty, EnumeratedVerify faulty_verify) {
  return proof_steps::chain_step(faulty ? std::move(faulty_verify)
                                        : EnumeratedVerify(verify_block<ExactRows, ExactRows, ExactChance>));
}
Hunt block_hunt(const EnumeratedVerify& faulty_verify) {
  return {Detector::enumeration,
          [faulty_verify](bool faulty) { return find_wrong_distribution(kHunt, block_step(faulty, faulty_verify)); }};
}

// A: the mean number of accepted drafts, exactly, against the recursion of the paper, which knows no verifier.
Finding find_wrong_acceptance_of_block(bool faulty) {
  return find_wrong_mean_accepted(kHunt, block_step(faulty, verify_block_tokenwise), block_recursion);
}

// The first token of two drafts from distributions that do not depend on the context: it stands when either coin
// passes.
LargeSampler first_token_of_two(const FixedRowsPointer& rows) {
  return {rows->target.masses(), [rows](std::uint64_t draw) {
            const std::uint64_t seed = derive_seed(0, draw);
            const PhiloxSource source;
            const auto drafted = [&](std::uint32_t row) {
              return rows->proposal.draw(source.block(seed, {0, row, 0, Purpose::draft_sample}));
            };
            const auto passes = [&](Token token, std::uint32_t row) {
              return sound_coin(rows->target.mass(token), rows->proposal.mass(token),
                                source.block(seed, {0, row, 0, Purpose::accept}));
            };
            const Token first = drafted(0);
            if (passes(first, 0) || passes(drafted(1), 1)) return first;
            return rows->residual.draw(source.block(seed, {0, 0, 0, Purpose::residual}));
          }};
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

std::vector<Bug> block_bugs() {
  return {{.id = "B37",
           .source = "vllm-ascend #7807",
           .fault = "block verification tosses the token-wise coins min(1, p/q) and draws from the residual max(p - q, "
                    "0) without the weight of the path",
           .hunts = {block_hunt(verify_block_tokenwise), {Detector::acceptance, find_wrong_acceptance_of_block}},
           .rows_sampler = first_token_of_two},
          {.id = "B80",
           .source = "a test of this project's own audit",
           .fault = "block verification draws the recovered token from max(p - q, 0) without the weight of the path: "
                    "strings of three tokens are off, shorter ones hardly",
           .hunts = {block_hunt(verify_block_unscaled<Rational, ExactChance>),
                     {Detector::output, [](bool faulty) { return find_by_audit(faulty, std::nullopt, 64'000); }},
                     {Detector::output, [](bool faulty) { return find_by_audit(faulty, Verifier::block, 8'000); }}}}};
}

}  // namespace draftproof
