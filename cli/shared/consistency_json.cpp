#include "cli/shared/consistency_json.hpp"

namespace draftproof {

Json consistency_json(const ConsistencyReport& report) {
  if (report.rows == 0) return nullptr;
  Json json;
  json["rows"] = report.rows;
  json["differences"] = Json::array();
  for (const ParameterDifference& difference : report.differences)
    json["differences"].push_back(
        {{"parameter", difference.parameter}, {"draft", difference.draft}, {"target", difference.target}});
  json["acceptance"] = report.acceptance;
  json["acceptance_if_equal"] = report.acceptance_if_equal;
  json["total_variation"] = report.total_variation;
  json["distribution_changes"] = report.distribution_changes;
  json["sentence"] = report.sentence;
  return json;
}

}  // namespace draftproof
