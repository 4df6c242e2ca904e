// Counts of each request of a row, which `speculate` writes and `validate --this-machine` reads.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "sim/machine/speedup_prediction.hpp"

namespace draftproof {

Json counted_requests_json(std::span<const CountedRequest> requests);
// Errors (input) at `where`: a count that is missing, or no whole number.
std::vector<CountedRequest> read_counted_requests(const Json& requests, const std::string& where);

}  // namespace draftproof
