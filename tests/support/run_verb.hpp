// Runs of a verb that must answer with one JSON document, or refuse in one line.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/run_program.hpp"

namespace draftproof::testing {

// The document that `draftproof ARGUMENTS --json` prints, which must end with this exit code.
inline nlohmann::ordered_json json_of(std::vector<std::string> arguments, int exit_code = 0,
                                      const std::vector<std::string>& environment = {}) {
  arguments.emplace_back("--json");
  const ProgramResult run = run_draftproof(arguments, environment);
  INFO(run.err);
  REQUIRE(run.exit_code == exit_code);
  return nlohmann::ordered_json::parse(run.out);
}

// Exit code 2, nothing on standard output, and one line of error that has all of `words`.
inline void check_refused(const ProgramResult& run, const std::vector<std::string>& words) {
  CHECK(run.exit_code == 2);
  CHECK(run.out.empty());
  CHECK(run.err.starts_with("draftproof: error: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  for (const std::string& word : words) CHECK_THAT(run.err, Catch::Contains(word));
}

inline void check_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& words) {
  std::string line = "draftproof";
  for (const std::string& argument : arguments) line += " " + argument;
  INFO(line);
  check_refused(run_draftproof(arguments), words);
}

// The document that the command of a panel prints; `command` begins with draftproof.
inline nlohmann::ordered_json printed_by(const std::vector<std::string>& command, int exit_code = 0) {
  REQUIRE(command.front() == "draftproof");
  return json_of({command.begin() + 1, command.end()}, exit_code);
}

// Without what a document says of the run that wrote it.
inline nlohmann::ordered_json without_envelope(nlohmann::ordered_json document) {
  for (const char* const key : {"version", "commit", "command", "machine", "files"}) document.erase(key);
  return document;
}

// draftproof as so many processes of mpirun; none where it is missing, or was when the program was built.
inline std::optional<ProgramResult> run_with_mpi(const std::string& ranks, const std::vector<std::string>& arguments) {
  if (run_command({"sh", "-c", "command -v mpirun"}).exit_code != 0) {
    WARN("SKIPPED: there is no mpirun");
    return std::nullopt;
  }
  // Open MPI leaves memory behind that a leak sanitizer would report; what the ranks do is sanitized all the same.
  std::vector<std::string> words{"env",
                                 "ASAN_OPTIONS=detect_leaks=0",
                                 "mpirun",
                                 "--allow-run-as-root",
                                 "--oversubscribe",
                                 "-n",
                                 ranks,
                                 DRAFTPROOF_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  ProgramResult result = run_command(words);
  if (result.err.find("was built without MPI") == std::string::npos) return result;
  WARN("SKIPPED: the program was built without MPI");
  return std::nullopt;
}

inline bool gnuplot_is_here() {
  if (run_command({"sh", "-c", "command -v gnuplot"}).exit_code == 0) return true;
  WARN("SKIPPED: gnuplot is not installed");
  return false;
}

}  // namespace draftproof::testing
