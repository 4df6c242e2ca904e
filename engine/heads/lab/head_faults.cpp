#include "engine/heads/lab/head_faults.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/printable.hpp"
#include "engine/model/gathered_batch.hpp"

namespace draftproof {

FaultyDrafter::FaultyDrafter(HeadDrafter& head) : head_(head) {
  head_.on_row = [this](const HeadRow& row) {
    see_row(row);
    HeadRow true_row = row;
    true_row.stream = truth_.at(row.request);
    if (on_row) on_row(true_row);
  };
  head_.on_draft = [this](const HeadDraft& draft) {
    if (on_draft) on_draft({draft.request, truth_.at(draft.request), draft.draft});
  };
}

void FaultyDrafter::propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) {
  head_.propose(context, plan, chance, out);
}

std::unique_ptr<DraftCache> FaultyDrafter::make_cache(std::int32_t num_blocks) const {
  return head_.make_cache(num_blocks);
}

void FaultyDrafter::observe(std::span<const ComputedTokens> computed, std::span<const float> features,
                            DraftCache* cache) {
  width_ = hidden_layers().size() * static_cast<std::size_t>(head_.head().description().target_width);
  altered_.clear();
  std::vector<ComputedTokens> shown(computed.begin(), computed.end());
  features_.assign(features.begin(), features.end());
  for (ComputedTokens& of : shown) alter(of);
  head_.observe(shown, features_, cache);
}

