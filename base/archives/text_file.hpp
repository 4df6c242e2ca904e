// Text that people hand over: a file, standard input, or either of them as gzip.
#pragma once

#include <cstdint>
#include <string>

namespace draftproof {

// As UTF-8 with line feeds (text_encoding.hpp). "-" is standard input, which is read once for all calls. Gzip (RFC
// 1952, one member or several) is unpacked. Errors (input) naming the path: as InputFile, more than `limit_bytes`
// packed or unpacked, gzip that gunzip refuses.
std::string read_text(const std::string& path, std::uint64_t limit_bytes);

}  // namespace draftproof
