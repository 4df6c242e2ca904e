// draftproof_verify_by_name: every verifier of the registry through the C interface, against the step layer on the same
// requests, and what is refused.
#include "gpu/draftproof.h"
#include "reference/step/verify_step.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocabSize = 11;
constexpr std::int64_t kNodesMax = 6;

// Requests with rows of one kind, temperatures of their own and no constraints, that the verifier takes.
struct Requests {
  std::vector<OwnedRequest> owned;
  bool is_tree;

  Requests(const VerifierInfo& info, ProposalKind proposal_kind, bool target_is_probabilities, TestRandom& random)
      : is_tree(info.draft != DraftForm::chain) {
    while (owned.size() < 40) {
      const RequestFeatures features{false, false, false, false, false, 3};
      OwnedRequest o = is_tree ? random_tree_request(random, kVocabSize, kNodesMax, features)
                               : random_request(random, kVocabSize, kNodesMax, features);
      VerifyRequest& r = o.request;
      if (r.proposal_kind != proposal_kind) continue;
      if (is_tree && proposal_kind == ProposalKind::one_hot && info.proposal != DraftSampling::any)
        r.draft = DraftTree::chain(o.draft);
      r.draft_parameters = {};
      r.draft_parameters.temperature = 0.5f + static_cast<float>(random.uniform());
      r.parameters = {};
      r.parameters.temperature = 0.5f + static_cast<float>(random.uniform());
      r.target_is_probabilities = target_is_probabilities;
      if (target_is_probabilities) to_probabilities(o.target, kVocabSize);
      r.position = static_cast<std::uint32_t>(random.below(1000));
      owned.push_back(std::move(o));
    }
  }
};

// The arrays of one call, and what it wrote.
struct NamedCall {
  std::vector<std::int32_t> draft_tokens, parents;
  std::vector<std::int64_t> cu_num_draft_tokens{0};
  std::vector<float> target, proposal, temperature, draft_temperature;
  std::vector<std::uint64_t> seed;
  std::vector<std::uint32_t> step, position;
  std::vector<std::int32_t> num_accepted, tokens, path, status;
  std::vector<float> logprobs;
  draftproof_verify_by_name_arguments arguments{};
  draftproof_settings settings{};

  explicit NamedCall(const Requests& requests) {
    for (const OwnedRequest& o : requests.owned) {
      const VerifyRequest& r = o.request;
      draft_tokens.insert(draft_tokens.end(), r.draft.tokens.begin(), r.draft.tokens.end());
      parents.insert(parents.end(), r.draft.parents.begin(), r.draft.parents.end());
      cu_num_draft_tokens.push_back(static_cast<std::int64_t>(draft_tokens.size()));
      target.insert(target.end(), o.target.begin(), o.target.end());
      proposal.insert(proposal.end(), o.proposal.begin(), o.proposal.end());
      temperature.push_back(r.parameters.temperature);
      draft_temperature.push_back(r.draft_parameters.temperature);
      seed.push_back(r.seed);
      step.push_back(r.step);
      position.push_back(r.position_or_default());
    }
    const std::size_t count = requests.owned.size();
    num_accepted.resize(count);
    status.resize(count);
    tokens.resize(count * (kNodesMax + 1));
    logprobs.resize(count * (kNodesMax + 1));
    path.resize(count * kNodesMax);
    draftproof_verify_arguments& a = arguments.drafts;
    a.requests = static_cast<std::int64_t>(count);
    a.draft_tokens_total = static_cast<std::int64_t>(draft_tokens.size());
    a.draft_len_max = kNodesMax;
    a.vocab_size = kVocabSize;
    a.draft_tokens = draft_tokens.data();
    a.cu_num_draft_tokens = cu_num_draft_tokens.data();
    if (requests.is_tree) a.parents = parents.data();
    const VerifyRequest& first = requests.owned.front().request;
    a.target_kind = first.target_is_probabilities ? DRAFTPROOF_PROBABILITIES : DRAFTPROOF_LOGITS;
    a.target = {target.data(), kVocabSize, DRAFTPROOF_F32};
    a.parameters.temperature = temperature.data();
    a.proposal_kind = static_cast<std::int32_t>(first.proposal_kind);
    if (!proposal.empty()) a.proposal = {proposal.data(), kVocabSize, DRAFTPROOF_F32};
    a.draft_parameters.temperature = draft_temperature.data();
    a.randomness = {seed.data(), step.data()};
    a.num_accepted = num_accepted.data();
    a.tokens = tokens.data();
    a.logprobs = logprobs.data();
    a.path = path.data();
    a.status = status.data();
    arguments.position = position.data();
  }

