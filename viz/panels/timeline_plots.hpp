// The plots of the panel "Serving timeline". Those over time share an axis.
#pragma once

#include <imgui.h>

#include "studies/serving/serving_timeline.hpp"
#include "viz/panels/controls.hpp"

namespace draftproof {

struct TimeView {
  double& from_s;
  double& to_s;
  double end_s;  // of the run
};

void plot_steps(Controls& controls, const ServingTimelineSnapshot& snapshot, TimeView view, ImVec2 size);
void plot_requests(const PolicyTimeline& timeline, TimeView view, ImVec2 size);
// with_committed: else drafts and block tails alone.
void plot_blocks(const PolicyTimeline& timeline, std::int32_t num_blocks, bool with_committed, TimeView view,
                 ImVec2 size);
void plot_queue(const ServingTimelineSnapshot& snapshot, TimeView view, ImVec2 size);
// TTFT, TPOT and goodput by load, one above the other.
void plot_loads(const ServingTimelineSnapshot& snapshot, ImVec2 size);
void draw_policies(Controls& controls, const ServingTimelineSnapshot& snapshot, float height);

}  // namespace draftproof
