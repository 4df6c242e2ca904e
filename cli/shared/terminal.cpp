#include "cli/shared/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>

#include "base/printable.hpp"

namespace draftproof {
namespace {

// Empty where the variable is not set.
std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

bool is_terminal(int file_descriptor) {
  const std::string kind = environment("TERM");
  return isatty(file_descriptor) == 1 && !kind.empty() && kind != "dumb";
}

bool wants_colour(int file_descriptor) {
  if (!environment("NO_COLOR").empty()) return false;
  const std::string force = environment("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  return is_terminal(file_descriptor);
}

void print_message(const std::string& kind, const std::string& text) {
  std::cerr << "draftproof: " + kind + ": " + printable_line(text) + "\n";
}

int terminal_columns(int file_descriptor) {
  winsize size{};
  if (ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string Palette::paint(Colour colour, const std::string& text) const {
  // Select Graphic Rendition codes in the order of the enum; grey is "bright black".
  static constexpr std::array<const char*, 8> kCodes = {"31", "32", "33", "34", "35", "36", "90", "1"};
  if (!enabled_ || text.empty()) return text;
  return std::string("\033[") + kCodes.at(static_cast<std::size_t>(colour)) + "m" + text + "\033[0m";
}

}  // namespace draftproof
