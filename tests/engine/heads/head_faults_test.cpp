// Faults of runners of heads that engines had (docs/heads.md), each planted by itself: the text stays plain decoding's,
// and the oracle finds the fault. DRAFTPROOF_HEAD_FAULTS=1 prints what it found, and the acceptance lengths.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>

#include "base/error.hpp"
#include "engine/heads/acceptance_oracle.hpp"
#include "tests/engine/heads/head_runs.hpp"
#include "tests/engine/heads/taught_heads.hpp"

namespace draftproof::testing {
namespace {

constexpr Token kVocabSize = 117;

// Between an engine and its head: what one shows the other is altered, and the oracle is told the truth.
class LyingDrafter : public Drafter {
 public:
  explicit LyingDrafter(HeadDrafter& head) : head_(head) {}

  void attach(AcceptanceOracle& oracle) {
    head_.on_row = [this, &oracle](const HeadRow& row) {
      see_row(row);
      HeadRow true_row = row;
      true_row.stream = truth_.at(row.request);
      oracle.add(true_row);
    };
    head_.on_draft = [this, &oracle](const HeadDraft& draft) {
      oracle.add(HeadDraft{draft.request, truth_.at(draft.request), draft.draft});
    };
  }
  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override {
    head_.propose(context, plan, chance, out);
  }
  std::span<const std::int32_t> hidden_layers() const override { return head_.hidden_layers(); }
  std::unique_ptr<DraftCache> make_cache(std::int32_t num_blocks) const override {
    return head_.make_cache(num_blocks);
  }
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache* cache) override {
    width_ = hidden_layers().size() * static_cast<std::size_t>(head_.head().description().target_width);
    altered_.clear();
    std::vector<ComputedTokens> shown(computed.begin(), computed.end());
    features_.assign(features.begin(), features.end());
    for (ComputedTokens& of : shown) alter(of);
    head_.observe(shown, features_, cache);
  }
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override {
    altered_.clear();
    begin_step();
    std::vector<std::span<const Token>> streams;
    for (DraftJob& job : jobs) {
      streams.push_back(job.context.stream);
      truth_[job.context.request].assign(job.context.stream.begin(), job.context.stream.end());
      alter(job);
    }
    head_.propose_all(jobs, cache);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].context.stream = streams[i];
      see_draft(jobs[i]);
    }
  }

 protected:
  virtual void begin_step() {}
  virtual void alter(ComputedTokens&) {}
  virtual void alter(DraftJob&) {}
  virtual void see_row(const HeadRow&) {}
  virtual void see_draft(const DraftJob&) {}

  std::span<float> features_at(std::int32_t row) {
    return std::span(features_).subspan(static_cast<std::size_t>(row) * width_, width_);
  }
  // The same stream with these tokens in their places.
  std::span<const Token> with(std::span<const Token> stream, const std::map<std::int64_t, Token>& wrong) {
    std::vector<Token>& copy = altered_.emplace_back(stream.begin(), stream.end());
    for (const auto& [position, token] : wrong)
      if (position < std::ssize(copy)) copy[static_cast<std::size_t>(position)] = token;
    return copy;
  }
  // Accepted drafts among computed tokens, and the newest token's place there; nothing where no draft was verified.
  struct Verified {
    std::size_t newest;
    std::size_t accepted;
  };
  std::optional<Verified> verified(const ComputedTokens& of) const {
    const auto found = truth_.find(of.request);
    if (found == truth_.end() || !of.samples) return std::nullopt;
    const std::int64_t newest = std::ssize(found->second) - 1 - of.first;
    if (newest < 0 || newest >= std::ssize(of.rows)) return std::nullopt;
    return Verified{static_cast<std::size_t>(newest), of.rows.size() - 1 - static_cast<std::size_t>(newest)};
  }

  HeadDrafter& head_;
  std::map<std::uint64_t, std::vector<Token>> truth_;  // streams as of the last drafts
  std::vector<float> features_;
  std::size_t width_ = 0;

 private:
  std::deque<std::vector<Token>> altered_;
};

// 1: pairs of accepted drafts keep the states that the head made while drafting. For heads whose state is the feature.
class KeepsDraftedStates final : public LyingDrafter {
  using LyingDrafter::LyingDrafter;
  std::map<std::pair<std::uint64_t, std::vector<Token>>, std::vector<float>> states_;

