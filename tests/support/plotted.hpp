// Points that a figure plots: the numbers of a data block of its script.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

namespace draftproof::testing {

using PlottedRows = std::vector<std::vector<double>>;

// Names, which stand in quotes, are left out.
inline void check_plotted(const std::string& script, const std::string& block, const PlottedRows& expected) {
  INFO(block << " of\n" << script);
  const std::string head = "$" + block + " << EOD\n";
  const std::size_t at = script.find(head);
  REQUIRE(at != std::string::npos);
  std::istringstream lines(script.substr(at + head.size()));
  PlottedRows rows;
  for (std::string line; std::getline(lines, line) && line != "EOD";) {
    std::istringstream words(line);
    std::vector<double>& row = rows.emplace_back();
    for (std::string word; words >> word;)
      if (word.front() != '"') row.push_back(std::stod(word));
  }
  REQUIRE(rows.size() == expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(rows[i].size() == expected[i].size());
    for (std::size_t j = 0; j < rows[i].size(); ++j)
      CHECK((std::isfinite(expected[i][j]) ? rows[i][j] == Approx(expected[i][j]).epsilon(1e-5).margin(1e-9)
                                           : std::isnan(rows[i][j])));
  }
}

}  // namespace draftproof::testing
