// Output of `draftproof experiments`: a table, JSON, CSV and a figure of each experiment.
#pragma once

#include <ostream>
#include <string>

#include "cli/shared/json_document.hpp"
#include "studies/experiments/experiment.hpp"

namespace draftproof {

void print_experiment(std::ostream& out, const ExperimentResult& result);
Json experiment_json(const ExperimentResult& result);
// what,x,claimed_low,claimed_high,model_low,model_high,consistent
std::string experiment_csv(const ExperimentResult& result);
// Claims and model, as a curve or as points beside one another: a script for gnuplot.
std::string experiment_figure(const ExperimentResult& result);

}  // namespace draftproof
