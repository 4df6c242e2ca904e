#pragma once

#include <string>
#include <string_view>

namespace draftproof {

// For a text in which nothing is known: the three likeliest formats, by words of theirs in its first 64 KiB, and what
// each of them would have needed. "It looks most like vLLM's log (which needs ...), ..."
std::string likely_formats(std::string_view text);

}  // namespace draftproof
