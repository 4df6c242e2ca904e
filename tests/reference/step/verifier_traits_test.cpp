// Traits of verifiers by what their rules do: each is found from steps with random rows and compared with the registry.
#include "reference/step/verify_step_of.hpp"
#include "reference/verify/recording_chance.hpp"
#include "tests/reference/step/drafted.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int32_t kVocab = 4;
constexpr std::uint64_t kRandomSteps = 400;

// A step whose row at the context is that of one pair of models, and whose other rows are those of another.
struct RandomStep {
  const VerifierInfo& info;
  DraftTree draft;
  std::uint64_t seed;
  StepWorkspace workspace{};
  std::vector<float> target{}, proposal{};

  Emission run(const ModelPair<double>& first, const ModelPair<double>& deeper, RecordingChance<>& chance) {
    target.clear();
    proposal.clear();
    for (std::int32_t node = kRootNode; node < draft.size(); ++node) {
      const ModelPair<double>& models = node == kRootNode ? first : deeper;
      for (const double p : models.target(draft.path(node))) target.push_back(static_cast<float>(p));
      for (const double q : models.draft(draft.path(node))) proposal.push_back(static_cast<float>(q));
    }
    VerifyRequest request;
    request.seed = seed;
    request.draft = draft;
    request.target_is_probabilities = true;
    request.target = matrix_of(target, request.rows(), kVocab);
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = matrix_of(proposal, request.rows(), kVocab);
    VerifyOptions options;
    options.verifier = info.verifier;
    // Over four tokens all pairs would be weighed: the optimum, which recovers no draft.
    if (info.verifier == Verifier::importance) options.verifier = parse_verifier("importance:weighed=0", "test");
    options.logprobs = false;
    return verify_step_by(request, options, chance, workspace);
  }
};

// Calls use(step, models, source) for steps of the verifier, their drafts drawn by `sampling`.
void for_each_step(const VerifierInfo& info, DraftSampling sampling,
                   const std::function<void(RandomStep&, const ModelPair<double>&, PhiloxSource&)>& use) {
  PhiloxSource source;
  for (std::uint64_t seed = 0; seed < kRandomSteps; ++seed) {
    const ModelPair<double> models(kVocab, seed, ModelKind::dense);
    AddressedChance<PhiloxSource> drawing(source, seed, 0);
    RandomStep step{info, drafted(models, sampling, info.draft == DraftForm::chain, {0.3, 0.2, 0.4, 0.1}, drawing),
                    seed};
    use(step, models, source);
  }
}

}  // namespace

TEST_CASE("the first token depends on rows behind later drafts where the verifier judges jointly, and nowhere else",
          "[release]") {
  for (const VerifierInfo& info : verifiers()) {
    int changed = 0;
    for_each_step(info, info.proposal, [&](RandomStep& step, const ModelPair<double>& models, PhiloxSource& source) {
      RecordingChance<> chance(source, step.seed, 0);
      RecordingChance<> same_chance(source, step.seed, 0);
      const ModelPair<double> other(kVocab, step.seed + kRandomSteps, ModelKind::dense);
      changed += step.run(models, models, chance).tokens[0] != step.run(models, other, same_chance).tokens[0];
    });
    INFO(info.name << ": " << changed);
    // Typical acceptance takes the longest path that passes, and judges each of its drafts by that draft's row alone.
    CHECK((changed > 0) == (info.joint || info.verifier == Verifier::typical));
  }
}

TEST_CASE("a token drawn behind failed coins is one that the trait of recovered tokens says") {
  for (const VerifierInfo& info : verifiers()) {
    if (info.joint) continue;  // the trait is of a node's own coins
    int draws = 0, of_drafts = 0, of_failed_drafts = 0;
    for_each_step(info, info.proposal, [&](RandomStep& step, const ModelPair<double>& models, PhiloxSource& source) {
      RecordingChance<> chance(source, step.seed, 0);
      step.run(models, models, chance);
      std::vector<std::int32_t> failed;  // nodes
      for (const RecordedDecision& decision : chance.decisions()) {
        if (decision.kind == RecordedDecision::Kind::accept && !decision.accepted)
          failed.push_back(static_cast<std::int32_t>(decision.row));
        if (decision.kind != RecordedDecision::Kind::draw) continue;
        const std::vector<std::int32_t> children = step.draft.children(static_cast<std::int32_t>(decision.row) - 1);
        const auto has_failed = [&](std::int32_t node) { return std::ranges::count(failed, node) > 0; };
        const bool is_of_target =
            decision.purpose == Purpose::target_sample && std::ranges::any_of(children, has_failed);
        if (decision.purpose != Purpose::residual && !is_of_target) continue;
        const auto may_be_drawn = [&](std::int32_t node) {
          const auto token = static_cast<std::size_t>(step.draft.tokens[static_cast<std::size_t>(node)]);
          return decision.masses[token] > 0.0;
        };
        ++draws;
        of_drafts += std::ranges::any_of(children, may_be_drawn);
        of_failed_drafts +=
            std::ranges::any_of(children, [&](std::int32_t node) { return may_be_drawn(node) && has_failed(node); });
      }
    });
    INFO(info.name << ": " << draws << " draws, " << of_drafts << " of drafts, " << of_failed_drafts << " failed");
    CHECK((draws > 20) == (info.coins != Coins::none));
    const Recovered found = of_failed_drafts > 0 ? Recovered::rejected
                            : of_drafts > 0      ? Recovered::sibling
                                                 : Recovered::undrafted;
    // Synthetic acceptance draws from the target whatever was drafted, and no trait says what its tokens mean.
    CHECK(name_of(found) == name_of(info.verifier == Verifier::synthetic ? Recovered::rejected : info.recovered));
  }
}

TEST_CASE("of siblings with one token a verifier takes the first alone where its trait says so") {
  for (const VerifierInfo& info : verifiers()) {
    INFO(info.name);
    // Only independent draws repeat a sibling.
    if (info.proposal != DraftSampling::independent) {
      CHECK_FALSE(info.takes_first_of_equals);
      continue;
    }
    int first = 0, later = 0;
    for_each_step(info, info.proposal, [&](RandomStep& step, const ModelPair<double>& models, PhiloxSource& source) {
      RecordingChance<> chance(source, step.seed, 0);
      const Emission emission = step.run(models, models, chance);
      const std::vector<std::int32_t> children = step.draft.children(kRootNode);
      const auto& tokens = step.draft.tokens;
      if (emission.path.empty() ||
          tokens[static_cast<std::size_t>(children[0])] != tokens[static_cast<std::size_t>(children[1])])
        return;
      (emission.path[0] == children[0] ? first : later) += 1;
    });
    INFO(first << " first, " << later << " later");
    CHECK(first > 20);
    CHECK((later == 0) == info.takes_first_of_equals);
  }
}
