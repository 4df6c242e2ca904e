// What a subcommand is made of. To add one: write cli/<name>.cpp with the function declared here, and call it in
// commands.cpp. The function declares the options; its callback does the work, writes to standard output, and throws
// Error.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace draftproof {

enum class ExitCode {
  success = 0,
  finding = 1,   // the answer is "no": a distribution that is not exact, files that differ
  misuse = 2,    // a wrong option or input; one line on standard error
  internal = 3,  // a bug of ours
};

// What main() and the subcommands share. It outlives the parse.
struct ProgramContext {
  std::vector<std::string> arguments;      // those of main(), the first one replaced by "draftproof"
  ExitCode exit_code = ExitCode::success;  // a callback that has a finding says so here
};

// The flag that every subcommand has: one JSON document on standard output instead of text (cli/README.md).
inline void add_json_flag(CLI::App& command, bool& wanted) {
  command.add_flag("--json", wanted, "One JSON document on standard output (schema: cli/README.md)");
}

// All subcommands of this program (commands.cpp; that for a bare GPU machine: gpu/standalone/commands.cpp).
void add_commands(CLI::App& app, ProgramContext& context);

void add_audit_command(CLI::App& app, ProgramContext& context);
void add_bench_command(CLI::App& app, ProgramContext& context);
void add_demo_command(CLI::App& app, ProgramContext& context);
void add_machine_command(CLI::App& app, ProgramContext& context);
void add_mutants_command(CLI::App& app, ProgramContext& context);
void add_prove_command(CLI::App& app, ProgramContext& context);
void add_regress_command(CLI::App& app, ProgramContext& context);
void add_soak_command(CLI::App& app, ProgramContext& context);
void add_verify_command(CLI::App& app, ProgramContext& context);

}  // namespace draftproof