  int run(const std::string& verifier) {
    arguments.verifier = verifier.c_str();
    return draftproof_verify_by_name(&arguments, &settings);
  }

  // Emission that the call wrote for a request.
  Emission emission(std::size_t request) const {
    Emission e;
    e.num_accepted = static_cast<std::uint32_t>(num_accepted[request]);
    const auto places = static_cast<std::size_t>(kNodesMax + 1);
    for (std::size_t i = 0; i < places; ++i) {
      if (i > e.num_accepted) {
        REQUIRE(tokens[request * places + i] == DRAFTPROOF_NO_TOKEN);
        REQUIRE(logprobs[request * places + i] == -std::numeric_limits<float>::infinity());
        REQUIRE(path[request * (places - 1) + i - 1] == -1);
        continue;
      }
      e.tokens.push_back(tokens[request * places + i]);
      e.logprobs.push_back(logprobs[request * places + i]);
      if (i > 0) e.path.push_back(path[request * (places - 1) + i - 1]);
    }
    return e;
  }
};

std::string message() {
  return draftproof_error_message();
}

// Requests with trees and probabilities.
Requests tree_requests() {
  TestRandom random(8300);
  return {info_of(Verifier::rrs), ProposalKind::probabilities, false, random};
}

TEST_CASE("the C interface emits what the step layer emits, for every verifier, proposal and sampler", "[c_api]") {
  TestRandom random(8100);
  StepWorkspace workspace;
  PhiloxSource source;
  for (const VerifierInfo& info : verifiers()) {
    const std::string name(info.name);
    std::size_t accepted = 0;
    std::size_t branched = 0;
    std::size_t compared = 0;
    for (const ProposalKind kind : {ProposalKind::one_hot, ProposalKind::probabilities, ProposalKind::logits}) {
      const Requests requests(info, kind, random.chance(0.5), random);
      for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
        NamedCall call(requests);
        call.arguments.sampler = static_cast<std::int32_t>(sampler);
        CAPTURE(name, static_cast<int>(kind), static_cast<int>(sampler));
        const int code = call.run(name);
        INFO(message());
        REQUIRE(code == DRAFTPROOF_SUCCESS);
        const VerifyOptions options{.verifier = info.verifier, .sampler = sampler, .raw_logprobs = false};
        for (std::size_t b = 0; b < requests.owned.size(); ++b) {
          const VerifyRequest& request = requests.owned[b].request;
          REQUIRE_NOTHROW(validate(request, info.verifier, static_cast<std::int64_t>(b)));
          Emission expected = verify_step(request, options, source, workspace);
          expected.kept_mass.clear();
          expected.kept_count.clear();
          REQUIRE(call.status[b] == DRAFTPROOF_ROW_OK);
          REQUIRE(same_emission(call.emission(b), expected));
          accepted += expected.num_accepted;
          branched += request.draft.is_chain() ? 0 : 1;
          ++compared;
        }
      }
    }
    INFO(name);
    CHECK(compared == 240);
    CHECK(accepted > 10);
    CHECK((branched > 20) == (info.draft != DraftForm::chain));
  }
}

TEST_CASE("a verifier's parameters reach it through the C interface", "[c_api]") {
  TestRandom random(8200);
  const Requests requests(info_of(Verifier::synthetic), ProposalKind::one_hot, false, random);
  NamedCall call(requests);
  REQUIRE(call.run("synthetic:rate=1") == DRAFTPROOF_SUCCESS);
  for (std::size_t b = 0; b < requests.owned.size(); ++b)
    CHECK(call.num_accepted[b] == requests.owned[b].request.draft.size());
  REQUIRE(call.run("synthetic:rate=0") == DRAFTPROOF_SUCCESS);
  CHECK(std::ranges::all_of(call.num_accepted, [](std::int32_t n) { return n == 0; }));
}

