// The one JSON document a subcommand answers with: the envelope that all share, and a writer that refuses what JSON
// cannot carry. The schema of every document is in docs/json.md.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "base/json_values.hpp"
#include "reference/step/consistency.hpp"

namespace draftproof {

using Json = nlohmann::ordered_json;

// A document that has `version`, `commit`, `command` (the arguments as one would type them) and `machine`; append the
// rest.
Json json_document(const std::vector<std::string>& arguments);

// The value itself. Internal error naming `name` for an infinity or NaN: JSON has no such numbers, and the library
// would print null. Where a number may be absent, say so with null on purpose.
double finite(const std::string& name, double value);

// Writes the document, indented by two, and a newline. Internal error naming the key of a number that is not finite;
// bytes that are not UTF-8 come out as U+FFFD. Input error naming `where` when the stream fails.
void write_json(std::ostream& out, const std::string& where, const Json& document);

// The same to standard output.
void print_json(const Json& document);

// The same to a file that appears complete or not at all.
void write_json_file(const std::string& path, const Json& document);

// The machine that a result was measured on, as every JSON document states it.

// `simd_target` is the set of row kernels in use (RowKernels::target). Facts the system does not tell are null.
nlohmann::ordered_json describe_machine(const std::string& simd_target);

// The report on draft and target parameters as JSON (docs/json.md), for every command that has one.

// null where no rows were measured.
Json consistency_json(const ConsistencyReport& report);

}  // namespace draftproof
