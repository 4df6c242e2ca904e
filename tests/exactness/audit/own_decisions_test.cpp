// Tests of what one verifier alone does: its decisions and what it draws from, against full enumeration of the
// templates; faults that no string shows; whose steps they are.
#include "exactness/audit/own_decisions.hpp"

#include "exactness/audit/audit.hpp"
#include "exactness/audit/fitting.hpp"
#include "exactness/proof/steps.hpp"
#include "exactness/statistics/kolmogorov_smirnov.hpp"
#include "tests/exactness/audit/found_tests.hpp"
#include "tests/exactness/audit/tree_samples.hpp"
#include "tests/support/statistical.hpp"
#include "tests/support/test.hpp"

namespace {

using Chance = EnumeratingChance<double>;
using Outcome = std::pair<std::vector<std::int32_t>, Token>;

TreeOutcome run(Verifier verifier, const DraftTree& tree, TreeRows& p, TreeRows& q, Chance& chance) {
  const auto walk = [&](auto rule) { return verify_tree(tree, p, q, rule, chance); };
  switch (verifier) {
    case Verifier::block:
      return as_tree(verify_block(std::span<const Token>(tree.tokens), p, q, chance));
    case Verifier::sampler_match:
      return as_tree(verify_sampler_match(std::span<const Token>(tree.tokens), p, chance));
    case Verifier::traversal:
      return verify_traversal(tree, p, q, chance);
    case Verifier::rrs:
      return walk(proof_steps::rrs);
    case Verifier::rrsw:
      return walk(proof_steps::rrsw);
    case Verifier::k_seq:
      return walk(proof_steps::k_seq);
    case Verifier::greedy_draft:
      return walk(proof_steps::greedy_draft);
    default:
      return walk(proof_steps::naive);
  }
}

TreeRows rows_of(const RowMatrix& matrix) {
  TreeRows rows;
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    auto& row = rows.rows.emplace_back();
    for (std::int64_t i = 0; i < matrix.vocab_size; ++i)
      row.push_back(static_cast<double>(element_of(matrix.row(r), i)));
    row = normalised(std::move(row));
  }
  return rows;
}

AuditOptions assuming(const std::string& verifier, int decisions = 1) {
  AuditOptions options;
  options.alpha = suite_level(decisions);
  options.verifier = parse_assumed_verifier(verifier, "test");
  return options;
}

bool has_repeats(const DraftTree& tree) {
  for (std::int32_t i = 0; i < tree.size(); ++i)
    for (std::int32_t j = 0; j < i; ++j)
      if (tree.parents[static_cast<std::size_t>(i)] == tree.parents[static_cast<std::size_t>(j)] &&
          tree.tokens[static_cast<std::size_t>(i)] == tree.tokens[static_cast<std::size_t>(j)])
        return true;
  return false;
}

TEST_CASE("decisions and the last token's distribution multiply to what enumeration gives, for every outcome") {
  int known = 0;
  for (const VerifierInfo& info : verifiers()) {
    if (!has_own_decisions(info.verifier)) continue;
    ++known;
    const StepSample sample = steps_of(std::string(info.name), {.steps = 12, .contexts = 0}, 51);
    for (std::size_t b = 0; b < sample.requests.size(); ++b) {
      const VerifyRequest& request = sample.requests[b];
      if (has_repeats(request.draft) && info.verifier != Verifier::rrs) continue;
      TreeRows target = rows_of(request.target);
      TreeRows proposal = rows_of(request.proposal);
      std::map<Outcome, double> enumerated;
      Chance chance;
      do {
        const TreeOutcome outcome = run(info.verifier, request.draft, target, proposal, chance);
        enumerated[{outcome.path, outcome.last_token}] += chance.probability();
      } while (chance.next());
      double sum = 0.0;
      for (const auto& [outcome, probability] : enumerated) {
        StepWorkspace workspace;
        StepRows rows(request, {.logprobs = false}, workspace);
        const OwnOutcome own = own_outcome(info.verifier, rows, outcome.first, outcome.second, 1e-5);
        double product = own.last[static_cast<std::size_t>(outcome.second)] / total_of(own.last);
        for (const Decision& decision : own.decisions) product *= decision.accepted ? decision.rate : 1 - decision.rate;
        INFO(info.name << ", request " << b << ", " << outcome.first.size() << " accepted, token " << outcome.second);
        CHECK(product == Approx(probability).margin(1e-9));
        CHECK_FALSE(own.impossible_last);
        sum += product;
        if (own.num_accepted.empty()) continue;
        double of_length = 0.0;
        for (const auto& [other, other_probability] : enumerated)
          if (other.first.size() == outcome.first.size()) of_length += other_probability;
        CHECK(own.num_accepted[outcome.first.size()] == Approx(of_length).margin(1e-9));
      }
      CHECK(sum == Approx(1.0));
    }
  }
  CHECK(known == 9);
}

