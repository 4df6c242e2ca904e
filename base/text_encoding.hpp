// Text in the encodings that programs write it in: UTF-8 is what every reader of ours takes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace draftproof {

// `text` as UTF-8 with line feeds alone; nothing where it is so already. Reads UTF-16 in both byte orders, with a byte
// order mark or, where its first two characters are ASCII, without (as PowerShell's > and RFC 4627 have them), and
// drops the byte order mark of UTF-8 and the carriage returns before line feeds. Halves of a surrogate pair become
// U+FFFD; a last odd byte, of a file that was cut, is left out.
std::optional<std::string> as_utf8(std::string_view text);

}  // namespace draftproof
