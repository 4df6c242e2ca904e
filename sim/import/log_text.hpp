// Text of a file that may be a log of many hours: read in one pass, and of a long log only what readers take is kept.
#pragma once

#include <cstdint>
#include <string>

namespace draftproof {

struct LogText {
  std::string text;
  std::int64_t lines_left_out = 0;  // that a reader might have taken, in the middle of a log that has too many of them
};

// The bytes of a file, gzip unpacked; "-" is standard input. A text of more than `whole_most` bytes that has lines of
// servers' metrics keeps those lines alone, at most `kept_most` bytes of them from its beginning and its end; the
// others are empty lines, so that line numbers hold. Errors (input) naming the path: it cannot be read, damaged gzip,
// another text of more than 1 GiB.
LogText read_log_text(const std::string& path, std::uint64_t whole_most = std::uint64_t{1} << 26,
                      std::uint64_t kept_most = std::uint64_t{1} << 26);

}  // namespace draftproof
