// A step replayed with recorded numbers: with our own it emits what addressed randomness emitted; what it needs is
// asked for by name; and an engine that departs from its numbers is caught at the decision where it does.
#include "reference/step/replay.hpp"

#include "reference/step/replayable.hpp"
#include "reference/step/verify_step_of.hpp"
#include "reference/verify/emitted_path.hpp"
#include "reference/verify/recording_chance.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

namespace {

// The numbers of one step, and what they belong to.
struct OwnedRecording {
  std::vector<double> uniforms, draw_uniforms, noise;
  RecordedRandomness recorded;
};

bool throws_coins_for_rows(Verifier verifier) {
  return verifier == Verifier::target_only || verifier == Verifier::thresholds;
}

OwnedRequest replayed_request(const VerifierInfo& info, TestRandom& random) {
  const bool chain = info.draft == DraftForm::chain;
  OwnedRequest o = chain ? random_request(random, 7, 5) : random_tree_request(random, 7, 7);
  VerifyRequest& r = o.request;
  if (r.proposal_kind == ProposalKind::one_hot && !r.draft.is_chain() && info.proposal != DraftSampling::any)
    r.draft = DraftTree::chain(o.draft);
  return o;
}

// Recording of what our own verifier drew at its addresses.
OwnedRecording record(const VerifyRequest& request, const VerifyOptions& options, Emission& emission) {
  StepWorkspace workspace;
  PhiloxSource source;
  RecordingChance<PhiloxSource> chance(source, request.seed, request.step);
  emission = verify_step_by(request, options, chance, workspace);
  const bool by_rows = throws_coins_for_rows(options.verifier.verifier);
  OwnedRecording own;
  own.uniforms.assign(request.draft.tokens.size() + (by_rows ? 1 : 0), 0.5);
  own.draw_uniforms.assign(request.rows(), 0.5);
  for (const RecordedDecision& decision : chance.decisions()) {
    const bool coin = decision.kind == RecordedDecision::Kind::accept || decision.purpose == Purpose::sibling_coin;
    if (decision.kind != RecordedDecision::Kind::race)
      (coin ? own.uniforms : own.draw_uniforms).at(decision.row) = decision.u;
  }
  if (options.verifier.verifier == Verifier::coupled) {
    for (std::uint32_t row = 0; row < request.rows(); ++row)
      for (Token t = 0; t < request.target.vocab_size; ++t) {
        const auto token = static_cast<std::uint32_t>(t);
        const Address address{token / 4, request.position_or_default() + row, 0, Purpose::gumbel_noise};
        own.noise.push_back(gumbel_noise(source.block(request.seed, address).word[token % 4]));
      }
    own.recorded.noise = RecordedNumbers{{}, own.noise};
    own.recorded.noise_kind = NoiseKind::gumbel;
  } else {
    own.recorded.draw_uniforms = RecordedNumbers{{}, own.draw_uniforms};
    const DraftSampling proposal = options.verifier.info().proposal;
    const bool no_coins =
        proposal == DraftSampling::any && !by_rows && options.verifier.verifier != Verifier::synthetic;
    if (!no_coins) own.recorded.uniforms = RecordedNumbers{{}, own.uniforms};
  }
  return own;
}

// A chain of two drafts over three tokens, as probabilities.
struct SmallStep {
  std::vector<float> target{0.5f, 0.25f, 0.25f, 0.125f, 0.375f, 0.5f, 0.25f, 0.5f, 0.25f};
  std::vector<float> proposal{0.25f, 0.5f, 0.25f, 0.25f, 0.5f, 0.25f};
  std::vector<double> uniforms{0.25, 0.75};
  std::vector<double> draw_uniforms{0.5, 0.5, 0.5};
  std::vector<Token> recovered{0, 2};
  VerifyRequest request;

  SmallStep() {
    request.draft = DraftTree::chain(std::vector<Token>{1, 1});
    request.target_is_probabilities = true;
    request.target = matrix_of(target, 3, 3);
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = matrix_of(proposal, 2, 3);
    request.recorded.uniforms = RecordedNumbers{{}, uniforms};
    request.recorded.recovered_tokens = recovered;
    request.recorded.bonus_token = 1;
  }
};

template <class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.kind() != ErrorKind::internal);
    return error.what();
  }
  return "no error";
}

