#include "cli/verify/lossy_rules.hpp"

#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "reference/step/batch.hpp"

namespace draftproof {
namespace {

double mean_distance(std::span<const VerifyRequest> requests, const VerifyOptions& options, int threads) {
  std::vector<StepWorkspace> workspaces(static_cast<std::size_t>(threads));
  std::vector<double> distances(requests.size(), 0.0);
  parallel_for(static_cast<std::int64_t>(requests.size()), threads, [&](std::int64_t b, int thread) {
    const VerifyRequest& request = requests[static_cast<std::size_t>(b)];
    if (request.draft.size() == 0) return;
    StepRows rows(request, options, workspaces[static_cast<std::size_t>(thread)]);
    distances[static_cast<std::size_t>(b)] = first_token_distance(options.verifier, rows).value_or(0.0);
  });
  double sum = 0.0;
  for (const double distance : distances) sum += distance;
  const auto steps =
      std::ranges::count_if(requests, [](const VerifyRequest& request) { return request.draft.size() > 0; });
  return sum / static_cast<double>(steps);
}

}  // namespace

std::vector<LossyRule> lossy_rules(const Trace& trace, int threads) {
  const std::span<const VerifyRequest> requests = trace.requests();
  std::int64_t steps = 0;
  for (const VerifyRequest& request : requests) {
    if (!request.draft.is_chain()) throw usage_error("--lossy", "is given for drafts that are trees; expected chains");
    steps += request.draft.size() > 0 ? 1 : 0;
  }
  if (steps == 0) throw usage_error("--lossy", "is given for steps without drafts; expected some");
  std::vector<LossyRule> rules;
  for (const char* const name : kComparedLossyRules) {
    VerifyOptions options = trace.verify_options();
    options.logprobs = options.raw_logprobs = options.all_rows = false;
    options.verifier = parse_verifier(name, "--lossy");
    std::int64_t accepted = 0;
    for (const Emission& emission : verify_batch(requests, options, threads)) accepted += emission.num_accepted;
    rules.push_back(
        {name, static_cast<double>(accepted) / static_cast<double>(steps), mean_distance(requests, options, threads)});
  }
  return rules;
}

Json json_of(const std::vector<LossyRule>& rules) {
  return json_list(rules, [](const LossyRule& rule) -> Json {
    return {{"verifier", rule.verifier}, {"accepted_per_step", rule.accepted}, {"distance", rule.distance}};
  });
}

std::string lossy_figure(const std::vector<LossyRule>& rules) {
  std::ostringstream script;
  script << "$rules << EOD\n";
  for (const LossyRule& rule : rules) script << rule.distance << ' ' << rule.accepted << ' ' << rule.verifier << '\n';
  script << "EOD\nset termoption noenhanced\nset xlabel 'distance of a step''s first token (total variation)'\n"
            "set ylabel 'accepted drafts a step'\nset key off\nset grid lc rgb '#dddddd'\n"
            "set offsets graph 0.05,graph 0.3,graph 0.05,graph 0.05\n"
            "plot $rules using 1:2 with points pt 7 ps 0.7 lc rgb '#1f5fa8', "
            "$rules using 1:2:3 with labels left offset 0.7,0 font ',9'\n";
  return script.str();
}

}  // namespace draftproof
