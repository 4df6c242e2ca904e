// Exactness: the matrix of verifiers and tests, and the one of bugs and detectors, with what stands behind every field.
#pragma once

#include "studies/exactness/exactness.hpp"
#include "viz/panels/panel.hpp"

namespace draftproof {

class ExactnessPanel final : public SnapshotPanel<ExactnessSettings, ExactnessSnapshot> {
 public:
  PanelInfo info() const override {
    return {"exactness", "Exactness", "Which verifier is exact, and which test catches which bug?"};
  }
  bool open(const OpenedResult& result) override;

  // The row that is explained below the matrix; null where no field was clicked that is still there.
  const ExactnessRow* selected_row() const;
  const ExactnessCell* selected_cell() const;

 private:
  void draw_body(Controls& controls, ExactnessSettings& settings, const ExactnessSnapshot* snapshot) override;
  void draw_controls(Controls& controls, ExactnessSettings& settings);
  void draw_matrix(Controls& controls, const ExactnessMatrix& matrix, float height);
  void draw_row(Controls& controls, const ExactnessRow& row);
  void draw_explanation(Controls& controls);

  std::string row_ = "typical_acceptance";  // name of the row that was clicked; at first one with a counterexample
  std::size_t column_ = 1;
};

}  // namespace draftproof
