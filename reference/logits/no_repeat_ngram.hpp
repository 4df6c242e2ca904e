// No n-gram twice (Paulus, Xiong, Socher, arXiv 1705.04304, for n = 3 and the output; transformers'
// `no_repeat_ngram_size`, over prompt and output, which is what is done here): the tokens that would make the last n
// tokens of the text equal to n consecutive ones before are masked.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

// Ascending ids, each once; none where the text has fewer than n tokens. n >= 1; n = 1 masks every token of the text.
std::vector<Token> repeating_tokens(std::span<const Token> text, std::size_t n);

}  // namespace draftproof
