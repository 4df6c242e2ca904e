// Paired comparisons of a study, and what it takes of a run's document.
#pragma once

#include <string>
#include <vector>

#include "cli/study/runs.hpp"
#include "cli/study/study_file.hpp"
#include "studies/figures/table.hpp"

namespace draftproof {

// Error (input) at `where`: the document has no list at the pointer.
const Json& list_at(const Json& document, const std::string& pointer, const std::string& where);

// A row a comparison. Errors (input): a list or a quantity that a document has not, lists of other items.
Table comparisons_of(const Study& study, const std::vector<FinishedRun>& all);

// Of one run, as soon as it is there: whether its document has what its table and the comparisons take. Errors (input).
void require_what_is_taken(const Study& study, const StudyRun& run, const Json& document);

}  // namespace draftproof
