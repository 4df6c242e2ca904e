// Published or measured speedups, one configuration and its figures a row, read from a CSV file as people fill it in.
//
// Columns (the header names them, in any order): required are hardware, target_model, draft_method, and what gives an
// acceptance length (tau; or alpha with K) and a speedup (speedup; or spec_tok_s and baseline_tok_s). Used where
// present: source_id or source_ref, id, gpu_count, tp, engine, target_precision, draft_model, K, tree_nodes,
// tree_depth, tree_topk, temperature, dataset, batch, batch_kind, input_len, output_len, alpha_kind, tau_kind,
// cost_ratio_c, baseline_tok_s, baseline_tpot_ms, note, duplicate_of. Others are ignored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cost/roofline.hpp"
#include "sim/cost/step_ratio.hpp"
#include "sim/csv.hpp"

namespace draftproof {

// One row of a CSV file of measured speedups: cells by name, and numbers as people write them.

// Why a row cannot be used.
struct RowRefused {
  std::string reason;
  std::string detail;
};

// "2.1", "2.1x", "~2.1", "1,024": a finite number; nothing for any other text.
std::optional<double> lenient_number(const std::string& text);

class MeasuredRow {
 public:
  MeasuredRow(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  int line() const { return row_.line; }
  // Empty where there is no such column, or the row is too short.
  std::string text(const char* column) const;
  std::string lower(const char* column) const;
  // Nothing for an empty cell. Throws RowRefused for text that is no number, and for one outside [least, most].
  std::optional<double> number(const char* column, double least, double most) const;

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

struct MeasuredPoint {
  int line = 0;
  std::string id;
  std::string source;         // who measured
  std::string machine;        // key: source, hardware, engine, model, precision
  std::string configuration;  // key: machine, drafter, draft, batch, lengths; rows that differ in data only share it
  std::string choice;         // key: what stays the same where the number of drafts or the tree is chosen
  std::string hardware, engine, model, method, draft;  // as words, for people

  // One for every number of GPUs that is possible, where it is not stated.
  std::vector<RooflineSetup> setups;
  BatchLoad batch;
  DraftSize form;
  DraftingKind kind = DraftingKind::head;
  double draft_share = 1.0;  // of the steps, that have a draft
  LoopLengths lengths;       // where the speedup is a ratio of a closed loop's throughputs
  double baseline_ms = 0.0;  // a measured plain step; 0: not stated. It tells how many GPUs there were, and no more

  double acceptance_length = 0.0;
  double speedup = 0.0;
  double step_ratio = 0.0;      // acceptance length / speedup: what is predicted
  double textbook_ratio = 0.0;  // 1 + passes x parameters of the drafter / parameters of the target

  bool moe = false;
  bool eager = false;        // the engine captures no graphs
  bool closed_loop = false;  // of requests whose prompts are not stated
  bool multi_gpu = false;
  std::vector<std::string> assumptions;  // what the row did not say, or what the model is not made for
  // One GPU, dense, batch and draft stated, nothing assumed.
  bool complete() const { return !moe && !multi_gpu && assumptions.empty(); }
};

struct ExcludedRow {
  int line = 0;
  std::string reason;  // without figures, so that equal ones can be counted
  std::string detail;
};

struct MeasuredData {
  std::vector<MeasuredPoint> points;
  std::vector<ExcludedRow> excluded;
};

// Input error where a required column is missing. A row that cannot be used is in `excluded`, with the reason.
MeasuredData read_measured_data(const std::string& path);
MeasuredData measured_data_of(const CsvTable& table, const std::string& file);

}  // namespace draftproof