void check_refused(const VerifyRequest& request, const char* verifier, const std::string& words) {
  CHECK_THAT(message_of([&] {
               validate_recorded_numbers(request, "request 0");
               require_replayable(request, parse_verifier(verifier, "test"), "request 0");
             }),
             Contains(words));
}

}  // namespace

TEST_CASE(
    "every verifier that can be replayed emits with our own recorded numbers what it emitted with our addresses") {
  TestRandom random(61);
  StepWorkspace workspace;
  int replayed = 0;
  for (const VerifierInfo& info : verifiers()) {
    const VerifierChoice verifier(info.verifier);
    if (!info.is_replayable()) continue;
    ++replayed;
    int accepted = 0;
    int rejected = 0;
    for (int i = 0; i < 150; ++i) {
      OwnedRequest o = replayed_request(info, random);
      VerifyOptions options;
      options.verifier = verifier;
      options.logprobs = false;
      Emission emission;
      const OwnedRecording own = record(o.request, options, emission);
      o.request.recorded = own.recorded;
      CAPTURE(std::string(info.name), i);
      REQUIRE_NOTHROW(require_replayable(o.request, verifier, "request 0"));
      const Emission again = replay_step(o.request, options, workspace);
      REQUIRE(again.tokens == emission.tokens);
      REQUIRE(again.path == emission.path);
      REQUIRE_FALSE(find_departure(o.request, options, emission.tokens, emission.path, workspace).has_value());
      accepted += static_cast<int>(emission.num_accepted);
      rejected += emission.num_accepted < static_cast<std::uint32_t>(o.request.draft.depth_max()) ? 1 : 0;

      // Another last token is no token of these numbers, and the decision is named.
      std::vector<Token> other = emission.tokens;
      other.back() = (other.back() + 1) % 7;
      if (find_emitted_path(o.request.draft, other).nodes.size() == other.size())
        continue;  // then a draft was accepted
      const auto departure = find_departure(o.request, options, other, emission.path, workspace);
      REQUIRE(departure.has_value());
      if (!departure->is_coin && !departure->is_sibling) CHECK(departure->theirs == other.back());
      CHECK(departure->distance >= 0.0);
    }
    CHECK(accepted > 20);
    CHECK(rejected > 20);
  }
  CHECK(replayed == 21);
}

TEST_CASE("an engine that departs from its own numbers is caught at the decision, with p, q and u") {
  SmallStep small;
  StepWorkspace workspace;
  const VerifyOptions options{.convention = Convention::vllm_v1};
  // 0.25 of 0.5 is below 0.25 / 0.5: the draft stands; 0.75 of 0.5 is 0.375, a tie that vLLM's rule accepts.
  CHECK(replay_step(small.request, options, workspace).tokens == std::vector<Token>{1, 1, 1});
  const std::vector<Token> rejected{1, 2};
  const std::vector<std::int32_t> path{0};
  const auto departure = find_departure(small.request, options, rejected, path, workspace);
  REQUIRE(departure.has_value());
  CHECK(departure->is_coin);
  CHECK(departure->position == 1);
  CHECK(departure->distance == 0.0);
  CHECK_THAT(departure->sentence(),
             Contains("draft 1 at position 1 has p = 0.375, q = 0.5, u = 0.75: it is accepted, and the engine "
                      "rejected it; they are 0 apart, which rounding may explain"));
  // Our strict rule rejects the tie, and 2 is the token that was recorded for it.
  CHECK(replay_step(small.request, {}, workspace).tokens == rejected);
  CHECK_FALSE(find_departure(small.request, {}, rejected, path, workspace).has_value());
  const auto token = find_departure(small.request, {}, std::vector<Token>{1, 0}, path, workspace);
  REQUIRE(token.has_value());
  CHECK_THAT(token->sentence(), Contains("at position 1 comes token 2, and the engine has token 0"));

  small.recovered[1] = 1;  // p = 0.375 < q = 0.5: no mass
  CHECK_THAT(message_of([&] { replay_step(small.request, {}, workspace); }),
             Contains("the recorded recovered token 1 has no mass in what it was drawn from"));
  small.recovered[1] = kPaddingToken;  // none was made, and one is needed
  CHECK_THAT(message_of([&] { replay_step(small.request, {}, workspace); }),
             Contains("the recorded recovered token -1 has no mass"));
}

