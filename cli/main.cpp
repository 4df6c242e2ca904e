// The program draftproof: knows every verb and starts the program that holds the one that is asked for, verbs/<program>
// beside it. A program is built when one of its verbs is first used, from what it needs.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/printable.hpp"
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

std::string help() {
  std::string text =
      "Exact sampling and speculative decoding: from logits to emitted tokens.\n"
      "Usage: draftproof [OPTIONS] SUBCOMMAND\n\n"
      "Options:\n"
      "  -h,--help                   Print this help message and exit\n"
      "  --version                   Print the version and exit\n\n"
      "Subcommands:\n";
  for (const Verb& verb : kVerbs) {
    std::string name = std::string("  ") + verb.name;
    name.resize(30, ' ');
    text += name + verb.purpose + "\n";
  }
  return text +
         "\nEvery subcommand has --help and --json. Exit codes: 0 success, 1 a finding, 2 a usage or input error,\n"
         "3 a bug of ours, 4 no answer for want of samples (audit).\n";
}

// The folder of this program, with a slash at its end.
std::string own_folder() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return "./";
  const std::string file(path.data(), static_cast<std::size_t>(length));
  return file.substr(0, file.rfind('/') + 1);
}

int start(const Verb& verb, char** arguments) {
  const std::string program = own_folder() + "verbs/" + verb.program;
  execv(program.c_str(), arguments);
  if (errno != ENOENT) return fail(program + " does not start: " + std::strerror(errno));
  return fail("'" + std::string(verb.name) + "' is not built here: " + program +
              " is missing; the launcher ./draftproof builds it, or ninja draftproof_verbs_" + verb.program);
}

int run(int argument_count, char** arguments) {
  if (argument_count < 2) return fail("a subcommand is required (see draftproof --help)");
  const std::string first = arguments[1];
  if (first == "--help" || first == "-h") return print(help());
  if (first == "--version") return print(DRAFTPROOF_VERSION "\n");
  for (const Verb& verb : kVerbs) {
    if (first == verb.name) return start(verb, arguments);
  }
  return fail("'" + first + "' is not a subcommand or option (see draftproof --help)");
}

}  // namespace
}  // namespace draftproof

int main(int argument_count, char** arguments) {
  return draftproof::run(argument_count, arguments);
}
