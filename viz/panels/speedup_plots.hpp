// The plots of the panel "Speedup versus batch".
#pragma once

#include "studies/serving/speedup_by_batch.hpp"
#include "viz/panels/controls.hpp"

namespace draftproof {

// Speedup by batch above; below it the roofline of the verification pass and what the batch does to each draft.
void draw_speedup_plots(Controls& controls, const SpeedupByBatchSnapshot& snapshot);

}  // namespace draftproof