TEST_CASE("p values of decisions and of recovered tokens are uniform for right verifiers") {
  const std::int64_t kRepetitions = kSanitized ? 3 : 24;
  std::vector<double> p_values;
  for (const VerifierInfo& info : verifiers()) {
    if (!has_own_decisions(info.verifier)) continue;
    for (std::int64_t repetition = 0; repetition < kRepetitions; ++repetition) {
      const std::uint64_t seed = 1000 + static_cast<std::uint64_t>(repetition);
      const StepSample sample = steps_of(std::string(info.name), {.steps = 800, .contexts = 0}, seed);
      for (const TestResult& test : audit_steps(sample, assuming(std::string(info.name))).tests) {
        if (test.null_distribution == NullDistribution::certainty) {
          INFO(info.name << ": " << test.name);
          CHECK(test.statistic == 0.0);
        } else if (test.name.starts_with("acceptance") || test.name.starts_with("recovered") ||
                   test.name == "num_accepted") {
          p_values.push_back(test.p_value);
        }
      }
    }
  }
  CHECK(std::ssize(p_values) > 20 * kRepetitions);
  CHECK(kolmogorov_p_value(std::ssize(p_values), uniform_distance(p_values)) > suite_level());
}

TEST_CASE("B80 is found where no two steps share a context, by its recovered tokens") {
  for (const std::int64_t contexts : {1, 0}) {
    const StepSample sample = steps_of("block", {.steps = 6000, .contexts = contexts}, 52, unscaled_block);
    const Audit audit = audit_steps(sample, assuming("block", 4));
    INFO(audit.sentence);
    CHECK(audit.verdict == AuditVerdict::biased);
    CHECK(test_of(audit, "recovered_support").rejects);
    CHECK_FALSE(test_of(audit, "acceptance_by_position").rejects);
  }
}

TEST_CASE("decisions by another weight of the path are found") {
  // Coins of the token chain, all of them thrown, and the scaled residual: B37's acceptance alone.
  const TreeEngine engine = [](const DraftTree& tree, TreeRows& p, TreeRows& q, TreeChance& chance) {
    std::uint32_t accepted = 0;
    double weight = 1.0, accepted_weight = 1.0;
    for (std::uint32_t row = 0; row < tree.tokens.size(); ++row) {
      const double p_x = p.probability(row, tree.tokens[row]), q_x = q.probability(row, tree.tokens[row]);
      weight = block_weight(weight, p_x, q_x);
      if (!chance.accept(p_x, q_x, row)) continue;
      accepted = row + 1;
      accepted_weight = weight;
    }
    TreeOutcome outcome = as_tree({accepted, 0});
    auto last = accepted == tree.tokens.size()
                    ? p.row(accepted)
                    : positive_difference(scaled(p.row(accepted), accepted_weight), q.row(accepted));
    if (!(total_of(last) > 0)) last = p.row(accepted);
    outcome.last_token = chance.draw(last, accepted, Purpose::residual);
    return outcome;
  };
  const Audit audit = audit_steps(steps_of("block", {.contexts = 0}, 53, engine), assuming("block"));
  CHECK(test_of(audit, "acceptance_by_position").rejects);
  CHECK(test_of(audit, "num_accepted").rejects);
  CHECK_FALSE(test_of(audit, "draft_ks").rejects);
}

TEST_CASE("an audit under the wrong verifier names the right one, and a faulty engine's names none") {
  const auto hint = [](const std::string& emitted_by, const std::string& audited_as, const TreeEngine& engine = {}) {
    const StepSample sample = steps_of(emitted_by, {.steps = 5000}, 54, engine);
    const AuditOptions options = assuming(audited_as, 40);
    Audit audit = audit_steps(sample, options);
    note_fitting_verifiers(audit, sample, options);
    UNSCOPED_INFO(audit.sentence);
    CHECK((audit.sentence.find("was it that one?") != std::string::npos) == !audit.fits.empty());
    return audit.fits;
  };
  using Names = std::vector<std::string>;
  CHECK(hint("block", "chain") == Names{"block", "traversal"});
  if (kSanitized) return;  // one call runs the code of all
  CHECK(hint("chain", "block") == Names{"chain", "rrs", "rrsw", "k_seq", "greedy_draft"});
  CHECK(hint("sampler_match", "chain") == Names{"sampler_match", "naive", "target_only"});
  CHECK(hint("rrsw", "traversal") == Names{"rrsw"});
  CHECK(hint("traversal", "rrsw") == Names{"traversal"});
  CHECK(hint("chain", "chain").empty());  // nothing is accused
  CHECK(hint("block", "block", unscaled_block).empty());
  CHECK(hint("block", "chain", unscaled_block).empty());
}

}  // namespace
