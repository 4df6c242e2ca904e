// Speedup versus batch: what `predict` says, the roofline of verification, and what-if sliders.
#pragma once

#include "studies/serving/speedup_by_batch.hpp"
#include "viz/panels/panel.hpp"

namespace draftproof {

class SpeedupByBatchPanel final : public SnapshotPanel<SpeedupByBatchSettings, SpeedupByBatchSnapshot> {
 public:
  PanelInfo info() const override {
    return {"speedup_by_batch", "Speedup versus batch", "From which batch on does speculation stop paying, and why?"};
  }
  // Documents of predict and validate, CSV files of measured speedups, and experiments of speedups by batch size.
  bool open(const OpenedResult& result) override;

 private:
  void draw_body(Controls& controls, SpeedupByBatchSettings& settings, const SpeedupByBatchSnapshot* snapshot) override;
  void draw_controls(Controls& controls, SpeedupByBatchSettings& settings);
  void draw_choices(Controls& controls, PredictionRequest& request);
  void draw_what_if(Controls& controls, SpeedupByBatchSettings& settings);
  void draw_curves_shown(Controls& controls, SpeedupByBatchSettings& settings);
};

}  // namespace draftproof
