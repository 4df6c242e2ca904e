// Manual pages (man(7)): draftproof(1) is made from cli/verbs.hpp, draftproof-VERB(1) from the options of the verb.
#pragma once

#include <string>
#include <string_view>

namespace draftproof {

// Text as roff prints it. Line breaks stay, and no line is taken for a request.
inline std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

inline std::string manual_title(const std::string& name, const std::string& purpose) {
  std::string title;
  for (const char c : name) title += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return ".TH " + roff(title) + " 1 \"\" \"draftproof " DRAFTPROOF_VERSION "\"\n.SH NAME\n" + roff(name) + " \\- " +
         roff(purpose) + "\n";
}

inline std::string manual_end() {
  return ".SH EXIT STATUS\n0: success; 1: a failure, a mismatch or a bias; 2: a usage or input error, in one line on "
         "standard "
         "error;\n3: a bug of draftproof; 4: no answer for want of samples (audit).\n.SH SEE ALSO\n.BR draftproof "
         "(1)\n";
}

}  // namespace draftproof
