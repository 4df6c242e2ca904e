// The distribution lab: bars of p and q that the mouse drags, and samples of one verification step against p.
#pragma once

#include "studies/lab/distribution_lab.hpp"
#include "viz/panels/panel.hpp"

namespace draftproof {

class DistributionLabPanel final : public SnapshotPanel<DistributionLabSettings, DistributionLabSnapshot> {
 public:
  PanelInfo info() const override {
    return {"distribution_lab", "Distribution lab", "Does what a verifier emits follow p, whatever q was?"};
  }

 private:
  void draw_body(Controls& controls, DistributionLabSettings& settings,
                 const DistributionLabSnapshot* snapshot) override;
  void draw_controls(Controls& controls, DistributionLabSettings& settings, const DistributionLabSnapshot* snapshot);
  void draw_sampling_controls(Controls& controls, DistributionLabSettings& settings);
  void draw_numbers(const DistributionLabSnapshot& snapshot);
  void draw_plots(Controls& controls, DistributionLabSettings& settings, const DistributionLabSnapshot* snapshot);
  void draw_given_rows(Controls& controls, DistributionLabSettings& settings, ImVec2 size);
  void advance_look(const DistributionLabSnapshot* snapshot);
  bool is_playing() const { return played_s_ >= 0; }

  std::string dragged_ = "probabilities";
  float played_s_ = -1;  // seconds since "play"; negative: not playing
  // The snapshot that is drawn: the last, or while it plays the one it has come to. Null before the first.
  const LabLook* look_ = nullptr;
};

}  // namespace draftproof