  void begin_step() override { states_.clear(); }
  void see_row(const HeadRow& row) override {
    states_[{row.request, row.path}].assign(row.state.begin(), row.state.end());
  }
  void alter(ComputedTokens& of) override {
    const auto step = verified(of);
    for (std::size_t j = 0; step && j < step->accepted; ++j) {
      const auto drafts = of.stream.begin() + of.first + static_cast<std::ptrdiff_t>(step->newest) + 1;
      const auto found = states_.find({of.request, {drafts, drafts + static_cast<std::ptrdiff_t>(j)}});
      if (found != states_.end()) std::ranges::copy(found->second, features_at(of.rows[step->newest + j]).begin());
    }
  }
};

// Some tokens of the pairs are others.
class ChangesTokens : public LyingDrafter {
  using LyingDrafter::LyingDrafter;
  void alter(ComputedTokens& of) final {
    if (of.stream_index != 0) return;
    find_wrong(of);
    of.stream = with(of.stream, wrong_[of.request]);
  }
  void alter(DraftJob& job) final { job.context.stream = with(job.context.stream, wrong_[job.context.request]); }

 protected:
  virtual void find_wrong(const ComputedTokens& of) = 0;
  std::map<std::uint64_t, std::map<std::int64_t, Token>> wrong_;
};

// 2: the last pair of a chunk takes a predicted token for the prompt's next one.
class PredictsChunkEnds final : public ChangesTokens {
  using ChangesTokens::ChangesTokens;
  std::map<std::uint64_t, std::int64_t> ends_;

  void find_wrong(const ComputedTokens& of) override {
    if (of.first > 0 && ends_[of.request] == of.first)
      wrong_[of.request][of.first] = (of.stream[static_cast<std::size_t>(of.first)] + 1) % kVocabSize;
    ends_[of.request] = of.samples ? -1 : of.first + std::ssize(of.rows);
  }
};

// 11: keys and values of a pair lie in the slot of its first token: the last pair of a block found in the prefix cache
// is that of whoever computed the block.
class SharesNextToken final : public ChangesTokens {
  using ChangesTokens::ChangesTokens;
  std::map<std::uint64_t, std::int64_t> ends_;
  std::map<std::int32_t, Token> followers_;  // of the tokens in a block

  void find_wrong(const ComputedTokens& of) override {
    const auto block_before = [&](std::int64_t p) {
      return of.kv.blocks[static_cast<std::size_t>(p / kKvBlockSlots - 1)];
    };
    if (of.first > 0 && !ends_.contains(of.request)) {
      const auto found = followers_.find(block_before(of.first));
      if (found != followers_.end()) wrong_[of.request][of.first] = found->second;
    }
    const std::int64_t end = of.first + std::ssize(of.rows);
    ends_[of.request] = end;
    for (std::int64_t p = of.first + 1; p <= end && p < std::ssize(of.stream); ++p)
      if (p % kKvBlockSlots == 0) followers_[block_before(p)] = of.stream[static_cast<std::size_t>(p)];
  }
};

// 3: features of all chunks but the last are lost.
class LosesChunks final : public LyingDrafter {
  using LyingDrafter::LyingDrafter;
  void alter(ComputedTokens& of) override {
    for (const std::int32_t row : of.rows)
      if (!of.samples) std::ranges::fill(features_at(row), 0.0f);
  }
};

// 13: after a rejection the cursor is one too far: the rejected draft's features stay, those of the token in its place
// are skipped. For chains.
class KeepsOneRejected final : public LyingDrafter {
  using LyingDrafter::LyingDrafter;
  std::map<std::uint64_t, std::size_t> drafted_;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<float>> kept_;

  void begin_step() override { drafted_.clear(); }
  void see_draft(const DraftJob& job) override { drafted_[job.context.request] = job.out->tree.tokens.size(); }
  void alter(ComputedTokens& of) override {
    const auto step = drafted_.contains(of.request) ? verified(of) : std::nullopt;
    std::vector<float> rejected;
    if (step && step->accepted < drafted_[of.request]) {
      const auto row = of.rows[step->newest] + 1 + static_cast<std::int32_t>(step->accepted);
      rejected.assign(features_at(row).begin(), features_at(row).end());
    }
    const auto found = kept_.find({of.request, of.first});
    if (found != kept_.end()) std::ranges::copy(found->second, features_at(of.rows[0]).begin());
    if (!rejected.empty()) kept_[{of.request, of.first + std::ssize(of.rows)}] = rejected;
  }
};

// 14: drafts begin one position early: the head has not been shown the last token that was computed.
class StartsEarly final : public LyingDrafter {
  using LyingDrafter::LyingDrafter;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<float>> withheld_;  // by position

