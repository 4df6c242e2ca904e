// Unicode normalisation, which some tokenizers do before anything else.
#pragma once

#include <string>
#include <string_view>

namespace draftproof {

// The composed form, NFC. Text need not be UTF-8: what is between bytes that are none is normalised, and they stay.
std::string to_nfc(std::string_view text);

}  // namespace draftproof
