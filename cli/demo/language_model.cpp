#include "cli/demo/language_model.hpp"

#include "base/printable.hpp"
#include "cli/demo/files.hpp"
#include "cli/demo/report.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/painted_text.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "engine/grammar/compile_grammar.hpp"

namespace draftproof {
namespace {

// Much of the answer stands in the question, as in most editing: that is where a drafter without a model pays.
constexpr const char* kPrompt =
    "Repeat this recipe, with honey instead of sugar:\n"
    "Mix two cups of flour with one cup of sugar. Add two eggs and a cup of milk. Stir the flour, the sugar, the eggs "
    "and "
    "the milk until the dough is smooth. Bake the dough for thirty minutes and let it cool for ten minutes.";
constexpr const char* kDrafter = "suffix";
constexpr int kDraftLen = 8;
constexpr std::int64_t kTokens = 120;

}  // namespace

LanguageModelRun run_language_model(const DemoOptions& options) {
  LanguageModelRun run;
  const TextModelOptions model_options{false, options.threads};
  const std::string path = model_path(options.model);
  run.model = open_text_model(options.model, path, model_options, "--model");
  run.prompt = kPrompt;
  DecodeJob job{run.model.chat_tokens(run.prompt, "--model"), {}};
  job.decoding.parameters.temperature = 0.0f;
  job.decoding.stop.eos_ids = run.model.tokenizer->end_tokens();
  job.decoding.stop.max_tokens = kTokens;
  job.decoding.detokeniser = run.model.tokenizer.get();
  job.decoding.num_speculative_tokens = kDraftLen;
  job.decoding.seed = options.seed;
  if (const std::optional<GrammarSource> source = grammar_source(options.grammar)) {
    GrammarCompiler grammars(run.model.tokenizer, run.model.model->vocab_size(), job.decoding.stop.eos_ids);
    job.decoding.grammar = {grammars.compile(*source), !options.grammar.unmasked_drafts};
  }
  const auto drafter =
      make_drafter(parse_drafter(kDrafter, "--drafter"), run.model, std::nullopt, model_options, "--drafter");
  warm_up(*run.model.model, job);
  run.pair = run_pair(*run.model.model, drafter.get(), {&job, 1}, {},
                      SpeculationPolicy(whole_drafts(job.decoding, "tree")), PairOrder::plain_first);
  return run;
}

void print_language_model(std::ostream& out, const LanguageModelRun& run, const Palette& palette) {
  const Generation& speculative = run.speculative();
  const double fast = run.pair.speculative.tokens_per_second();
  const double plain = run.pair.plain.tokens_per_second();
  out << palette.paint(Colour::bold, "A language model on this computer") << "  (" << run.model.name << ", "
      << run.model.arithmetic << "; drafter: " << kDrafter << ", K = " << kDraftLen << "; temperature 0)\n"
      << palette.paint(Colour::grey, printable(run.prompt)) << "\n\n"
      << painted_text(speculative, palette, *run.model.tokenizer) << "\n\n"
      << origin_legend(speculative, palette) << ": " << speculative.tokens.size() << " tokens in "
      << speculative.target_steps << " target steps\n"
      << number("with speculation %.1f tokens/s", fast) << number(", without %.1f tokens/s", plain)
      << number(": %.2f times as fast; ", fast / plain) << "the two texts are "
      << (run.is_finding() ? "DIFFERENT" : "the same, byte for byte") << "\n\n";
}

Json language_model_json(const LanguageModelRun& run) {
  const Generation& speculative = run.speculative();
  Json json{{"model", run.model.name},
            {"arithmetic", run.model.arithmetic},
            {"drafter", kDrafter},
            {"num_speculative_tokens", kDraftLen},
            {"max_tokens", kTokens},
            {"prompt", run.prompt},
            {"text", speculative.text},
            {"plain_text", run.plain().text},
            {"same", !run.is_finding()},
            {"num_tokens", speculative.tokens.size()},
            {"num_steps", speculative.target_steps}};
  json.update(origin_counts_json(speculative));
  json["speculative_ms"] = run.pair.speculative.wall_ms();
  json["plain_ms"] = run.pair.plain.wall_ms();
  json["speculative_tokens_per_second"] = run.pair.speculative.tokens_per_second();
  json["plain_tokens_per_second"] = run.pair.plain.tokens_per_second();
  return json;
}

}  // namespace draftproof
