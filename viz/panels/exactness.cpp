#include "viz/panels/exactness.hpp"

#include <algorithm>

#include "viz/panels/colours.hpp"

namespace draftproof {
bool ExactnessPanel::open(const OpenedResult& result) {
  if (result.verb != "prove" && result.verb != "bugs") return false;
  show(exactness_of(result.document, result.verb, result.file));
  return true;
}

const ExactnessRow* ExactnessPanel::selected_row() const {
  if (shown() == nullptr) return nullptr;
  const std::vector<ExactnessRow>& rows = shown()->matrix.rows;
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const ExactnessRow& row) { return row.name == row_; });
  return found == rows.end() ? nullptr : &*found;
}

const ExactnessCell* ExactnessPanel::selected_cell() const {
  const ExactnessRow* const row = selected_row();
  return row == nullptr || column_ >= row->cells.size() ? nullptr : &row->cells[column_];
}

void ExactnessPanel::draw_controls(Controls& controls, ExactnessSettings& settings) {
  static const std::vector<std::string> kViews{"verifiers", "bugs"};
  std::string view = kViews[settings.view == ExactnessView::bugs ? 1 : 0];
  if (controls.choice("show", view, kViews,
                      "Verifiers by test, proved over fractions; or bugs, bugs that shipped, by detector.")) {
    settings.view = view == kViews[1] ? ExactnessView::bugs : ExactnessView::verifiers;
    settings.file.clear();
  }
  if (!settings.file.empty()) {
    ImGui::SameLine();
    if (controls.button("compute again", "Takes the file away and computes the same here.")) settings.file.clear();
    ImGui::TextWrapped("from %s", printable_line(settings.file).c_str());
    return;
  }
  if (settings.view == ExactnessView::bugs) return;
  const float wanted = 2 * 24 * ImGui::GetFontSize();
  const bool in_pairs = ImGui::GetContentRegionAvail().x > wanted;
  const auto place_second = [&] {
    if (in_pairs) ImGui::SameLine(24 * ImGui::GetFontSize());
  };
  controls.slider("vocabulary V", settings.vocab_size, 2, 4, "V: tokens of the random models.");
  place_second();
  controls.slider("draft tokens K", settings.draft_len, 1, 4, "K: length of chains; trees are at most 2 deep.");
  controls.slider("steps S", settings.steps, 1, 3, "S: consecutive steps, whose joint distribution is compared.");
  place_second();
  controls.slider("pairs of models", settings.instances, 1, 35,
                  "Random p and q: dense, with zeros, one-hot, equal, disjoint and with ties, in turn.");
}

void ExactnessPanel::draw_row(Controls& controls, const ExactnessRow& row) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(row.name.c_str());
  for (std::size_t column = 0; column < row.cells.size(); ++column) {
    ImGui::TableNextColumn();
    const ExactnessCell& cell = row.cells[column];
    if (cell.state == CellState::none) continue;
    ImGui::TableSetBgColor(ImGuiTableBgTarget_CellBg, to_u32(colour_of(cell.state), 0.35f));
    ImGui::PushID(static_cast<int>(column));
    const bool selected = row.name == row_ && column == column_;
    if (ImGui::Selectable(cell.text.c_str(), selected)) {
      row_ = row.name;
      column_ = column;
    }
    ImGui::PopID();
    controls.describe((row.name + "/" + shown()->matrix.columns[column]).c_str(), nullptr);
  }
  ImGui::TableNextColumn();
  ImGui::TextDisabled("%s", row.about.c_str());
}

void ExactnessPanel::draw_matrix(Controls& controls, const ExactnessMatrix& matrix, float height) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInner |
                                     ImGuiTableFlags_Resizable | ImGuiTableFlags_SizingFixedFit;
  const int columns = static_cast<int>(matrix.columns.size()) + 2;
  if (!ImGui::BeginTable("matrix", columns, kFlags, {0, height})) return;
  const float em = ImGui::GetFontSize();
  ImGui::TableSetupScrollFreeze(1, 1);
  ImGui::TableSetupColumn("name", ImGuiTableColumnFlags_WidthFixed, (columns > 10 ? 5 : 13) * em);
  for (const std::string& column : matrix.columns)
    ImGui::TableSetupColumn(column.c_str(), ImGuiTableColumnFlags_WidthFixed,
                            std::max((columns > 10 ? 3.6f : 6) * em, ImGui::CalcTextSize(column.c_str()).x));
  float source = 0;  // as wide as its longest text, of rows too that are not seen yet
  for (const ExactnessRow& row : matrix.rows) source = std::max(source, ImGui::CalcTextSize(row.about.c_str()).x);
  ImGui::TableSetupColumn("source", ImGuiTableColumnFlags_WidthFixed, source);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < columns; ++column) {
    ImGui::TableSetColumnIndex(column);
    ImGui::TableHeader(ImGui::TableGetColumnName(column));
    const int test = column - 1;
    if (test >= 0 && static_cast<std::size_t>(test) < matrix.columns.size())
      controls.describe(("column " + matrix.columns[static_cast<std::size_t>(test)]).c_str(),
                        matrix.meanings[static_cast<std::size_t>(test)].c_str());
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(matrix.rows.size()));
  while (clipper.Step())
    for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
      ImGui::PushID(row);
      draw_row(controls, matrix.rows[static_cast<std::size_t>(row)]);
      ImGui::PopID();
    }
  ImGui::EndTable();
}

void ExactnessPanel::draw_explanation(Controls& controls) {
  const ExactnessRow* const row = selected_row();
  const ExactnessCell* const cell = selected_cell();
  if (cell == nullptr) {
    ImGui::TextDisabled("Click a field to see what stands behind it.");
    return;
  }
  // The verdict first: what a bug is may take lines.
  ImGui::PushStyleColor(ImGuiCol_Text, text_colour_of(colour_of(cell->state)));
  ImGui::TextWrapped("%s, %s: %s", row->name.c_str(), shown()->matrix.columns[column_].c_str(), cell->sentence.c_str());
  ImGui::PopStyleColor();
  ImGui::TextWrapped("%s", row->about.c_str());
  const std::string command = shell_command(row->command);
  if (controls.button("copy this command", "Copies the command line that prints this row alone."))
    ImGui::SetClipboardText(command.c_str());
  next_control(30);
  ImGui::PushTextWrapPos(0);
  ImGui::TextDisabled("%s", command.c_str());
  ImGui::PopTextWrapPos();
}

void ExactnessPanel::draw_body(Controls& controls, ExactnessSettings& settings, const ExactnessSnapshot* snapshot) {
  draw_controls(controls, settings);
  if (snapshot == nullptr) return;
  ImGui::TextWrapped("%s", snapshot->summary.c_str());
  const ExactnessMatrix& matrix = snapshot->matrix;
  if (matrix.columns.size() < 10) {  // columns of numbers; those of bugs are named after their detectors
    ImGui::PushTextWrapPos(0);
    for (std::size_t column = 2; column < matrix.columns.size(); ++column)
      ImGui::TextDisabled("%s: %s", matrix.columns[column].c_str(), matrix.meanings[column].c_str());
    ImGui::PopTextWrapPos();
  }
  const float below = 8 * ImGui::GetFontSize();
  const float height = std::max(10 * ImGui::GetFontSize(), ImGui::GetContentRegionAvail().y - below);
  draw_matrix(controls, matrix, height);
  if (ImGui::BeginChild("explanation")) draw_explanation(controls);
  ImGui::EndChild();
}

}  // namespace draftproof
