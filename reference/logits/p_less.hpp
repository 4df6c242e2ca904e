// p-less sampling (Tan, Wu, Howard, arXiv 2509.23234): keeps the tokens at least as likely as a draw from the row is to
// hit a draw from it, p_i >= Sigma p_j^2. p-less-norm lowers the threshold to (V Sigma p_j^2 - 1) / (V - 1), 0 for the
// uniform row.
//
// The paper takes p after the temperature, over the whole row. It does not say what V or p are behind other filters:
// here p is renormalised over what they left, and V is the vocabulary, as in the authors' code, where dropped tokens
// are zeros.
#pragma once

#include <cstdint>

#include "reference/logits/ranked_tokens.hpp"

namespace draftproof {

// In integers: m_i S >= Sigma m_j^2, or m_i S (V - 1) >= V Sigma m_j^2 - S^2. Ties stay.
void keep_p_less(bool norm, std::int64_t vocab_size, Ranked& tokens);

}  // namespace draftproof
