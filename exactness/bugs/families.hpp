// Bugs by folder and file, each file those of one idea.
#pragma once

#include <vector>

#include "exactness/bugs/bug.hpp"

namespace draftproof {

std::vector<Bug> shared_race_bugs();    // B01
std::vector<Bug> shared_key_bugs();     // decisions of one request: B03, B04, B05, B11, B15
std::vector<Bug> barrier_bugs();        // B06
std::vector<Bug> shared_seed_bugs();    // requests of one batch: B07, B08, B09, B14
std::vector<Bug> lost_write_bugs();     // B10
std::vector<Bug> rank_bugs();           // B12
std::vector<Bug> shared_number_bugs();  // draws of right marginals that depend on each other: B77, B79

std::vector<Bug> infinite_noise_bugs();  // B16 B21
std::vector<Bug> coin_bugs();            // B17 B18 B19 B20 B103
std::vector<Bug> short_tail_bugs();      // B22 B23 B25
std::vector<Bug> running_sum_bugs();     // B26
std::vector<Bug> tile_end_bugs();        // B78

std::vector<Bug> other_distribution_bugs();  // B27 B28 B30 B34 B86 B104
std::vector<Bug> in_place_edit_bugs();       // B31/32
std::vector<Bug> tree_row_bugs();            // B36
std::vector<Bug> block_bugs();               // B37 B80
std::vector<Bug> residual_bugs();            // B38 B39 B40 B83
std::vector<Bug> misaligned_row_bugs();      // B43/45
std::vector<Bug> draft_length_bugs();        // B87 B91
std::vector<Bug> reranked_tree_bugs();       // B88

std::vector<Bug> top_k_bugs();         // B46 B47 B48 B62
std::vector<Bug> top_p_bugs();         // B49 B50 B51 B52 B76
std::vector<Bug> filter_order_bugs();  // B63 B64
std::vector<Bug> row_mapping_bugs();   // B56 B58
std::vector<Bug> out_of_range_bugs();  // B54 B60 B61

std::vector<Bug> history_bugs();    // B68 B69 B71
std::vector<Bug> draft_row_bugs();  // B67 B73 B74
std::vector<Bug> mixed_row_bugs();  // B66 B75

std::vector<Bug> draft_mask_bugs();     // B92 B95 B96 B97 B100
std::vector<Bug> grammar_state_bugs();  // B93 B94
std::vector<Bug> mask_order_bugs();     // B98 B99
std::vector<Bug> masked_draft_bugs();   // B101 B102

}  // namespace draftproof
