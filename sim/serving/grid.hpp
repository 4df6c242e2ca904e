// A grid of scenarios: one scenario with lists of values for some of its keys, and every combination of them a point.
//
//   scenario = "chat.toml"            # beside the grid
//   [grid]
//   "workload.arrivals.rate" = [4, 8, 16]
//   "policy.1.speculation" = ["fixed:3", "fixed:5"]
//
// The last key changes fastest.
#pragma once

#include <string>
#include <vector>

#include "base/files/inputs_read.hpp"
#include "sim/serving/comparison.hpp"
#include "sim/serving/row_store.hpp"

namespace draftproof {

class Grid {
 public:
  // Errors (input) at FILE:LINE: of the grid, of its scenario, and of any of its points.
  explicit Grid(const std::string& path);

  std::size_t size() const { return size_; }
  Scenario scenario(std::size_t point) const;
  // A digest of the contents of all files that its points come from (grid, scenario, what they name) and of the
  // presets: grids with equal digests have equal rows.
  const std::string& identity() const { return identity_; }

  // Columns of the rows: the policy, the keys of the grid, and what is measured.
  std::vector<std::string> columns() const;
  // Runs a point; a row for each policy. Its errors name the point; one (input) is that a file has changed since the
  // grid was read.
  std::vector<Row> run(std::size_t point) const;

 private:
  const TomlValue& value(std::size_t point, std::size_t key) const;
  // As "point 3 (serving.max_batch = 8)".
  std::string point_name(std::size_t point) const;
  std::vector<PolicyReport> reports_of(std::size_t point) const;

  ContentsRead contents_;
  TomlValue scenario_;
  std::vector<std::string> keys_;
  std::vector<std::vector<TomlValue>> values_;  // of each key
  std::size_t size_ = 1;
  std::string identity_;
};

}  // namespace draftproof
