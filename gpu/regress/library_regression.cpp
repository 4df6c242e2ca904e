#include "gpu/regress/library_regression.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/isolated.hpp"
#include "gpu/regress/regression_json.hpp"

namespace draftproof::regress {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

Json to_json(const LibraryDescription& description) {
  return {{"name", printable_line(description.name)},
          {"on_device", description.on_device},
          {"numbers", description.numbers},
          {"calls", description.calls},
          {"without", description.without}};
}

// Can a case of this call have one of the parts in its name? One that begins with another call and a slash cannot be.
bool may_name(const std::string& parts, const std::string& call) {
  const std::vector<std::string_view> all = split(parts, ',');
  return std::any_of(all.begin(), all.end(), [&](std::string_view part) {
    const std::string_view first = part.substr(0, part.find('/'));
    return first.size() == part.size() || first == call ||
           std::find(std::begin(kLibraryCalls), std::end(kLibraryCalls), first) == std::end(kLibraryCalls);
  });
}

// One case in the child, as a row of JSON with the parameters that it set; null where it cannot be expressed.
Json run_one(const KernelLibrary& library, const LibraryCase& one, const LibraryJudge& judge, const std::string& again,
             bool& spoilt) {
  const auto begin = Clock::now();
  const std::optional<LibraryInputs> inputs = library_inputs(*one.inputs);
  if (!inputs) return nullptr;
  CaseResult result;
  result.name = one.name;
  std::vector<std::string> parameters = parameters_set(*inputs);
  try {
    LibraryJudgement judgement = judge(library, one, *inputs);
    if (!judgement.judged) return nullptr;
    if (judgement.parameters) parameters = std::move(*judgement.parameters);
    if (!judgement.finding.empty()) result.verdict = Verdict::different;
    result.finding = std::move(judgement.finding);
    result.difference = std::move(judgement.difference);
  } catch (const UnsupportedInputs&) {
    result.verdict = Verdict::skipped;
    result.finding = "the library does not take these inputs";
  } catch (const Error& fault) {
    result.verdict = Verdict::different;
    result.finding = fault.what();
    spoilt = dynamic_cast<const SoundFailure*>(&fault) == nullptr;
  }
  if (result.verdict == Verdict::different) result.finding += again + one.name;
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  Json row = regress::to_json(result);
  row["parameters"] = parameters;
  return row;
}

void note_parameters(LibraryReport& report, const std::string& call, const Json& row) {
  const bool is_compared = report.regression.results.back().verdict != Verdict::skipped;
  for (const Json& set : row.at("parameters")) {
    const auto parameter = set.get<std::string>();
    auto found = std::find_if(report.coverage.begin(), report.coverage.end(),
                              [&](const ParameterCoverage& c) { return c.call == call && c.parameter == parameter; });
    if (found == report.coverage.end()) found = report.coverage.insert(found, {call, parameter, 0});
    found->compared += is_compared ? 1 : 0;
  }
}

}  // namespace

std::vector<std::string> LibraryReport::untested(const std::vector<std::string>& without) const {
  std::vector<std::string> names;
  for (const ParameterCoverage& one : coverage)
    if (one.compared == 0 && std::find(without.begin(), without.end(), one.parameter) == without.end())
      names.push_back(one.call + " " + one.parameter);
  return names;
}

std::vector<LibraryCase> library_cases(const std::vector<std::string>& calls, const std::string& parts) {
  std::vector<LibraryCase> found;
  std::string made;  // the operation of `cases`
  std::vector<std::shared_ptr<const RegressCase>> cases;
  for (const std::string& call : calls) {
    if (!may_name(parts, call)) continue;
    const std::string operation = call == "filter" ? "sample" : call;
    if (operation != made) {
      cases.clear();
      for (RegressCase& one : cases_of(operation, "")) cases.push_back(std::make_shared<RegressCase>(std::move(one)));
      made = operation;
    }
    for (const auto& one : cases) {
      const std::string name = call + one->name.substr(operation.size());
      if (has_part(name, parts)) found.push_back({name, call, one});
    }
  }
  return found;
}

LibraryProbe probe_library(const KernelSource& source, double seconds_max) {
  LibraryProbe probe;
  const auto ask = [&](std::size_t) -> IsolatedResult {
    try {
      const KernelLibrary library(source);
      Json told = to_json(library.description());
      told["why"] = library.description().on_device ? device::why_unavailable(DRAFTPROOF_CUDA) : "";
      return {told.dump(), false};
    } catch (const Error& error) {
      return {Json{{"error", error.what()}}.dump(), false};
    }
  };
  const auto read = [&](std::size_t, const std::string& text) {
    const Json told = Json::parse(text);
    if (told.contains("error")) throw input_error("", told.at("error").get<std::string>());
    probe.description.name = told.at("name").get<std::string>();
    probe.description.on_device = told.at("on_device").get<bool>();
    probe.description.numbers = told.at("numbers").get<std::int32_t>();
    told.at("calls").get_to(probe.description.calls);
    told.at("without").get_to(probe.description.without);
    probe.why_unavailable = told.at("why").get<std::string>();
  };
  run_isolated(1, seconds_max, ask, read, [&](std::size_t, const std::string& why) {
    throw input_error(source.name, "loading and describing it failed: " + why);
  });
  return probe;
}

LibraryReport run_library(const KernelSource& source, const std::vector<LibraryCase>& cases, const LibraryJudge& judge,
                          double seconds_max, const std::string& again, const std::function<void()>& done) {
  const auto begin = Clock::now();
  LibraryReport report;
  std::unique_ptr<KernelLibrary> library;  // of the child alone
  const auto item = [&](std::size_t i) -> IsolatedResult {
    if (!library) library = std::make_unique<KernelLibrary>(source);
    bool spoilt = false;
    const Json row = run_one(*library, cases[i], judge, again, spoilt);
    return {row.dump(-1, ' ', false, Json::error_handler_t::replace), spoilt};
  };
  const auto take = [&](std::size_t i, const std::string& text) {
    const Json row = Json::parse(text);
    if (row.is_null()) {
      ++report.left_out;
    } else {
      report.regression.results.push_back(case_result_of(row, source.name));
      note_parameters(report, cases[i].call, row);
    }
    if (done) done();
  };
  const auto lose = [&](std::size_t i, const std::string& why) {
    CaseResult result;
    result.name = cases[i].name;
    result.verdict = Verdict::different;
    result.finding = why + again + cases[i].name;
    report.regression.results.push_back(std::move(result));
    if (done) done();
  };
  run_isolated(cases.size(), seconds_max, item, take, lose);
  report.regression.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return report;
}

}  // namespace draftproof::regress
