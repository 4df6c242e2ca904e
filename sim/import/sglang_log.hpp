// SGLang's decode lines and the summary of its benchmark:
//
//   [2026-07-21 15:00:13 TP0] Decode batch, #running-req: 24, #token: 233600, token usage: 0.66, accept len: 3.05,
//     accept rate: 0.68, cuda graph: True, gen throughput (token/s): 239.06, #queue-req: 2
//   Accept length:                           5.86
//   #questions: 80, Throughput: 276.30 token/s, Acceptance length: 5.36
//   accept_length: 3.1 (spec_accept_length, avg_spec_accept_length)
//
// The length has the bonus token. Lines cover equally many steps, and are weighted by their running requests. Of the
// tensor-parallel ranks of a group (TP1, ...) only the first is read; data-parallel ranks (DP1, ...) are groups. The
// rate is not used: versions divide by the drafts or by num_draft_tokens, which counts the root. K and trees are those
// of the server_args at the head of the log, where they are (server_setup.hpp). Servers that do not speculate write the
// same lines without a length. A decode line comes every decode_log_interval steps (40), and its throughput is of the
// time since the one before it: the #new-token of "Prefill batch" lines between the two were computed in it.
#pragma once

#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

bool is_sglang_log(std::string_view text);
// Errors (input) naming the line: a length that is no number of at least 1; and where no line has one, unless `plain`
// and one has a throughput: its data has no window.
AcceptanceData read_sglang_log(std::string_view text, const std::string& name, bool plain = false);

}  // namespace draftproof
