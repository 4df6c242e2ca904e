// Rules for writing to a terminal: colours where they are wanted, messages, and its width.
#pragma once

#include <string>

namespace draftproof {

enum class Colour { red, green, yellow, blue, magenta, cyan, grey, bold };

// True when the file descriptor (1 standard output, 2 standard error) is a terminal that understands escape codes.
bool is_terminal(int file_descriptor);

// True on a terminal, or with CLICOLOR_FORCE=1 also elsewhere; never with NO_COLOR (no-color.org), which wins.
bool wants_colour(int file_descriptor);

// One line on standard error, "draftproof: warning: ...", with the text made fit for a terminal (printable.hpp).
void print_message(const std::string& kind, const std::string& text);

// Columns of the terminal; 80 where that is not known.
int terminal_columns(int file_descriptor);

// Wraps text in escape codes, or returns it as it is when colours are off.
class Palette {
 public:
  explicit Palette(bool enabled) : enabled_(enabled) {}
  bool enabled() const { return enabled_; }
  std::string paint(Colour colour, const std::string& text) const;

 private:
  bool enabled_;
};

}  // namespace draftproof
