// Serving timeline: the steps of two policies on one time axis, requests, KV blocks and queue, and the policies by
// load.
#pragma once

#include "studies/serving/serving_timeline.hpp"
#include "viz/panels/panel.hpp"

namespace draftproof {

class ServingTimelinePanel final : public SnapshotPanel<ServingTimelineSettings, ServingTimelineSnapshot> {
 public:
  ServingTimelinePanel() = default;
  explicit ServingTimelinePanel(ServingTimelineSettings settings) : SnapshotPanel(std::move(settings)) {}
  PanelInfo info() const override {
    return {"serving_timeline", "Serving timeline",
            "Where does a server's time go, and up to which load does speculation help?", 28};
  }
  // Scenarios, grids, and documents of sim.
  bool open(const OpenedResult& result) override;

  // Visible range of time, in seconds.
  double from_s() const { return from_s_; }
  double to_s() const { return to_s_; }

 private:
  void draw_body(Controls& controls, ServingTimelineSettings& settings,
                 const ServingTimelineSnapshot* snapshot) override;
  void draw_controls(Controls& controls, ServingTimelineSettings& settings, const ServingTimelineSnapshot* snapshot);
  void draw_view_controls(Controls& controls, const ServingTimelineSnapshot& snapshot);
  void draw_time(Controls& controls, const ServingTimelineSnapshot& snapshot);

  double from_s_ = 0.0, to_s_ = 0.0;  // equal: not chosen yet
  bool with_committed_ = true;
};

}  // namespace draftproof
