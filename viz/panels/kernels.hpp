// Kernels: the regression by kernel and case, the first differing bits, and times against their floors.
#pragma once

#include "studies/kernels/kernels.hpp"
#include "viz/panels/panel.hpp"

namespace draftproof {

class KernelsPanel final : public SnapshotPanel<KernelsSettings, KernelsSnapshot> {
 public:
  KernelsPanel();  // with the newest times of a GPU that there are
  explicit KernelsPanel(KernelsSettings settings) : SnapshotPanel(std::move(settings)) {}
  PanelInfo info() const override {
    return {"kernels", "Kernels", "Is every CUDA kernel the reference, bit for bit, and how near to its floor?", 28};
  }
  // Documents of regress, and of bench --device cuda.
  bool open(const OpenedResult& result) override;

  // The case that is explained, with its kernel's name; empty: the first that differs.
  const std::string& selected() const { return selected_; }

 private:
  void draw_body(Controls& controls, KernelsSettings& settings, const KernelsSnapshot* snapshot) override;
  void draw_controls(Controls& controls, KernelsSettings& settings, const KernelsSnapshot* snapshot);
  void draw_matrix(Controls& controls, const KernelsSnapshot& snapshot, float width, float height);
  void draw_row(Controls& controls, const KernelRow& row, float width);
  void draw_explanation(const KernelsSnapshot& snapshot);

  std::string selected_;
};

}  // namespace draftproof