void FaultyDrafter::propose_all(std::span<DraftJob> jobs, DraftCache* cache) {
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

std::span<const Token> FaultyDrafter::with(std::span<const Token> stream, const std::map<std::int64_t, Token>& wrong) {
  std::vector<Token>& copy = altered_.emplace_back(stream.begin(), stream.end());
  for (const auto& [position, token] : wrong)
    if (position < std::ssize(copy)) copy[static_cast<std::size_t>(position)] = token;
  return copy;
}

std::optional<FaultyDrafter::Verified> FaultyDrafter::verified(const ComputedTokens& of) const {
  const auto found = truth_.find(of.request);
  if (found == truth_.end() || !of.samples) return std::nullopt;
  const std::int64_t newest = std::ssize(found->second) - 1 - of.first;
  if (newest < 0 || newest >= std::ssize(of.rows)) return std::nullopt;
  return Verified{static_cast<std::size_t>(newest), of.rows.size() - 1 - static_cast<std::size_t>(newest)};
}

namespace {

// 1: pairs of accepted drafts keep the states that the head made while drafting.
class KeepsDraftedStates final : public FaultyDrafter {
 public:
  explicit KeepsDraftedStates(HeadDrafter& head) : FaultyDrafter(head) {
    head_.on_state = [this](std::uint64_t request, std::int32_t stream_index, std::int64_t position,
                            std::span<float> state) {
      const auto found = kept_.find({request, position});
      if (stream_index == 0 && found != kept_.end()) std::ranges::copy(found->second, state.begin());
    };
  }

 private:
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<float>> kept_;  // by position of the token
  std::map<std::pair<std::uint64_t, std::vector<Token>>, std::vector<float>> states_;

  void begin_step() override { states_.clear(); }
  void alter(ComputedTokens& of) override {
    const auto step = of.stream_index == 0 ? verified(of) : std::nullopt;
    for (std::size_t j = 0; step && j < step->accepted; ++j) {
      const auto newest = of.first + static_cast<std::ptrdiff_t>(step->newest);
      const auto drafts = of.stream.begin() + newest + 1;
      const auto found = states_.find({of.request, {drafts, drafts + static_cast<std::ptrdiff_t>(j)}});
      if (found != states_.end()) kept_[{of.request, newest + static_cast<std::ptrdiff_t>(j)}] = found->second;
    }
  }
  void see_row(const HeadRow& row) override {
    states_[{row.request, row.path}].assign(row.state.begin(), row.state.end());
  }
};

// Some tokens of the pairs are others.
class ChangesTokens : public FaultyDrafter {
  using FaultyDrafter::FaultyDrafter;
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

// The target's most probable token behind others.
Token prediction_of(TransformerModel& target, std::span<const Token> tokens) {
  GatheredBatch batch;
  batch.add_chain(tokens, 0);
  batch.contexts.emplace_back();
  batch.wanted = {batch.size() - 1};
  ForwardOutput out;
  target.forward(batch.view(), *target.make_kv_cache(batch.size()), out);
  return static_cast<Token>(std::ranges::max_element(out.logits) - out.logits.begin());
}

// 2: the last pair of a chunk takes a predicted token for the prompt's next one.
class PredictsChunkEnds final : public ChangesTokens {
 public:
  PredictsChunkEnds(HeadDrafter& head, TransformerModel& target) : ChangesTokens(head), target_(target) {}

 private:
  TransformerModel& target_;
  std::map<std::uint64_t, std::int64_t> ends_;

  void find_wrong(const ComputedTokens& of) override {
    if (of.first > 0 && ends_[of.request] == of.first)
      wrong_[of.request][of.first] = prediction_of(target_, of.stream.first(static_cast<std::size_t>(of.first)));
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
class LosesChunks final : public FaultyDrafter {
  using FaultyDrafter::FaultyDrafter;
  void alter(ComputedTokens& of) override {
    for (const std::int32_t row : of.rows)
      if (!of.samples) std::ranges::fill(features_at(row), 0.0f);
  }
};

// 13: after a rejection the cursor is one too far: the rejected draft's features stay, those of the token in its place
// are skipped. For chains.
class KeepsOneRejected final : public FaultyDrafter {
  using FaultyDrafter::FaultyDrafter;
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
class StartsEarly final : public FaultyDrafter {
  using FaultyDrafter::FaultyDrafter;
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

template <class Faulty>
std::unique_ptr<FaultyDrafter> planted(HeadDrafter& head, TransformerModel& target) {
  if constexpr (std::is_constructible_v<Faulty, HeadDrafter&, TransformerModel&>)
    return std::make_unique<Faulty>(head, target);
  else
    return std::make_unique<Faulty>(head);
}

// Collects the faults of one head.
class Faults {
 public:
  explicit Faults(std::shared_ptr<const HeadWeights> head) : head_(std::move(head)) {}

  template <class Faulty>
  void plant(int number, std::string name, FaultNeeds needs) {
    list.push_back({number, std::move(name), needs, head_, planted<Faulty>});
  }
  // alter(weights) of a copy, which shares the matrices.
  template <class Alter>
  void weights(int number, std::string name, Alter alter) {
    auto altered = std::make_shared<HeadWeights>(*head_);
    alter(*altered);
    altered->body.shape = altered->description.shape;
    list.push_back({number, std::move(name), FaultNeeds::nothing, std::move(altered), planted<FaultyDrafter>});
  }

  std::vector<HeadFault> list;

 private:
  std::shared_ptr<const HeadWeights> head_;
};

void add_layers(Faults& faults, const HeadDescription& head, std::int64_t num_layers) {
  const std::vector<std::int32_t> layers = feature_layers_of(head, num_layers, "head");
  const auto last = static_cast<std::int32_t>(num_layers);
  if (layers == std::vector{last + 1})
    faults.weights(4, "the final norm is not applied", [&](HeadWeights& w) { w.description.feature_layers = {last}; });
  else
    for (const std::int32_t shift : {1, -1}) {
      std::vector<std::int32_t> shifted = layers;
      for (std::int32_t& layer : shifted) layer += shift;
      if (shifted.front() >= 1 && shifted.back() <= last)
        faults.weights(4, shift > 0 ? "feature layers one too high" : "feature layers one too low",
                       [&](HeadWeights& w) { w.description.feature_layers = shifted; });
    }
  if (layers == std::vector{last})
    faults.weights(4, "the final norm is applied", [](HeadWeights& w) { w.description.feature_layers = {kLastNorm}; });
}

void add_draft_tokens(Faults& faults, const HeadDescription& head, std::int64_t vocab_size) {
  if (head.draft_tokens.empty()) return;
  faults.weights(5, "offsets of the draft vocabulary taken for tokens", [](HeadWeights& w) {
    for (std::size_t i = 0; i < w.description.draft_tokens.size(); ++i)
      w.description.draft_tokens[i] -= static_cast<Token>(i);
  });
  std::vector<Token> twice = head.draft_tokens;
  for (std::size_t i = 0; i < twice.size(); ++i) twice[i] += twice[i] - static_cast<Token>(i);
  if (twice.back() < vocab_size)  // else loaders fail
    faults.weights(5, "offsets of the draft vocabulary added twice",
                   [&](HeadWeights& w) { w.description.draft_tokens = twice; });
}

void add_unloaded(Faults& faults, const HeadWeights& head, const TransformerWeights& target) {
  const auto drop_biases = [](HeadWeights& w) {
    std::size_t dropped = 0;
    const auto drop = [&](std::vector<float>& bias) {
      dropped += bias.size();
      bias.clear();
    };
    drop(w.fuse_bias);
    for (PackedLayer& layer : w.body.layers) drop(layer.query_bias), drop(layer.key_bias), drop(layer.value_bias);
    for (HeadWeights::Medusa& medusa : w.medusa)
      for (HeadWeights::Medusa::Block& block : medusa.blocks) {
        dropped += block.bias.size();
        std::ranges::fill(block.bias, 0.0f);
      }
    return dropped;
  };
  if (HeadWeights copy = head; drop_biases(copy) > 0) faults.weights(16, "biases are not loaded", drop_biases);
  const bool same_width = head.description.shape.width == target.shape.width;
  if (head.embedding && same_width)
    faults.weights(16, "own embeddings are overwritten by the target's", [](HeadWeights& w) { w.embedding = nullptr; });
  const bool all_tokens = head.description.draft_tokens.empty();
  if (head.body.head && same_width && all_tokens)
    faults.weights(16, "the own head is overwritten by the target's", [](HeadWeights& w) { w.body.head = nullptr; });
  if (head.markov_in)
    faults.weights(16, "the Markov bias is not loaded", [](HeadWeights& w) { w.markov_in = w.markov_out = nullptr; });
}

}  // namespace

std::vector<HeadFault> head_faults(const std::shared_ptr<const HeadWeights>& head, const TransformerModel& target) {
  const HeadDescription& description = head->description;
  const bool is_block = description.family == HeadFamily::dflash;
  const bool has_pairs = !drafts_in_parallel(description.family);
  const std::int64_t vocab_size = target.vocab_size();
  Faults faults(head);
  if (has_pairs)
    faults.plant<KeepsDraftedStates>(1, "accepted drafts keep the states made while drafting", FaultNeeds::nothing);
  if (has_pairs)
    faults.plant<PredictsChunkEnds>(2, "the last pair of a chunk takes a predicted token", FaultNeeds::chunks);
  if (has_pairs || is_block) faults.plant<LosesChunks>(3, "features of the last chunk alone", FaultNeeds::chunks);
  add_layers(faults, description, target.num_layers());
  add_draft_tokens(faults, description, vocab_size);
  if (has_pairs)
    faults.plant<SharesNextToken>(11, "the pair at a shared block's end is another request's",
                                  FaultNeeds::shared_prefixes);
  faults.plant<KeepsOneRejected>(13, "one rejected draft stays", FaultNeeds::chains);
  if (is_block) faults.plant<StartsEarly>(14, "the block begins one position early", FaultNeeds::nothing);
  if (is_block && description.from_anchor)
    faults.weights(15, "the anchor's slot is dropped", [](HeadWeights& w) { w.description.from_anchor = false; });
  for (const double epsilon : {1e-6, 1e-5}) {
    const double own = description.shape.rms_epsilon;
    if (description.family != HeadFamily::medusa && static_cast<float>(own) != static_cast<float>(epsilon))
      faults.weights(15, "epsilon " + number("%g", epsilon) + " for " + number("%g", own),
                     [=](HeadWeights& w) { w.description.shape.rms_epsilon = epsilon; });
  }
  add_unloaded(faults, *head, target.weights());
  if (has_pairs || is_block) {
    const std::vector<float>& divisors = description.shape.rope_divisors;
    if (std::ranges::any_of(divisors, [](float divisor) { return divisor != 1.0f; }))
      faults.weights(17, "rope scaling is dropped",
                     [](HeadWeights& w) { std::ranges::fill(w.description.shape.rope_divisors, 1.0f); });
    if (description.shape.rope_base != 10'000.0)
      faults.weights(17, "rope base 10000 for " + number("%g", description.shape.rope_base),
                     [](HeadWeights& w) { w.description.shape.rope_base = 10'000.0; });
  }
  if (is_block || description.family == HeadFamily::peagle) {
    // Tokens that stand in for a mask that was not read.
    const std::int64_t mask = description.mask_token;
    std::set<std::int64_t> others;
    for (const std::int64_t token :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, mask - 1, mask + 1, vocab_size - 1})
      if (token >= 0 && token < vocab_size && token != mask) others.insert(token);
    for (const std::int64_t token : others)
      faults.weights(21, "mask token " + std::to_string(token) + " for " + std::to_string(mask),
                     [=](HeadWeights& w) { w.description.mask_token = static_cast<Token>(token); });
  }
  return std::move(faults.list);
}

}  // namespace draftproof
