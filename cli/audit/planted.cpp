#include "cli/audit/planted.hpp"

#include <iostream>
#include <optional>

#include "base/error.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/python.hpp"

namespace draftproof {

void answer_planted(const PlantedArguments& arguments, bool json, ProgramContext& context) {
  const std::optional<std::string> python = find_python_with({"draftproof.planted"});
  if (!python)
    throw usage_error(
        "--profile",
        "audits callables of the Python module, which neither $DRAFTPROOF_PYTHON nor python3 imports; install "
        "draftproof into one, or run ./draftproof audit in a clone");
  std::vector<std::string> options{"--profile",    arguments.profile, "--kind",
                                   arguments.kind, "--processes",     std::to_string(arguments.processes)};
  if (json) options.emplace_back("--json");
  if (!arguments.faults.empty()) options.emplace_back("--");
  options.insert(options.end(), arguments.faults.begin(), arguments.faults.end());
  const std::vector<std::string> command = module_command(*python, "draftproof.planted", options);
  std::string text;
  const int code = run_program(command, [&](std::string_view block) {
    if (json) {
      text += block;
    } else {
      std::cout << block << std::flush;
    }
  });
  if (code == static_cast<int>(ExitCode::misuse)) {  // it has said why
    context.exit_code = ExitCode::misuse;
    return;
  }
  if (code > 1)
    throw Error(ErrorKind::internal, "--profile", "the audits of planted faults ended with " + std::to_string(code));
  if (json) {
    Json document = json_document(context.arguments);
    document.update(Json::parse(text));
    print_json(document);
  }
  if (code == 1) context.exit_code = ExitCode::finding;
}

}  // namespace draftproof
