// What `draftproof predict` is asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/shared/options.hpp"

namespace draftproof {

struct PredictArguments {
  std::string model;
  std::string gpu;
  std::string engine = "vLLM";
  std::string drafter;
  std::string precision;
  std::string draft_precision;
  std::optional<int> tp;
  std::string metrics;
  std::string metrics_name;
  std::optional<int> metrics_drafts;
  std::string metrics_rates = "as said";
  std::string acceptance;
  std::vector<int> batches{1, 8, 32};
  int context = 1024;
  int drafts_max = 8;
  std::vector<int> trees{8, 16, 32, 60};
  bool no_trees = false;
  bool guidance = false;
  std::vector<std::string> calibrate_with;
  std::string out;
  bool json = false;
};

void add_predict_options(Options& options, PredictArguments& arguments);

}  // namespace draftproof
