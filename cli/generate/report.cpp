#include "cli/generate/report.hpp"

#include <cstdio>

#include "base/printable.hpp"
#include "cli/shared/painted_text.hpp"
#include "engine/metrics/acceptance_json.hpp"

namespace draftproof {
namespace {

Json per_second(std::int64_t count, double ms) {
  return ms > 0.0 ? Json(1e3 * static_cast<double>(count) / ms) : Json(nullptr);
}

// Where the engine's time went: drafts, the target's forward passes, rows and verification.
double share(std::int64_t part_ns, const EngineMetrics& metrics) {
  return metrics.busy_ns > 0 ? static_cast<double>(part_ns) / static_cast<double>(metrics.busy_ns) : 0.0;
}

std::vector<AcceptanceCounts> counts_of(const GenerateRun& run) {
  std::vector<AcceptanceCounts> counts;
  for (const GeneratedRequest& request : run.requests) counts.push_back(request.generation.acceptance);
  return counts;
}

bool speculates(const GenerateRun& run) {
  return run.drafter != "none";
}

Json logprobs_json(const std::vector<std::vector<TokenLogprob>>& logprobs) {
  return json_list(logprobs, [](const auto& of_token) {
    return json_list(of_token, [](const TokenLogprob& entry) -> Json {
      return {{"token", entry.token}, {"logprob", entry.logprob}, {"rank", entry.rank}};
    });
  });
}

Json beams_json(const GeneratedRequest& request) {
  Json list = Json::array();
  for (std::size_t i = 0; i < request.beams.size(); ++i)
    list.push_back({{"text", request.beam_texts[i]},
                    {"tokens", request.beams[i].tokens},
                    {"sum_logprob", request.beams[i].sum_logprob},
                    {"score", request.beams[i].score},
                    {"finish_reason", std::string(detail_name(request.beams[i].finish_reason))}});
  return list;
}

Json request_json(const GenerateOptions& options, const GenerateRun& run, const GeneratedRequest& request) {
  const Generation& generation = request.generation;
  Json json;
  json["prompt"] = request.prompt.prompt;
  json["prompt_tokens"] = request.prompt_tokens.size();
  json["text"] = generation.text;
  json["tokens"] = generation.tokens;
  json["finish_reason"] = request.error.empty() ? std::string(detail_name(generation.finish_reason)) : "error";
  json["error"] = text_or_null(request.error);
  const std::optional<GrammarSource>& own = request.prompt.parameters.grammar;
  json["grammar"] = nullptr;
  if (generation.grammar_complete)
    json["grammar"] = {{"form", own ? name_of(own->form) : name_of(grammar_form(options.grammar))},
                       {"complete", *generation.grammar_complete}};
  json["num_steps"] = generation.target_steps;
  const bool drafted = speculates(run) && generation.acceptance.drafts > 0;
  json["acceptance_length"] = drafted ? Json(generation.acceptance.acceptance_length()) : Json(nullptr);
  json["tokens_per_step"] = speculates(run) ? tokens_per_step_json({&generation.acceptance, 1}) : Json(nullptr);
  if (options.logprobs) json["logprobs"] = logprobs_json(generation.logprobs);
  if (options.prompt_logprobs) json["prompt_logprobs"] = logprobs_json(generation.prompt_logprobs);
  if (options.beams) json["beams"] = beams_json(request);
  return json;
}

}  // namespace

void print_generate(std::ostream& out, const GenerateOptions& options, const GenerateRun& run, const Palette& palette) {
  out << palette.paint(Colour::bold, run.model.name) << "  (" << run.model.arithmetic << "; drafter: " << run.drafter;
  if (const auto& tokens = run.shared_tokens)
    out << ", of whose " << tokens->of_draft << " tokens " << tokens->shared << " are of the target's "
        << tokens->of_target;
  if (speculates(run)) out << "; verifier: " << run.verifier << (options.tree ? ", tree " + *options.tree : "");
  out << ")\n\n";
  for (const GeneratedRequest& request : run.requests) {
    if (run.requests.size() > 1) out << palette.paint(Colour::bold, printable_line(request.prompt.where)) << '\n';
    out << palette.paint(Colour::grey, printable(request.prompt.prompt));
    if (request.prompt.parameters.chat) out << "\n\n";
    if (!request.error.empty()) {
      out << '\n' << "error: " << printable_line(request.error) << "\n\n";
    } else if (options.beams) {
      for (std::size_t i = 0; i < request.beams.size(); ++i)
        out << "\n[" << i + 1 << "] " << number("%.4f", request.beams[i].score) << "  "
            << printable(request.beam_texts[i]);
      out << "\n\n";
    } else {
      out << painted_text(request.generation, palette, *run.model.tokenizer) << "\n\n";
      if (request.generation.grammar_complete == false)
        out << "This is no whole sentence of its grammar: it ended by " << detail_name(request.generation.finish_reason)
            << ".\n\n";
    }
  }
  const double seconds = run.generation_ms / 1e3;
  out << run.tokens << " tokens in " << number("%.2f s", seconds)
      << (seconds > 0.0 ? number(", %.1f tokens/s", static_cast<double>(run.tokens) / seconds) : "");
  if (speculates(run)) {
    out << number("; acceptance length %.2f", run.metrics.acceptance_length())
        << number(", %.2f tokens per step", run.metrics.tokens_per_step())
        << number("; drafting took %.1f %%", 100.0 * share(run.metrics.draft_ns, run.metrics))
        << number(" of the time, the target %.1f %%", 100.0 * share(run.metrics.verify_ns, run.metrics));
  }
  out << '\n' << std::flush;
}

Json generate_json(const GenerateOptions& options, const GenerateRun& run, const std::vector<std::string>& arguments) {
  Json document = json_document(arguments);
  const AcceptanceMetrics metrics = acceptance_metrics(counts_of(run));
  document["model"] = run.model.name;
  document["arithmetic"] = run.model.arithmetic;
  document["drafter"] = run.drafter;
  document["shared_tokens"] = nullptr;
  if (const auto& tokens = run.shared_tokens)
    document["shared_tokens"] = {
        {"shared", tokens->shared}, {"draft", tokens->of_draft}, {"target", tokens->of_target}};
  document["verifier"] = speculates(run) ? Json(run.verifier) : Json(nullptr);
  document["tree"] = or_null(options.tree);
  document["requests"] =
      json_list(run.requests, [&](const GeneratedRequest& request) { return request_json(options, run, request); });
  document["acceptance_length"] = speculates(run) ? Json(metrics.acceptance_length) : Json(nullptr);
  document["tokens_per_step"] = speculates(run) ? tokens_per_step_json(counts_of(run)) : Json(nullptr);
  document["acceptance_by_position"] = acceptance_by_position_json(metrics);
  document["tokens"] = run.tokens;
  document["generation_ms"] = run.generation_ms;
  document["tokens_per_second"] = per_second(run.tokens, run.generation_ms);
  document["drafter_share"] = share(run.metrics.draft_ns, run.metrics);
  document["target_share"] = share(run.metrics.verify_ns, run.metrics);
  document["mask_share"] = share(run.metrics.mask_ns, run.metrics);
  document["preemptions"] = run.metrics.preemptions;
  document["files"] = {{"trace", text_or_null(options.trace)},
                       {"metrics", text_or_null(options.metrics)},
                       {"drafts", text_or_null(options.record_drafts)}};
  return document;
}

}  // namespace draftproof
