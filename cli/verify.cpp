// draftproof verify: replays a trace file through pipeline and verifier, and says what it emitted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "cli/commands.hpp"
#include "cli/json_document.hpp"
#include "cli/progress.hpp"
#include "reference/error.hpp"
#include "reference/io/sha256.hpp"
#include "reference/io/trace.hpp"
#include "reference/io/verify_result.hpp"
#include "reference/numerics/row_kernels.hpp"
#include "reference/verify/batch.hpp"
#include "reference/verify/impossible_drafts.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kTokensInJsonMax = 10000;

struct VerifyArguments {
  std::string trace_path;
  std::string out_path;
  std::string compare_path;
  std::map<std::string, std::string> settings;  // by name; only those given count
  bool no_row_check = false;
  int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::string simd;
  bool json = false;
};

// Position j: draft j of a request, from 0. See cli/README.md.
struct PositionAcceptance {
  std::int64_t reached = 0;  // requests that have such a draft and accepted all before it
  std::int64_t accepted = 0;
};

struct VerifyRun {
  Trace trace;
  std::string input_sha256;
  VerifyResult result;
  std::vector<PositionAcceptance> positions;
  ImpossibleDrafts impossible;
  std::optional<ResultComparison> comparison;
  double open_ms = 0.0;
  double verify_ms = 0.0;
};

class Stopwatch {
 public:
  double elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string flag_of(std::string setting) {
  std::replace(setting.begin(), setting.end(), '_', '-');
  return "--" + setting;
}

Trace open_trace(const VerifyArguments& arguments, const CLI::App& command) {
  TraceOptions options;
  options.check_rows = !arguments.no_row_check;
  options.threads = arguments.threads;
  for (const auto& [name, value] : arguments.settings)
    if (command.count(flag_of(name)) > 0) options.overrides.push_back({name, value, flag_of(name)});
  Trace trace = Trace::open(arguments.trace_path, options);
  if (trace.has_seeds() && command.count("--seed") > 0)
    throw usage_error("--seed", "would have no effect: " + trace.path() + " has a seed for each request; leave it out");
  return trace;
}

std::vector<PositionAcceptance> count_by_position(const Trace& trace, const VerifyResult& result) {
  std::vector<PositionAcceptance> positions(static_cast<std::size_t>(result.width - 1));
  for (std::size_t b = 0; b < trace.requests().size(); ++b) {
    const auto accepted = static_cast<std::size_t>(result.num_accepted[b]);
    for (std::size_t j = 0; j < trace.requests()[b].draft.size() && j <= accepted; ++j) {
      ++positions[j].reached;
      if (j < accepted) ++positions[j].accepted;
    }
  }
  return positions;
}

VerifyResult verify_trace(const Trace& trace, int threads) {
  Progress progress("verifying", trace.requests().size(), "requests");
  try {
    const std::vector<Emission> emissions = verify_batch(trace.requests(), trace.verify_options(), threads,
                                                         [&](std::int64_t) { progress.advance(); });
    return collect_result(trace.requests(), emissions);
  } catch (const Error& error) {
    throw Error(error.kind(), trace.path(), error.what());  // rows are named, their file is not
  }
}

VerifyRun run_verify(const VerifyArguments& arguments, const CLI::App& command) {
  if (!arguments.simd.empty()) select_row_kernels(arguments.simd);
  const Stopwatch opening;
  VerifyRun run{open_trace(arguments, command), {}, {}, {}, {}, {}};
  run.open_ms = opening.elapsed_ms();
  const Stopwatch verifying;
  run.result = verify_trace(run.trace, arguments.threads);
  run.verify_ms = verifying.elapsed_ms();
  run.positions = count_by_position(run.trace, run.result);
  run.impossible = find_impossible_drafts(run.trace.requests(), arguments.threads);
  run.input_sha256 = sha256_hex(run.trace.bytes());
  if (!arguments.compare_path.empty()) run.comparison = compare_result(run.result, arguments.compare_path);
  return run;
}

std::string proposal_name(const Trace& trace) {
  if (trace.requests().empty()) return "none";
  switch (trace.requests().front().proposal_kind) {
    case ProposalKind::probabilities:
      return "draft_probs";
    case ProposalKind::logits:
      return "draft_logits";
    case ProposalKind::one_hot:
      break;
  }
  return "one-hot";
}

// The settings in force; without the run's seed where the trace has request seeds.
std::map<std::string, std::string> settings_of(const Trace& trace) {
  std::map<std::string, std::string> settings = texts_of(trace.settings());
  if (trace.has_seeds()) settings.erase("seed");
  return settings;
}

std::int64_t accepted_count(const VerifyRun& run) {
  return std::count(run.result.accepted.begin(), run.result.accepted.end(), 1);
}
std::int64_t emitted_count(const VerifyRun& run) {
  return accepted_count(run) + static_cast<std::int64_t>(run.trace.requests().size());
}

void write_result_file(const std::string& path, const VerifyRun& run) {
  std::map<std::string, std::string> metadata = settings_of(run.trace);
  metadata["version"] = DRAFTPROOF_VERSION;
  metadata["input_sha256"] = run.input_sha256;
  metadata["digest"] = digest_of(run.result);
  write_result(path, run.result, metadata);
}

std::string impossible_sentence(const ImpossibleDrafts& impossible) {
  const ImpossibleDraft& first = *impossible.first;
  return std::to_string(impossible.count) + " draft token(s) have probability 0 under the proposal law given, the first in request " +
         std::to_string(first.request) + " at position " + std::to_string(first.position) + " (token " +
         std::to_string(first.token) + "): they were drawn from another law, so the output does not follow the target";
}

std::string difference_sentence(const ResultComparison& comparison, const std::string& path) {
  const ResultDifference& first = *comparison.first;
  return std::to_string(comparison.differing_requests) + " request(s) differ from " + path + ", first request " +
         std::to_string(first.request) + ": " + first.tensor + "[" + std::to_string(first.request) +
         (first.tensor == "output_tokens" ? ", " + std::to_string(first.index) : "") + "] is " +
         std::to_string(first.ours) + " here and " + std::to_string(first.theirs) + " there";
}

// Every finding of a run as a sentence; none: exit code 0. What else is found out about a trace belongs here.
std::vector<std::string> findings_of(const VerifyRun& run, const VerifyArguments& arguments) {
  std::vector<std::string> findings;
  if (run.impossible.count > 0) findings.push_back(impossible_sentence(run.impossible));
  if (run.comparison && run.comparison->first)
    findings.push_back(difference_sentence(*run.comparison, arguments.compare_path));
  return findings;
}

Json json_of(const ImpossibleDrafts& impossible) {
  Json json{{"count", impossible.count}, {"first", nullptr}};
  if (impossible.first)
    json["first"] = {{"request", impossible.first->request},
                     {"position", impossible.first->position},
                     {"token", impossible.first->token}};
  return json;
}

Json json_of(const ResultComparison& comparison, const VerifyRun& run, const std::string& path) {
  Json json{{"path", path},
            {"same_input", nullptr},
            {"compared_num_accepted", comparison.has_num_accepted},
            {"differing_requests", comparison.differing_requests},
            {"first", nullptr}};
  if (comparison.input_sha256) json["same_input"] = *comparison.input_sha256 == run.input_sha256;
  if (const auto& first = comparison.first)
    json["first"] = {{"tensor", first->tensor},
                     {"request", first->request},
                     {"index", first->index},
                     {"ours", first->ours},
                     {"theirs", first->theirs}};
  return json;
}

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}
Json ratio_or_null(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? Json() : Json(ratio(part, whole));
}

