// The main program of a verb: parses the command line and turns what the verb throws into exit codes. It is started by
// draftproof (cli/main.cpp) with the arguments that draftproof got.
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "cli/shared/command.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/verbs.hpp"
#include "reference/error.hpp"
#include "reference/files/signal_cleanup.hpp"

namespace draftproof {
namespace {

int fail(ExitCode code, const std::string& kind, const std::string& message) {
  print_message(kind, message);
  return static_cast<int>(code);
}

void flush_standard_output() {
  if (!std::cout.flush()) throw input_error("standard output", "could not be written; is the disk full?");
}

// Throws CLI::ParseError or Error.
ExitCode parse_and_run(CLI::App& app, const ProgramContext& context, int argument_count, char** arguments) {
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::Success& help_or_version) {
    app.exit(help_or_version);
  }
  flush_standard_output();
  return context.exit_code;
}

int run(int argument_count, char** arguments) {
  ProgramContext context;
  context.arguments.assign(arguments, arguments + argument_count);
  if (context.arguments.empty()) context.arguments.emplace_back();
  context.arguments.front() = "draftproof";

  CLI::App app{"", "draftproof"};
  app.require_subcommand(1);
  const std::string name = argument_count > 1 ? arguments[1] : "";
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) add_command(*app.add_subcommand(verb.name, verb.purpose), context);
  }
  try {
    return static_cast<int>(parse_and_run(app, context, argument_count, arguments));
  } catch (const CLI::ParseError& error) {
    return fail(ExitCode::misuse, "error", error.what() + (" (see draftproof " + name + " --help)"));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) return fail(ExitCode::internal, "internal error", error.what());
    return fail(ExitCode::misuse, "error", error.what());
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::internal, "internal error", "out of memory");
  } catch (const std::exception& error) {
    return fail(ExitCode::internal, "internal error", error.what());
  }
}

}  // namespace
}  // namespace draftproof

int main(int argument_count, char** arguments) {
  draftproof::clean_up_on_signals();
  return draftproof::run(argument_count, arguments);
}