  void alter(ComputedTokens& of) override {
    const std::int64_t last = of.first + std::ssize(of.rows) - 1;
    const std::span<const float> of_last = features_at(of.rows.back());
    withheld_[{of.request, last}].assign(of_last.begin(), of_last.end());
    of.rows.pop_back();
    const auto found = withheld_.find({of.request, of.first - 1});
    if (found == withheld_.end()) return;
    of.rows.insert(of.rows.begin(), static_cast<std::int32_t>(features_.size() / width_));
    features_.insert(features_.end(), found->second.begin(), found->second.end());
    --of.first;
  }
  void alter(DraftJob& job) override {
    job.context.stream = job.context.stream.first(job.context.stream.size() - 1);
    --job.context.kv.length;
  }
};

struct HeadFault {
  int row;  // of the table in docs/heads.md
  const char* name;
  const char* head;                              // a taught head
  std::function<void(HeadTensors&)> alter = {};  // the run's head
  std::function<std::unique_ptr<LyingDrafter>(HeadDrafter&)> drafter = {};
  bool shares_prefixes = true;
};

template <class Lying>
std::unique_ptr<LyingDrafter> make_lying(HeadDrafter& head) {
  return std::make_unique<Lying>(head);
}

std::vector<HeadFault> head_faults() {
  return {
      {1, "drafted states stay", "eagle1", {}, make_lying<KeepsDraftedStates>},
      {2, "a chunk's last pair takes a predicted token", "eagle3", {}, make_lying<PredictsChunkEnds>},
      {3, "features of the last chunk alone", "eagle3", {}, make_lying<LosesChunks>},
      {4, "layers off by one", "dflash",
       [](HeadTensors& t) {
         t.description.feature_layers = {1, 2};
       }},
      {4, "no final norm", "eagle1", [](HeadTensors& t) { t.description.feature_layers = {3}; }},
      {5, "offsets taken for tokens", "eagle3",
       [](HeadTensors& t) {
         for (std::size_t i = 0; i < t.description.draft_tokens.size(); ++i)
           t.description.draft_tokens[i] -= static_cast<Token>(i);
       }},
      {11, "the pair of a shared block's end is another request's", "eagle3", {}, make_lying<SharesNextToken>},
      {13, "one rejected draft stays", "eagle1", {}, make_lying<KeepsOneRejected>},
      {13, "one rejected draft stays", "dflash", {}, make_lying<KeepsOneRejected>},
      {14, "the block begins one position early", "dflash", {}, make_lying<StartsEarly>, false},
      {15, "the anchor's slot is dropped", "dflash from the anchor",
       [](HeadTensors& t) { t.description.from_anchor = false; }},
      {15, "epsilon 1e-6 for 1e-5", "eagle3", [](HeadTensors& t) { t.description.shape.rms_epsilon = 1e-6; }},
      {16, "a bias is not loaded", "eagle1", [](HeadTensors& t) { t.fuse_bias = {}; }},
      {16, "own embeddings are overwritten by the target's", "eagle3", [](HeadTensors& t) { t.embedding = {}; }},
      {17, "rope scaling is dropped", "eagle3",
       [](HeadTensors& t) { std::ranges::fill(t.description.shape.rope_divisors, 1.0f); }},
      {21, "another mask token", "dflash", [](HeadTensors& t) { t.description.mask_token = 4; }},
  };
}

// Six requests, in chunks; prompts share two blocks and then differ.
HeadSchedule fault_schedule(float temperature, bool shares_prefixes) {
  HeadSchedule schedule;
  schedule.options.policy = SpeculationPolicy(parse_speculation("fixed:4", "test"));
  schedule.options.scheduler.prefill_chunk_max = 12;
  schedule.options.scheduler.num_blocks = 100;
  schedule.options.share_prefixes = shares_prefixes;
  std::mt19937 random(5);
  std::vector<Token> common;
  for (int i = 0; i < 32; ++i) common.push_back(static_cast<Token>(random() % kVocabSize));
  for (int i = 0; i < 6; ++i) {
    Request request;
    request.prompt = common;
    for (int t = 0; t < 14; ++t) request.prompt.push_back(static_cast<Token>(random() % kVocabSize));
    DecodingOptions& options = request.options;
    options.verify.verifier = parse_verifier(temperature == 0.0f ? "chain" : "coupled", "test");
    options.parameters.temperature = temperature;
    options.seed = static_cast<std::uint64_t>(i);
    options.num_speculative_tokens = 4;
    options.stop.max_tokens = 60;
    schedule.requests.push_back(request);
    schedule.arrival_steps.push_back(8 * i);
    schedule.cancel_steps.push_back(-1);
  }
  return schedule;
}

