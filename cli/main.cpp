// The program: parses the command line and turns what subcommands throw into exit codes.
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "cli/commands.hpp"
#include "reference/error.hpp"

namespace draftproof {
namespace {

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

int fail(ExitCode code, const std::string& kind, const std::string& message) {
  std::cerr << "draftproof: " << kind << ": " << one_line(message) << '\n';
  return static_cast<int>(code);
}

// "draftproof machine" when the error lies in that subcommand's options, else "draftproof".
std::string deepest_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app.get_name() : app.get_name() + " " + deepest_command(*parsed.front());
}

// CLI11 says "A subcommand is required" of a misspelt one; this says which word it did not know.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto unknown = app.remaining();
  const bool misspelt = app.get_subcommands().empty() && !unknown.empty();
  const std::string what = misspelt ? "'" + unknown.front() + "' is not a subcommand or option" : error.what();
  return what + " (see " + deepest_command(app) + " --help)";
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

  CLI::App app{"Exact sampling and speculative decoding: from logits to emitted tokens.", "draftproof"};
  app.set_version_flag("--version", DRAFTPROOF_VERSION);
  app.require_subcommand(1);
  add_commands(app, context);
  app.footer("Every subcommand has --help and --json. Exit codes: 0 success, 1 a finding, 2 a usage or input error.");
  try {
    return static_cast<int>(parse_and_run(app, context, argument_count, arguments));
  } catch (const CLI::ParseError& error) {
    return fail(ExitCode::misuse, "error", explain(app, error));
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
  return draftproof::run(argument_count, arguments);
}
