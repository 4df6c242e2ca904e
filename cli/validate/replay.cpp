#include "cli/validate/replay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "sim/predict/published_replay.hpp"

namespace draftproof {
namespace {

constexpr double kGoal = 0.03;
constexpr std::array<std::int64_t, 3> kBatches{1, 8, 32};

// SpecDecode-Bench (2601.11580), EAGLE-3 on GSM8K, batch 1, 8 and 32.
struct Published {
  const char* dataset;
  const char* policy;
  std::array<double, kBatches.size()> speedups;
};
constexpr Published kPublished[] = {{"gsm8k", "FIXED_3", {1.81, 1.73, 1.52}}, {"gsm8k", "ORACLE", {2.13, 2.06, 1.87}}};

std::optional<double> published_of(const std::string& dataset, const ReplayedSpeedup& row) {
  for (const Published& p : kPublished)
    for (std::size_t i = 0; i < kBatches.size(); ++i)
      if (dataset.find(p.dataset) != std::string::npos && row.policy == p.policy && row.batch == kBatches[i])
        return p.speedups[i];
  return std::nullopt;
}

struct Replayed {
  std::string dataset;
  std::size_t requests = 0;
  std::vector<ReplayedSpeedup> rows;
  LookupComparison lookup;
};

std::vector<Replayed> replay_all(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code no_folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder, no_folder))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  if (no_folder)
    throw input_error("--replay", printable_line(folder) + " cannot be read as a folder: " + no_folder.message());
  if (files.empty())
    throw input_error("--replay",
                      printable_line(folder) + " holds no *.jsonl; expected a folder of recorded acceptances");
  std::ranges::sort(files);
  std::vector<Replayed> all;
  Progress progress("replaying", files.size(), "files");
  for (const auto& file : files) {
    Replayed& replayed = all.emplace_back();
    replayed.dataset = file.stem().string();
    const AcceptanceRecording eagle = read_recording(file.string(), "eagle");
    replayed.requests = eagle.requests.size();
    replayed.rows = replay_speedups(eagle, {kBatches.begin(), kBatches.end()});
    replayed.lookup = compare_lookup(read_recording(file.string(), "ngram"), file.string());
    progress.advance();
  }
  return all;
}

double share_of(const LookupComparison& lookup) {
  return static_cast<double>(lookup.equal) / static_cast<double>(lookup.places);
}

Json json_of(const Replayed& replayed) {
  Json json{{"dataset", printable_line(replayed.dataset)}, {"requests", replayed.requests}, {"rows", Json::array()}};
  for (const ReplayedSpeedup& row : replayed.rows) {
    const auto published = published_of(replayed.dataset, row);
    json["rows"].push_back({{"policy", row.policy},
                            {"batch", row.batch},
                            {"acceptance_length", row.acceptance_length},
                            {"speedup", row.speedup},
                            {"speedup_aligned", row.aligned},
                            {"published", published ? Json(*published) : Json(nullptr)},
                            {"error", published ? Json(row.speedup / *published - 1.0) : Json(nullptr)}});
  }
  const LookupComparison& lookup = replayed.lookup;
  Json runs = Json::array();
  for (const LookupComparison::Run& run : lookup.runs)
    runs.push_back({{"k", run.drafts}, {"recorded", run.recorded}, {"own", run.own}});
  json["ngram"] = {{"places", lookup.places},
                   {"equal_share", share_of(lookup)},
                   {"draft_share", lookup.draft_share},
                   {"recorded_mean_accepted", lookup.recorded_mean},
                   {"own_mean_accepted", lookup.own_mean},
                   {"acceptance_lengths", runs}};
  return json;
}

void print_text(const std::vector<Replayed>& all, double worst) {
  std::cout << "Recorded acceptances at the published cost of Llama-3.1-8B on an H100 (EAGLE)\n\n"
               "data set                policy   batch  length  speedup  published  aligned\n";
  std::array<char, 160> line{};
  for (const Replayed& replayed : all) {
    for (const ReplayedSpeedup& row : replayed.rows) {
      const auto published = published_of(replayed.dataset, row);
      std::array<char, 16> text{"-"};
      if (published) std::snprintf(text.data(), text.size(), "%.2f", *published);
      std::snprintf(line.data(), line.size(), "%-24s%-8s%6ld%8.2f%9.2f%11s%9.2f\n",
                    printable_line(replayed.dataset).substr(0, 23).c_str(), row.policy.c_str(),
                    static_cast<long>(row.batch), row.acceptance_length, row.speedup, text.data(), row.aligned);
      std::cout << line.data();
    }
  }
  std::cout << "\nThis project's prompt lookup (3 to 5 tokens) over the recorded tokens\n\n"
               "data set                places   equal   drafts   length at K = 3    at K = 5, recorded (own)\n";
  for (const Replayed& replayed : all) {
    const LookupComparison& l = replayed.lookup;
    std::snprintf(line.data(), line.size(), "%-22s%8ld%7.2f %%%7.1f %%%11.3f (%.3f)%11.3f (%.3f)\n",
                  printable_line(replayed.dataset).substr(0, 21).c_str(), static_cast<long>(l.places),
                  100.0 * share_of(l), 100.0 * l.draft_share, l.runs[0].recorded, l.runs[0].own, l.runs[1].recorded,
                  l.runs[1].own);
    std::cout << line.data();
  }
  std::snprintf(line.data(), line.size(), "\nLargest error against a published speedup: %.2f %% (goal: at most 3 %%)\n",
                100.0 * worst);
  std::cout << line.data();
}

}  // namespace

void run_replay(const std::string& folder, bool json, ProgramContext& context) {
  const std::vector<Replayed> all = replay_all(folder);
  double worst = 0.0;
  for (const Replayed& replayed : all)
    for (const ReplayedSpeedup& row : replayed.rows)
      if (const auto published = published_of(replayed.dataset, row))
        worst = std::max(worst, std::abs(row.speedup / *published - 1.0));
  if (json) {
    Json document = json_document(context.arguments);
    document["replay"] = Json::array();
    for (const Replayed& replayed : all) document["replay"].push_back(json_of(replayed));
    document["worst_error"] = worst;
    print_json(document);
  } else {
    print_text(all, worst);
  }
  if (worst > kGoal) context.exit_code = ExitCode::finding;
}

}  // namespace draftproof
