// The code that production runs, on floats and Philox: its output distribution by chi-squared on tiny vocabularies, the
// support of its output under injected endpoints, and the independence of its keys.
#include "reference/step/verify_step.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "reference/random/audit.hpp"
#include "reference/random/injected.hpp"
#include "reference/step/batch.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/statistical.hpp"

using namespace draftproof;

namespace {

// What the rows of a request are given as.
enum class RowKind { logits, probabilities };

// A language model over V tokens whose logits are a function of the context, up to 3 tokens of it.
class ToyModel {
 public:
  ToyModel(std::uint64_t seed, std::int64_t vocab_size, float temperature)
      : vocab_size_(vocab_size), temperature_(temperature) {
    TestRandom random(seed);
    for (std::int64_t i = 0; i < 1 + vocab_size * (1 + vocab_size * (1 + vocab_size)); ++i) {
      std::vector<float> row = normal_row(random, vocab_size, 1.0f);
      for (float& l : row)
        if (random.chance(0.15)) l = kMinusInfinity;
      row[static_cast<std::size_t>(random.below(vocab_size))] = 0.5f;
      logits_.push_back(row);
      // The distribution, in long double and from the definition.
      std::vector<double> distribution;
      long double total = 0.0L;
      for (const float l : row) total += std::exp(static_cast<long double>(l) / temperature);
      for (const float l : row)
        distribution.push_back(static_cast<double>(std::exp(static_cast<long double>(l) / temperature) / total));
      distributions_.push_back(distribution);
      probabilities_.emplace_back(distribution.begin(), distribution.end());
    }
  }

  const std::vector<float>& row(const std::vector<Token>& context, RowKind rows) const {
    return rows == RowKind::logits ? logits_[index(context)] : probabilities_[index(context)];
  }
  const std::vector<double>& distribution(const std::vector<Token>& context) const {
    return distributions_[index(context)];
  }

  // A token from the distribution, by a stream of its own.
  Token draw(const std::vector<Token>& context, TestRandom& random) const {
    return static_cast<Token>(random.draw(distribution(context)));
  }

  std::int64_t vocab_size() const { return vocab_size_; }
  float temperature() const { return temperature_; }

  // The distribution of texts of two tokens, index first * V + second.
  std::vector<double> pair_distribution() const {
    std::vector<double> out;
    for (Token a = 0; a < vocab_size_; ++a)
      for (Token b = 0; b < vocab_size_; ++b)
        out.push_back(distribution({})[static_cast<std::size_t>(a)] * distribution({a})[static_cast<std::size_t>(b)]);
    return out;
  }

 private:
  std::size_t index(const std::vector<Token>& context) const {
    std::size_t i = 0;
    for (const Token t : context) i = i * static_cast<std::size_t>(vocab_size_) + static_cast<std::size_t>(t) + 1;
    return i;
  }

