// The output distribution of one step of every verifier on three tokens, its drafts drawn as the registry says.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "reference/step/verify_step.hpp"
#include "tests/reference/step/drafted.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/statistical.hpp"

using namespace draftproof;

namespace {

constexpr std::int32_t kVocabSize = 3;
constexpr std::size_t kLength = 3;  // of the texts that are counted: the longest emission
constexpr std::int64_t kTrials = 6000;

using Models = ModelPair<double>;
using Chance = AddressedChance<PhiloxSource>;

std::vector<double> text_distribution(const Models& models, const std::vector<Token>& text = {}, double p = 1.0) {
  if (text.size() == kLength) return {p};
  std::vector<double> all;
  for (Token token = 0; token < kVocabSize; ++token) {
    std::vector<Token> longer = text;
    longer.push_back(token);
    const double next = models.target(text)[static_cast<std::size_t>(token)];
    for (const double x : text_distribution(models, longer, p * next)) all.push_back(x);
  }
  return all;
}

// Does what one step emits, completed by draws from the target, have the target's distribution?
bool follows_target(const std::string& verifier, DraftSampling sampling, Sampler sampler, const Models& models,
                    std::uint64_t seed, int decisions) {
  VerifyOptions options;
  options.verifier = parse_verifier(verifier, "test");
  options.sampler = sampler;
  options.logprobs = false;
  const VerifierInfo& info = options.verifier.info();
  TestRandom random(seed);
  PhiloxSource source;
  StepWorkspace workspace;
  std::vector<std::int64_t> counts(27);
  std::vector<float> target;
  std::vector<float> proposal;
  for (std::int64_t trial = 0; trial < kTrials; ++trial) {
    VerifyRequest request;
    request.seed = derive_seed(seed, static_cast<std::uint64_t>(trial));
    Chance chance(source, request.seed, 0);
    request.draft = drafted(models, sampling, info.draft == DraftForm::chain, {0.25, 0.5, 0.25}, chance);
    target.clear();
    proposal.clear();
    for (std::int32_t node = kRootNode; node < request.draft.size(); ++node) {
      for (const double p : models.target(request.draft.path(node))) target.push_back(static_cast<float>(p));
      for (const double q : models.draft(request.draft.path(node))) proposal.push_back(static_cast<float>(q));
    }
    request.target_is_probabilities = true;
    request.target = matrix_of(target, request.rows(), kVocabSize);
    if (info.proposal != DraftSampling::any) {
      request.proposal_kind = ProposalKind::probabilities;
      request.proposal = matrix_of(proposal, request.rows(), kVocabSize);
    }
    if (trial == 0) validate(request, options.verifier, 0);
    std::vector<Token> text = verify_step(request, options, source, workspace).tokens;
    while (text.size() < kLength) text.push_back(static_cast<Token>(random.draw(models.target(text))));
    ++counts[static_cast<std::size_t>((text[0] * kVocabSize + text[1]) * kVocabSize + text[2])];
  }
  return follows(counts, text_distribution(models), decisions);
}

bool follows_target(const std::string& verifier, DraftSampling sampling, Sampler sampler, std::uint64_t seed,
                    int decisions) {
  return follows_target(verifier, sampling, sampler, Models(kVocabSize, seed, ModelKind::dense), seed, decisions);
}

// A pair that is far apart: half of p's rest lies where q has little.
const Models kSkewed({0.4, 0.3, 0.3}, {0.8, 0.1, 0.1});

}  // namespace

TEST_CASE("one step of every lossless verifier has the distribution of the target") {
  const auto decisions = static_cast<int>(2 * std::ranges::count_if(verifiers(), &VerifierInfo::lossless));
  std::uint64_t seed = 7500;
  int made = 0;
  for (const VerifierInfo& info : verifiers()) {
    if (!info.lossless) continue;
    for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
      CAPTURE(std::string(info.name), static_cast<int>(sampler));
      CHECK(follows_target(std::string(info.name), info.proposal, sampler, ++seed, decisions));
      ++made;
    }
  }
  CHECK(made == decisions);
}

TEST_CASE("one step of a lossy verifier has another distribution, but for the parameters that make it exact") {
  constexpr int kDecisions = 3;
  constexpr Sampler kSampler = Sampler::inverse;
  for (const char* const lossy : {"typical:epsilon=0,delta=0", "thresholds:acc=0.3", "synthetic:rate=1"}) {
    CAPTURE(std::string(lossy));
    CHECK_FALSE(follows_target(lossy, DraftSampling::any, kSampler, 7601, kDecisions));
  }
  CHECK_FALSE(follows_target("top_k_resample:k=1", DraftSampling::drawn, kSampler, kSkewed, 7602, kDecisions));
  CHECK(follows_target("thresholds:acc=1,single=1", DraftSampling::any, kSampler, 7603, kDecisions));
  CHECK(follows_target("synthetic:rate=0", DraftSampling::any, kSampler, 7604, kDecisions));
  CHECK(follows_target("top_k_resample:k=3", DraftSampling::drawn, kSampler, 7605, kDecisions));
}

TEST_CASE("drafts that are drawn otherwise than a verifier assumes change its distribution") {
  // So that the first test could have failed, and the registry's column says something.
  constexpr Sampler kSampler = Sampler::inverse;
  for (const char* const verifier : {"chain", "block"}) {
    CAPTURE(std::string(verifier));
    CHECK_FALSE(follows_target(verifier, DraftSampling::any, kSampler, 7701, 1));
  }
  CHECK_FALSE(follows_target("rrs", DraftSampling::greedy, kSampler, kSkewed, 7702, 1));
  CHECK_FALSE(follows_target("k_seq", DraftSampling::greedy, kSampler, 7703, 1));
  CHECK_FALSE(follows_target("rrsw", DraftSampling::greedy, kSampler, 7704, 1));
  CHECK_FALSE(follows_target("greedy_draft", DraftSampling::independent, kSampler, 7705, 1));
  CHECK_FALSE(follows_target("traversal", DraftSampling::greedy, kSampler, 7706, 1));
}
