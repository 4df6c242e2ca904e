#include "base/archives/gunzip.hpp"

#include "base/error.hpp"

namespace draftproof {

std::string gunzip(std::string_view, const std::string& name, std::uint64_t) {
  throw input_error(name, "is gzip, which this build cannot unpack; expected the text itself (gunzip)");
}

}  // namespace draftproof
