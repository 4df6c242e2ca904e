// The subcommands of the program.
#include "cli/commands.hpp"

namespace draftproof {

void add_commands(CLI::App& app, ProgramContext& context) {
  add_audit_command(app, context);
  add_bench_command(app, context);
  add_demo_command(app, context);
  add_machine_command(app, context);
  add_mutants_command(app, context);
  add_prove_command(app, context);
  add_regress_command(app, context);
  add_soak_command(app, context);
  add_verify_command(app, context);
}

}  // namespace draftproof
