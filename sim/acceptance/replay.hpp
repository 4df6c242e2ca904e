// Acceptances as they were recorded: request r of a run is request r mod n of the recording.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.hpp"
#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

// Drafts accepted at every position of recorded requests: JSON lines, one request a line,
//
//   {"id": "134", "prompt_token_ids": [...], "generated_token_ids": [...],
//    "acc_eagle": {"acc_len": [...]}, "acc_ngram": {"acc_len": [...]}}
//
// as SpecDecode-Bench publishes them (Liu et al. 2601.11580). acc_len[p] is what a step with p output tokens before it
// would have emitted, the accepted drafts and one token more. (It is p and not p + 1: this project's own prompt lookup
// of 3 to 5 tokens, run over the token ids, then agrees with acc_ngram at 99.8 % of the positions, and at 78 % if moved
// by one.) A list may be shorter than the output; nothing is known behind its end.
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

class Replay final : public AcceptanceModel {
 public:
  // delay: a step behind p output tokens finds what is recorded for p - delay. 0 is what the recording means; its
  // authors' own simulation has 1. Error (usage): a recording without requests.
  explicit Replay(const AcceptanceRecording& recording, std::int32_t delay = 0);

  AcceptanceState begin(std::uint64_t request) const override {
    return {0, static_cast<std::int32_t>(request % (begins_.size() - 1)), 0};
  }
  // 0 behind the end of what is recorded.
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                        std::int32_t depth) const override;
  // Over all places that are recorded.
  std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const override;
  // Over the steps with `depth` drafts through all requests, each from its first token to the end of what is recorded.
  std::vector<double> survival_in_run(std::int32_t nodes, std::int32_t depth,
                                      std::int32_t context_len = 0) const override;

 private:
  std::int32_t delay_;
  std::vector<std::size_t> begins_;     // [n + 1] of the requests
  std::vector<std::uint8_t> accepted_;  // of all requests, one behind the other
};

}  // namespace draftproof
