// Verification steps against the distributions they should follow. Which test holds for which verifier is in
// docs/audit.md.
#include <algorithm>
#include <map>
#include <utility>

#include "base/parallel.hpp"
#include "exactness/audit/acceptance.hpp"
#include "exactness/audit/audit.hpp"
#include "exactness/audit/independence.hpp"
#include "exactness/audit/next_tokens.hpp"
#include "exactness/audit/recorded.hpp"
#include "exactness/audit/step_rows.hpp"
#include "exactness/audit/strings.hpp"
#include "exactness/audit/tests.hpp"
#include "exactness/statistics/chi_squared.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {
namespace {

// The worst kind of finding: what happened cannot happen. The first case is named.
TestResult certainty_of(const std::string& name, const std::string& unit, std::span<const StepRecord> records,
                        bool StepRecord::*impossible, const auto& cell_of, const auto& counts) {
  std::int64_t n = 0;
  std::int64_t count = 0;
  std::vector<CountedCell> cells;
  for (std::size_t b = 0; b < records.size(); ++b) {
    n += counts(records[b]) ? 1 : 0;
    if (!(records[b].*impossible)) continue;
    ++count;
    if (cells.size() == kWorstCellsMax) continue;
    cells.push_back(cell_of(b));
    cells.back().observed = 1.0;
  }
  return certainty_test(name, unit, n, count, std::move(cells));
}

TestResult support_test(const StepSample& sample, std::span<const StepRecord> records) {
  const auto cell_of = [&](std::size_t b) {
    const std::uint32_t row = records[b].impossible_row;
    return CountedCell{
        {{"request", static_cast<std::int64_t>(b)}, {"position", row}, {"token", sample.emitted(b)[row]}}};
  };
  return certainty_of("support", "steps", records, &StepRecord::impossible_token, cell_of,
                      [](const StepRecord&) { return true; });
}

// The emitted tokens of one file as one sample, whatever rows they had.
std::vector<TestResult> emitted_token_tests(std::span<const StepRecord> records, std::uint64_t key, bool cover_all) {
  UniformTally first;
  std::vector<std::pair<double, double>> strings;
  for (std::size_t b = 0; b < records.size(); ++b) {
    const StepRecord& record = records[b];
    if (record.emitted[0] != kNoTransform) first.add(record.emitted[0]);
    if (record.depth_max == 0 || !record.first_row_has_choice || record.impossible_token) continue;
    // Where there is no second token, or no choice for it, a draw of ours completes the string: its transform is a
    // uniform number, whatever the row would have been.
    const double second = record.emitted.size() > 1 && record.emitted[1] != kNoTransform
                              ? record.emitted[1]
                              : audit_uniform(key, static_cast<std::int64_t>(b), 1, AuditUse::absent_token);
    strings.emplace_back(record.emitted[0], second);
  }
  std::vector<TestResult> tests = uniformity_tests("first_token", "steps", first, cover_all);

  // As many bins for either token: 8 x 8, 4 x 4 or 2 x 2.
  const auto n = static_cast<std::int64_t>(strings.size());
  std::size_t side = 8;
  while (side > 1 && affordable_bins(n, side * side) < side * side) side /= 2;
  if (side == 1) return tests;
  std::vector<std::int64_t> counts(side * side, 0);
  const auto bin = [&](double u) {
    return std::min(side - 1, static_cast<std::size_t>(u * static_cast<double>(side)));
  };
  for (const auto& [u, v] : strings) ++counts[bin(u) * side + bin(v)];
  const CountFit fit = fit_counts(
      counts, std::vector<double>(counts.size(), 1.0 / static_cast<double>(counts.size())), [&](std::size_t i) {
        return CountedCell{
            {{"bin", static_cast<std::int64_t>(i / side)}, {"next_bin", static_cast<std::int64_t>(i % side)}}};
      });
  std::vector<TestResult> in_bins = count_tests("string_bins", "steps", fit, false);
  tests.push_back(std::move(in_bins.front()));
  return tests;
}

// "position" in a chain, "node" in a tree.
CountedCell draft_cell(const StepSample& sample, std::size_t b, std::int32_t node) {
  const DraftTree& draft = sample.requests[b].draft;
  return {{{"request", static_cast<std::int64_t>(b)},
           {draft.is_chain() ? "position" : "node", node},
           {"token", draft.tokens[static_cast<std::size_t>(node)]}}};
}

bool repeats_are_wrong(DraftSampling drafts) {
  return drafts == DraftSampling::without_replacement || drafts == DraftSampling::greedy ||
         drafts == DraftSampling::independent_paths;
}

std::vector<TestResult> draft_tests(const StepSample& sample, std::span<const StepRecord> records,
                                    const Assumptions& assumed) {
  std::vector<TestResult> tests;
  const auto has_drafts = [](const StepRecord& record) { return record.depth_max > 0; };
  const auto has_distribution = [](const StepRecord& record) {
    return record.impossible_draft || record.repeated_draft || !record.drafted.empty();
  };
  if (std::none_of(records.begin(), records.end(), has_distribution)) return tests;
  tests.push_back(certainty_of(
      "draft_support", "steps with drafts", records, &StepRecord::impossible_draft,
      [&](std::size_t b) { return draft_cell(sample, b, records[b].impossible_node); }, has_drafts));
  if (repeats_are_wrong(assumed.drafts))
    tests.push_back(certainty_of(
        "draft_repeats", "steps with drafts", records, &StepRecord::repeated_draft,
        [&](std::size_t b) { return draft_cell(sample, b, records[b].repeated_node); }, has_drafts));
  UniformTally tally;
  for (const StepRecord& record : records)
    for (const double u : record.drafted) tally.add(u);
  append(tests, uniformity_tests("draft", "drafts", tally, false));
  return tests;
}

// The last token of a step.
auto end_cell_of(const StepSample& sample, std::span<const StepRecord> records) {
  return [&sample, records](std::size_t b) {
    return CountedCell{{{"request", static_cast<std::int64_t>(b)},
                        {"position", records[b].accepted},
                        {"token", sample.emitted(b).back()}}};
  };
}

// Where what is accepted is a function of what is emitted, and of what is reported.
std::vector<TestResult> path_tests(const StepSample& sample, std::span<const StepRecord> records,
                                   const Assumptions& assumed) {
  std::vector<TestResult> tests;
  const auto end_cell = end_cell_of(sample, records);
  if (sample.path_nodes)
    tests.push_back(certainty_of("path", "steps", records, &StepRecord::wrong_path, end_cell,
                                 [](const StepRecord&) { return true; }));
  if (!assumed.accepts_drafted) return tests;
  TestResult test = certainty_of("drafted_accepted", "steps", records, &StepRecord::drafted_recovery, end_cell,
                                 [](const StepRecord& record) { return record.end_is_known && record.depth_max > 0; });
  if (test.n > 0) tests.push_back(std::move(test));
  return tests;
}

// Tests of a verifier whose decisions are known.
std::vector<TestResult> decision_tests(const StepSample& sample, std::span<const StepRecord> records) {
  std::vector<TestResult> tests = acceptance_tests(records);
  UniformTally recovered;
  UniformTally bonus;
  bool any_recovered = false;
  const auto is_recovered = [](const StepRecord& record) { return record.recovered; };
  for (const StepRecord& record : records) {
    any_recovered = any_recovered || is_recovered(record);
    if (record.impossible_draft || record.last == kNoTransform) continue;
    (is_recovered(record) ? recovered : bonus).add(record.last);
  }
  if (any_recovered)
    tests.push_back(certainty_of("recovered_support", "rejections", records, &StepRecord::impossible_recovery,
                                 end_cell_of(sample, records), is_recovered));
  append(tests, uniformity_tests("recovered", "rejections", recovered, false));
  append(tests, uniformity_tests("bonus", "bonus tokens", bonus, false));
  return tests;
}

// Draft against verify draws. What the last token is drawn with is independent of what drew the drafts of its step, and
// of what draws those of the next.
std::vector<TestResult> draft_correlations(const StepSample& sample, std::span<const StepRecord> records) {
  std::vector<double> last, judged, first;
  for (const StepRecord& record : records) {
    last.push_back(record.impossible_draft ? kNoTransform : record.last);
    judged.push_back(record.judged_draft);
    first.push_back(record.first_draft);
  }
  std::vector<TestResult> tests = correlation_of_pairs("draft_last", judged, last);
  if (!sample.at || sample.at->step.empty()) return tests;
  // The same stream, one step later.
  const DrawCoordinates& at = *sample.at;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::size_t> index;
  const auto stream = [&](std::size_t b) {
    return !at.seed.empty() ? at.seed[b] : at.row.empty() ? 0 : static_cast<std::uint64_t>(at.row[b]);
  };
  for (std::size_t b = 0; b < records.size(); ++b) index.try_emplace({stream(b), at.step[b]}, b);
  std::vector<double> next(records.size(), kNoTransform);
  for (std::size_t b = 0; b < records.size(); ++b)
    if (const auto found = index.find({stream(b), at.step[b] + 1}); found != index.end())
      next[b] = first[found->second];
  append(tests, correlation_of_pairs("last_next_draft", last, next));
  return tests;
}

std::vector<StepRecord> record_steps(const StepSample& sample, const Assumptions& assumed, std::uint64_t key,
                                     int threads) {
  std::vector<StepRecord> records(sample.requests.size());
  std::vector<StepWorkspace> workspaces(static_cast<std::size_t>(threads));
  parallel_for(static_cast<std::int64_t>(records.size()), threads, [&](std::int64_t i, int thread) {
    const auto b = static_cast<std::size_t>(i);
    records[b] = record_step(sample, b, assumed, key, workspaces[static_cast<std::size_t>(thread)]);
  });
  return records;
}

}  // namespace

