// A token id. Ids are signed so that -1 can mean padding, as in every engine's tensors.
#pragma once

#include <cstdint>

namespace draftproof {

using Token = std::int32_t;
inline constexpr Token kPaddingToken = -1;

}  // namespace draftproof
