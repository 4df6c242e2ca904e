// Requests as servers record them: when they came, how long prompt and output were.
//
//   CSV    with a header: our own, and those of the Azure, BurstGPT, Vidur and Splitwise traces
//   JSON   an object a line, or a list of objects: our own, and those of the Mooncake and Bailian traces
//
// The unit of a time follows from its name (arrival_s, timestamp_ms), its form (a date, "2024-05-10 00:00:00.01+00:00";
// a count since 1970) or by the keys beside it, which tell the public traces apart; where none does, the user is asked
// for it. Dates have a zone, all of them, or none has one. Other columns are not read. A request without output tokens
// failed, and is left out.
//
// A later turn of a session that has a `delay` comes so long after the end of the turn before it (Mooncake).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

struct RecordedArrival {
  std::int64_t arrival_ns = 0;  // since the first one; of a later turn, since the end of the turn before
  std::int32_t prompt_len = 0;
  std::int32_t output_len = 0;
  std::int64_t turn_before = -1;  // number of that request; -1: it comes by the clock
};

struct ArrivalTrace {
  std::vector<RecordedArrival> requests;  // those that come by the clock in ascending order
  std::string unit;                       // "s", "ms", "us", "ns" or "dates"
  std::int64_t left_out = 0;              // requests without output tokens
  std::int64_t later_turns = 0;           // with a turn before

  double seconds() const;  // from the first to the last that comes by the clock
};

// Does a file's first line have names of an arrival, a prompt's length and an output's?
bool names_arrivals(std::string_view line);

// unit: of times and delays, where the user says it; empty: the file's own. Errors (input) naming file and line: a
// missing column, a value that is no number, a length below 1, arrivals that go back, no request; naming --time-unit: a
// unit that nothing says, or that keys alone say and arrivals that are no server's (over 1000 a second, or a month
// apart on average).
ArrivalTrace read_arrivals_file(const std::string& path, const std::string& unit = "");
// The same of a text that is read.
ArrivalTrace parse_arrivals(std::string_view text, const std::string& name, const std::string& unit = "");

}  // namespace draftproof
