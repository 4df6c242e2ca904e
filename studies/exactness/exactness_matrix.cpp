// The matrix of the exactness panel, and what is written of it.
#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "base/words.hpp"
#include "exactness/proof/distribution_text.hpp"
#include "exactness/statistics/battery.hpp"
#include "studies/exactness/exactness.hpp"
#include "studies/figures/figure.hpp"
#include "studies/palette.hpp"

namespace draftproof {
namespace {

std::string pairs_of_models(std::int32_t count) {
  return counted_noun(count, "pair of models", "pairs of models");
}

// A lossy verifier that fails is as claimed.
ExactnessCell distribution_cell(const ProofResult& result) {
  if (result.exact)
    return {result.lossless ? CellState::good : CellState::bad, "exact",
            "The distribution of the emitted string is the target's as fractions, on " +
                pairs_of_models(result.instances) + " (" + std::to_string(result.paths) + " outcomes)" +
                (result.lossless ? "." : "; a lossy verifier should have been refuted.")};
  if (result.counterexample && result.counterexample->failure)
    return {CellState::bad, "throws", "Refuted: " + result.counterexample->sentence() + "."};
  std::string sentence = "Refuted" +
                         std::string(result.lossless           ? ""
                                     : result.receives_drawn_q ? ", as claimed of a lossy verifier"
                                                               : ", as claimed") +
                         ", total variation up to " + short_number(static_cast<double>(result.total_variation_max)) +
                         ": ";
  if (result.counterexample) sentence += result.counterexample->sentence() + ".";
  return {result.lossless ? CellState::bad : CellState::expected_bad, "refuted", sentence};
}

ExactnessCell acceptance_cell(const ProofResult& result) {
  const std::string mean = short_number(static_cast<double>(result.mean_accepted));
  if (result.oracles == 0)
    return {CellState::quiet, mean, mean + " drafts are accepted a step; nothing else computes it."};
  return {result.acceptance_holds ? CellState::good : CellState::bad, mean,
          mean + " drafts are accepted a step; " + std::to_string(result.oracles) +
              " computations without the verifier " +
              (result.acceptance_holds ? "give the same fractions." : "give OTHER fractions.")};
}

ExactnessCell float_cell(const ProofResult& result) {
  if (!result.float_distance_max)
    return {CellState::quiet, "races", "Races are decided by a word a token, and are left to statistics."};
  const std::string distance = short_number(static_cast<double>(*result.float_distance_max));
  return {result.floats_hold() ? CellState::good : CellState::bad, distance,
          "Integrated over the grid of u, the float code is within a total variation of " + distance +
              " of the fractions; allowed are " + short_number(static_cast<double>(kFloatDistanceMax)) + "."};
}

ExactnessCell claimed_cell(const ProofResult& result) {
  const std::string claim(result.claim());
  return {
      result.as_claimed() ? CellState::good : CellState::bad, claim,
      (result.receives_drawn_q ? "The registry says " + claim
                               : "Drafts are drawn from another distribution than the verifier receives: " + claim) +
          ", and that " + (result.as_claimed() ? "holds." : "does NOT hold.")};
}

ExactnessMatrix proof_matrix(const ExactnessSnapshot& snapshot) {
  ExactnessMatrix matrix;
  matrix.columns = {"claim", "distribution", "accepted", "floats"};
  matrix.meanings = {
      "The registry's claim about the verifier, and whether it holds.",
      "P(s) = p(s_1) p(s_2 | s_1) ... of every emitted string s, by enumeration over fractions.",
      "E[tau], drafts accepted a step on average, against path sums and recursions that do not know the verifier.",
      "Total variation of the float code, over the grid of u, from the fractions."};
  const ExactnessSettings& s = snapshot.settings;
  for (const ProofResult& result : snapshot.proofs) {
    ExactnessSettings of_row = s;
    of_row.instances = result.instances;
    of_row.view = ExactnessView::verifiers;
    std::vector<std::string> command = command_arguments(of_row);
    command.insert(command.end(), {"--verifier", result.name});
    matrix.rows.push_back(
        {result.name,
         result.source,
         {claimed_cell(result), distribution_cell(result), acceptance_cell(result), float_cell(result)},
         std::move(command)});
  }
  ExactnessSettings whole = s;
  whole.view = ExactnessView::verifiers;
  std::map<ClaimKind, int> counts;
  for (const ClaimResult& result : snapshot.claims) {
    ExactnessRow row{
        name_of(result.kind) + " " + std::to_string(++counts[result.kind]), result.text, {}, command_arguments(whole)};
    row.cells.resize(matrix.columns.size());
    row.cells.front() = {result.refutation ? CellState::bad : CellState::good, result.refutation ? "refuted" : "holds",
                         result.refutation ? "Refuted: " + *result.refutation + "."
                                           : "Holds over fractions, on " + pairs_of_models(result.instances) + "."};
    matrix.rows.push_back(std::move(row));
  }
  return matrix;
}

struct DetectorColumn {
  Detector detector;
  const char* meaning;
};
constexpr std::array kDetectorColumns{
    DetectorColumn{Detector::key_audit, "K: an address of randomness was used twice."},
    DetectorColumn{Detector::enumeration, "E: the exact distribution over a tiny vocabulary is another."},
    DetectorColumn{Detector::injection, "X: words at the ends of their range break a certainty."},
    DetectorColumn{Detector::batch, "B: a row's result depends on its batch."},
    DetectorColumn{Detector::support, "V: a token comes that is impossible or outside the vocabulary."},
    DetectorColumn{Detector::tail, "T: rare tokens have another share."},
    DetectorColumn{Detector::ragged, "R: rows of unequal requests differ from each alone."},
    DetectorColumn{Detector::replay, "S: speculative decoding differs from plain decoding."},
    DetectorColumn{Detector::differential, "D: the bits differ from the reference's."},
    DetectorColumn{Detector::acceptance, "A: the number of accepted drafts has another distribution."},
    DetectorColumn{Detector::independence, "I: draws depend on each other, each being right alone."},
    DetectorColumn{Detector::output, "O: an audit of what was emitted finds it biased."},
};

std::string unit_text(const Finding& finding) {
  return std::to_string(finding.cases) + " " + finding.unit;
}

// Several hunts of one detector share a field: what they all found, and the worst of it.
void add_hunt(ExactnessCell& cell, const HuntResult& hunt, bool is_control) {
  const bool accuses_sound = is_control ? hunt.faulty.caught : hunt.sound.caught;
  const bool good = is_control ? !hunt.faulty.caught : hunt.faulty.caught && !accuses_sound;
  const bool was_bad = cell.state == CellState::bad;
  cell.state = good && !was_bad ? CellState::good : CellState::bad;
  cell.text = cell.state == CellState::bad ? (accuses_sound ? "accuses" : "missed") : is_control ? "silent" : "caught";
  if (!cell.sentence.empty()) cell.sentence += ' ';
  if (accuses_sound)
    cell.sentence += "It ACCUSES sound code: " + (is_control ? hunt.faulty : hunt.sound).evidence + ".";
  else if (hunt.faulty.caught)
    cell.sentence += "Caught after " + unit_text(hunt.faulty) + ": " + hunt.faulty.evidence + ".";
  else
    cell.sentence += (is_control ? "Silent, as it should be, over " : "Saw nothing in ") + unit_text(hunt.faulty) + ".";
}

ExactnessRow bug_row(const Bug& bug, const std::vector<HuntResult>& hunts, bool is_control, ExactnessCell verdict) {
  ExactnessRow row{bug.id, bug.source + ": " + bug.fault, {std::move(verdict)}, {}};
  row.cells.resize(1 + kDetectorColumns.size());
  for (const HuntResult& hunt : hunts)
    for (std::size_t column = 0; column < kDetectorColumns.size(); ++column)
      if (kDetectorColumns[column].detector == hunt.detector) add_hunt(row.cells[1 + column], hunt, is_control);
  row.command = {"draftproof", "bugs", "--only", bug.id};
  return row;
}

ExactnessMatrix bug_matrix(const ExactnessSnapshot& snapshot) {
  ExactnessMatrix matrix;
  matrix.columns = {"verdict"};
  matrix.meanings = {"A bug must be caught and its sound twin must not; a control must not."};
  for (const DetectorColumn& column : kDetectorColumns) {
    matrix.columns.emplace_back(name_of(column.detector));
    matrix.meanings.emplace_back(column.meaning);
  }
  for (const BugResult& result : snapshot.bugs.bugs) {
    const bool killed = result.killer() != nullptr;
    ExactnessCell verdict{
        killed && result.twin_passes() ? CellState::good : CellState::bad,
        !killed                ? "survived"
        : result.twin_passes() ? "killed"
                               : "twin accused",
        killed ? "A detector catches it, and " +
                     std::string(result.twin_passes() ? "none accuses its sound twin." : "one ACCUSES its sound twin.")
               : "No detector catches it."};
    matrix.rows.push_back(bug_row(result.bug, result.hunts, false, std::move(verdict)));
  }
  for (const ControlResult& result : snapshot.bugs.controls)
    matrix.rows.push_back(
        bug_row(result.control, result.hunts, true,
                {result.passes() ? CellState::good : CellState::bad, result.passes() ? "passes" : "accused",
                 "A control: sound code that looks like a bug, which nothing may accuse."}));
  return matrix;
}

std::string summary_of_proofs(const ExactnessSnapshot& snapshot) {
  const auto as_claimed = std::count_if(snapshot.proofs.begin(), snapshot.proofs.end(),
                                        [](const ProofResult& result) { return result.as_claimed(); });
  std::string text = std::to_string(as_claimed) + " of " + std::to_string(snapshot.proofs.size()) + " cases as claimed";
  for (const ClaimTally& tally : tally_of(snapshot.claims))
    if (tally.total > 0) text += "; " + tally.sentence();
  return text;
}

}  // namespace

const PaletteColour& colour_of(CellState state) {
  switch (state) {
    case CellState::good:
      return palette::kGreen;
    case CellState::bad:
      return palette::kVermilion;
    case CellState::expected_bad:
      return palette::kOrange;
    case CellState::quiet:
    case CellState::none:
      break;
  }
  return palette::kGrey;
}

void fill_matrix(ExactnessSnapshot& snapshot) {
  const bool has_bugs = snapshot.settings.view == ExactnessView::bugs;
  snapshot.matrix = has_bugs ? bug_matrix(snapshot) : proof_matrix(snapshot);
  snapshot.summary = has_bugs ? snapshot.bugs.sentence() : summary_of_proofs(snapshot);
}

Table to_table(const ExactnessSnapshot& snapshot) {
  const ExactnessMatrix& matrix = snapshot.matrix;
  Table table{{"name", "about"}, {}};
  table.columns.insert(table.columns.end(), matrix.columns.begin(), matrix.columns.end());
  for (const ExactnessRow& row : matrix.rows) {
    std::vector<TableCell> cells{row.name, row.about};
    for (const ExactnessCell& cell : row.cells) cells.emplace_back(cell.text);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// A square for each field, in the colour of its state, with its word. Claims, which have one field each, stand in the
// summary alone.
std::string to_figure(const ExactnessSnapshot& snapshot) {
  const ExactnessMatrix& matrix = snapshot.matrix;
  const std::size_t rows = matrix.rows.size() - std::min(snapshot.claims.size(), matrix.rows.size());
  const std::string font =
      " font '," + short_number(std::clamp(240.0 / static_cast<double>(std::max<std::size_t>(rows, 1)), 3.0, 8.0)) +
      "'";
  std::ostringstream script;
  script << "$cells << EOD\n";
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < matrix.rows[r].cells.size(); ++c) {
      const ExactnessCell& cell = matrix.rows[r].cells[c];
      if (cell.state == CellState::none) continue;
      const PaletteColour& colour = colour_of(cell.state);
      script << c << ' ' << r << ' ' << (colour.red << 16 | colour.green << 8 | colour.blue) << " \"" << cell.text
             << "\"\n";
    }
  script << "EOD\nset title " << gnuplot_quoted(snapshot.summary) << " noenhanced font ',8'\n"
         << "unset key\nset tics scale 0\nset style fill solid 0.5 noborder\nset x2tics rotate by 45 noenhanced (";
  for (std::size_t c = 0; c < matrix.columns.size(); ++c)
    script << (c == 0 ? "" : ", ") << gnuplot_quoted(matrix.columns[c]) << ' ' << c;
  script << ")\nunset xtics\nset ytics noenhanced" << font << " (";
  for (std::size_t r = 0; r < rows; ++r)
    script << (r == 0 ? "" : ", ") << gnuplot_quoted(matrix.rows[r].name) << ' ' << r;
  const std::string x_range =
      "range [-0.5:" + std::to_string(std::max<std::size_t>(matrix.columns.size(), 1)) + "-0.5]";
  script << ")\nset x" << x_range << "\nset x2" << x_range << "\nset yrange [" << std::max<std::size_t>(rows, 1)
         << "-0.5:-0.5]\n";
  if (rows == 0)
    script << "plot -1 notitle\n";
  else
    script << "plot $cells using 1:2:($1-0.48):($1+0.48):($2-0.45):($2+0.45):3 with boxxyerror lc rgb variable, \\\n"
           << "     $cells using 1:2:4 with labels noenhanced" << font << "\n";
  return script.str();
}

}  // namespace draftproof
