#include "cli/audit/module_audits.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/python.hpp"

namespace draftproof {
namespace {

// The first line of a saved run; other recorded runs are JSON lines too.
constexpr std::string_view kSavedServer = "{\"draftproof_server\"";

// HOST:PORT or HOST:PORT/PATH, and no file.
bool lacks_scheme(const std::string& path) {
  const std::size_t colon = path.find(':');
  if (colon == 0 || colon == std::string::npos || path.find('/') < colon || std::filesystem::exists(path)) return false;
  const std::size_t end = std::min(path.find_first_not_of("0123456789", colon + 1), path.size());
  return end > colon + 1 && (end == path.size() || path[end] == '/');
}

// `named`: the argument that needs the module, for errors.
void run_module(const std::string& module, const std::vector<std::string>& options, bool json, const std::string& named,
                const std::string& what, ProgramContext& context) {
  const std::optional<std::string> python = find_python_with({module});
  if (!python)
    throw usage_error(named, what +
                                 " the Python module, which neither $DRAFTPROOF_PYTHON nor python3 imports; install "
                                 "draftproof into one, or run ./draftproof audit in a clone");
  std::string text;
  const int code = run_program(module_command(*python, module, options), [&](std::string_view block) {
    if (json) {
      text += block;
    } else {
      std::cout << block << std::flush;
    }
  });
  switch (code) {
    case static_cast<int>(ExitCode::success):
      break;
    case static_cast<int>(ExitCode::finding):
      context.exit_code = ExitCode::finding;
      break;
    case static_cast<int>(ExitCode::misuse):  // it has said why
      context.exit_code = ExitCode::misuse;
      return;
    case static_cast<int>(ExitCode::inconclusive):
      context.exit_code = ExitCode::inconclusive;
      break;
    default:
      throw Error(ErrorKind::internal, named, module + " ended with " + std::to_string(code));
  }
  if (json) {
    Json document = json_document(context.arguments);
    document.update(Json::parse(text));
    print_json(document);
  }
}

bool is_saved_server(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::string start(kSavedServer.size(), '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kSavedServer;
}

bool has(const std::vector<std::string>& arguments, const char* option) {
  return std::ranges::find(arguments, option) != arguments.end();
}

bool wants_help(const std::vector<std::string>& arguments) {
  return has(arguments, "--help") || has(arguments, "-h");
}

}  // namespace

void answer_planted(const PlantedArguments& arguments, bool json, ProgramContext& context) {
  std::vector<std::string> options{"--profile",    arguments.profile, "--kind",
                                   arguments.kind, "--processes",     std::to_string(arguments.processes)};
  if (json) options.emplace_back("--json");
  if (!arguments.faults.empty()) options.emplace_back("--");
  options.insert(options.end(), arguments.faults.begin(), arguments.faults.end());
  run_module("draftproof.planted", options, json, "--profile", "audits callables of", context);
}

bool audits_server(const std::vector<std::string>& arguments) {
  if (wants_help(arguments) && !find_python_with({"draftproof.server"})) return false;  // the program's own help
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.starts_with("http://") || argument.starts_with("https://")) return true;
    // The value of another option, as of --table, may be any file.
    const bool is_value = i > 0 && arguments[i - 1].starts_with("--") && arguments[i - 1] != "--json" &&
                          arguments[i - 1].find('=') == std::string::npos;
    if (is_value) continue;
    if (is_saved_server(argument)) return true;
    if (lacks_scheme(argument))
      throw usage_error("file", "there is no " + printable_line(argument) +
                                    "; a server's address begins with http://: http://" + printable_line(argument));
  }
  return false;
}

void answer_server(const std::vector<std::string>& arguments, ProgramContext& context) {
  std::signal(SIGINT, [](int) {});  // the module's to handle; a program that is started has the default again
  const bool json = has(arguments, "--json") && !wants_help(arguments);
  run_module("draftproof.server", arguments, json, "URL", "servers are audited by", context);
}

}  // namespace draftproof
