// The program draftproof: knows every verb and starts the program that holds the one that is asked for,
// lib/draftproof/verbs/<program> below its prefix. A program is built when one of its verbs is first used, from what it
// needs. The program of the Python package (DRAFTPROOF_IN_ONE) holds the verbs itself.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/own_files.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "cli/shared/build_commit.hpp"
#include "cli/shared/manual_page.hpp"
#include "cli/verbs.hpp"

namespace draftproof {
namespace {

constexpr int kMisuse = 2;

int fail(const std::string& message) {
  std::fprintf(stderr, "draftproof: error: %s\n", printable_line(message).c_str());
  return kMisuse;
}

int print(const std::string& text) {
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? 0 : fail("standard output: could not be written; is the disk full?");
}

std::string help_line(const std::string& name, const std::string& purpose) {
  std::string line = "  " + name;
  line.resize(30, ' ');
  return line + purpose + "\n";
}

std::string help() {
  std::string text =
      "Exact sampling and speculative decoding: from logits to emitted tokens.\n"
      "Usage: draftproof [OPTIONS] SUBCOMMAND\n\n"
      "Options:\n"
      "  -h,--help                   Print this help message and exit\n"
      "  --version                   Print the version and its commit, and exit\n";
  std::string_view group;
  for (const Verb& verb : kVerbs) {
    if (verb.group != group) text += std::string("\n") + verb.group + "\n";
    group = verb.group;
    text += help_line(verb.name, verb.purpose);
  }
  return text + "\nShell\n" +
         help_line("completion",
                   "Print a script that completes verbs and options: eval \"$(draftproof completion bash)\"") +
         "\nEvery subcommand has --help and --json. Exit codes: 0 success, 1 a finding, 2 a usage or input error,\n"
         "3 a bug of ours, 4 no answer for want of samples (audit).\n";
}

// The manual page of the program itself; those of verbs come from their options (Options::parse_and_run).
std::string manual_page() {
  std::string page =
      manual_title("draftproof", "exact sampling and speculative decoding: from logits to emitted tokens") +
      ".SH SYNOPSIS\n.B draftproof\n.I VERB\n[OPTIONS]\n";
  std::string_view group;
  for (const Verb& verb : kVerbs) {
    if (verb.group != group) page += std::string(".SH ") + roff(verb.group) + "\n";
    group = verb.group;
    page += std::string(".TP\n.BR draftproof\\-") + verb.name + " (1)\n" + roff(verb.purpose) + "\n";
  }
  return page + manual_end();
}

#ifndef DRAFTPROOF_IN_ONE
std::filesystem::path program_of(const Verb& verb) {
  return program_prefix() / "lib" / "draftproof" / "verbs" / verb.program;
}

int start(const Verb& verb, int, char** arguments) {
  const std::string program = program_of(verb).string();
  execv(program.c_str(), arguments);
  if (errno != ENOENT) return fail(program + " does not start: " + std::strerror(errno));
  return fail("'" + std::string(verb.name) + "' is not built here: " + program +
              " is missing; the launcher ./draftproof builds it, or ninja draftproof_verbs_" + verb.program);
}
#else
int start(const Verb& verb, int argument_count, char** arguments) {
  if (std::string_view(verb.program) != "viz") return run_verb(argument_count, arguments);
  return fail("'" + std::string(verb.name) +
              "' is not in this program, which opens no window; a clone of the source has it: ./draftproof " +
              verb.name);
}
#endif

// Options are those that the verb's --help shows when the word is completed, so that there is no second list. A verb
// whose program is not built has none: this program builds nothing.
std::string completion() {
  std::string verbs;
  for (const Verb& verb : kVerbs) verbs += std::string(verb.name) + " ";
  return "# Completes draftproof in bash. In zsh: autoload -Uz bashcompinit && bashcompinit, before this is read.\n"
         "_draftproof() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} words=\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         verbs +
         "completion --help --version' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in completion) words=bash ;; esac\n"
         "  case $word in -*)\n"
         "    words=$(" +
         shell_command({std::filesystem::read_symlink("/proc/self/exe").string()}) +
         " \"${COMP_WORDS[1]}\" --help 2>/dev/null |\n"
         "      sed -nE 's/^  (-[A-Za-z],)?(--[a-z0-9-]+).*/\\2/p')\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _draftproof draftproof ./draftproof\n";
}

int run_completion(int argument_count, char** arguments) {
  const std::string usage = "completion bash (zsh reads it through bashcompinit)";
  const std::string shell = argument_count > 2 ? arguments[2] : "";
  if (shell == "--help" || shell == "-h") return print("Usage: draftproof " + usage + "\n");
  if (argument_count != 3 || shell != "bash") return fail("completion: expected draftproof " + usage);
  return print(completion());
}

int run(int argument_count, char** arguments) {
  if (argument_count < 2) {
    std::fputs((help() + "\n").c_str(), stderr);
    return fail("a subcommand is required; the help above lists them");
  }
  const std::string first = arguments[1];
  if (first == "--help" || first == "-h") return print(help());
  if (first == "--manual-page") return print(manual_page());
  if (first == "--version") return print(DRAFTPROOF_VERSION " (" + build_commit() + ")\n");
  for (const Verb& verb : kVerbs) {
    if (first == verb.name) return start(verb, argument_count, arguments);
  }
  if (first == "completion") return run_completion(argument_count, arguments);
  std::vector<std::string> known{"completion", "--help", "--version"};
  for (const Verb& verb : kVerbs) known.emplace_back(verb.name);
  return fail("'" + first + "' is not a subcommand or option" + did_you_mean(first, known) +
              " (see draftproof --help)");
}

}  // namespace
}  // namespace draftproof

int main(int argument_count, char** arguments) {
  return draftproof::run(argument_count, arguments);
}
