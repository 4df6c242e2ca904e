#include "cli/demo/language_model.hpp"

#include <algorithm>
#include <cstdio>

#include "base/printable.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/painted_text.hpp"
#include "cli/shared/stopwatch.hpp"
#include "engine/decode/generate.hpp"
#include "engine/draft/drafter_factory.hpp"

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

double LanguageModelRun::tokens_per_second(bool with_speculation) const {
  const double ms = with_speculation ? speculative_ms : plain_ms;
  const Generation& generation = with_speculation ? speculative : plain;
  return ms > 0.0 ? 1e3 * static_cast<double>(generation.tokens.size()) / ms : 0.0;
}

LanguageModelRun run_language_model(const DemoOptions& options) {
  LanguageModelRun run;
  const TextModelOptions model_options{false, options.threads};
  const std::string path = model_path(options.model);
  run.model = open_text_model(options.model, path, model_options, "--model");
  run.drafter = kDrafter;
  run.prompt = kPrompt;
  const std::vector<Token> prompt = run.model.chat_tokens(run.prompt, "--model");
  DecodingOptions decoding;
  decoding.parameters.temperature = 0.0f;
  decoding.stop.eos_ids = run.model.tokenizer->end_tokens();
  decoding.stop.max_tokens = kTokens;
  decoding.detokeniser = run.model.tokenizer.get();
  decoding.num_speculative_tokens = kDraftLen;
  decoding.seed = options.seed;
  const auto drafter =
      make_drafter(parse_drafter(kDrafter, "--drafter"), run.model, std::nullopt, model_options, "--drafter");
  PhiloxSource source;
  // The first pass of all reads the weights from cold memory, and is neither's.
  decoding.stop.max_tokens = 1;
  generate(*run.model.model, nullptr, decoding, prompt, source);
  decoding.stop.max_tokens = kTokens;
  const Stopwatch plain;
  run.plain = generate(*run.model.model, nullptr, decoding, prompt, source);
  run.plain_ms = plain.elapsed_ms();
  const Stopwatch speculative;
  run.speculative = generate(*run.model.model, drafter.get(), decoding, prompt, source);
  run.speculative_ms = speculative.elapsed_ms();
  return run;
}

void print_language_model(std::ostream& out, const LanguageModelRun& run, const Palette& palette) {
  out << palette.paint(Colour::bold, "A language model on this computer") << "  (" << run.model.name << ", "
      << run.model.arithmetic << "; drafter: " << run.drafter << ", K = " << kDraftLen << "; temperature 0)\n"
      << palette.paint(Colour::grey, printable(run.prompt)) << "\n\n"
      << painted_text(run.speculative, palette, *run.model.tokenizer) << "\n\n";
  const auto legend = [&](TokenOrigin origin, const char* name, const char* separator) {
    out << separator << palette.paint(colour_of(origin), name) << ' ' << run.speculative.count(origin);
  };
  legend(TokenOrigin::accepted, "accepted", "");
  legend(TokenOrigin::recovered, "recovered", ", ");
  legend(TokenOrigin::bonus, "bonus", ", ");
  out << ": " << run.speculative.tokens.size() << " tokens in " << run.speculative.target_steps << " target steps\n"
      << number("with speculation %.1f tokens/s", run.tokens_per_second(true))
      << number(", without %.1f tokens/s", run.tokens_per_second(false))
      << number(": %.2f times as fast; ", run.tokens_per_second(true) / run.tokens_per_second(false))
      << "the two texts are " << (run.is_finding() ? "DIFFERENT" : "the same, byte for byte") << "\n\n";
}

Json language_model_json(const LanguageModelRun& run) {
  Json json;
  json["model"] = run.model.name;
  json["arithmetic"] = run.model.arithmetic;
  json["drafter"] = run.drafter;
  json["num_speculative_tokens"] = kDraftLen;
  json["max_tokens"] = kTokens;
  json["prompt"] = run.prompt;
  json["text"] = run.speculative.text;
  json["plain_text"] = run.plain.text;
  json["same"] = !run.is_finding();
  json["num_tokens"] = run.speculative.tokens.size();
  json["num_steps"] = run.speculative.target_steps;
  for (const auto& [name, origin] : {std::pair("accepted_shown", TokenOrigin::accepted),
                                     {"recovered_shown", TokenOrigin::recovered},
                                     {"bonus_shown", TokenOrigin::bonus}})
    json[name] = run.speculative.count(origin);
  json["speculative_ms"] = run.speculative_ms;
  json["plain_ms"] = run.plain_ms;
  json["speculative_tokens_per_second"] = run.tokens_per_second(true);
  json["plain_tokens_per_second"] = run.tokens_per_second(false);
  return json;
}

}  // namespace draftproof
