// Exactness: which verifier passes which test of the lab, with its counterexample, and which detector catches which bug
// that shipped. What `draftproof prove` and `draftproof bugs` say, computed as far as it is looked at.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "exactness/bugs/run_bugs.hpp"
#include "exactness/proof/claims.hpp"
#include "exactness/proof/prove.hpp"
#include "studies/figures/table.hpp"
#include "studies/job.hpp"
#include "studies/palette.hpp"

namespace draftproof {

enum class ExactnessView : std::uint8_t { verifiers, bugs };

struct ExactnessSettings {
  ExactnessView view = ExactnessView::verifiers;
  // Sizes of the proofs, as in ProofOptions; small, so that the whole matrix takes a second or two.
  std::int32_t vocab_size = 3;
  std::int32_t draft_len = 2;
  std::int32_t steps = 1;
  std::int32_t instances = 7;  // of every kind of models one
  std::uint64_t seed = 0;
  std::string file;  // that the snapshot comes from; empty: computed

  bool operator==(const ExactnessSettings&) const = default;
};

// One field of the matrix, as it is shown and as it is explained.
enum class CellState : std::uint8_t { good, bad, expected_bad, quiet, none };
// In the panel and in its figure.
const PaletteColour& colour_of(CellState state);
struct ExactnessCell {
  CellState state = CellState::none;
  std::string text;      // a word or two; empty: the test does not apply
  std::string sentence;  // with its numbers
};
struct ExactnessRow {
  std::string name;                  // of a proof case or a bug
  std::string about;                 // its source, and of a bug the fault
  std::vector<ExactnessCell> cells;  // [columns]
  std::vector<std::string> command;  // that prints it, beginning with "draftproof"
};
struct ExactnessMatrix {
  std::vector<std::string> columns;
  std::vector<std::string> meanings;  // [columns] a sentence each
  std::vector<ExactnessRow> rows;
};
struct ExactnessSnapshot {
  ExactnessSettings settings;
  // Results of the view of the settings; the other is empty. Rows stand in the order of the subcommand, whichever was
  // first.
  std::vector<ProofResult> proofs;
  std::vector<ClaimResult> claims;
  BugReport bugs;
  bool complete = false;  // every row is there, with all its instances

  ExactnessMatrix matrix;
  std::string summary;  // "22 of 22 cases as claimed", "bugs caught: 60 of 60; ..."
};

using PublishExactness = std::function<void(ExactnessSnapshot)>;

// First every proof on one pair of models, then on all, the quick ones first; or bug after bug. Errors (usage)
// naming the option: sizes outside their ranges.
void compute(const ExactnessSettings& settings, Job& job, const PublishExactness& publish);

// A document of `prove --json` or `bugs --json`. Input error naming `file` and the key that is missing or wrong.
ExactnessSnapshot exactness_of(const nlohmann::ordered_json& document, const std::string& verb,
                               const std::string& file);

// The matrix and the summary of the rows that there are.
void fill_matrix(ExactnessSnapshot& snapshot);

nlohmann::ordered_json to_json(const ExactnessSnapshot& snapshot);
Table to_table(const ExactnessSnapshot& snapshot);
std::string to_figure(const ExactnessSnapshot& snapshot);
std::vector<std::string> command_arguments(const ExactnessSettings& settings);

}  // namespace draftproof
