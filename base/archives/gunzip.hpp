#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace draftproof {

// What gzip's bytes hold. Errors (input) at `name`: damaged or cut off, or more than `limit_bytes`.
std::string gunzip(std::string_view packed, const std::string& name, std::uint64_t limit_bytes);

}  // namespace draftproof
