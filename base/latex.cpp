#include "base/latex.hpp"

#include <array>
#include <cstdio>
#include <utility>

#include "base/printable.hpp"

namespace draftproof {
namespace {

constexpr std::array<std::pair<char, const char*>, 8> kNamed{{{'\\', "\\textbackslash{}"},
                                                              {'~', "\\textasciitilde{}"},
                                                              {'^', "\\textasciicircum{}"},
                                                              {'<', "\\textless{}"},
                                                              {'>', "\\textgreater{}"},
                                                              {'|', "\\textbar{}"},
                                                              {'"', "\\char34{}"},
                                                              {'`', "\\textasciigrave{}"}}};

std::string escaped(char c) {
  for (const auto& [character, name] : kNamed)
    if (c == character) return name;
  return std::string("&%$#_{}").find(c) == std::string::npos ? std::string(1, c) : std::string("\\") + c;
}

char32_t code_point_of(const std::string& character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  const std::size_t size = character.size();
  char32_t code = size == 1 ? byte(0) : byte(0) & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte(i) & 0x3fU);
  return code;
}

// Letters of Latin-1 but for eth and thorn, some signs, the letter that stands for a space in byte-level vocabularies,
// dashes and quotation marks: LaTeX composes them in any encoding.
bool has_glyph(char32_t code) {
  const bool letter = code >= 0xc0 && code <= 0xff && code != 0xd0 && code != 0xde && code != 0xf0 && code != 0xfe;
  return letter || code == 0xb0 || code == 0xb1 || code == 0xb7 || code == 0x120 || code == 0x2013 || code == 0x2014 ||
         (code >= 0x2018 && code <= 0x201d && code != 0x201a && code != 0x201b) || code == 0x2026;
}

std::string in_latex(const std::string& character) {
  if (character.size() == 1) return escaped(character.front());
  const char32_t code = code_point_of(character);
  if (has_glyph(code)) return character;
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "\\texttt{U+%04X}", static_cast<unsigned>(code));
  return text.data();
}

}  // namespace

std::string latex_text(std::string_view text) {
  const std::vector<PrintableCharacter> characters = printable_characters(printable_line(text));
  std::string out;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const std::string& character = characters[i].text;
    const bool at_end = i == 0 || i + 1 == characters.size();
    out += character == " " && at_end ? "\\textvisiblespace{}" : in_latex(character);
    if (character == "-" && i + 1 < characters.size() && characters[i + 1].text == "-") out += "{}";
  }
  return out;
}

std::string latex_number(std::string_view text) {
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent == std::string_view::npos)
    return text.starts_with('-') ? "$" + std::string(text) + "$" : std::string(text);
  std::string_view digits = text.substr(exponent + 1);
  std::string sign = digits.starts_with('-') ? "-" : "";
  while (digits.size() > 1 && (digits.front() == '-' || digits.front() == '+' || digits.front() == '0'))
    digits.remove_prefix(1);
  return "$" + std::string(text.substr(0, exponent)) + "\\times10^{" + sign + std::string(digits) + "}$";
}

std::string latex_fraction(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return latex_number(text);
  const bool negative = text.starts_with('-');
  return std::string("$") + (negative ? "-" : "") + "\\frac{" +
         std::string(text.substr(negative ? 1 : 0, slash - (negative ? 1 : 0))) + "}{" +
         std::string(text.substr(slash + 1)) + "}$";
}

std::string latex_comment(std::string_view text) {
  return "% " + printable_line(text) + "\n";
}

}  // namespace draftproof
