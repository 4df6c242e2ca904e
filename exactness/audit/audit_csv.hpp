// Single draws as text: counts, and the probabilities that they should follow.
//
//   COUNTS  group,token,count      PROBS  group,token,prob
//
// The first line names the columns, in any order; `group` may be left out (everything is group 0). Groups and tokens
// are whole numbers from 0. Counts of one cell add up. A token that PROBS does not list for a group has probability 0
// there. The text is UTF-8, with or without a byte-order mark, of at most 256 MiB a file.
#pragma once

#include <string>

#include "exactness/audit/audit_sample.hpp"

namespace draftproof {

// Errors (input) naming the file and the line: a column missing or unknown, a field that is no number or out of range,
// a probability given twice, a group that PROBS does not have, probabilities of a group that do not sum to 1 within
// 1e-3.
DrawSample read_audit_csv(const std::string& counts_path, const std::string& probs_path);

}  // namespace draftproof
