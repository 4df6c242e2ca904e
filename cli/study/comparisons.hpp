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

// How many pairs each comparison with a wished difference needs, in sentences: by the spread of the pairs that are in
// the folder of a pilot (a study with runs of these names; empty: none), else by the file's own. Errors (input): a
// document of the pilot has not what is compared; (usage): there is no such folder.
std::vector<std::string> planned_pairs(const Study& study, const std::string& pilot);

// A forest plot, a gnuplot script: the difference of each comparison with its interval and 0, in per cent of b where
// all b have a mean above 0.
std::string forest_plot(const Table& comparisons);

// A row a comparison. Errors (input): a list or a quantity that a document has not, lists of other items.
Table comparisons_of(const Study& study, const std::vector<FinishedRun>& all);

// Checks one run as soon as it is there: its document must have what its table and comparisons take. Errors (input).
void require_what_is_taken(const Study& study, const StudyRun& run, const Json& document);

}  // namespace draftproof
