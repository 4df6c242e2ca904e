// Are rows that are given as probabilities really that? A file that holds logits under the name of probabilities, or
// rows that lost their normalisation, is refused before it can bias anything.
#pragma once

#include <span>
#include <string>

#include "reference/step/request.hpp"

namespace draftproof {

// Checks every target and draft row given as probabilities: numbers in [0, 1] that sum to 1 within 1e-3 (f32) or 2e-2
// (f16 and bf16, whose elements are rounded to 11 and 8 bits). Reads them all, on `threads` threads, but for the
// proposals of a tree's leaves, which mean nothing. Input error naming `path`, the request, its draft position, and the
// row and column of the tensor (of target rows `target_name`): the lowest request's.
void check_probability_rows(const std::string& path, std::span<const VerifyRequest> requests, int threads,
                            const char* target_name = "target_probs");

}  // namespace draftproof
