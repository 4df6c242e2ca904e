// draftproof speculate: what speculation is worth, by drafter, draft and kind of work, on a real model.
#include <iostream>
#include <memory>

#include "base/archives/sha256.hpp"
#include "base/files/inputs_read.hpp"
#include "base/printable.hpp"
#include "cli/shared/acceptance_terms.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/speculate/measure.hpp"
#include "cli/speculate/options.hpp"
#include "cli/speculate/report.hpp"
#include "cli/speculate/table.hpp"
#include "engine/model/prompt_set.hpp"

namespace draftproof {
namespace {

// Rows under one grammar, or with other drafts, are not those without.
Json grammar_setting(const GrammarOptions& options) {
  const std::optional<GrammarSource> source = grammar_source(options);
  Json setting{{"sha256", nullptr}, {"unmasked_drafts", options.unmasked_drafts}};
  if (!source) return options.unmasked_drafts ? setting : Json(nullptr);
  std::string text = name_of(source->form) + "\n" + source->text;
  for (const std::string& choice : source->choices) text += "\n" + choice;
  setting["sha256"] = sha256_hex(text);
  return setting;
}

// Settings that make rows comparable: a table has one of each.
Json settings_of(const SpeculateOptions& options, const TextModel& model, const std::string& model_sha256,
                 const PromptSet& prompts, const Json& machine) {
  return {{"model", model.name},
          {"model_sha256", model_sha256},
          {"arithmetic", model.arithmetic},
          {"prompts_sha256", prompts.sha256},
          {"per_work", options.prompts_per_work() > 0 ? Json(options.prompts_per_work()) : Json("all")},
          {"max_tokens", options.output_tokens()},
          {"grammar", grammar_setting(options.grammar)},
          {"threads", options.threads},
          {"seed", options.seed},
          {"cpu", machine.at("cpu")},
          {"simd", machine.at("simd")}};
}

void run_command(const SpeculateOptions& options, ProgramContext& context) {
  const SpeculateGrid grid = grid_of(options);
  require_artefacts(options.artefacts, {{"--prompts", options.prompts}});
  const PromptSet prompts = read_prompt_set(options.prompts.empty() ? own_prompts() : options.prompts);
  ContentsRead model_contents;
  const TextModel model = open_text_model(options.model, model_path(options.model),
                                          {options.activations == "f32", options.threads}, "--model");
  model_contents.end();
  Measurement measurement(options, model);
  measurement.require_readable(prompts);
  Json envelope = json_document(context.arguments);
  SpeculateTable table(options.out,
                       settings_of(options, model, model_contents.sha256(), prompts, envelope.at("machine")));
  envelope["model"] = model.name;
  envelope["left_out"] = left_out_json(grid.left_out);

  measurement.open_drafters(grid.configurations);
  for (const Configuration& configuration : grid.configurations)
    table.require_same_inputs(configuration, measurement.inputs_sha256(configuration));
  envelope["oracle"] = measurement.oracle_json();
  if (!options.json) print_head(std::cout, model, grid);
  bool warm = false;
  {
    Progress progress(
        "measuring", grid.configurations.size() * prompts.works.size(), "rows",
        "finished rows are in " + printable_line(options.out) + "; the same command goes on with the others");
    for (const Configuration& configuration : grid.configurations)
      for (const Work& work : prompts.works) {
        const bool is_new = table.find(work.name, configuration, options.batch) == nullptr;
        if (is_new) {
          if (!warm) measurement.warm_up(work.prompts.front());
          warm = true;
          table.add(row_json(work.name, configuration, options.batch, measurement.measure(work, configuration)),
                    envelope);
        }
        if (!options.json) print_row(std::cout, *table.find(work.name, configuration, options.batch), !is_new);
        progress.advance();
      }
  }
  const std::string no_figure = table.draw();
  envelope["oracle"] = measurement.oracle_json();
  table.write(envelope);
  write_table_of(
      options.artefacts, "Speculation against plain decoding of the same prompts, " + model.name, context, [&] {
        return table_of(table.rows(),
                        {"work", "drafter", "k", "tree", "temperature", "batch", "acceptance_length", "tokens_per_step",
                         "draft_ms", "verify_ms", "plain_ms", "speedup", "speedup_low", "speedup_high", "equal"});
      });
  write_figure_of(options.artefacts, context, [&] { return table.figure(); }, {1200, 640});
  if (!no_figure.empty()) print_message("warning", "no figure: " + no_figure);
  const Json document = table.document(envelope);
  if (options.json) {
    print_json(document);
  } else {
    print_tail(std::cout, document);
    if (const Json& oracle = document.at("oracle"); !oracle.is_null())
      std::cout << "oracle: " << oracle.at("drafts") << " drafts and " << oracle.at("rows") << " rows compared, "
                << oracle.at("different") << " different\n"
                << (oracle.at("first").is_null() ? "" : oracle.at("first").get<std::string>() + "\n");
  }
  if (const Json& oracle = document.at("oracle"); !oracle.is_null() && oracle.at("different") != 0)
    context.exit_code = ExitCode::finding;
  if (!document.at("findings").empty()) context.exit_code = ExitCode::finding;
}

}  // namespace

void add_speculate(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<SpeculateOptions>();
  add_speculate_options(options, *arguments);
  add_acceptance_terms(options);
  options.examples({"--quick", "--quick --table speedups.tex --figure speedups.tex --paper-width double",
                    "--drafters suffix,prompt_lookup -k 2,4 --trees none,2x2x1"});
  options.on_run([arguments, &context] { run_command(*arguments, context); });
}

}  // namespace draftproof
