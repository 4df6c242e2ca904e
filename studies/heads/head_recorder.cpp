#include "studies/heads/head_recorder.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace draftproof {
namespace {

// softmax(logits / temperature), of the most probable rows and of `token`'s.
void add_probabilities(HeadSlot& slot, const DraftHead& head, std::span<const float> logits, float temperature) {
  const auto scaled = [&](std::int64_t row) {
    return static_cast<double>(logits[static_cast<std::size_t>(row)]) / static_cast<double>(temperature);
  };
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = static_cast<std::ptrdiff_t>(std::min(kHeadCandidates, order.size()));
  std::ranges::partial_sort(order, order.begin() + count, [&](std::int64_t a, std::int64_t b) {
    const float left = logits[static_cast<std::size_t>(a)];
    const float right = logits[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  });
  const double largest = scaled(order.front());
  double sum = 0.0;
  for (std::int64_t row = 0; row < std::ssize(logits); ++row) sum += std::exp(scaled(row) - largest);
  const auto probability = [&](std::int64_t row) { return static_cast<float>(std::exp(scaled(row) - largest) / sum); };
  for (std::ptrdiff_t i = 0; i < count; ++i)
    slot.candidates.push_back(
        {head.token_of(order[static_cast<std::size_t>(i)]), probability(order[static_cast<std::size_t>(i)]), ""});
  for (std::int64_t row = 0; row < std::ssize(logits); ++row)
    if (head.token_of(row) == slot.draft.token) slot.draft.probability = probability(row);
}

}  // namespace

HeadRecorder::HeadRecorder(std::shared_ptr<DraftHead> head) : head_(std::move(head), std::nullopt) {
  head_.on_row = [this](const HeadRow& row) { add(row); };
}

void HeadRecorder::propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) {
  head_.propose(context, plan, chance, out);
}

void HeadRecorder::observe(std::span<const ComputedTokens> computed, std::span<const float> features,
                           DraftCache* cache) {
  head_.observe(computed, features, cache);
}

void HeadRecorder::propose_all(std::span<DraftJob> jobs, DraftCache* cache) {
  for (DraftJob& job : jobs) {
    job.wants_confidences = true;
    // A greedy request's drafts are ranked at temperature 1.
    temperature_ = job.context.parameters.temperature;
    if (temperature_ == 0.0f) temperature_ = 1.0f;
  }
  rows_.clear();
  head_.propose_all(jobs, cache);
}

void HeadRecorder::add(const HeadRow& row) {
  if (row.path.empty()) stream_.assign(row.stream.begin(), row.stream.end());
  rows_.push_back({{row.logits.begin(), row.logits.end()}, {row.state.begin(), row.state.end()}});
}

void HeadRecorder::verified(const SpeculativeStep& of) {
  const DraftTree& tree = of.draft.tree;
  if (tree.empty()) return;
  HeadStep& step = steps_.emplace_back();
  step.output_len = static_cast<std::int64_t>(of.output_len);
  step.stream_len = stream_.size();
  step.num_accepted = of.emission.num_accepted;
  for (std::size_t i = 0; i < tree.tokens.size(); ++i) {
    HeadSlot& slot = step.slots.emplace_back();
    slot.draft.token = tree.tokens[i];
    slot.confidence = of.draft.confidences[i];
    slot.reached = i <= step.num_accepted;
    slot.accepted = i < step.num_accepted;
    if (slot.reached) slot.emitted = HeadCandidate{of.emission.tokens[i], 0.0f, ""};
    add_probabilities(slot, head(), rows_[i].logits, temperature_);
    if (i > 0 && slot.reached && !rows_[i - 1].state.empty()) step.states.push_back(std::move(rows_[i - 1].state));
  }
  step.next.token = of.emission.tokens[step.num_accepted];
  stream_.insert(stream_.end(), of.emission.tokens.begin(), of.emission.tokens.end());
}

RecordedHeadRun run_recorded(LanguageModel& target, Drafter& drafter, HeadRecorder& recorder, const DecodeJob& job,
                             const std::function<void()>& check) {
  DecodeRun run(target, &drafter,
                engine_options({&job, 1}, {}, target, SpeculationPolicy(whole_drafts(job.decoding, job.where))));
  run.on_verified([&](const SpeculativeStep& step, const TargetRows&) { recorder.verified(step); });
  run.submit(job);
  while (!run.ended()) {
    check();
    run.step();
  }
  RecordedHeadRun record;
  record.generation = std::move(run.run().generations.front());
  record.steps = recorder.take_steps();
  record.stream = recorder.take_stream();
  return record;
}

}  // namespace draftproof
