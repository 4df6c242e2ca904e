// Measured or quoted speedups of one model on one GPU, to be laid over a prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/roofline.hpp"
#include "sim/cost/step_ratio.hpp"

namespace draftproof {

struct SpeedupPoint {
  std::string source;   // who measured or quoted it
  std::string drafter;  // as it is called there
  std::string draft;    // "K=5", "tree of 60 in 7"
  std::int64_t batch = 1;
  double speedup = 1.0;
  double low = 1.0, high = 1.0;  // of a quoted range; else both are the speedup
};

struct SpeedupPoints {
  std::string path;
  std::vector<SpeedupPoint> points;  // in the file's order
  std::int64_t others = 0;           // rows of other models or GPUs, which are left out
};

// The points of this setup's model and GPU, from
//   *.csv   measured rows (measured_point.hpp)
//   *.json  the document of `draftproof validate`: its rows
//   *.toml  an experiment whose claims are speedups by batch size (experiments/, experiment.hpp)
// Errors (input) at the file and line: another ending, and what those readers refuse.
SpeedupPoints read_speedup_points(const std::string& path, const RooflineSetup& setup);

}  // namespace draftproof
