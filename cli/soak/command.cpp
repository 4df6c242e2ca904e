// draftproof soak: a billion chain verifications against the distribution of what they should emit.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/shared/test_report.hpp"
#include "exactness/soak/chain_model.hpp"
#include "exactness/soak/soak.hpp"
#include "exactness/statistics/battery.hpp"

namespace draftproof {
namespace {

// Half a year at the ten million a second of two cores.
constexpr std::int64_t kTrialsMax = std::int64_t{1} << 47;

struct SoakArguments {
  SoakOptions options;
  std::string models = "zeros";
  Artefacts artefacts;
  bool json = false;
};

std::vector<std::string> names_of_kinds() {
  std::vector<std::string> names;
  for (const ModelKind kind : kModelKinds) names.emplace_back(name_of(kind));
  return names;
}

ModelKind kind_named(const std::string& name) {
  return *std::find_if(std::begin(kModelKinds), std::end(kModelKinds),
                       [&](ModelKind kind) { return name == name_of(kind); });
}

Json json_of(const SoakOptions& options, const SoakResult& result) {
  const Json looks = json_list(result.looks, [](const SoakLook& look) -> Json {
    return {{"trials", look.trials}, {"log10_wealth", finite("log10_wealth", look.log10_wealth)}};
  });
  return {{"vocab", options.vocab_size},
          {"draft", options.draft_len},
          {"models", std::string(name_of(options.kind))},
          {"seed", options.seed},
          {"threads", options.threads},
          {"alpha", options.alpha},
          {"verdict", result.consistent() ? "consistent" : "biased"},
          {"trials", result.trials},
          {"cells", result.cells},
          {"acceptance_length", finite("acceptance_length", result.acceptance_length)},
          {"acceptance_length_expected", finite("acceptance_length_expected", result.acceptance_length_expected)},
          {"tests", json_list(result.tests, test_json)},
          {"looks", looks},
          {"ms", finite("ms", result.milliseconds)},
          {"trials_per_s", finite("trials_per_s", result.trials_per_s())}};
}

void print_report(const SoakOptions& options, const SoakResult& result) {
  const Palette palette(wants_colour(1));
  std::cout << result.trials << " chain verifications, V = " << options.vocab_size << ", K = " << options.draft_len
            << ", " << result.cells << " strings, " << std::fixed << std::setprecision(1) << result.trials_per_s() / 1e6
            << " million a second\n"
            << "acceptance length " << std::setprecision(6) << result.acceptance_length << ", expected "
            << result.acceptance_length_expected << "\n\n"
            << std::defaultfloat;
  print_tests(std::cout, result.tests, palette);
  for (const TestResult& test : result.tests)
    if (test.rejects) std::cout << palette.paint(Colour::red, test.sentence) << '\n';
  if (!result.looks.empty())
    std::cout << "e-process against the distribution after " << result.looks.size() << " looks: 10^" << std::fixed
              << std::setprecision(1) << result.looks.back().log10_wealth << std::defaultfloat << '\n';
  std::cout << "verdict: " << palette.paint(result.consistent() ? Colour::green : Colour::red, result.sentence())
            << '\n';
}

void run(SoakArguments arguments, ProgramContext& context) {
  arguments.options.kind = kind_named(arguments.models);
  require_artefacts(arguments.artefacts);
  SoakResult result;
  {
    Progress progress("soak", static_cast<std::uint64_t>(std::max<std::int64_t>(0, arguments.options.trials)),
                      "verifications");
    result =
        soak(arguments.options, [&](std::int64_t trials) { progress.advance(static_cast<std::uint64_t>(trials)); });
  }
  Json document = json_document(context.arguments);
  document.update(json_of(arguments.options, result));
  write_table_of(arguments.artefacts, result.sentence(), context,
                 [&] { return table_of(document["tests"], test_keys()); });
  if (arguments.json) {
    print_json(document);
  } else {
    print_report(arguments.options, result);
  }
  if (!result.consistent()) context.exit_code = ExitCode::finding;
}

}  // namespace

void add_soak(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<SoakArguments>();
  SoakOptions& soak = arguments->options;
  options.integer("--trials", soak.trials, {1, kTrialsMax}, "Verifications");
  options.integer("--vocab", soak.vocab_size, {1, kSoakVocabMax}, "Vocabulary size V");
  options.integer("-k,--num-speculative-tokens", soak.draft_len, {0, kSoakDraftMax}, "Draft tokens K");
  options.choice("--models", arguments->models, names_of_kinds(), "Kind of the random models");
  options.seed(soak.seed, "Seed of the models and of the trials");
  options.number("--alpha", soak.alpha, {1e-300, 0.5}, "Level of the verdict: false alarms of a correct verifier");
  options.threads(soak.threads);
  add_table(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"--trials 1000000", "--models ties -k 2 --json"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
