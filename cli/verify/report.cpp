#include "cli/verify/report.hpp"

#include <iomanip>
#include <ostream>
#include <sstream>

#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/shared/json_document.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kTokensInJsonMax = 10000;

std::int64_t request_count(const VerifyRun& run) {
  return static_cast<std::int64_t>(run.trace.requests().size());
}
std::optional<double> acceptance_rate(const AcceptanceCounts& counts) {
  if (counts.draft_tokens == 0) return std::nullopt;
  return static_cast<double>(counts.accepted_tokens) / static_cast<double>(counts.draft_tokens);
}
std::optional<double> acceptance_length(const AcceptanceMetrics& metrics) {
  return metrics.counts.drafts == 0 ? std::nullopt : std::optional(metrics.acceptance_length);
}
std::optional<double> tokens_per_step(const AcceptanceMetrics& metrics) {
  return metrics.counts.steps == 0 ? std::nullopt : std::optional(metrics.tokens_per_step);
}
std::optional<double> rate_of(const std::optional<RateEstimate>& estimate) {
  return estimate ? std::optional(estimate->rate) : std::nullopt;
}

std::string fixed(const std::optional<double>& number, int decimals = 4) {
  if (!number) return "-";
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << *number;
  return text.str();
}

std::string proposal_name(const Trace& trace) {
  if (trace.requests().empty()) return "none";
  switch (trace.requests().front().proposal_kind) {
    case ProposalKind::probabilities:
      return "draft_probs";
    case ProposalKind::logits:
      return "draft_logits";
    case ProposalKind::one_hot:
      break;
  }
  return "one-hot";
}

// Tensors of the trace that decide nothing here: of final probabilities what edits and filters logits, and places of an
// audit.
std::vector<std::string> unused_tensors(const Trace& trace) {
  std::vector<std::string> names{"group", "row"};
  if (trace.file().contains("target_probs")) {
    for (const char* name : {"repetition_penalty", "frequency_penalty", "presence_penalty", "guidance_scale",
                             "dry_breakers", "bitmask", "logit_bias_tokens", "prompt_tokens"})
      names.emplace_back(name);
    for (const SamplerParameterName& sampler : sampler_parameter_names()) names.emplace_back(sampler.name);
    if (trace.settings().draft_processed || !trace.file().contains("draft_logits"))
      names.insert(names.end(), {"temperature", "top_k", "top_p", "top_p_numerator", "top_p_denominator", "min_p"});
  }
  std::erase_if(names, [&](const std::string& name) { return !trace.file().contains(name); });
  return names;
}

// The settings in force; without the run's seed where the trace has request seeds, and without the sampler where it has
// the engine's own numbers.
std::map<std::string, std::string> settings_of(const Trace& trace) {
  std::map<std::string, std::string> settings = texts_of(trace.settings());
  if (trace.has_seeds() || !trace.recorded().empty()) settings.erase("seed");
  if (!trace.recorded().empty()) settings.erase("sampler");
  return settings;
}

Json json_of(const ImpossibleDrafts& impossible) {
  Json json{{"count", impossible.count}, {"first", nullptr}};
  if (const auto& first = impossible.first)
    json["first"] = {{"request", first->request}, {"position", first->position}, {"token", first->token}};
  return json;
}

Json comparison_json(const VerifyRun& run) {
  if (!run.comparison) return {};
  const ResultComparison& comparison = *run.comparison;
  Json json{{"path", comparison.path},
            {"same_input", or_null(comparison.has_input(run.input_sha256))},
            {"tensors", comparison.tensors},
            {"differing_requests", comparison.differing_requests},
            {"first", nullptr}};
  if (const auto& first = comparison.first) {
    const auto value = [&](double x) { return first->is_real ? Json(x) : Json(static_cast<std::int64_t>(x)); };
    json["first"] = {{"tensor", first->tensor},        {"request", first->request},
                     {"index", or_null(first->index)}, {"token_id", or_null(first->token_id)},
                     {"ours", value(first->ours)},     {"theirs", value(first->theirs)}};
  }
  return json;
}

Json departure_json(const VerifyRun& run) {
  if (!run.departure) return {};
  const Departure& departure = *run.departure;
  Json json{{"request", run.comparison->first->request},
            {"position", departure.position},
            {"decision", departure.is_coin      ? "coin"
                         : departure.is_sibling ? "sibling"
                                                : "token"},
            {"p", nullptr},
            {"q", nullptr},
            {"u", or_null(departure.u)},
            {"ours", departure.token},
            {"theirs", departure.theirs},
            {"distance", departure.distance},
            {"sentence", departure.sentence()}};
  if (departure.is_coin) {
    json["p"] = departure.p;
    json["q"] = departure.q;
    json["ours"] = departure.accepted;
    json["theirs"] = !departure.accepted;
  }
  return json;
}

