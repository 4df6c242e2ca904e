// draftproof parity: logits of the same rows from two paths of an engine, and whether they differ as rounding does.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>

#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "exactness/parity/parity.hpp"
#include "exactness/statistics/battery.hpp"

namespace draftproof {
namespace {

struct ParityArguments {
  std::string a, b;
  ParityOptions options;
  std::string precision = "auto";
  bool json = false;
};

Json place_json(const RowPlace& place) {
  return {{"request", place.request},
          {"position", place.position},
          {"draft_position", place.draft_position < 0 ? Json() : Json(place.draft_position)}};
}
Json place_json(const std::optional<RowPlace>& place) {
  return place ? place_json(*place) : Json();
}

Json json_of(const Parity& parity) {
  const Json temperatures = json_list(parity.at, [](const ParityAt& at) -> Json {
    return {{"temperature", finite("temperature", at.temperature)},
            {"total_variation_mean", finite("total_variation_mean", at.mean)},
            {"total_variation_max", finite("total_variation_max", at.most)},
            {"max_at", at.most > 0.0 ? place_json(at.most_at) : Json()}};
  });
  const Json findings = json_list(parity.findings, [](const ParityFinding& finding) -> Json {
    return {{"fault", std::string(name_of(finding.fault))},
            {"sentence", finding.sentence},
            {"first", place_json(finding.first)},
            {"p_value", finding.p_value ? Json(finite("p_value", *finding.p_value)) : Json()}};
  });
  return {{"verdict", std::string(name_of(parity.verdict))},
          {"sentence", parity.sentence()},
          {"rows", parity.rows.size()},
          {"rows_only_a", parity.only_a},
          {"rows_only_b", parity.only_b},
          {"precision", std::string(name_of(parity.precision))},
          {"precision_is_inferred", parity.precision_is_inferred},
          {"differing_rows", parity.differing_rows},
          {"largest", finite("largest", parity.largest)},
          {"largest_at", parity.largest > 0.0 ? place_json(parity.largest_at) : Json()},
          {"largest_column", parity.largest > 0.0 ? Json(parity.largest_column) : Json()},
          {"typical", finite("typical", parity.typical_rms)},
          {"typical_relative", finite("typical_relative", parity.typical_relative)},
          {"units", finite("units", parity.units)},
          {"argmax_turned", parity.turned},
          {"first_difference", place_json(parity.first_difference)},
          {"first_turned", place_json(parity.first_turned)},
          {"temperatures", temperatures},
          {"findings", findings}};
}

void print(const Parity& parity) {
  std::cout << "rows                " << parity.rows.size() << " of both";
  if (parity.only_a + parity.only_b > 0)
    std::cout << "; " << parity.only_a << " of A alone, " << parity.only_b << " of B alone";
  std::cout << "\ndiffer              " << parity.differing_rows;
  if (parity.first_difference) std::cout << ", the first at " << parity.first_difference->text();
  std::cout << "\nlargest difference  " << short_number(parity.largest);
  if (parity.largest > 0.0) std::cout << " at " << parity.largest_at.text() << ", column " << parity.largest_column;
  std::cout << "\ntypical difference  " << short_number(parity.typical_rms) << " (rms of the median row), "
            << short_number(parity.typical_relative) << " of the logits' spread, " << short_number(parity.units)
            << " units of " << name_of(parity.precision) << (parity.precision_is_inferred ? " (seen in the files)" : "")
            << "\nargmax              turns in " << parity.turned;
  if (parity.first_turned) std::cout << ", first at " << parity.first_turned->text();
  for (const ParityAt& at : parity.at)
    std::cout << "\nT = " << std::left << std::setw(16) << short_number(at.temperature) << std::right
              << "total variation of a row " << short_number(at.mean) << " on average, at most "
              << short_number(at.most);
  std::cout << "\n\n" << parity.sentence() << "\n";
  for (std::size_t i = 1; i < parity.findings.size(); ++i) std::cout << "also: " << parity.findings[i].sentence << "\n";
}

void run(ParityArguments arguments, ProgramContext& context) {
  for (const LogitPrecision precision : {LogitPrecision::f32, LogitPrecision::f16, LogitPrecision::bf16})
    if (arguments.precision == name_of(precision)) arguments.options.precision = precision;
  const Parity parity = compare_logits(read_logits_file(arguments.a), read_logits_file(arguments.b), arguments.options);
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document.update(json_of(parity));
    print_json(document);
  } else {
    print(parity);
  }
  if (parity.verdict == ParityVerdict::fault) context.exit_code = ExitCode::finding;
  if (parity.verdict == ParityVerdict::unclear) context.exit_code = ExitCode::inconclusive;
}

}  // namespace

void add_parity(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<ParityArguments>();
  options.required_text("a", arguments->a, "Logits of one path, safetensors (docs/parity.md)", "FILE");
  options.required_text("b", arguments->b, "Logits of the other path", "FILE");
  options.numbers("--temperature", arguments->options.temperatures, kTemperatureRange,
                  "Temperatures at which the total variation of sampling is computed (0: the argmax)");
  options.choice("--precision", arguments->precision, {"auto", "f32", "f16", "bf16"},
                 "Precision that the paths compute in (auto: the coarsest that holds every logit of a file)");
  options.threads(arguments->options.threads);
  options.json(arguments->json);
  options.examples(
      {"plain.safetensors verify.safetensors", "batch1.safetensors batch8.safetensors --temperature 0,0.7,1"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