Audit audit_steps(const StepSample& sample, const AuditOptions& options) {
  require_fit(options.verifier, sample);
  const bool trees = std::any_of(sample.requests.begin(), sample.requests.end(),
                                 [](const VerifyRequest& request) { return !request.draft.is_chain(); });
  const Assumptions assumed = assumptions_of(options.verifier, trees);
  const std::uint64_t key = derive_seed(options.seed, 2);
  const std::vector<StepRecord> records = record_steps(sample, assumed, key, options.threads);
  Audit audit;
  audit.lossless = assumed.lossless;
  audit.observations = static_cast<std::int64_t>(records.size());
  audit.vocab_size = records.empty() ? 0 : sample.requests.front().target.vocab_size;
  const SharedContexts shared = fit_shared_contexts(sample, records, assumed, key);
  audit.groups = shared.groups;
  const std::int64_t undecided = std::count_if(records.begin(), records.end(),
                                               [](const StepRecord& record) { return record.first_row_has_choice; });
  const bool cells_cover_most = 2 * shared.first_token.n >= undecided;
  if (!records.empty() && assumed.keeps_support) {
    audit.tests.push_back(support_test(sample, records));
    audit.tests.back().covers_all = undecided == 0;
  }
  append(audit.tests, path_tests(sample, records, assumed));
  if (assumed.lossless) {
    append(audit.tests, count_tests("first_token", "steps", shared.first_token, cells_cover_most));
    for (const StepRecord& record : records)
      audit.string_tokens_max = std::max(audit.string_tokens_max, record.depth_max + 1);
    for (std::size_t i = 0; i < shared.strings.size(); ++i) {
      const std::uint32_t tokens = static_cast<std::uint32_t>(i) + 2;
      std::vector<TestResult> of_strings =
          count_tests(i == 0 ? "string" : "string_" + std::to_string(tokens), "steps", shared.strings[i], false);
      if (of_strings.empty()) continue;
      if (i > 0) of_strings.pop_back();  // the likelihood ratio says the same again
      audit.string_tokens = tokens;
      append(audit.tests, std::move(of_strings));
    }
    append(audit.tests, emitted_token_tests(records, key, !cells_cover_most));
    append(audit.tests, draft_tests(sample, records, assumed));
    if (!assumed.chain_decisions) append(audit.tests, next_token_tests(records, assumed, key));
    if (assumed.chain_decisions || assumed.decides) {
      append(audit.tests, decision_tests(sample, records));
      append(audit.tests, draft_correlations(sample, records));
    }
  }
  append(audit.tests, recorded_tests(sample, records, options));
  append(audit.tests, malformed_tests("steps", "request", audit.observations, sample.malformed));
  if (sample.at && assumed.lossless) {
    std::vector<double> first;
    for (const StepRecord& record : records) first.push_back(record.emitted[0]);
    append(audit.tests, independence_tests(first, *sample.at));
  }
  if (assumed.chain_decisions) audit.positions = acceptance_by_position(records);
  conclude(audit, options);
  note_malformed(audit, sample.malformed);
  return audit;
}

}  // namespace draftproof