Json output_tokens_json(const VerifyRun& run) {
  if (run.acceptance.counts.received_tokens > kTokensInJsonMax) return {};
  Json rows = Json::array();
  for (std::int64_t b = 0; b < request_count(run); ++b) rows.push_back(run.result.tokens_of(b));
  return rows;
}

Json num_draft_tokens_json(const VerifyRun& run) {
  if (run.acceptance.counts.received_tokens > kTokensInJsonMax) return {};
  return json_list(run.trace.requests(), [](const VerifyRequest& request) { return request.draft.tokens.size(); });
}

// Rows with a distance, their mean and the largest of them.
struct GuidanceSummary {
  std::int64_t rows = 0;
  double mean = 0.0;
  double most = 0.0;
};

GuidanceSummary summary_of(const std::vector<std::optional<double>>& distances) {
  GuidanceSummary of;
  for (const std::optional<double>& distance : distances) {
    if (!distance) continue;
    ++of.rows;
    of.mean += *distance;
    of.most = std::max(of.most, *distance);
  }
  if (of.rows > 0) of.mean /= static_cast<double>(of.rows);
  return of;
}

Json guidance_json(const VerifyRun& run) {
  if (run.guidance_distances.empty()) return {};
  const GuidanceSummary of = summary_of(run.guidance_distances);
  Json json{{"rows", of.rows}, {"mean_distance", of.mean}, {"distance_max", of.most}, {"distances", nullptr}};
  if (std::ssize(run.guidance_distances) <= kTokensInJsonMax)
    json["distances"] = json_list(run.guidance_distances, [](const auto& distance) { return or_null(distance); });
  return json;
}

void add_acceptance(const AcceptanceMetrics& metrics, Json& document) {
  const AcceptanceCounts& counts = metrics.counts;
  document["drafts"] = counts.drafts;
  document["draft_tokens"] = counts.draft_tokens;
  document["accepted"] = counts.accepted_tokens;
  document["tokens"] = counts.received_tokens;
  document["acceptance_rate"] = or_null(acceptance_rate(counts));
  document["acceptance_length"] = or_null(acceptance_length(metrics));
  document["tokens_per_step"] = or_null(tokens_per_step(metrics));
  document["tokens_per_step_formula"] = or_null(metrics.tokens_per_step_formula);
  const auto rate = [](const auto& estimate) { return or_null(rate_of(estimate)); };
  document["acceptance_by_position"] = {{"conditional", json_list(metrics.conditional, rate)},
                                        {"unconditional", json_list(metrics.unconditional, rate)}};
}

void print_line(std::ostream& out, const std::string& label, const std::string& text) {
  out << std::left << std::setw(20) << label << printable_line(text) << '\n';
}

void print_acceptance(std::ostream& out, const AcceptanceMetrics& metrics) {
  const AcceptanceCounts& counts = metrics.counts;
  print_line(out, "drafts accepted",
             std::to_string(counts.accepted_tokens) + " of " + std::to_string(counts.draft_tokens) + " (rate " +
                 fixed(acceptance_rate(counts)) + ")");
  print_line(out, "acceptance length", fixed(acceptance_length(metrics)));
  print_line(out, "tokens per step",
             fixed(tokens_per_step(metrics)) + " (" + std::to_string(counts.received_tokens) + " tokens)");
  if (!metrics.conditional.empty()) print_line(out, "position", "conditional  unconditional");
  for (std::size_t j = 0; j < metrics.conditional.size(); ++j) {
    out << std::left << std::setw(20) << "  " + std::to_string(j + 1) << std::right << std::setw(11)
        << fixed(rate_of(metrics.conditional[j])) << std::setw(15) << fixed(rate_of(metrics.unconditional[j])) << '\n';
  }
}

}  // namespace

AcceptanceMetrics measure_acceptance(std::span<const VerifyRequest> requests, const VerifyResult& result) {
  std::int32_t deepest = 0;
  for (const VerifyRequest& request : requests) deepest = std::max(deepest, request.draft.depth_max());
  AcceptanceCounts counts(static_cast<std::size_t>(deepest));
  std::size_t first_draft = 0;
  for (std::size_t b = 0; b < requests.size(); ++b) {
    const auto num_accepted = static_cast<std::size_t>(result.num_accepted[b]);
    const DraftTree& draft = requests[b].draft;
    // The deepest accepted node is the last one: parents come before their children.
    std::int32_t end = kRootNode;
    for (std::int32_t node = 0; node < draft.size(); ++node)
      if (result.accepted[first_draft + static_cast<std::size_t>(node)] != 0) end = node;
    first_draft += draft.tokens.size();
    counts.add_step({draft.tokens.size(), num_accepted, !draft.children(end).empty(), num_accepted + 1});
  }
  return acceptance_metrics(std::span(&counts, 1));
}

