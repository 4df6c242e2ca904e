#include "exactness/bugs/bugs_json.hpp"

#include "base/json_values.hpp"
#include "exactness/json_fields.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Finding& finding) {
  return {{"caught", finding.caught},
          {"cases", finding.cases},
          {"unit", finding.unit},
          {"evidence", finding.caught ? Json(finding.evidence) : Json()}};
}

Json head_of(const Bug& bug) {
  return {{"id", bug.id}, {"source", bug.source}, {"fault", bug.fault}};
}

Json json_of(const BugResult& result) {
  Json row = head_of(result.bug);
  const HuntResult* killer = result.killer();
  row["killed"] = killer != nullptr;
  row["detector"] = killer ? Json(letter_of(killer->detector)) : Json();
  row["cases"] = killer ? Json(killer->faulty.cases) : Json();
  row["unit"] = killer ? Json(killer->faulty.unit) : Json();
  row["ms"] = killer ? Json(killer->milliseconds) : Json();
  row["twin_passes"] = result.twin_passes();
  row["hunts"] = json_list(result.hunts, [](const HuntResult& hunt) -> Json {
    return {{"detector", letter_of(hunt.detector)},
            {"faulty", json_of(hunt.faulty)},
            {"sound", json_of(hunt.sound)},
            {"ms", hunt.milliseconds}};
  });
  return row;
}

Json json_of(const ControlResult& result) {
  Json row = head_of(result.control);
  row["passes"] = result.passes();
  row["hunts"] = json_list(result.hunts, [](const HuntResult& hunt) -> Json {
    return {{"detector", letter_of(hunt.detector)}, {"finding", json_of(hunt.faulty)}, {"ms", hunt.milliseconds}};
  });
  return row;
}

Finding finding_of(const Json& json, const std::string& where) {
  Finding finding;
  finding.caught = json_field<bool>(json, "caught", where);
  finding.cases = json_field<std::int64_t>(json, "cases", where);
  finding.unit = json_field<std::string>(json, "unit", where);
  finding.evidence = json_field_or_null<std::string>(json, "evidence", where).value_or("");
  return finding;
}

Bug bug_of(const Json& row, const std::string& where) {
  Bug bug;
  bug.id = json_field<std::string>(row, "id", where);
  bug.source = json_field<std::string>(row, "source", where);
  bug.fault = json_field<std::string>(row, "fault", where);
  return bug;
}

// faulty: the key of what was found in the code under test.
std::vector<HuntResult> hunts_of(const Json& row, const char* faulty, const std::string& where) {
  std::vector<HuntResult> hunts;
  for (const Json& json : json_field<Json::array_t>(row, "hunts", where)) {
    const auto letter = json_field<std::string>(json, "detector", where);
    if (letter.size() != 1 || kDetectorLetters.find(letter.front()) == std::string_view::npos)
      throw input_error(where, "has the detector '" + letter + "'; expected one of " + std::string(kDetectorLetters));
    HuntResult hunt{static_cast<Detector>(letter.front()),
                    finding_of(json_field<Json>(json, faulty, where), where),
                    {},
                    json_field<double>(json, "ms", where)};
    if (json.contains("sound")) hunt.sound = finding_of(json.at("sound"), where);
    hunts.push_back(std::move(hunt));
  }
  return hunts;
}

}  // namespace

Json json_of(const BugReport& report) {
  const Json waiting = json_list(report.waiting, [](const WaitingBug& bug) -> Json {
    return {{"id", bug.id}, {"source", bug.source}, {"waits_for", bug.waits_for}};
  });
  return {{"killed", report.killed()},
          {"total", report.bugs.size()},
          {"waiting", report.waiting.size()},
          {"controls_passed", report.controls_passed()},
          {"controls_total", report.controls.size()},
          {"twins_passed", report.twins_passed()},
          {"rows", json_list(report.bugs, [](const BugResult& result) { return json_of(result); })},
          {"controls", json_list(report.controls, [](const ControlResult& result) { return json_of(result); })},
          {"waiting_rows", waiting}};
}

BugReport report_of(const Json& json, const std::string& where) {
  BugReport report;
  for (const Json& row : json_field<Json::array_t>(json, "rows", where)) {
    BugResult result;
    result.bug = bug_of(row, where);
    const std::string place = where + ", bug " + result.bug.id;
    result.hunts = hunts_of(row, "faulty", place);
    report.bugs.push_back(std::move(result));
  }
  for (const Json& row : json_field<Json::array_t>(json, "controls", where)) {
    ControlResult result;
    result.control = bug_of(row, where);
    const std::string place = where + ", control " + result.control.id;
    result.hunts = hunts_of(row, "finding", place);
    report.controls.push_back(std::move(result));
  }
  for (const Json& row : json_field<Json::array_t>(json, "waiting_rows", where))
    report.waiting.push_back({json_field<std::string>(row, "id", where), json_field<std::string>(row, "source", where),
                              json_field<std::string>(row, "waits_for", where)});
  return report;
}

}  // namespace draftproof
