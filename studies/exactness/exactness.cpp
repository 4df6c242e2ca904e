#include "studies/exactness/exactness.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "exactness/bugs/bugs_json.hpp"
#include "exactness/json_fields.hpp"
#include "exactness/proof/proof_json.hpp"
#include "studies/lessons.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

// The matrix is one panel of several that compute.
int worker_threads() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
}

void validate(const ExactnessSettings& settings) {
  const auto require = [](const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
      throw usage_error(option, "is " + std::to_string(value) + "; expected a whole number in [" +
                                    std::to_string(least) + ", " + std::to_string(most) + "]");
  };
  require("--vocab", settings.vocab_size, 2, 6);
  require("--num-speculative-tokens", settings.draft_len, 1, 6);
  require("--steps", settings.steps, 1, 4);
  require("--instances", settings.instances, 1, 100'000);
}

ProofOptions options_of(const ExactnessSettings& settings) {
  ProofOptions options;
  options.vocab_size = settings.vocab_size;
  options.draft_len = settings.draft_len;
  options.steps = settings.steps;
  options.instances = settings.instances;
  options.seed = settings.seed;
  return options;
}

// Rows that are there, in the order of their places.
template <class Row>
std::vector<Row> in_order(const std::map<std::size_t, Row>& rows) {
  std::vector<Row> all;
  for (const auto& [place, row] : rows) all.push_back(row);
  return all;
}

// With what is drawn of the rows so far.
void publish_drawn(ExactnessSnapshot& snapshot, const PublishExactness& publish) {
  fill_matrix(snapshot);
  publish(snapshot);
}

void compute_proofs(ExactnessSnapshot snapshot, Job& job, const PublishExactness& publish) {
  const std::vector<ProofCase>& cases = proof_cases();
  const ProofOptions options = options_of(snapshot.settings);
  const int threads = worker_threads();
  const auto before_instance = [&] { job.check(); };
  std::map<std::size_t, ProofResult> rows;
  std::vector<std::size_t> quick_first(cases.size());
  std::iota(quick_first.begin(), quick_first.end(), std::size_t{0});
  ProofOptions one_pair = options;
  one_pair.instances = 1;
  std::size_t done = 0;
  const std::size_t total = 2 * cases.size() + claims().size();
  const auto publish_row = [&](std::size_t place, ProofResult row) {
    rows.insert_or_assign(place, std::move(row));
    snapshot.proofs = in_order(rows);
    job.report(static_cast<double>(++done) / static_cast<double>(total), "proving " + cases[place].name);
    publish_drawn(snapshot, publish);
  };
  for (const std::size_t place : quick_first)
    publish_row(place, prove(cases[place], one_pair, threads, before_instance));
  std::stable_sort(quick_first.begin(), quick_first.end(),
                   [&](std::size_t a, std::size_t b) { return rows.at(a).milliseconds < rows.at(b).milliseconds; });
  for (const std::size_t place : quick_first)
    publish_row(place, prove(cases[place], options, threads, before_instance));
  for (const Claim& claim : claims()) {
    job.check();
    snapshot.claims.push_back(
        check(claim, options.vocab_size, std::min(options.instances, kClaimInstancesMax), options.seed));
    job.report(static_cast<double>(++done) / static_cast<double>(total), "checking relations between verifiers");
  }
  snapshot.complete = true;
  publish_drawn(snapshot, publish);
}

void compute_bugs(ExactnessSnapshot snapshot, Job& job, const PublishExactness& publish) {
  std::vector<std::string> ids;
  for (const Bug& bug : all_bugs()) ids.push_back(bug.id);
  const std::size_t bugs = ids.size();
  for (const Control& control : bug_controls()) ids.push_back(control.id);
  snapshot.bugs.waiting = waiting_bugs();
  std::map<std::size_t, BugResult> results;
  std::map<std::size_t, ControlResult> controls;
  std::mutex mutex;
  parallel_for(std::ssize(ids), worker_threads(), [&](std::int64_t item, int) {
    job.check();
    const auto place = static_cast<std::size_t>(item);
    BugReport report = run_bugs({ids[place]}, 1);
    const std::lock_guard lock(mutex);
    if (place < bugs)
      results.emplace(place, std::move(report.bugs.front()));
    else
      controls.emplace(place, std::move(report.controls.front()));
    snapshot.bugs.bugs = in_order(results);
    snapshot.bugs.controls = in_order(controls);
    const std::size_t done = results.size() + controls.size();
    job.report(static_cast<double>(done) / static_cast<double>(ids.size()), "hunting, " + ids[place]);
    publish_drawn(snapshot, publish);
  });
  snapshot.complete = true;
  publish_drawn(snapshot, publish);
}

// Times differ from run to run; what was found does not.
void erase_times(Json& json) {
  if (json.is_object()) json.erase("ms");
  if (json.is_structured())
    for (Json& element : json) erase_times(element);
}

}  // namespace