std::map<std::string, std::string> result_metadata(const VerifyRun& run) {
  std::map<std::string, std::string> metadata = settings_of(run.trace);
  metadata["version"] = DRAFTPROOF_VERSION;
  metadata["input_sha256"] = run.input_sha256;
  metadata["digest"] = digest_of(run.result);
  return metadata;
}

std::vector<std::string> findings_of(const VerifyRun& run) {
  std::vector<std::string> findings = findings_of(run.impossible, run.consistency, run.comparison, run.input_sha256);
  if (run.departure)
    findings.push_back("request " + std::to_string(run.comparison->first->request) + ", " + run.departure->sentence());
  return findings;
}

Json verify_json(const VerifyRun& run, const std::vector<std::string>& command_line) {
  Json document = json_document(command_line);
  document["input"] = {{"path", run.trace.path()},
                       {"sha256", run.input_sha256},
                       {"layout", run.trace.is_dense() ? "dense" : "ragged"},
                       {"proposal", proposal_name(run.trace)},
                       {"unused_tensors", unused_tensors(run.trace)},
                       {"unused_metadata", run.trace.unused_metadata()}};
  document["options"] = Json::object();
  for (const auto& [name, value] : settings_of(run.trace))
    if (name != "seed") document["options"][name] = value;
  const bool uses_seed = !run.trace.has_seeds() && run.trace.recorded().empty();
  document["seed"] = uses_seed ? Json(run.trace.settings().seed) : Json();
  document["vocab_size"] = run.trace.vocab_size();
  document["requests"] = request_count(run);
  add_acceptance(run.acceptance, document);
  document["impossible_drafts"] = json_of(run.impossible);
  document["consistency"] = consistency_json(run.consistency);
  document["recorded"] = run.trace.recorded();
  document["comparison"] = comparison_json(run);
  document["departure"] = departure_json(run);
  if (!run.lossy.empty()) document["lossy"] = json_of(run.lossy);
  document["guidance"] = guidance_json(run);
  document["findings"] = findings_of(run);
  document["digest"] = digest_of(run.result);
  document["threads"] = run.threads;
  document["open_ms"] = run.open_ms;
  document["verify_ms"] = run.verify_ms;
  document["num_draft_tokens"] = num_draft_tokens_json(run);
  document["output_tokens"] = output_tokens_json(run);
  return document;
}

void print_verify_summary(std::ostream& out, const VerifyRun& run) {
  const auto line = [&](const char* label, const std::string& text) { print_line(out, label, text); };
  line("trace", run.trace.path() + (run.trace.is_dense() ? ", dense" : ", ragged"));
  line("requests", std::to_string(request_count(run)) + ", vocabulary " + std::to_string(run.trace.vocab_size()) +
                       ", proposals " + proposal_name(run.trace));
  print_acceptance(out, run.acceptance);
  std::string options;
  for (const auto& [name, value] : settings_of(run.trace))
    options.append(options.empty() ? "" : ", ").append(name).append(" ").append(value);
  if (run.trace.has_seeds() && run.trace.recorded().empty()) options += ", seeds from the trace";
  line("options", options);
  if (!run.trace.recorded().empty()) line("replayed with", joined(run.trace.recorded(), ", "));
  if (const std::vector<std::string> unused = unused_tensors(run.trace); !unused.empty())
    line("tensors not used", joined(unused, ", "));
  if (!run.trace.unused_metadata().empty()) line("metadata not used", joined(run.trace.unused_metadata(), ", "));
  if (run.consistency.rows > 0) line("drafter", run.consistency.sentence);
  for (const LossyRule& rule : run.lossy)
    line(rule.verifier == "chain" ? "rule" : "", rule.verifier + ": " + fixed(rule.accepted) +
                                                     " drafts of a step accepted, first token off by " +
                                                     fixed(rule.distance));
  if (const GuidanceSummary of = summary_of(run.guidance_distances); of.rows > 0)
    line("guidance", "of probabilities, off the exact one by " + number("%.3g", of.mean) + " on average over " +
                         std::to_string(of.rows) + " rows, " + number("%.3g", of.most) + " at most");
  line("digest", digest_of(run.result));
  if (run.comparison && !run.comparison->first)
    line("compared with", run.comparison->path + ": same " + joined(run.comparison->tensors, ", "));
  line("time", fixed(run.open_ms, 1) + " ms to open and check, " + fixed(run.verify_ms, 1) + " ms to verify, on " +
                   std::to_string(run.threads) + " thread(s), " + row_kernels().target);
}

}  // namespace draftproof
