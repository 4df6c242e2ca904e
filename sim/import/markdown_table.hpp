// Tables of Markdown as the rows of a CSV: people publish measurements in them.
#pragma once

#include <functional>
#include <string_view>

#include "sim/csv.hpp"

namespace draftproof {

// The first table whose columns are `wanted`, wherever in the text it stands; without columns where there is none.
// Cells are without the marks of bold text and code; under a header in per cent, as "rate (%)", they have a percent
// sign, and the header has not; of "mean/std" the mean stays.
CsvTable markdown_table(std::string_view text, const std::function<bool(const CsvTable& header)>& wanted);

}  // namespace draftproof
