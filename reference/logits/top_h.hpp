// top-H decoding (Potraghloo, Azizi, Kundu, Pedram, arXiv 2509.02510): the longest prefix of the total order whose
// entropy, renormalised, is at most alpha times that of the whole, H(q) <= alpha H(p). The entropy of prefixes rises
// with every token (their Theorem 3), so that the greedy choice stops at the first one that exceeds the bound.
//
// The authors' code and transformers' `top_h` compare Sigma -p log p of the prefix, not renormalised, over the 100
// likeliest tokens alone: another set. The paper's definition is what is kept here.
#pragma once

#include "reference/logits/ranked_tokens.hpp"

namespace draftproof {

// alpha in (0, 1); the first token always stays. H = log(S / m_1) + (Sigma m_i d_i) / S: no logarithm of a mass that is
// small.
void keep_top_h(float alpha, Ranked& tokens);

}  // namespace draftproof
