// The table as text, a line for each row as soon as it is measured.
#pragma once

#include <ostream>

#include "cli/shared/json_document.hpp"
#include "cli/speculate/options.hpp"
#include "engine/model/text_model.hpp"

namespace draftproof {

void print_head(std::ostream& out, const TextModel& model, const SpeculateGrid& grid);
// was_there: an earlier run measured it.
void print_row(std::ostream& out, const Json& row, bool was_there);
// Findings and files.
void print_tail(std::ostream& out, const Json& document);

Json left_out_json(const std::vector<LeftOut>& left_out);

}  // namespace draftproof
