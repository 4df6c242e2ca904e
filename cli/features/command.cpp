// draftproof features: a model's own answers to prompts, with its hidden features, to train draft heads on.
#include <iomanip>
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/features/run.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/sampling_options.hpp"

namespace draftproof {
namespace {

struct Totals {
  std::int64_t texts = 0;
  std::int64_t tokens = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t found = 0;
};

Totals totals_of(const FeaturesRun& run) {
  Totals totals;
  for (const WrittenShard& shard : run.shards) {
    totals.texts += shard.texts;
    totals.tokens += shard.tokens;
    totals.prompt_tokens += shard.prompt_tokens;
    totals.found += shard.found ? 1 : 0;
  }
  return totals;
}

double tokens_per_second(const FeaturesRun& run) {
  return run.wall_ms > 0.0 ? 1e3 * static_cast<double>(run.generated_tokens) / run.wall_ms : 0.0;
}

Json features_json(const FeaturesRun& run, const std::vector<std::string>& arguments) {
  const Totals totals = totals_of(run);
  Json document = json_document(arguments);
  document["model"] = run.model;
  document["arithmetic"] = run.arithmetic;
  document["layers"] = run.layers;
  document["width"] = run.width;
  document["texts"] = totals.texts;
  document["tokens"] = totals.tokens;
  document["prompt_tokens"] = totals.prompt_tokens;
  document["generated_tokens"] = run.generated_tokens;
  document["tokens_per_second"] = finite("tokens_per_second", tokens_per_second(run));
  document["wall_ms"] = finite("wall_ms", run.wall_ms);
  Json shards = Json::array();
  for (const WrittenShard& shard : run.shards)
    shards.push_back({{"path", shard.path},
                      {"texts", shard.texts},
                      {"tokens", shard.tokens},
                      {"prompt_tokens", shard.prompt_tokens},
                      {"found", shard.found}});
  document["shards"] = shards;
  return document;
}

void print_features(std::ostream& out, const std::string& folder, const FeaturesRun& run) {
  const Totals totals = totals_of(run);
  out << totals.tokens << " tokens of " << totals.texts << " texts in " << run.shards.size() << " shards of "
      << printable(folder) << "; " << totals.prompt_tokens << " of them are prompts\n";
  if (totals.found > 0) out << totals.found << " shards were there already\n";
  out << run.generated_tokens << " tokens generated in " << std::fixed << std::setprecision(1) << 1e-3 * run.wall_ms
      << " s, " << tokens_per_second(run) << " a second (" << run.arithmetic << ")\n";
}

}  // namespace

void add_features(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<FeaturesOptions>();
  GenerateOptions& generate = arguments->generate;
  generate.request.temperature = 0.7;
  generate.request.top_p.value = 0.95;
  generate.request.max_tokens = 256;
  generate.drafter = "none";
  generate.num_speculative_tokens = 1;  // the recorder's place in the engine
  generate.batch = 16;
  options.text("--model", generate.model, "smollm2, a GGUF file or a Hugging Face folder", "MODEL");
  options.required_text("--prompts", generate.prompts,
                        "A JSON object a line, {\"prompt\": ..., \"chat\": ..., \"max_tokens\": ...}", "FILE");
  options.required_text("--out", arguments->out,
                        "Folder of the shards; those of an interrupted run with the same options are kept", "FOLDER");
  options.integers("--layers", arguments->layers, {1, 1'000'000},
                   "Features behind these layers, counted from 1 (default: 2, L/2, L - 3 and L)");
  options.integer("--tokens", arguments->tokens, {0, 1'000'000'000},
                  "Stops behind the shard that has as many tokens in sum (0: all prompts)");
  options.integer("--prompts-per-shard", arguments->prompts_per_shard, {1, 1'000'000}, "Prompts of one file");
  options.integer("--max-tokens", generate.request.max_tokens, {1, 1'000'000}, "Tokens of an answer at most");
  add_sampling_options(options, generate.request.temperature, generate.request.top_p, generate.request.top_k,
                       generate.request.min_p);
  options.seed(generate.request.seed, "Same seed, same bytes on any machine");
  options.integer("--batch", generate.batch, {1, 4096}, "Texts that are generated at the same time");
  options.choice("--activations", generate.activations, {"int8", "f32"}, "Arithmetic, of which the features are");
  options.threads(generate.threads);
  add_no_download(options, generate.no_download);
  bool& json = generate.json;
  options.json(json);
  options.examples({"--prompts prompts.jsonl --out features --tokens 150000 --threads 2",
                    "--prompts prompts.jsonl --out features --layers 2,15,27,30 --temperature 0 --json"});
  options.on_run([arguments, &context] {
    const FeaturesRun run = write_features(*arguments);
    if (arguments->generate.json) {
      print_json(features_json(run, context.arguments));
    } else {
      print_features(std::cout, arguments->out, run);
    }
  });
}

}  // namespace draftproof