  std::int64_t vocab_size_;
  float temperature_;
  std::vector<std::vector<float>> logits_;
  std::vector<std::vector<double>> distributions_;
  std::vector<std::vector<float>> probabilities_;
};

struct Setting {
  std::int64_t vocab_size;
  std::size_t draft_len;
  Sampler sampler;
  RowKind target_rows;
  ProposalKind proposal_kind;
  std::int64_t draws;
  bool drafts_by_rule = false;  // chosen by a rule and not drawn from the drafter
};

// One step of a fresh request, its drafts drawn from the drafter's distribution (or, one-hot, chosen by a rule), with
// the rows along the draft. The text it emits, completed to two tokens by the model's own draws.
bool follows_target(const Setting& s, std::uint64_t seed, int decisions) {
  const ToyModel target(seed, s.vocab_size, 0.8f);
  const ToyModel drafter(seed + 1, s.vocab_size, 1.3f);
  TestRandom random(seed + 2);
  StepWorkspace workspace;
  PhiloxSource source;
  VerifyOptions options;
  options.sampler = s.sampler;
  options.raw_logprobs = false;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(s.vocab_size * s.vocab_size));
  std::vector<float> target_rows;
  std::vector<float> proposal_rows;
  for (std::int64_t i = 0; i < s.draws; ++i) {
    std::vector<Token> draft;
    target_rows.clear();
    proposal_rows.clear();
    for (std::size_t k = 0; k <= s.draft_len; ++k) {
      const std::vector<float>& p = target.row(draft, s.target_rows);
      target_rows.insert(target_rows.end(), p.begin(), p.end());
      if (k == s.draft_len) break;
      const RowKind kind = s.proposal_kind == ProposalKind::logits ? RowKind::logits : RowKind::probabilities;
      const std::vector<float>& q = drafter.row(draft, kind);
      proposal_rows.insert(proposal_rows.end(), q.begin(), q.end());
      draft.push_back(s.drafts_by_rule ? static_cast<Token>((k + 1) % static_cast<std::size_t>(s.vocab_size))
                                       : drafter.draw(draft, random));
    }
    VerifyRequest request;
    request.draft = DraftTree::chain(draft);
    const auto draft_len = static_cast<std::int64_t>(s.draft_len);
    request.target = matrix_of(target_rows, draft_len + 1, s.vocab_size);
    request.target_is_probabilities = s.target_rows == RowKind::probabilities;
    request.parameters.temperature = target.temperature();
    request.proposal_kind = s.proposal_kind;
    request.proposal = matrix_of(proposal_rows, draft_len, s.vocab_size);
    request.draft_parameters.temperature = drafter.temperature();
    request.seed = derive_seed(seed, static_cast<std::uint64_t>(i));
    if (i == 0) validate(request, Verifier::chain, 0);
    std::vector<Token> text = verify_step(request, options, source, workspace).tokens;
    while (text.size() < 2) text.push_back(target.draw(text, random));
    ++counts[static_cast<std::size_t>(text[0] * s.vocab_size + text[1])];
  }
  return follows(counts, target.pair_distribution(), decisions);
}

