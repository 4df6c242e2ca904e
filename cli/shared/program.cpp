// The program of a set of verbs: parses the command line and turns what the verb throws into exit codes. It is
// started by draftproof (cli/main.cpp) with the arguments that draftproof got; main() is made by cli/CMakeLists.txt.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/files/inputs_read.hpp"
#include "base/files/signal_cleanup.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/verbs.hpp"

namespace draftproof {
namespace {

int fail(ExitCode code, const std::string& kind, const std::string& message) {
  print_message(kind, message);
  return static_cast<int>(code);
}

void flush_standard_output() {
  if (!std::cout.flush()) throw input_error("standard output", "could not be written; is the disk full?");
}

// The file, named by whoever started this command (study), that takes what it has read: an object of digests by name.
// Empty: nobody asks. Later programs that this one starts are not asked.
std::string asked_for_inputs() {
  const char* const file = std::getenv("DRAFTPROOF_INPUTS");
  const std::string path = file == nullptr ? "" : file;
  unsetenv("DRAFTPROOF_INPUTS");
  if (!path.empty()) record_inputs();
  return path;
}

void tell_inputs(const std::string& path) {
  if (path.empty()) return;
  using Json = nlohmann::json;
  std::ofstream file(path, std::ios::binary);
  file << Json(inputs_recorded()).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!file.flush()) throw input_error(path, "could not be written; is the disk full?");
}

// Throws Error.
void parse_and_run(ProgramContext& context) {
  const std::string name = context.arguments.size() > 1 ? context.arguments[1] : "";
  const auto verb = std::find_if(std::begin(kVerbs), std::end(kVerbs), [&](const Verb& v) { return v.name == name; });
  const auto command =
      std::find_if(commands().begin(), commands().end(), [&](const Command& c) { return c.name == name; });
  if (verb == std::end(kVerbs) || command == commands().end())
    throw usage_error("", "'" + name + "' is not a subcommand (see draftproof --help)");
  const auto has = [&](const char* option) {
    return std::ranges::find(context.arguments, option) != context.arguments.end();
  };
  std::optional<SignalCleanup> without_json;  // which is written at the end
  if (has("--json")) without_json.emplace(SignalNote{"draftproof: interrupted; no JSON was written\n"});
  Options options(verb->name, verb->purpose);
  command->add(options, context);
  options.parse_and_run({context.arguments.begin() + 1, context.arguments.end()});
  flush_standard_output();
  if (*verb->next != 0 && is_terminal(1) && is_terminal(2) && !has("--json") && !has("--help") && !has("-h"))
    print_message("next", verb->next);
}

}  // namespace

int run_verb(int argument_count, char** arguments) {
  clean_up_on_signals();
  protect_inputs();
  const std::string inputs_file = asked_for_inputs();
  ProgramContext context;
  context.arguments.assign(arguments, arguments + argument_count);
  if (context.arguments.empty()) context.arguments.emplace_back();
  context.arguments.front() = "draftproof";

  try {
    parse_and_run(context);
    tell_inputs(inputs_file);
    return static_cast<int>(context.exit_code);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) return fail(ExitCode::internal, "internal error", error.what());
    return fail(ExitCode::misuse, "error", error.what());
  } catch (const std::filesystem::filesystem_error& error) {  // of a name from outside, as one that is too long
    const Error named = input_error(error.path1().string(), error.code().message());
    return fail(ExitCode::misuse, "error", named.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::misuse, "error",
                "out of memory: these values and files need more than there is; expected smaller ones");
  } catch (const std::exception& error) {
    return fail(ExitCode::internal, "internal error", error.what());
  }
}

}  // namespace draftproof