TEST_CASE("a verifier that does not exist or lacks an argument is a usage error", "[c_api]") {
  const Requests requests = tree_requests();
  NamedCall call(requests);
  CHECK(call.run("rsr") == DRAFTPROOF_USAGE);
  CHECK(message().find("verify_by_name, verifier: ") == 0);
  CHECK(message().find("greedy_multipath") != std::string::npos);  // the names that there are
  CHECK(call.run("synthetic:rate=2") == DRAFTPROOF_USAGE);
  CHECK(message() == "verify_by_name, verifier: rate is \"2\"; expected a number in [0, 1]");
  call.arguments.verifier = nullptr;
  CHECK(draftproof_verify_by_name(&call.arguments, &call.settings) == DRAFTPROOF_USAGE);
  CHECK(message() == "verify_by_name, verifier: it is NULL; expected an array");
  call.arguments.position = nullptr;
  CHECK(call.run("coupled_list") == DRAFTPROOF_USAGE);
  CHECK(message() == "verify_by_name, position: it is NULL; expected an array, since the verifier is coupled");
  CHECK(call.run("rrs") == DRAFTPROOF_SUCCESS);  // which does not look at it
  call.arguments.sampler = 2;
  CHECK(call.run("rrs") == DRAFTPROOF_USAGE);
  CHECK(message() == "verify_by_name, sampler: it is 2; expected 0 to 1");
}

TEST_CASE("a draft that the verifier does not take is refused before anything is written", "[c_api]") {
  const Requests requests = tree_requests();
  NamedCall call(requests);
  std::size_t first_tree = 0;
  while (requests.owned[first_tree].request.draft.is_chain()) ++first_tree;
  std::ranges::fill(call.status, 77);
  CHECK(call.run("block") == DRAFTPROOF_USAGE);
  CHECK(message().find("verify_by_name, request " + std::to_string(first_tree) +
                       ": verifier block takes a chain, and the draft is a tree; expected naive, ") == 0);
  call.arguments.drafts.proposal_kind = DRAFTPROOF_ONE_HOT;
  CHECK(call.run("rrs") == DRAFTPROOF_USAGE);
  CHECK(message().find("verifier rrs needs the probabilities that siblings were drawn with") != std::string::npos);
  CHECK(std::ranges::all_of(call.status, [](std::int32_t s) { return s == 77; }));
  CHECK(call.run("target_only") == DRAFTPROOF_SUCCESS);
}

TEST_CASE("offsets and parents that lie are the status of their request, and of no other", "[c_api][offsets]") {
  const Requests requests = tree_requests();
  NamedCall sound(requests);
  REQUIRE(sound.run("rrs") == DRAFTPROOF_SUCCESS);
  std::size_t liar = 0;
  while (requests.owned[liar].request.draft.size() < 2 || liar == 0) ++liar;
  const auto begin = static_cast<std::size_t>(sound.cu_num_draft_tokens[liar]);
  const auto check = [&](auto lie, const std::vector<std::size_t>& refused) {
    NamedCall call(requests);
    lie(call);
    REQUIRE(call.run("rrs") == DRAFTPROOF_SUCCESS);
    for (std::size_t b = 0; b < requests.owned.size(); ++b) {
      CAPTURE(b, liar);
      const bool is_refused = std::ranges::find(refused, b) != refused.end();
      REQUIRE(call.status[b] == (is_refused ? DRAFTPROOF_ROW_BAD_ID : DRAFTPROOF_ROW_OK));
      if (is_refused) {
        CHECK(call.num_accepted[b] == 0);
        CHECK(call.tokens[b * (kNodesMax + 1)] == DRAFTPROOF_NO_TOKEN);
      } else {
        CHECK(same_emission(call.emission(b), sound.emission(b)));
      }
    }
  };
  check([&](NamedCall& c) { c.parents[begin] = 0; }, {liar});  // its own parent
  check([&](NamedCall& c) { c.parents[begin + 1] = 1 << 30; }, {liar});
  check([&](NamedCall& c) { c.parents[begin + 1] = -2; }, {liar});
  check([&](NamedCall& c) { c.draft_tokens[begin] = kVocabSize; }, {liar});
  check([&](NamedCall& c) { c.cu_num_draft_tokens[liar] = std::int64_t{1} << 40; }, {liar - 1, liar});
  check([&](NamedCall& c) { c.cu_num_draft_tokens[liar] = -1; }, {liar - 1, liar});
}

TEST_CASE("an executor with kernels answers that it has none for verify_by_name", "[c_api]") {
  const Requests requests = tree_requests();
  NamedCall call(requests);
  call.settings.executor = DRAFTPROOF_SIMT;
  CHECK(call.run("rrs") == DRAFTPROOF_UNAVAILABLE);
  CHECK(message() == "executor simt: verify_by_name has no kernels; expected executor 0 (reference)");
  call.settings.executor = 5;
  CHECK(call.run("rrs") == DRAFTPROOF_USAGE);
  CHECK(draftproof_struct_bytes("draftproof_verify_by_name_arguments") == sizeof(draftproof_verify_by_name_arguments));
}

}  // namespace
