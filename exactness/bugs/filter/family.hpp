// The files of the filter and processor families, each of which holds the bugs of one idea.
#pragma once

#include <initializer_list>
#include <vector>

#include "exactness/bugs/bug.hpp"

namespace draftproof {

std::vector<Bug> top_k_bugs();         // B46 B47 B48 B62
std::vector<Bug> top_p_bugs();         // B49 B50 B51 B52 B76
std::vector<Bug> filter_order_bugs();  // B63 B64
std::vector<Bug> row_mapping_bugs();   // B56 B58
std::vector<Bug> out_of_range_bugs();  // B54 B60 B61

std::vector<Bug> history_bugs();    // B68 B69 B71
std::vector<Bug> draft_row_bugs();  // B67 B73 B74
std::vector<Bug> mixed_row_bugs();  // B66 B75

// All of them, sorted by id.
std::vector<Bug> in_order_of_ids(std::initializer_list<std::vector<Bug> (*)()> families);

}  // namespace draftproof
