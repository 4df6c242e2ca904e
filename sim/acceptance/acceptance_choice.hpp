// Acceptance models by name, as people write them on command lines and in scenarios.
//
//   constant:0.8                               every draft, given those before it
//   positions:0.78,0.63,0.44                   conditional: draft i, given those before it (EAGLE's n-alpha)
//   unconditional:0.78,0.49,0.22               the first i drafts (vLLM's per-position acceptance rate)
//   ranks:0.63,0.11,0.06                       the i-th child of a node is the accepted one (Sequoia's vector)
//   beta:mean=0.7,spread=0.15,decay=1          a rate for each request, Beta distributed with this standard deviation;
//                                              times `decay` with each position
//   markov:good=0.9,bad=0.4,to_bad=0.05,to_good=0.1
//                                              two regimes along the text
//   entropy:mean=1,gamma=0.2,memory=0.5        driven by the entropy of the target's rows (regime_chain.hpp)
//   replay:FILE, replay:drafter=ngram,file=FILE
//                                              recorded acceptances (recording.hpp)
//   verifier:vocab=128,zipf=1,noise=1,drafts=8,tree=4x2,samples=2000,by=block
//                                              a verifier of the reference on synthetic pairs (verifier_rates.hpp);
//                                              `by` comes last, and the verifier's own parameters may follow it
//   published:DSpark, published:drafter=DSpark,domain=code,length=5.38
//                                              conditional, by slot, of a head as published (sim/presets/drafters;
//                                              domains: mathematics, code, chat; default: chat), with +block of its
//                                              training behind it; `length`: all odds times one factor, so that a step
//                                              of its published slots yields so many tokens
// Behind any of them may stand, in any order but that confidences come before +context,
//
//   +block:trained=7,factor=0.965              drafts longer than `trained` have all rates times factor for each draft
//                                              more (block_decay.hpp)
//   +confidence:explained=0.3,error=0          the drafter says how likely each draft is, before it is drawn
//                                              (confidences.hpp)
//   +context:trained=2048,half=4096            rates fall behind so many tokens of context (context_decay.hpp)
//
// Named parameters that are left out have the values above (but for tree and length: none). Positions behind the last
// one that is given have its rate, conditionally.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

// `seed` is that of the run. Errors (usage) at `where`: an unknown model or parameter, one given twice, a value outside
// its range; (input) those of a recording.
std::shared_ptr<const AcceptanceModel> make_acceptance(std::string_view text, std::uint64_t seed,
                                                       const std::string& where);

}  // namespace draftproof