void compute(const ExactnessSettings& settings, Job& job, const PublishExactness& publish) {
  validate(settings);
  ExactnessSnapshot snapshot;
  snapshot.settings = settings;
  snapshot.settings.file.clear();
  if (settings.view == ExactnessView::verifiers)
    compute_proofs(std::move(snapshot), job, publish);
  else
    compute_bugs(std::move(snapshot), job, publish);
}

ExactnessSnapshot exactness_of(const Json& document, const std::string& verb, const std::string& file) {
  ExactnessSnapshot snapshot;
  snapshot.settings.file = file;
  snapshot.complete = true;
  if (verb == "bugs") {
    snapshot.settings.view = ExactnessView::bugs;
    snapshot.bugs = report_of(document, file);
    fill_matrix(snapshot);
    return snapshot;
  }
  for (const Json& row : json_field<Json::array_t>(document, "proofs", file))
    snapshot.proofs.push_back(proof_of(row, file));
  for (const Json& row : json_field<Json::array_t>(document, "claims", file))
    snapshot.claims.push_back(claim_of(row, file));
  snapshot.settings.vocab_size = json_field<std::int32_t>(document, "vocab", file);
  snapshot.settings.draft_len = json_field<std::int32_t>(document, "draft", file);
  snapshot.settings.steps = json_field<std::int32_t>(document, "steps", file);
  snapshot.settings.seed = json_field<std::uint64_t>(document, "seed", file);
  if (!snapshot.proofs.empty()) snapshot.settings.instances = snapshot.proofs.front().instances;
  fill_matrix(snapshot);
  return snapshot;
}

std::vector<std::string> command_arguments(const ExactnessSettings& settings) {
  if (settings.view == ExactnessView::bugs) return {"draftproof", "bugs"};
  return {"draftproof",
          "prove",
          "--vocab",
          std::to_string(settings.vocab_size),
          "--num-speculative-tokens",
          std::to_string(settings.draft_len),
          "--steps",
          std::to_string(settings.steps),
          "--instances",
          std::to_string(settings.instances),
          "--seed",
          std::to_string(settings.seed)};
}

Json to_json(const ExactnessSnapshot& snapshot) {
  Json json;
  if (snapshot.settings.view == ExactnessView::bugs) {
    json = json_of(snapshot.bugs);
  } else {
    json["vocab"] = snapshot.settings.vocab_size;
    json["draft"] = snapshot.settings.draft_len;
    json["steps"] = snapshot.settings.steps;
    json["seed"] = snapshot.settings.seed;
    json["proofs"] = json["claims"] = Json::array();
    for (const ProofResult& result : snapshot.proofs) json["proofs"].push_back(json_of(result));
    for (const ClaimResult& result : snapshot.claims) json["claims"].push_back(json_of(result));
  }
  erase_times(json);
  return json;
}

std::vector<Lesson<ExactnessSettings>> lessons(const ExactnessSettings&) {
  ExactnessSettings bugs;
  bugs.view = ExactnessView::bugs;
  return {{"proofs", "Every lossless verifier is exact, every lossy one refuted: click 'refuted' for the string.", {}},
          {"bugs", "Each bug is caught by at least one detector, and no detector accuses its sound twin.", bugs}};
}

}  // namespace draftproof
