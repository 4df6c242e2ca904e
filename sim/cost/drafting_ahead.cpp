#include "sim/cost/drafting_ahead.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/named_values.hpp"
#include "base/printable.hpp"

namespace draftproof {

DraftingAhead parse_ahead(std::string_view text, const std::string& where) {
  DraftingAhead ahead;
  double hit = -1.0, exponent = 0.0, rate = 0.0;
  NamedValues values("drafting ahead", where);
  values.number("outcomes", {1.0, 1e5}, ahead.outcomes)
      .number("hit", {0.0, 1.0}, hit)
      .number("exponent", {0.01, 100.0}, exponent)
      .number("rate", {0.01, 0.99}, rate)
      .add("backup", [&](std::string_view said) {
        if (said != "draft" && said != "none")
          throw usage_error(where, "backup is " + in_quotes(said) + "; expected draft or none");
        ahead.backup = said == "draft";
      });
  values.read(text);
  const bool law = exponent > 0.0 && rate > 0.0;
  if (ahead.outcomes <= 0.0 || (hit >= 0.0) == (exponent > 0.0 || rate > 0.0) || (hit < 0.0 && !law))
    throw usage_error(where, "is " + in_quotes(text) +
                                 "; expected outcomes=B and either hit=H, a measured share of ready drafts, or "
                                 "exponent=R,rate=A");
  if (hit >= 0.0)
    ahead.hit = hit;
  else
    ahead.exponent = exponent, ahead.rate = rate;
  return ahead;
}

std::vector<double> fan_outs(const DraftingAhead& ahead, std::int32_t drafts) {
  std::vector<double> shares;
  double sum = 0.0;
  for (std::int32_t k = 0; k <= drafts; ++k) {
    const double p = std::pow(ahead.rate, k) * (k < drafts ? 1.0 - ahead.rate : 1.0);
    sum += shares.emplace_back(std::pow(p, 1.0 / (1.0 + ahead.exponent)));
  }
  for (double& share : shares) share *= ahead.outcomes / sum;
  return shares;
}

std::vector<double> ready_probabilities(const DraftingAhead& ahead, std::int32_t drafts) {
  std::vector<double> ready(static_cast<std::size_t>(drafts) + 1, ahead.hit.value_or(0.0));
  if (ahead.hit) return ready;
  const std::vector<double> fan = fan_outs(ahead, drafts);
  for (std::size_t k = 0; k < fan.size(); ++k) ready[k] = fan[k] <= 1.0 ? 0.0 : 1.0 - std::pow(fan[k], -ahead.exponent);
  return ready;
}

double ready_probability(const DraftingAhead& ahead, const std::vector<double>& survival) {
  const std::vector<double> ready = ready_probabilities(ahead, static_cast<std::int32_t>(survival.size()));
  double probability = 0.0, reached = 1.0;
  for (std::size_t k = 0; k < ready.size(); ++k) {
    const double next = k < survival.size() ? survival[k] : 0.0;
    probability += (reached - next) * ready[k];
    reached = next;
  }
  return probability;
}

void add_drafts_ahead(DraftLoad& load, const DraftingAhead& ahead, std::int32_t drafts, std::int64_t kv_tokens,
                      bool one_pass) {
  ++load.requests;
  load.rows += drafts + 1 + std::llround(ahead.outcomes * drafts);
  load.kv_tokens += kv_tokens;
  load.depth = std::max(load.depth, drafts);
  load.passes = one_pass ? 2 : load.depth + 1;
}

}  // namespace draftproof
