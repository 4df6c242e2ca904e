// Recorded runs of heads beside what the head proposes: runs of ours, sound and with the faults of head_faults.hpp, and
// runs whose arithmetic rounds otherwise.
#include "engine/heads/draft_audit.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

#include "base/dtype.hpp"
#include "engine/heads/acceptance_oracle.hpp"
#include "engine/heads/recorded_replay.hpp"
#include "tests/engine/heads/fault_runs.hpp"
#include "tests/reference/trace/temporary_folder.hpp"

namespace draftproof::testing {
namespace {

// A run of the schedule by a runner, as a file would hold it.
std::vector<RecordedRequest> recorded(FaultLab& lab, Drafter& runner, HeadDrafter& head, const HeadSchedule& schedule) {
  DraftRecorder recorder(runner, &head.head());
  const auto forward = head.on_row;  // of a fault
  head.on_row = [&](const HeadRow& row) {
    if (forward) forward(row);
    recorder.add(row);
  };
  const HeadRun run = run_schedule_of_heads(lab.target, &recorder, schedule);
  head.on_row = forward;
  std::vector<RecordedRequest> requests;
  for (std::size_t i = 0; i < run.texts.size(); ++i)
    requests.push_back(recorder.take(i, run.texts[i].size(),
                                     static_cast<double>(schedule.requests[i].options.parameters.temperature)));
  return requests;
}

std::vector<RecordedRequest> sound_run(const std::string& name, const HeadSchedule& schedule) {
  FaultLab& lab = fault_lab();
  HeadDrafter head(lab.heads.at(name).head.head(lab.target), std::nullopt);
  return recorded(lab, head, head, schedule);
}

std::vector<RecordedRequest> faulty_run(const PlantedFault& planted) {
  FaultLab& lab = fault_lab();
  const HeadFault fault = fault_named(planted, lab.heads.at(planted.head).head.weights(), lab.target);
  HeadDrafter head(std::make_shared<DraftHead>(fault.weights, lab.target, "test head"), std::nullopt);
  const std::unique_ptr<FaultyDrafter> runner = fault.plant(head, lab.target);
  return recorded(lab, *runner, head, fault_schedule(0.0f, planted.shares_prefixes));
}

DraftAudit audited(const std::vector<RecordedRequest>& requests, const std::string& head,
                   const DraftAuditOptions& options = {}) {
  FaultLab& lab = fault_lab();
  return audit_drafts(requests, lab.heads.at(head).head.weights(), lab.target, options);
}

std::vector<RecordedRequest> without_probabilities(std::vector<RecordedRequest> requests) {
  for (RecordedRequest& request : requests)
    for (RecordedStep& step : request.steps) step.log_probs.clear();
  return requests;
}

// Written and read.
std::vector<RecordedRequest> through_a_file(const std::vector<RecordedRequest>& requests) {
  const TemporaryFolder folder;
  std::string lines;
  for (const RecordedRequest& request : requests) lines += recorded_line(request);
  write_whole_file(folder.file("run.jsonl"), lines);
  return read_recorded_run(folder.file("run.jsonl"), kFaultVocabSize);
}

// Chains, drawn chains, and trees with rejected first siblings.
std::vector<HeadSchedule> schedules() {
  std::vector<HeadSchedule> all{fault_schedule(0.0f, true), fault_schedule(0.8f, true), fault_schedule(0.8f, true),
                                fault_schedule(0.0f, true)};
  for (Request& request : all[2].requests) request.options.verify.verifier = parse_verifier("chain", "test");
  for (Request& request : all[3].requests) {
    request.options.verify.verifier = parse_verifier("target_only", "test");
    request.options.tree = branching_shape({3, 2, 1});
  }
  return all;
}

TEST_CASE("a recorded run of ours is the head's, draft for draft and probability for probability") {
  for (const auto& [name, taught] : fault_lab().heads)
    for (const HeadSchedule& schedule : schedules()) {
      INFO(name << ", temperature " << schedule.requests[0].options.parameters.temperature);
      const std::vector<RecordedRequest> requests = through_a_file(sound_run(name, schedule));
      const DraftAudit audit = audited(requests, name);
      INFO(audit.sentence << (audit.first ? "; " + audit.first->text() : ""));
      CHECK(audit.verdict == DraftVerdict::consistent);
      CHECK(audit.accounting.empty());
      CHECK(audit.all.different == 0);
      CHECK(audit.all.near_ties == 0);
      CHECK(audit.all.drafts() > 400);
      CHECK(audit.probabilities == audit.all.drafts());
      CHECK(audit.largest_log_prob_difference < 1e-4);
      CHECK(audit.requests == 6);
      if (audit.recorded_length) CHECK(audit.recorded_length == audit.head_length);
      std::int64_t by_position = 0;
      for (const DraftAgreement& bin : audit.by_position) by_position += bin.drafts();
      CHECK(by_position == audit.all.drafts());
    }
}

TEST_CASE("a run that is shown again to a sound runner has the slow head's rows, bit for bit") {
  FaultLab& lab = fault_lab();
  for (const auto& [name, taught] : lab.heads)
    for (const HeadSchedule& schedule : schedules()) {
      INFO(name);
      const std::vector<RecordedRequest> requests = sound_run(name, schedule);
      CHECK(requests.back().cached_tokens == 32);
      CHECK(requests.back().prefill_chunks.size() > 1);
      HeadDrafter head(taught.head.head(lab.target), 1.0f);
      FaultyDrafter runner(head);
      AcceptanceOracle oracle(taught.head.weights(), lab.target, transformer_kernels());
      oracle.attach(runner);
      RecordedReplay replay(lab.target, requests);
      replay.add(runner, true);
      for (std::size_t i = 0; i < requests.size(); ++i) replay.run(i);
      oracle.compare();
      if (oracle.first()) FAIL(oracle.first()->text());
      std::int64_t drafts = 0;
      for (const RecordedRequest& request : requests)
        for (const RecordedStep& step : request.steps) drafts += step.drafts.size();
      CHECK(oracle.drafts_compared() == drafts);
    }
}

TEST_CASE("print") {
  for (const PlantedFault& planted : kPlantedFaults) {
    const auto run = faulty_run(planted);
    for (int k = 0; k < 3; ++k) {
      DraftAuditOptions options;
      if (k == 0) options.tolerance = 1e-3;
      const DraftAudit audit = audited(k == 2 ? without_probabilities(run) : run, planted.head, options);
      std::string text = std::to_string(planted.number) + " " + planted.name + " " + planted.head + " k" +
                         std::to_string(k) + ": " + audit.sentence + "\n";
      for (std::size_t i = 0; i < std::min<std::size_t>(4, audit.faults.size()); ++i)
        text += "   " + std::to_string(audit.faults[i].number) + " " + audit.faults[i].name + " different " +
                std::to_string(audit.faults[i].different) + " explained " + std::to_string(audit.faults[i].explained) +
                " introduced " + std::to_string(audit.faults[i].introduced) + " distance " +
                std::to_string(audit.faults[i].distance) + " " + audit.faults[i].not_tried + "\n";
      if (audit.recorded_length)
        text += "   length " + std::to_string(*audit.recorded_length) + " head " + std::to_string(*audit.head_length) +
                "\n";
      WARN(text);
    }
  }
}

}  // namespace
}  // namespace draftproof::testing