TEST_CASE("recorded numbers that do not fit a verifier are refused by name") {
  SmallStep small;
  const auto request = [&](auto change) {
    VerifyRequest changed = small.request;
    change(changed.recorded);
    return changed;
  };
  const auto none = [](RecordedRandomness&) {};
  check_refused(request(none), "greedy_multipath", "takes no recorded randomness; expected one of chain, block, ");
  check_refused(request(none), "coupled_list", "takes no recorded randomness");
  check_refused(request(none), "sampler_match", "has uniforms, and verifier sampler_match throws no coins");
  check_refused(request(none), "rrs",
                "has recovered_tokens or bonus_tokens, and verifier rrs does not take them; "
                "expected them of one of chain, block, sampler_match");
  check_refused(request([](auto& r) { r.uniforms.reset(); }), "chain", "has no uniforms; expected them");
  check_refused(request([](auto& r) { r.bonus_token.reset(); }), "chain",
                "has no recorded numbers for the last token of a step; expected recovered_tokens and bonus_tokens, "
                "draw_uniforms, exponential_noise or gumbel_noise");
  check_refused(request([](auto& r) { r.recovered_tokens.reset(); }), "chain",
                "has no recorded numbers for the token after a rejection");
  const RecordedNumbers draws{{}, small.draw_uniforms};
  check_refused(request([&](auto& r) { r.draw_uniforms = draws; }), "chain",
                "has draw_uniforms beside recovered_tokens and bonus_tokens, which are all that is drawn");
  check_refused(request([&](auto& r) {
                  r.draw_uniforms = draws;
                  r.noise = draws;
                }),
                "chain", "has both draw_uniforms and exponential_noise; expected one of them");
  check_refused(request([&](auto& r) {
                  r = {};
                  r.draw_uniforms = draws;
                }),
                "coupled", "draws by race alone; expected exponential_noise or gumbel_noise");
  const std::vector<double> numbers{0.5, 0.5, 0.5, 0.5};
  check_refused(request([&](auto& r) {
                  r.uniforms = RecordedNumbers{{}, numbers};
                }),
                "chain", "uniforms has 4 numbers; expected 2, one for each draft");
  check_refused(request([&](auto& r) { r.recovered_tokens = std::span(small.recovered).first(1); }), "chain",
                "recovered_tokens has 1 tokens; expected 2");
  check_refused(request([&](auto& r) {
                  r.recovered_tokens.reset();
                  r.bonus_token.reset();
                  r.noise = RecordedNumbers{{}, numbers};
                }),
                "chain", "exponential_noise has 4 numbers; expected 9, a row of V for each row, or V for the step");
  const auto with_uniform = [&](double u) {
    small.uniforms[1] = u;
    return request(none);
  };
  check_refused(with_uniform(1.5), "chain", "uniforms[1] is 1.5");
  check_refused(with_uniform(-0.25), "chain", "expected a number in [0, 1]");
  check_refused(with_uniform(std::numeric_limits<double>::quiet_NaN()), "chain", "uniforms[1] is nan");
  small.uniforms[1] = 0.5;
  small.recovered[0] = 3;
  check_refused(request(none), "chain", "recovered_tokens[0] is 3; expected an id in [0, 3)");
  small.recovered[0] = 0;
  check_refused(request([](auto& r) { r.bonus_token = -2; }), "chain", "bonus_tokens is -2");
  const std::vector<double> noise(9, -1.0);
  check_refused(request([&](auto& r) {
                  r.noise = RecordedNumbers{{}, noise};
                }),
                "chain", "exponential_noise[0] is -1.000000; expected a finite number, 0 or above");
}
