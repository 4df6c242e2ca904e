#include "sim/machine/speedup_prediction.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace draftproof {
namespace {

void require(const CountedRequest& request) {
  const auto refuse = [](const std::string& what) { throw input_error("requests", what); };
  if (request.prompt_tokens < 1)
    refuse("prompt_tokens is " + std::to_string(request.prompt_tokens) + "; expected 1 or more");
  if (request.plain_tokens < 1 || request.tokens < 1 || request.steps < 1 || request.steps > request.tokens)
    refuse(std::to_string(request.tokens) + " tokens in " + std::to_string(request.steps) + " steps (" +
           std::to_string(request.plain_tokens) + " without speculation); expected 1 or more, and steps up to tokens");
  if (request.drafts < 0 || request.drafts > request.steps || request.draft_tokens < request.drafts)
    refuse(std::to_string(request.draft_tokens) + " draft tokens in " + std::to_string(request.drafts) + " drafts of " +
           std::to_string(request.steps) + " steps; expected a token a draft, and drafts up to steps");
}

// A step of requests that share it.
struct StepLoad {
  double requests = 0.0;
  double rows = 0.0;      // of the target
  double context = 0.0;   // sum over rows
  double drafting = 0.0;  // requests that draft
  double emitted = 0.0;   // tokens of the step before, of those that draft
};

double step_ms(const MachineProfile& profile, const StepLoad& load, const DraftPasses& drafting) {
  double ms = profile.pass_ms(load.rows, load.context / load.rows) + profile.step_ms * load.requests;
  if (drafting.share == 0.0 || load.drafting == 0.0) return ms;
  const double context = load.context / load.rows;
  double rows = load.emitted;
  for (const std::int64_t width : drafting.widths) {
    ms += drafting.share * profile.pass_ms(std::max(rows, 1.0), context);
    rows = static_cast<double>(width) * load.drafting;
  }
  return ms;
}

// Until all have ended, who needs fewest steps first. `speculates`: with its drafts, else plainly.
double decode_ms(const MachineProfile& profile, std::span<const CountedRequest> batch, const DraftPasses& drafting,
                 bool speculates) {
  const auto steps_of = [&](const CountedRequest& r) { return (speculates ? r.steps : r.plain_tokens) - 1; };
  std::vector<CountedRequest> rest(batch.begin(), batch.end());
  std::sort(rest.begin(), rest.end(),
            [&](const CountedRequest& a, const CountedRequest& b) { return steps_of(a) < steps_of(b); });
  double ms = 0.0;
  std::int64_t done = 0;
  for (std::size_t first = 0; first < rest.size(); ++first) {
    const std::int64_t steps = steps_of(rest[first]) - done;
    done += steps;
    if (steps == 0) continue;
    // Steps with and without drafts take turns: where no request of the step drafts, it is a plain one.
    StepLoad with;
    StepLoad without;
    double drafting_share = 0.0;
    for (std::size_t i = first; i < rest.size(); ++i) {
      const CountedRequest& r = rest[i];
      const double context = static_cast<double>(r.prompt_tokens) + 0.5 * static_cast<double>(r.tokens);
      const double share = speculates ? static_cast<double>(r.drafts) / static_cast<double>(r.steps) : 0.0;
      const double nodes = r.drafts > 0 ? static_cast<double>(r.draft_tokens) / static_cast<double>(r.drafts) : 0.0;
      const double emitted = static_cast<double>(r.tokens) / static_cast<double>(r.steps);
      without.requests += 1.0;
      without.rows += 1.0;
      without.context += context;
      with.requests += 1.0;
      with.rows += 1.0 + nodes;
      with.context += (1.0 + nodes) * context;
      with.drafting += 1.0;
      with.emitted += emitted;
      drafting_share += share;
    }
    const auto requests = static_cast<double>(rest.size() - first);
    drafting_share /= requests;
    double of_step = 0.0;
    if (requests == 1.0) {
      of_step = drafting_share * step_ms(profile, with, drafting) +
                (1.0 - drafting_share) * step_ms(profile, without, drafting);
    } else {
      // Some draft and some do not: the rows of a step are those of the mean.
      StepLoad mean = without;
      mean.rows += drafting_share * (with.rows - without.rows);
      mean.context += drafting_share * (with.context - without.context);
      mean.drafting = drafting_share * with.drafting;
      mean.emitted = drafting_share * with.emitted;
      of_step = step_ms(profile, mean, drafting);
    }
    ms += static_cast<double>(steps) * of_step;
  }
  return ms;
}

}  // namespace

double predicted_speedup(const MachineProfile& profile, std::span<const CountedRequest> batch,
                         const DraftPasses& drafting) {
  double prefill_ms = 0.0;
  double plain_tokens = 0.0;
  double tokens = 0.0;
  for (const CountedRequest& request : batch) {
    require(request);
    const auto prompt = static_cast<double>(request.prompt_tokens);
    prefill_ms += profile.pass_ms(prompt, 0.5 * prompt) + profile.step_ms;
    plain_tokens += static_cast<double>(request.plain_tokens);
    tokens += static_cast<double>(request.tokens);
  }
  const double plain = (prefill_ms + decode_ms(profile, batch, {}, false)) / plain_tokens;
  const double speculative = (prefill_ms + decode_ms(profile, batch, drafting, true)) / tokens;
  return plain / speculative;
}

}  // namespace draftproof
