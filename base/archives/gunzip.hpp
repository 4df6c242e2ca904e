#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace draftproof {

// Contents of gzip's bytes, unpacked twice: once to count, so that no memory is taken before the bounds hold, and
// once into memory of that size. Errors (input) at `name`: damaged or cut off; more than `limit_bytes`; more than
// 64 MiB and 400 times its size, which no log is (logs pack to a twentieth or so, deflate's most is 1032 times).
std::string gunzip(std::string_view packed, const std::string& name, std::uint64_t limit_bytes);

}  // namespace draftproof
