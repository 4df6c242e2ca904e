// Lines that llama.cpp prints of speculation, with prefixes of any kind (times, journald, a router's "[PORT] "):
//
//   slot print_timing: id 1 | task 0 |        eval time = 2296.72 ms / 256 tokens (...)
//   slot print_timing: id 1 | task 0 | draft acceptance = 0.64479 (167 accepted / 259 generated), mean acceptance
//     length = 2.92, acceptance rate per position = (0.805, 0.632, 0.483)
//       a request of llama-server. Rates are unconditional, over the steps that verified a draft. Since August 2026
//       "mean len" and the rates, "acc per pos = (...)", a line later; before May 2026 "draft acceptance rate", and
//       nothing behind its counts: then the tokens of "eval time" say how many steps there were, those without a draft
//       included
//   statistics draft-eagle3: #calls(b,g,a) = 1 87 87, #gen drafts = 87, #acc drafts = 70, #gen tokens = 259,
//     #acc tokens = 167, #mean acc len = 2.92, #acc rate/pos = (0.805, 0.632, 0.483), dur(b,g,a) = ...
//       of one drafter since the server's start (since December 2025, at first "#calls = 15" and no lengths)
//   slot update_slots: id 3 | task 0 | accepted 2/3 draft tokens, new n_tokens = 18
//       a step, where debugging is on
//   n_draft = 2, n_predict = 259, n_drafted = 178, n_accept = 170, a line each
//       a run of llama-speculative, llama-speculative-simple or llama-lookup, since 2023
#pragma once

#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

bool is_llama_cpp_log(std::string_view text);
// server: the model, or the port, of a router's log with several servers that speculate; empty: the only one. Errors
// (input): several servers and none chosen, or none of this name; no line of the above; more accepted than drafted;
// naming the line: a count that is none.
AcceptanceData read_llama_cpp_log(std::string_view text, const std::string& name, const std::string& server = "");

}  // namespace draftproof