// The same step emits only tokens of positive probability; `may_accept_zero`: but for accepted drafts of probability 0.
bool support_is_kept(const VerifyRequest& request, const Emission& emission, bool may_accept_zero) {
  StepWorkspace workspace;
  StepRows rows(request, {}, workspace);
  for (std::uint32_t row = 0; row < emission.tokens.size(); ++row) {
    const Token token = emission.tokens[row];
    if (token < 0 || token >= request.target.vocab_size) return false;
    if (rows.target(row).probability(token) > 0.0f) continue;
    if (!(may_accept_zero && row < emission.num_accepted)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the emitted text has the distribution of the target for every sampler and kind of row") {
  std::uint64_t seed = 600;
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    for (const RowKind rows : {RowKind::logits, RowKind::probabilities}) {
      for (const ProposalKind kind : {ProposalKind::one_hot, ProposalKind::probabilities, ProposalKind::logits}) {
        const bool main = kind == ProposalKind::logits || rows == RowKind::probabilities;
        const Setting s{3 + static_cast<std::int64_t>(seed / 10 % 6),
                        2,
                        sampler,
                        rows,
                        kind,
                        testing::fewer_if_sanitized(main ? 200000 : 100000),
                        kind == ProposalKind::one_hot};
        seed += 10;
        CAPTURE(s.vocab_size, static_cast<int>(sampler), static_cast<int>(rows), static_cast<int>(kind), seed);
        CHECK(follows_target(s, seed, 12));
      }
    }
  }
}

TEST_CASE("the emitted text has the distribution of the target without drafts and with one or three") {
  for (const std::size_t draft_len : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    const Setting s{4, draft_len, Sampler::inverse, RowKind::logits, ProposalKind::logits, 100000};
    CAPTURE(draft_len);
    CHECK(follows_target(s, 800 + draft_len, 3));
  }
}

TEST_CASE("stochastic drafts verified as one-hot lose acceptance and not the distribution") {
  // vllm #40149, a control: any draft chosen independently of the coins is a one-hot proposal.
  const Setting s{3, 2, Sampler::inverse, RowKind::logits, ProposalKind::one_hot, 100000, false};
  CHECK(follows_target(s, 900, 1));
}

TEST_CASE("the test of the distribution sees drafts by a rule that are verified with probabilities") {
  // transformers #32867.
  const Setting s{3, 2, Sampler::inverse, RowKind::logits, ProposalKind::logits, 50000, true};
  CHECK_FALSE(follows_target(s, 910, 12));
}

TEST_CASE("ragged batches that mix greedy and random requests keep every distribution") {
  // vllm #27077, #41598. Requests of K = 0, 1, 2; every third one greedy.
  const ToyModel target(1000, 5, 1.0f);
  TestRandom random(1001);
  constexpr int kRequests = 60000;
  std::vector<std::vector<Token>> drafts(kRequests);
  std::vector<std::vector<float>> rows(kRequests);
  std::vector<VerifyRequest> requests(kRequests);
  for (std::size_t i = 0; i < kRequests; ++i) {
    const std::size_t draft_len = i / 3 % 3;
    drafts[i] = random.tokens(static_cast<std::int64_t>(draft_len), 5);
    for (std::size_t k = 0; k <= draft_len; ++k) {
      const std::vector<Token> context(drafts[i].begin(), drafts[i].begin() + static_cast<std::ptrdiff_t>(k));
      const std::vector<float>& row = target.row(context, RowKind::logits);
      rows[i].insert(rows[i].end(), row.begin(), row.end());
    }
    requests[i].draft = DraftTree::chain(drafts[i]);
    requests[i].target = matrix_of(rows[i], static_cast<std::int64_t>(draft_len) + 1, 5);
    if (i % 3 == 0) requests[i].parameters.temperature = 0.0f;
    requests[i].seed = derive_seed(1002, i);
  }
  const std::vector<Emission> emissions = verify_batch(requests, {}, 2);
  std::vector<std::int64_t> counts(25);
  for (std::size_t i = 0; i < kRequests; ++i) {
    std::vector<Token> text = emissions[i].tokens;
    if (i % 3 == 0) {
      std::vector<Token> context;
      for (std::size_t k = 0; k < text.size(); ++k) {
        const std::vector<float>& row = target.row(context, RowKind::logits);
        const auto best = static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
        REQUIRE(text[k] == best);
        if (k + 1 < text.size()) REQUIRE(drafts[i][k] == best);
        context.push_back(best);
      }
      REQUIRE((emissions[i].num_accepted == drafts[i].size() || drafts[i][emissions[i].num_accepted] != text.back()));
      continue;
    }
    while (text.size() < 2) text.push_back(target.draw(text, random));
    ++counts[static_cast<std::size_t>(text[0] * 5 + text[1])];
  }
  CHECK(follows(counts, target.pair_distribution()));
}

TEST_CASE("no endpoint of a uniform makes a token of probability zero appear") {
  TestRandom random(1100);
  const std::array<RandomBlock, 3> blocks{InjectedSource::kZeros, InjectedSource::kOnes, InjectedSource::kSmallest};
  StepWorkspace workspace;
  int accepted_zero = 0;
  for (int i = 0; i < 400; ++i) {
    OwnedRequest o = random_request(random, 1 + random.below(9), 3);
    // Half of the targets and proposals have holes, some proposals are the target itself.
    for (float& l : o.target)
      if (random.chance(0.3)) l = kMinusInfinity;
    for (std::int64_t row = 0; row < o.request.target.rows; ++row)  // a token that no constraint bans
      for (std::int64_t t = 0; t < std::min<std::int64_t>(5, o.request.target.vocab_size); ++t)
        o.target[static_cast<std::size_t>(row * o.request.target.vocab_size + t)] = random.normal();
    if (o.request.proposal_kind == ProposalKind::logits && random.chance(0.5)) {
      std::copy_n(o.target.begin(), o.proposal.size(), o.proposal.begin());
      o.request.draft_parameters = {};
      o.request.draft_parameters.temperature = o.request.parameters.temperature;
      o.request.draft_parameters.filters = o.request.parameters.filters;
    }
    for (const ConventionInfo& info : kConventions) {
      const bool closed_at_zero = info.convention == Convention::vllm_v1 || info.convention == Convention::huggingface;
      for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
        for (const RandomBlock& coin : blocks) {
          for (const RandomBlock& draw : blocks) {
            InjectedSource source;
            source.inject(Purpose::accept, coin).inject(Purpose::residual, draw).inject(Purpose::target_sample, draw);
            VerifyOptions options;
            options.sampler = sampler;
            options.convention = info.convention;
            const Emission emission = verify_step(o.request, options, source, workspace);
            CAPTURE(i, std::string(info.name), static_cast<int>(sampler), high_half(coin), high_half(draw));
            REQUIRE(support_is_kept(o.request, emission, closed_at_zero));
            if (closed_at_zero && !support_is_kept(o.request, emission, false)) ++accepted_zero;
          }
        }
      }
    }
  }
  CHECK(accepted_zero > 0);  // the documented fault of two conventions does show
}

