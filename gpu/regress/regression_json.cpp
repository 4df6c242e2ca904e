#include "gpu/regress/regression_json.hpp"

#include "base/error.hpp"
#include "base/json_values.hpp"

namespace draftproof::regress {
namespace {

using Json = nlohmann::ordered_json;

std::string text_or_empty(const Json& value) {
  return value.is_null() ? "" : value.get<std::string>();
}

Json to_json(const Difference::Value& value) {
  return {{"hex", value.hex}, {"decimal", text_or_null(value.decimal)}};
}

Difference::Value value_of(const Json& json) {
  return {json.at("hex").get<std::string>(), text_or_empty(json.at("decimal"))};
}

Verdict verdict_of(const std::string& name, const std::string& where) {
  for (const Verdict verdict : {Verdict::equal, Verdict::different, Verdict::skipped})
    if (name == name_of(verdict)) return verdict;
  throw input_error(where, "the verdict is '" + name + "'; expected equal, different or skipped");
}

}  // namespace

Json to_json(const CaseResult& result) {
  Json row;
  row["case"] = result.name;
  row["block_threads"] = result.block_threads;
  row["verdict"] = name_of(result.verdict);
  row["digest"] = text_or_null(result.digest);
  row["seconds"] = result.seconds;
  row["finding"] = text_or_null(result.finding);
  row["difference"] = nullptr;
  if (result.difference)
    row["difference"] = {{"output", result.difference->output},
                         {"index", result.difference->index},
                         {"found", to_json(result.difference->found)},
                         {"expected", to_json(result.difference->expected)}};
  return row;
}

Json to_json(const RegressionReport& report, const std::string& executor) {
  Json document;
  document["executor"] = executor;
  document["equal"] = report.count(Verdict::equal);
  document["different"] = report.count(Verdict::different);
  document["skipped"] = report.count(Verdict::skipped);
  document["seconds"] = report.seconds;
  document["rows"] = Json::array();
  for (const CaseResult& result : report.results) document["rows"].push_back(to_json(result));
  return document;
}

CaseResult case_result_of(const Json& row, const std::string& where) {
  try {
    CaseResult result;
    result.name = row.at("case").get<std::string>();
    result.block_threads = row.at("block_threads").get<int>();
    result.verdict = verdict_of(row.at("verdict").get<std::string>(), where);
    result.digest = text_or_empty(row.at("digest"));
    result.seconds = row.at("seconds").get<double>();
    result.finding = text_or_empty(row.at("finding"));
    if (const Json& difference = row.at("difference"); !difference.is_null())
      result.difference = {difference.at("output").get<std::string>(), difference.at("index").get<std::int64_t>(),
                           value_of(difference.at("found")), value_of(difference.at("expected"))};
    return result;
  } catch (const Json::exception&) {
    throw input_error(where,
                      "it has no case, block_threads, verdict, digest, seconds, finding or difference; expected "
                      "a row of `draftproof regress --json`");
  }
}

RegressionReport regression_of(const Json& document, const std::string& where) {
  if (!document.is_object() || !document.contains("rows") || !document.at("rows").is_array())
    throw input_error(where, "is no document of `draftproof regress --json`; expected an object with a list \"rows\"");
  RegressionReport report;
  for (const Json& row : document.at("rows"))
    report.results.push_back(case_result_of(row, where + ", row " + std::to_string(report.results.size())));
  if (document.contains("seconds") && document.at("seconds").is_number())
    report.seconds = document.at("seconds").get<double>();
  return report;
}

}  // namespace draftproof::regress
