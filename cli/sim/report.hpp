// Answer of `draftproof sim`, as tables.
#pragma once

#include <ostream>
#include <span>

#include "sim/serving/scenario_request.hpp"

namespace draftproof {

void print_sim_report(std::ostream& out, const Scenario& scenario, std::span<const PolicyReport> reports);
// A table of the policies by load.
void print_loads(std::ostream& out, const Scenario& scenario, std::span<const LoadPoint> loads);

}  // namespace draftproof
