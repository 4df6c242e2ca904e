// Rank tests of a number for each row: is a group greater than the others, does the number grow with another?
#pragma once

#include <span>
#include <vector>

namespace draftproof {

// Ranks from 1, ties at their mean.
std::vector<double> ranks_of(std::span<const double> values);

// P-value of the Mann-Whitney test that `values` where `in_group` holds are greater than the others: normal
// approximation with the correction for ties; 1 where either side is empty or all values tie.
double group_is_greater(std::span<const double> values, const std::vector<bool>& in_group);

// P-value of Spearman's test that `values` grow with `along`: normal approximation; 1 where either is constant.
double grows_along(std::span<const double> values, std::span<const double> along);

double median_of(std::vector<double> values);  // 0 of none

}  // namespace draftproof
