// Drafts accepted at every position of recorded requests: JSON lines, one request a line,
//
//   {"id": "134", "prompt_token_ids": [...], "generated_token_ids": [...],
//    "acc_eagle": {"acc_len": [...]}, "acc_ngram": {"acc_len": [...]}}
//
// as SpecDecode-Bench publishes them (Liu et al. 2601.11580). acc_len[p] is what a step with p output tokens before it
// would have emitted, the accepted drafts and one token more. (It is p and not p + 1: this project's own prompt lookup
// of 3 to 5 tokens, run over the token ids, then agrees with acc_ngram at 99.8 % of the positions, and at 78 % if moved
// by one.) A list may be shorter than the output; nothing is known behind its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

struct RecordedRequest {
  std::string id;
  std::vector<Token> prompt, output;   // token ids; empty where the file has none
  std::vector<std::uint8_t> accepted;  // [p] drafts accepted by a step behind p output tokens; at most 255
};

struct AcceptanceRecording {
  std::string drafter;  // "eagle" of the key acc_eagle
  std::vector<RecordedRequest> requests;
};

// drafter: whose acceptances to read; empty: eagle where there is one, else the first in alphabetical order. Errors
// (input) naming the file and the line: no JSON object, a drafter that is not there, an acc_len that is not a list of
// whole numbers in [1, 256], no line at all.
AcceptanceRecording read_recording(const std::string& path, const std::string& drafter = "");
// The same of text; `where` stands for the path.
AcceptanceRecording parse_recording(std::string_view text, const std::string& where, const std::string& drafter = "");

}  // namespace draftproof
