#include "studies/speculate/speculate.hpp"

#include <algorithm>
#include <chrono>

#include "engine/draft/drafter_factory.hpp"
#include "engine/model/shipped_model.hpp"
#include "studies/speculate/model_shelf.hpp"
#include "studies/speculate/speculate_lane.hpp"

namespace draftproof {
namespace {

constexpr std::chrono::milliseconds kPublishInterval{33};

double per_second(std::int64_t count, std::int64_t ns) {
  return ns > 0 ? 1e9 * static_cast<double>(count) / static_cast<double>(ns) : 0.0;
}

// Compares the shown output as far as both lanes have it, and the others once both have ended.
bool agree(const SpeculateLane& plain, const SpeculateLane& speculation) {
  const auto tokens_of = [](const SpeculateLane& lane) {
    std::vector<Token> tokens;
    for (const auto& step : lane.steps)
      for (const ShownToken& token : step->emitted) tokens.push_back(token.token);
    return tokens;
  };
  if (plain.ended && speculation.ended)
    return std::equal(plain.outputs.begin(), plain.outputs.end(), speculation.outputs.begin(),
                      speculation.outputs.end(),
                      [](const Generation& a, const Generation& b) { return a.tokens == b.tokens; });
  const std::vector<Token> a = tokens_of(plain);
  const std::vector<Token> b = tokens_of(speculation);
  return first_difference(a, b).value_or(a.size()) >= std::min(a.size(), b.size());
}

SpeculateSnapshot snapshot_of(const SpeculateSettings& settings, const TextModel& model,
                              const DecodingOptions& decoding, const SpeculateLaneRun& plain,
                              const SpeculateLaneRun& speculation) {
  SpeculateSnapshot snapshot;
  snapshot.settings = settings;
  snapshot.model = model.name;
  snapshot.arithmetic = model.arithmetic;
  snapshot.plain = plain.lane();
  snapshot.speculation = speculation.lane();
  snapshot.agree = agree(snapshot.plain, snapshot.speculation);
  snapshot.must_agree = promises_equal_tokens(decoding);
  return snapshot;
}

}  // namespace

std::string standard_model() {
  return has_shipped_model() ? kShippedModel : kToyModel;
}

double SpeculateLane::tokens_per_second() const {
  return per_second(tokens(), time_ns());
}

double SpeculateSnapshot::speedup() const {
  const double without = plain.tokens_per_second();
  return without > 0.0 ? speculation.tokens_per_second() / without : 0.0;
}

void compute(const SpeculateSettings& settings, Job& job, const std::function<void(SpeculateSnapshot)>& publish) {
  validate(settings);
  const TextModelOptions model_options{false, settings.threads};
  job.report(0.0, "opening " + settings.model);
  const std::shared_ptr<TextModel> model = borrow_text_model(settings.model, model_options, "model");
  job.check();
  job.report(0.0, "making the drafter " + settings.drafter);
  const std::shared_ptr<Drafter> drafter =
      make_drafter(parse_drafter(settings.drafter, "drafter"), *model, std::nullopt, model_options, "drafter");
  const std::vector<DecodeJob> jobs = jobs_of(settings, *model);
  SpeculateLaneRun plain(jobs, {}, *model, nullptr);
  SpeculateLaneRun speculation(jobs, SpeculationPolicy(speculation_of(settings)), *model, drafter.get());
  job.check();
  DecodeJob first_token = jobs.front();
  first_token.prompt.resize(std::min<std::size_t>(first_token.prompt.size(), 1));
  warm_up(*model->model, std::move(first_token));
  auto published = std::chrono::steady_clock::now();
  while (!plain.ended() || !speculation.ended()) {
    job.check();
    const bool plain_is_behind = plain.steps().time_ns() <= speculation.steps().time_ns();
    (speculation.ended() || (!plain.ended() && plain_is_behind) ? plain : speculation).step();
    if (const auto now = std::chrono::steady_clock::now(); now - published >= kPublishInterval) {
      published = now;
      const double most = 2.0 * static_cast<double>(settings.max_tokens * settings.outputs);
      const auto tokens = static_cast<double>(plain.steps().tokens() + speculation.steps().tokens());
      job.report(tokens / most, "decoding with and without speculation");
      publish(snapshot_of(settings, *model, jobs.front().decoding, plain, speculation));
    }
  }
  publish(snapshot_of(settings, *model, jobs.front().decoding, plain, speculation));
}

std::int64_t known_until_ns(const SpeculateSnapshot& snapshot) {
  const std::int64_t plain = snapshot.plain.time_ns();
  const std::int64_t speculation = snapshot.speculation.time_ns();
  if (snapshot.plain.ended == snapshot.speculation.ended)
    return snapshot.plain.ended ? std::max(plain, speculation) : std::min(plain, speculation);
  return snapshot.plain.ended ? speculation : plain;
}

SpeculateView view_at(const SpeculateSnapshot& snapshot, std::int64_t time_ns) {
  const auto steps_until = [&](const SpeculateLane& lane) {
    const auto end = std::upper_bound(lane.steps.begin(), lane.steps.end(), time_ns,
                                      [](std::int64_t time, const auto& step) { return time < step->end_ns; });
    return static_cast<std::size_t>(end - lane.steps.begin());
  };
  const auto rate_of = [&](const SpeculateLane& lane, std::size_t steps) {
    if (steps == 0) return 0.0;
    return per_second(lane.steps[steps - 1]->tokens, lane.steps[steps - 1]->end_ns);
  };
  SpeculateView view;
  view.plain_steps = steps_until(snapshot.plain);
  view.speculation_steps = steps_until(snapshot.speculation);
  view.plain_tokens_per_second = rate_of(snapshot.plain, view.plain_steps);
  view.speculation_tokens_per_second = rate_of(snapshot.speculation, view.speculation_steps);
  return view;
}

}  // namespace draftproof
