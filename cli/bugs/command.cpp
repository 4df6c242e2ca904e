// draftproof bugs: are the bugs that shipped caught?
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>

#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "exactness/bugs/bugs_json.hpp"

namespace draftproof {
namespace {

struct BugsArguments {
  std::vector<std::string> only;
  int threads = 1;
  Artefacts artefacts;
  bool json = false;
};

void print_row(const BugResult& result) {
  const HuntResult* killer = result.killer();
  std::cout << std::left << std::setw(8) << result.bug.id << std::setw(5)
            << (killer ? letter_of(killer->detector) : "none") << std::right << std::setw(9)
            << (killer ? killer->faulty.cases : 0) << " " << std::left << std::setw(9)
            << (killer ? killer->faulty.unit : "") << std::right << std::setw(7) << std::fixed << std::setprecision(1)
            << (killer ? killer->milliseconds : 0.0) << "  " << result.bug.fault << "\n";
  if (killer == nullptr) std::cout << "    SURVIVED\n";
  for (const HuntResult& hunt : result.hunts)
    if (hunt.sound.caught)
      std::cout << "    " << letter_of(hunt.detector) << " ACCUSES THE SOUND TWIN: " << hunt.sound.evidence << "\n";
}

void print_evidence(const BugResult& result) {
  for (const HuntResult& hunt : result.hunts)
    std::cout << "    " << letter_of(hunt.detector) << ": "
              << (hunt.faulty.caught ? hunt.faulty.evidence : "saw nothing") << "\n";
}

void print_report(const BugReport& report, bool with_evidence) {
  std::cout << "id      by       cases               ms  fault\n";
  for (const BugResult& result : report.bugs) {
    print_row(result);
    if (with_evidence) print_evidence(result);
  }
  for (const ControlResult& result : report.controls) {
    std::cout << std::left << std::setw(8) << result.control.id << (result.passes() ? "passes   " : "ACCUSED  ")
              << result.control.fault << "\n";
    for (const HuntResult& hunt : result.hunts)
      if (hunt.faulty.caught) std::cout << "    " << letter_of(hunt.detector) << ": " << hunt.faulty.evidence << "\n";
  }
  for (const WaitingBug& bug : report.waiting)
    std::cout << std::left << std::setw(8) << bug.id << "waits for " << bug.waits_for << " (" << bug.source << ")\n";
  std::cout << report.sentence() << "\n";
}

void run(const BugsArguments& arguments, ProgramContext& context) {
  const std::size_t total = arguments.only.empty() ? count_of_bugs() : arguments.only.size();
  require_artefacts(arguments.artefacts);
  BugReport report;
  {
    Progress progress("hunting", total, "bugs");
    report = run_bugs(arguments.only, arguments.threads, [&] { progress.advance(); });
  }
  Json document = json_document(context.arguments);
  document.update(json_of(report));
  write_table_of(arguments.artefacts, "Bugs that shipped, and what catches them", context, [&] {
    return table_of(document["rows"], {"id", "source", "fault", "killed", "detector", "cases", "unit", "twin_passes"});
  });
  if (arguments.json) {
    print_json(document);
  } else {
    print_report(report, !arguments.only.empty());
  }
  if (!report.as_claimed()) context.exit_code = ExitCode::finding;
}

}  // namespace

void add_bugs(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<BugsArguments>();
  options.names("--only", arguments->only, "Ids of bugs or controls, with their evidence");
  options.threads(arguments->threads);
  add_table(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"", "--only B38", "--json", "--table bugs.tex --paper-width double"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
