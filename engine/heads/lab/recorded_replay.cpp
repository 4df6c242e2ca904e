#include "engine/heads/lab/recorded_replay.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "engine/model/gathered_batch.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kStreamsMax = 256;  // of a pass over rejected drafts

// Draws the recorded tokens.
class RecordedChance final : public DraftChance {
 public:
  explicit RecordedChance(const DraftTree& drafts) : drafts_(drafts) {}
  Token draw(const Distribution&, std::uint32_t row) override { return drafts_.tokens[row]; }
  Token draw(const DenseMasses<double>&, std::uint32_t row) override { return drafts_.tokens[row]; }
  Token coupled_race(const Distribution&, std::uint32_t level, std::uint32_t) override { return drafts_.tokens[level]; }

 private:
  const DraftTree& drafts_;
};

std::vector<std::int32_t> blocks_from(std::int32_t first, std::int64_t slots) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>((slots + kKvBlockSlots - 1) / kKvBlockSlots));
  std::iota(blocks.begin(), blocks.end(), first);
  return blocks;
}

}  // namespace

RecordedReplay::RecordedReplay(TransformerModel& target, std::span<const DraftedRequest> requests)
    : target_(target), requests_(requests) {
  for (const DraftedRequest& request : requests) {
    own_blocks_.push_back(blocks_from(num_blocks_, std::ssize(request.tokens) + 1));
    num_blocks_ += static_cast<std::int32_t>(own_blocks_.back().size());
  }
}

void RecordedReplay::add(Drafter& drafter, bool assumes_sharing) {
  runners_.push_back({&drafter, assumes_sharing, drafter.make_cache(num_blocks_), own_blocks_});
  for (const std::int32_t layer : drafter.hidden_layers()) layers_.push_back(layer);
  std::ranges::sort(layers_);
  layers_.erase(std::ranges::unique(layers_).begin(), layers_.end());
}

// Tokens in whole blocks that a runner finds, and the request that computed them.
std::int64_t RecordedReplay::shared_by(const Runner& runner, std::size_t request, std::size_t& owner) const {
  const DraftedRequest& of = requests_[request];
  if (!of.cached_tokens && !runner.assumes_sharing) return 0;
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < request; ++i) {
    const std::vector<Token>& earlier = requests_[i].tokens;
    // Leaves out what its runner may not have been given yet when it drafted last.
    const std::int64_t common =
        std::min<std::int64_t>(std::ranges::mismatch(earlier, of.tokens).in1 - earlier.begin(), computed_[i] - 1);
    if (common <= longest) continue;
    longest = common;
    owner = i;
  }
  const std::int64_t found = std::min({longest, of.cached_tokens.value_or(longest), of.prompt_len - 1});
  return found / kKvBlockSlots * kKvBlockSlots;
}

void RecordedReplay::compute_features(const DraftedRequest& request) {
  const std::size_t n = request.tokens.size();
  const auto num_steps = static_cast<std::int64_t>(request.steps.size());
  const std::vector<std::int32_t> blocks = blocks_from(0, static_cast<std::int64_t>(n) + num_steps);
  const auto kv = target_.make_kv_cache(std::ssize(blocks) * kKvBlockSlots);
  GatheredBatch batch;
  batch.add_chain(request.tokens, 0);
  batch.contexts.push_back({blocks, 0});
  ForwardOutput out;
  target_.forward(batch.view(layers_), *kv, out);
  hidden_ = std::move(out.hidden);
  // The first rejected drafts of chains, each behind its own context.
  rejected_.clear();
  rejected_row_.assign(request.steps.size(), -1);
  batch.clear();
  std::int64_t rows = 0;
  const auto compute = [&] {
    if (batch.size() == 0) return;
    target_.forward(batch.view(layers_), *kv, out);
    rejected_.insert(rejected_.end(), out.hidden.begin(), out.hidden.end());
    batch.clear();
  };
  for (std::size_t i = 0; i < request.steps.size(); ++i) {
    const DraftedStep& step = request.steps[i];
    const std::int64_t position = step.position + step.num_accepted;
    if (!step.drafts.is_chain() || step.num_accepted == step.drafts.size() || position >= static_cast<std::int64_t>(n))
      continue;
    rejected_row_[i] = rows;
    batch.add(step.drafts.tokens[static_cast<std::size_t>(step.num_accepted)], position, kContextParent,
              static_cast<std::int64_t>(n) + rows++);
    batch.contexts.push_back({blocks, position});
    if (batch.tokens.size() == kStreamsMax) compute();
  }
  compute();
}

