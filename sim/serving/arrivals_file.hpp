// Requests as servers record them: when they came, how long prompt and output were.
//
//   CSV    with a header. Arrival: arrival_s, timestamp or TIMESTAMP, in seconds or as a date "2023-11-16
//          18:15:46.68"; prompt: prompt_len, input_length, ContextTokens or Request tokens; output: output_len,
//          output_length, GeneratedTokens or Response tokens (the Azure and BurstGPT traces). Other columns are not
//          read.
//   JSONL  an object a line with the same keys; `timestamp` is in milliseconds (the Mooncake trace), `arrival_s` in
//          seconds
// Arrivals are counted from the first one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace draftproof {

struct RecordedArrival {
  std::int64_t arrival_ns = 0;
  std::int32_t prompt_len = 0;
  std::int32_t output_len = 0;
};

// A file whose name ends in .jsonl is JSONL. Errors (input) naming file and line: a missing column, a value that is no
// number, a length below 1, arrivals that go back, no request.
std::vector<RecordedArrival> read_arrivals_file(const std::string& path);

}  // namespace draftproof
