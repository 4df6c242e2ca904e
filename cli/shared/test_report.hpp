// Statistical tests as JSON and as a table, for every subcommand that judges some.
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"
#include "exactness/statistics/test_result.hpp"

namespace draftproof {

// One entry of `tests`; the schema is in docs/json.md.
Json test_json(const TestResult& test);
// Keys of that which are columns of a table.
std::vector<std::string> test_keys();

void print_tests(std::ostream& out, std::span<const TestResult> tests, const Palette& palette);

}  // namespace draftproof