void RecordedReplay::show(const Pass& pass, std::size_t request) {
  const DraftedRequest& of = requests_[request];
  const auto width = static_cast<std::size_t>(target_.weights().shape.width);
  const auto known = std::min<std::int64_t>(std::ssize(of.tokens), std::max(of.prompt_len, pass.end) + pass.samples);
  for (const Runner& runner : runners_) {
    const std::int64_t begin = std::max(pass.begin, runner.begin);
    if (begin >= pass.end) continue;
    std::vector<float> features;
    const auto add = [&](const std::vector<float>& from, std::int64_t row) {
      for (const std::int32_t layer : runner.drafter->hidden_layers()) {
        const auto at = static_cast<std::size_t>(std::ranges::lower_bound(layers_, layer) - layers_.begin());
        const auto begin_of =
            from.begin() + static_cast<std::ptrdiff_t>((static_cast<std::size_t>(row) * layers_.size() + at) * width);
        features.insert(features.end(), begin_of, begin_of + static_cast<std::ptrdiff_t>(width));
      }
    };
    ComputedTokens computed;
    computed.request = request;
    computed.stream = std::span(of.tokens).first(static_cast<std::size_t>(known));
    computed.first = begin;
    computed.kv = {runner.blocks[request], begin};
    computed.samples = pass.samples;
    for (std::int64_t p = begin; p < pass.end; ++p) {
      computed.rows.push_back(static_cast<std::int32_t>(p - begin));
      add(hidden_, p);
    }
    if (pass.rejected_row >= 0) add(rejected_, pass.rejected_row);
    runner.drafter->observe({&computed, 1}, features, runner.cache.get());
  }
}

void RecordedReplay::draft(const DraftedStep& step, std::size_t request) {
  const DraftedRequest& of = requests_[request];
  const auto known = std::span(of.tokens).first(static_cast<std::size_t>(step.position));
  RecordedChance chance(step.drafts);
  for (const Runner& runner : runners_) {
    Draft draft;
    DraftJob job;
    job.context = {known, static_cast<std::size_t>(of.prompt_len),    request, {},
                   known, {runner.blocks[request], step.position - 1}};
    job.plan.shape.parents = step.drafts.parents;
    job.chance = &chance;
    job.out = &draft;
    runner.drafter->propose_all({&job, 1}, runner.cache.get());
  }
}

void RecordedReplay::run(std::size_t index) {
  const DraftedRequest& request = requests_[index];
  const auto n = static_cast<std::int64_t>(request.tokens.size());
  compute_features(request);
  for (Runner& runner : runners_) {
    std::size_t owner = 0;
    runner.begin = shared_by(runner, index, owner);
    std::copy_n(runner.blocks[owner].begin(), runner.begin / kKvBlockSlots, runner.blocks[index].begin());
  }
  // The prompt, whose last token a first step of drafts takes along.
  const bool drafts_at_once = !request.steps.empty() && !request.steps.front().drafts.empty() &&
                              request.steps.front().position == request.prompt_len;
  const std::int64_t prompt_end = request.prompt_len - (drafts_at_once ? 1 : 0);
  std::vector<std::int64_t> chunks{request.cached_tokens.value_or(0)};
  chunks.insert(chunks.end(), request.prefill_chunks.begin(), request.prefill_chunks.end());
  if (request.prefill_chunks.empty()) chunks.push_back(request.prompt_len - chunks.front());
  std::int64_t computed = 0;
  for (const std::int64_t chunk : chunks) {
    const std::int64_t end = std::min(computed + chunk, prompt_end);
    if (end > computed) show({computed, end, end == prompt_end}, index);
    computed = end;
  }
  const auto decode_to = [&](std::int64_t end) {
    for (; computed < end; ++computed) show({computed, computed + 1, true}, index);
  };
  for (std::size_t i = 0; i < request.steps.size(); ++i) {
    const DraftedStep& step = request.steps[i];
    if (step.drafts.empty()) {
      decode_to(std::min(step.position, n));
      continue;
    }
    decode_to(step.position - 1);
    draft(step, index);
    const std::int64_t end = std::min(step.position + step.num_accepted, n);
    show({computed, end, true, rejected_row_[i]}, index);
    computed = end;
  }
  computed_.push_back(computed);
  for (const Runner& runner : runners_)
    if (runner.cache) runner.cache->forget(index);
}

}  // namespace draftproof