Json acceptance_json(const VerifyRun& run) {
  Json conditional = Json::array();
  Json unconditional = Json::array();
  const auto requests = static_cast<std::int64_t>(run.trace.requests().size());
  for (const PositionAcceptance& position : run.positions) {
    conditional.push_back(ratio_or_null(position.accepted, position.reached));
    unconditional.push_back(ratio_or_null(position.accepted, requests));
  }
  return {{"conditional", conditional}, {"unconditional", unconditional}};
}

Json output_tokens_json(const VerifyRun& run) {
  if (emitted_count(run) > static_cast<std::int64_t>(kTokensInJsonMax)) return {};
  Json rows = Json::array();
  for (std::size_t b = 0; b < run.trace.requests().size(); ++b) {
    const std::span<const Token> tokens = run.result.tokens_of(static_cast<std::int64_t>(b));
    rows.push_back(std::vector<Token>(tokens.begin(), tokens.end()));
  }
  return rows;
}

Json run_json(const VerifyRun& run, const VerifyArguments& arguments, const std::vector<std::string>& command_line) {
  const auto requests = static_cast<std::int64_t>(run.trace.requests().size());
  const auto drafts = static_cast<std::int64_t>(run.result.accepted.size());
  Json document = json_document(command_line);
  document["input"] = {{"path", run.trace.path()},
                       {"sha256", run.input_sha256},
                       {"layout", run.trace.is_dense() ? "dense" : "ragged"},
                       {"proposal", proposal_name(run.trace)},
                       {"unused_metadata", run.trace.unused_metadata()}};
  document["vocab_size"] = run.trace.vocab_size();
  document["requests"] = requests;
  document["draft_tokens"] = drafts;
  document["options"] = Json::object();
  for (const auto& [name, value] : settings_of(run.trace))
    if (name != "seed") document["options"][name] = value;
  document["seed"] = run.trace.has_seeds() ? Json() : Json(run.trace.settings().seed);
  document["accepted"] = accepted_count(run);
  document["acceptance_rate"] = ratio_or_null(accepted_count(run), drafts);
  document["emitted_tokens"] = emitted_count(run);
  document["acceptance_length"] = ratio_or_null(emitted_count(run), requests);
  document["acceptance_by_position"] = acceptance_json(run);
  document["impossible_drafts"] = json_of(run.impossible);
  document["comparison"] = run.comparison ? json_of(*run.comparison, run, arguments.compare_path) : Json();
  document["digest"] = digest_of(run.result);
  document["threads"] = arguments.threads;
  document["open_ms"] = run.open_ms;
  document["verify_ms"] = run.verify_ms;
  document["output_tokens"] = output_tokens_json(run);
  return document;
}

void print_acceptance(const VerifyRun& run) {
  const auto requests = static_cast<std::int64_t>(run.trace.requests().size());
  if (requests == 0) return;
  std::printf("acceptance length  %.4f tokens per step (%lld tokens)\n", ratio(emitted_count(run), requests),
              static_cast<long long>(emitted_count(run)));
  if (run.positions.empty()) return;
  std::printf("position  conditional  unconditional\n");
  for (std::size_t j = 0; j < run.positions.size(); ++j) {
    const PositionAcceptance& position = run.positions[j];
    if (position.reached == 0) {
      std::printf("%8zu            -  %13.4f\n", j + 1, 0.0);
    } else {
      std::printf("%8zu  %11.4f  %13.4f\n", j + 1, ratio(position.accepted, position.reached),
                  ratio(position.accepted, requests));
    }
  }
}
