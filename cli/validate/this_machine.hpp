// The loop closed on this computer: a few timed passes predict what `draftproof speculate` measured.
#pragma once

#include <string>

#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"

namespace draftproof {

inline constexpr const char* kSpeculateTable = "out/speculate/result.json";

// The document. `table`: the result of `draftproof speculate`, made on this computer. Errors (usage, input): it is not
// there, of another computer, or of a model that cannot be opened.
Json validate_this_machine(const std::string& table, bool json, const ProgramContext& context);

}  // namespace draftproof
