// The files of the filter and processor families, each of which holds the mutants of one idea.
#pragma once

#include <initializer_list>
#include <vector>

#include "reference/exactness/mutants/mutant.hpp"

namespace draftproof {

std::vector<Mutant> top_k_mutants();         // B46 B47 B48 B62
std::vector<Mutant> top_p_mutants();         // B49 B50 B51 B52 B76
std::vector<Mutant> filter_order_mutants();  // B63 B64
std::vector<Mutant> row_mapping_mutants();   // B56 B58
std::vector<Mutant> out_of_range_mutants();  // B54 B60 B61

std::vector<Mutant> history_mutants();    // B68 B69 B71
std::vector<Mutant> draft_row_mutants();  // B67 B73 B74
std::vector<Mutant> mixed_row_mutants();  // B66 B75

// All of them, sorted by id.
std::vector<Mutant> in_order_of_ids(std::initializer_list<std::vector<Mutant> (*)()> families);

}  // namespace draftproof