std::map<std::string, TaughtHead> taught_heads(const TransformerModel& target,
                                               const std::vector<std::vector<Token>>& texts) {
  std::map<std::string, TaughtHead> heads;
  const auto add = [&](const char* name, HeadFamily family, RandomHeadOptions options) {
    RandomHead head(family, target.weights().shape, options);
    if (family == HeadFamily::dflash) head.tensors.description.feature_layers = {2, 3};
    heads.try_emplace(name, std::move(head), target, texts, 46, family == HeadFamily::dflash ? 4 : 2);
  };
  add("eagle1", HeadFamily::eagle1, {.seed = 21});
  add("eagle3", HeadFamily::eagle3, {.seed = 22, .own_embedding = true});
  add("dflash", HeadFamily::dflash, {.seed = 23});
  add("dflash from the anchor", HeadFamily::dflash, {.seed = 24, .from_anchor = true});
  return heads;
}

TEST_CASE("the oracle finds every fault that engines had with heads, and the text does not show one") {
  const RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  const HeadRun greedy = run_schedule_of_heads(target, nullptr, fault_schedule(0.0f, true));
  const HeadRun drawn = run_schedule_of_heads(target, nullptr, fault_schedule(0.8f, true));
  std::vector<std::vector<Token>> texts;
  const HeadSchedule schedule = fault_schedule(0.0f, true);
  for (std::size_t i = 0; i < greedy.texts.size(); ++i) {
    texts.push_back(schedule.requests[i].prompt);
    texts.back().insert(texts.back().end(), greedy.texts[i].begin(), greedy.texts[i].end());
  }
  const std::map<std::string, TaughtHead> heads = taught_heads(target, texts);
  std::map<std::string, double> clean;  // acceptance lengths
  for (const auto& [name, taught] : heads) {
    INFO(name);
    const auto weights = taught.head.weights();
    HeadDrafter drafter(std::make_shared<DraftHead>(weights, target, "test head"), std::nullopt);
    AcceptanceOracle oracle(weights, target, transformer_kernels());
    oracle.attach(drafter);
    const HeadRun run = run_schedule_of_heads(target, &drafter, schedule);
    oracle.compare();
    CHECK(run.texts == greedy.texts);
    CHECK(run.metrics.prefix_hits > 0);
    if (oracle.first()) FAIL(oracle.first()->text());
    clean[name] = run.acceptance_length();
    CHECK(clean[name] > 1.5);
  }
  std::set<int> rows;
  for (const HeadFault& fault : head_faults()) {
    INFO(fault.row << ", " << fault.name << ", " << fault.head);
    rows.insert(fault.row);
    const TaughtHead& taught = heads.at(fault.head);
    HeadTensors altered = taught.head.tensors;
    if (fault.alter) fault.alter(altered);
    const auto of_run = std::make_shared<const HeadWeights>(pack_head(altered, 0, 1));
    for (const float temperature : {0.0f, 0.8f}) {
      HeadDrafter head(std::make_shared<DraftHead>(of_run, target, "test head"), std::nullopt);
      const auto drafter = fault.drafter ? fault.drafter(head) : std::make_unique<LyingDrafter>(head);
      AcceptanceOracle oracle(taught.head.weights(), target, transformer_kernels());
      drafter->attach(oracle);
      const HeadRun run =
          run_schedule_of_heads(target, drafter.get(), fault_schedule(temperature, fault.shares_prefixes));
      CHECK(run.texts == (temperature == 0.0f ? greedy : drawn).texts);
      if (temperature != 0.0f) continue;
      oracle.compare();
      REQUIRE(oracle.first());
      if (std::getenv("DRAFTPROOF_HEAD_FAULTS") != nullptr)
        WARN(fault.row << ", " << fault.name << ": " << oracle.first()->text() << "; acceptance length "
                       << run.acceptance_length() << " for " << clean[fault.head]);
    }
  }
  CHECK(rows == std::set{1, 2, 3, 4, 5, 11, 13, 14, 15, 16, 17, 21});
}

TEST_CASE("a map of draft tokens with its offsets added twice is refused where a token leaves the vocabulary") {
  const RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  const TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  RandomHead head(HeadFamily::eagle3, target.weights().shape);
  std::vector<Token>& tokens = head.tensors.description.draft_tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] += tokens[i] - static_cast<Token>(i);
  CHECK_THROWS_WITH(head.head(target), Catch::Contains("expected tokens of the target"));
}

}  // namespace
}  // namespace draftproof::testing
