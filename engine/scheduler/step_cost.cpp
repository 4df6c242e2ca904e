#include "engine/scheduler/step_cost.hpp"

#include <cstddef>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/printable.hpp"
#include "engine/weights/json_fields.hpp"

namespace draftproof {

std::string DefaultStepCost::shipped_file() {
  return own_file("default_step_cost.json");
}

DefaultStepCost::DefaultStepCost(const std::string& path) {
  const JsonFields file = JsonFields::read(path);
  for (const JsonFields& pass : file.objects("passes")) {
    const auto rows = static_cast<double>(pass.required_integer("rows"));
    if (passes_.empty() ? rows != 1.0 : rows <= passes_.back().first)
      throw input_error(pass.where(), "has " + number("%.0f", rows) + " rows; expected row counts that rise from 1");
    const double ms = pass.number("ms").value_or(0.0);
    if (!(ms > 0.0)) throw input_error(pass.where(), "takes " + number("%g", ms) + " ms; expected a time above 0");
    passes_.emplace_back(rows, ms);
  }
  if (passes_.size() < 2)
    throw input_error(path, "has " + std::to_string(passes_.size()) + " passes; expected two or more");
}

double DefaultStepCost::target_ns(const PassLoad& load) const {
  const auto rows = static_cast<double>(load.rows);
  std::size_t above = 1;
  while (above + 1 < passes_.size() && passes_[above].first < rows) ++above;
  const auto [rows_a, ms_a] = passes_[above - 1];
  const auto [rows_b, ms_b] = passes_[above];
  return 1e6 * (ms_a + (ms_b - ms_a) * (rows - rows_a) / (rows_b - rows_a));
}

}  // namespace draftproof
