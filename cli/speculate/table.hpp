// The table as it grows: one JSON document with all rows, which is what a later run reads back, the same rows as CSV,
// and a figure. Each file appears complete or not at all, so a row is there whole or not; JSON and CSV are both written
// before one of them appears.
#pragma once

#include <string>
#include <vector>

#include "base/files/descriptor.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/speculate/options.hpp"

namespace draftproof {

struct SpeculateRow;

class SpeculateTable {
 public:
  // Rows that the folder of an earlier run holds are taken over. `settings`: what all rows of a table have in common.
  // Errors at --out (usage): the folder's table has other settings, or another process writes it; (input) its file is
  // no table, or cannot be read;
  // a file of the table could not be written, or is one that was read.
  SpeculateTable(const std::string& folder, const Json& settings);

  // Error at --out (usage): there are rows of this drafter and policy, and they come from other files
  // (Measurement::inputs_sha256()).
  void require_same_inputs(const Configuration& configuration, const std::string& inputs_sha256) const;
  // The row of this work and configuration; null where it has not been measured.
  const Json* find(const std::string& work, const Configuration& configuration, std::int64_t batch) const;
  // Adds a row and writes the table.
  void add(const Json& row, const Json& document);
  // Writes `document` with settings, rows and files.
  void write(const Json& document) const;
  // Draws the speedups. Empty, or why there is no figure.
  std::string draw();

  Json document(const Json& envelope) const;
  // A gnuplot script of the speedups.
  std::string figure() const;
  // The rows as CSV.
  std::string csv() const;
  const Json& rows() const { return rows_; }

 private:
  Descriptor lock_;  // of the folder: two that went on with one table would lose each other's rows
  std::string json_path_;
  std::string csv_path_;
  std::string figure_path_;
  bool drawn_ = false;
  Json settings_;
  Json rows_ = Json::array();
};

// "suffix K=4", "layer_skip:10-14 2x2x1", with the temperature where it is not 0.
std::string configuration_name(const Json& row);

Json row_json(const std::string& work, const Configuration& configuration, std::int64_t batch,
              const SpeculateRow& measured);

}  // namespace draftproof
