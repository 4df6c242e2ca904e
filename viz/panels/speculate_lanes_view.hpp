// Two lanes of coloured spans on one time axis: plain decoding above, speculation below.
#pragma once

#include <optional>

#include "studies/speculate/speculate.hpp"

namespace draftproof {

struct LanesView {
  // The moment that the person asked for: a span clicked (its end), the line dragged.
  std::optional<std::int64_t> asked_ns;
};

// A plot that is panned and zoomed along the time axis; what lies behind moment_ns is faint. fit: shows the whole run.
LanesView draw_lanes(const SpeculateSnapshot& snapshot, std::int64_t moment_ns, bool fit, float height_px);

}  // namespace draftproof