TEST_CASE("where nothing but the rejected draft has mass the draft itself is emitted") {
  // p of the only token that counts is 1 - 2^-24 by rounding, so that the largest u rejects it; the other token, 200
  // nats below, has probability 0.
  StepWorkspace workspace;
  int rejected = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<float> rows{static_cast<float>(i) * 0.01f, -200.0f, 0.0f, 0.0f};
    const std::vector<Token> draft{0};
    VerifyRequest request;
    request.draft = DraftTree::chain(draft);
    request.target = matrix_of(rows, 2, 2);
    for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
      InjectedSource source;
      source.inject(Purpose::accept, InjectedSource::kOnes);
      VerifyOptions options;
      options.sampler = sampler;
      const Emission emission = verify_step(request, options, source, workspace);
      rejected += emission.num_accepted == 0 ? 1 : 0;
      CAPTURE(i);
      REQUIRE(emission.tokens[0] == 0);
    }
  }
  CHECK(rejected > 0);
}

TEST_CASE("steps of one request never share a random word") {
  TestRandom random(1200);
  StepWorkspace workspace;
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    VerifyOptions options;
    options.sampler = sampler;
    for (int i = 0; i < 100; ++i) {
      AuditedSource<> source;
      const std::int64_t vocab_size = 1 + random.below(20);
      for (std::uint32_t step = 0; step < 4; ++step) {
        OwnedRequest o = random_request(random, vocab_size, 4);
        o.request.seed = 77;
        o.request.step = step;
        CHECK_NOTHROW(verify_step(o.request, options, source, workspace));
      }
    }
  }
  // The audit can fail: a step that is not advanced.
  AuditedSource<> source;
  OwnedRequest o = random_request(random, 5, 0, {.greedy = false});
  verify_step(o.request, {}, source, workspace);
  CHECK(source.used() == 1);
  CHECK_THROWS_AS(verify_step(o.request, {}, source, workspace), Error);
}

TEST_CASE("the same drafts stand whether the target comes as logits or as the probabilities of its logits") {
  TestRandom random(1300);
  StepWorkspace workspace;
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) {
    const OwnedRequest o = random_request(random, 1 + random.below(30), 4, {.greedy = false});
    std::vector<float> probabilities;
    StepRows rows(o.request, {}, workspace);
    for (std::uint32_t row = 0; row <= o.draft.size(); ++row)
      for (Token t = 0; t < o.request.target.vocab_size; ++t) probabilities.push_back(rows.target(row).probability(t));
    VerifyRequest given = o.request;
    given.target_is_probabilities = true;
    given.target = matrix_of(probabilities, o.request.target.rows, o.request.target.vocab_size);
    given.unconditional = std::nullopt;
    given.allowed_masks = {};
    validate(given, Verifier::chain, i);
    for (const ConventionInfo& info : kConventions) {
      VerifyOptions options;
      options.convention = info.convention;
      PhiloxSource source;
      const Emission from_logits = verify_step(o.request, options, source, workspace);
      const Emission from_probabilities = verify_step(given, options, source, workspace);
      CAPTURE(i, std::string(info.name));
      REQUIRE(from_probabilities.num_accepted == from_logits.num_accepted);
      accepted += static_cast<int>(from_logits.num_accepted);
      REQUIRE(support_is_kept(given, from_probabilities, false));
      for (std::uint32_t k = 0; k < from_logits.num_accepted; ++k)
        REQUIRE(static_cast<double>(from_probabilities.logprobs[k]) ==
                Approx(static_cast<double>(from_logits.logprobs[k])).epsilon(1e-5).margin(1e-5));
    }
  }
  CHECK(accepted > 2000);
}
