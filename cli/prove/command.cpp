// draftproof prove: the distribution of every verifier, by enumeration over exact fractions.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/latex.hpp"
#include "base/near_names.hpp"
#include "base/parallel.hpp"
#include "base/split.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "exactness/proof/certificate.hpp"
#include "exactness/proof/claims.hpp"
#include "exactness/proof/equal_drafts.hpp"
#include "exactness/proof/proof_json.hpp"
#include "exactness/proof/prove.hpp"
#include "exactness/statistics/battery.hpp"
#include "reference/verify/lossy/top_k_resample.hpp"

namespace draftproof {
namespace {

struct ProveArguments {
  std::string verifier = "all";
  ProofOptions options;
  std::string certificate, counterexamples;  // files; empty: none
  Artefacts artefacts;
  bool long_run = false;
  bool equal_drafts = false;
  int threads = 1;
  bool json = false;
};

std::string float_text(const ProofResult& result) {
  return result.float_distance_max ? short_number(static_cast<double>(*result.float_distance_max)) : "-";
}

void print_row(const ProofResult& result) {
  std::cout << std::left << std::setw(28) << result.name << std::setw(10) << result.claim() << std::setw(9)
            << (result.exact ? "exact" : "refuted") << std::right << std::setw(3) << result.draft_len << std::setw(12)
            << result.paths << std::setw(10) << std::fixed << std::setprecision(4)
            << static_cast<double>(result.mean_accepted) << std::setw(9)
            << (result.oracles == 0       ? "-"
                : result.acceptance_holds ? std::to_string(result.oracles) + " equal"
                                          : "DIFFER")
            << std::setw(11) << float_text(result) << std::setw(10) << std::setprecision(0) << result.milliseconds
            << " ms\n";
  if (result.counterexample) std::cout << "    " << result.counterexample->sentence() << "\n";
  if (!result.lossless && result.exact)
    std::cout << "    a lossy rule that these models do not refute; try a larger --vocab, --draft or --instances\n";
}

std::vector<ClaimResult> check_claims(const ProveArguments& arguments, const ProofOptions& options) {
  std::vector<ClaimResult> results(claims().size());
  Progress progress("checking", results.size(), "claims");
  const std::int32_t instances = std::min(options.instances, kClaimInstancesMax);
  parallel_for(std::ssize(results), arguments.threads, [&](std::int64_t i, int) {
    const auto index = static_cast<std::size_t>(i);
    results[index] = check(claims()[index], options.vocab_size, instances, options.seed);
    progress.advance();
  });
  return results;
}

void print_claims(const std::vector<ClaimResult>& results) {
  for (const ClaimTally& tally : tally_of(results)) std::cout << tally.sentence() << "\n";
  for (const ClaimResult& result : results)
    if (result.refutation) std::cout << "    REFUTED: " << result.text << ": " << *result.refutation << "\n";
}

// Cost of the top-k resample on rows of a real size.
const std::string kTopKResample = "top_k_resample";

Json top_k_resample_json() {
  return json_list(top_k_resample_table(), [](const TopKResampleRow& row) -> Json {
    return {{"row", row.row},
            {"k", row.k},
            {"tv_argmax_drafts", finite("tv_argmax_drafts", row.one_hot_draft)},
            {"tv_warm_drafts", finite("tv_warm_drafts", row.warm_draft)}};
  });
}

void print_top_k_resample() {
  std::cout << "\nTotal-variation distance at one position, V = 1024\nrow        k  argmax drafts  drafts at T = 2\n";
  for (const TopKResampleRow& row : top_k_resample_table())
    std::cout << std::left << std::setw(6) << row.row << std::right << std::setw(6) << row.k << std::setw(15)
              << short_number(row.one_hot_draft) << std::setw(17) << short_number(row.warm_draft) << "\n";
}

// name: of a case, of a verifier of the registry, which may have several, or "all".
std::vector<const ProofCase*> wanted_cases(const std::string& name) {
  std::vector<const ProofCase*> cases;
  std::vector<std::string> known{"all"};
  for (const ProofCase& proof_case : proof_cases()) {
    if (name == "all" || name == proof_case.name || name == info_of(proof_case.verifier).name)
      cases.push_back(&proof_case);
    known.push_back(proof_case.name);
  }
  if (cases.empty()) {
    for (const VerifierInfo& info : verifiers()) known.emplace_back(info.name);
    const std::string guess = did_you_mean(name, known);
    throw usage_error("--verifier", "'" + name + "' is not a verifier nor a case of one" +
                                        (guess.empty() ? "; draftproof verifiers lists them" : guess));
  }
  return cases;
}

Json path_or_null(const std::string& path) {
  return path.empty() ? Json() : Json(path);
}

void write_certificate(const std::string& path, const std::vector<const ProofCase*>& cases, const ProofOptions& options,
                       const ProgramContext& context) {
  Json document = json_document(context.arguments);
  document["proofs"] =
      json_list(cases, [&](const ProofCase* proof_case) { return certificate_of(*proof_case, options); });
  AtomicFile file(path);
  file.stream() << document.dump() << '\n';  // in one line: indented it would be three times as long
  file.commit();
}

// The counterexamples of all refuted rules, a table each.
void write_counterexamples(const std::string& path, const std::vector<std::string>& tables,
                           const ProgramContext& context) {
  AtomicFile file(path);
  file.stream() << latex_comment(program_and_commit()) << latex_comment(shell_command(context.arguments));
  file.stream() << "% Needs \\usepackage{booktabs}.\n";
  for (const std::string& table : tables) file.stream() << table;
  file.commit();
}

std::vector<std::string> proof_keys() {
  return {"verifier",         "lossless",           "exact", "vocab", "draft", "outcomes_enumerated", "mean_accepted",
          "acceptance_equal", "total_variation_max"};
}

double decimal(const Rational& x) {
  return static_cast<double>(x);
}

void compare_equal_drafts(const ProveArguments& arguments, ProgramContext& context) {
  require_artefacts(arguments.artefacts);
  const std::vector<EqualDraftsRow> rows = equal_drafts(equal_drafts_target(), equal_drafts_proposal());
  const Json listed = json_list(rows, [](const EqualDraftsRow& row) -> Json {
    return {{"verifier", row.verifier},
            {"drafts", row.drafts},
            {"budget", row.budget},
            {"tokens", finite("tokens", decimal(row.tokens))},
            {"target_rows", finite("target_rows", decimal(row.target_rows))},
            {"proposal_rows", finite("proposal_rows", decimal(row.proposal_rows))},
            {"lossless", row.lossless},
            {"first_distance", finite("first_distance", decimal(row.first_distance))},
            {"distance", finite("distance", decimal(row.distance))}};
  });
  write_table_of(arguments.artefacts, "Verifiers at equal drafts", context, [&] {
    return table_of(listed, {"budget", "verifier", "drafts", "tokens", "target_rows", "proposal_rows", "lossless",
                             "first_distance", "distance"});
  });
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document["equal_drafts"] = listed;
    print_json(document);
    return;
  }
  std::cout
      << "p = (10, 5, 3, 2) / 20 and q = (8, 4, 6, 2) / 20 after every prefix; rows that the rule reads, each once.\n"
         "Off by: total variation of the first token, and of all, completed by draws from p; 0 of lossless rules\n"
         "drafts  verifier                    how drawn                         tokens  rows of p  rows of q    first"
         "      all\n"
      << std::fixed << std::setprecision(4);
  for (const EqualDraftsRow& row : rows)
    std::cout << std::setw(6) << row.budget << "  " << std::left << std::setw(28) << row.verifier << std::setw(32)
              << row.drafts << std::right << std::setw(8) << decimal(row.tokens) << std::setw(11)
              << decimal(row.target_rows) << std::setw(11) << decimal(row.proposal_rows) << std::setw(9)
              << decimal(row.first_distance) << std::setw(9) << decimal(row.distance) << "\n";
}

void run_prove(const ProveArguments& arguments, ProgramContext& context) {
  if (arguments.equal_drafts) {
    compare_equal_drafts(arguments, context);
    return;
  }
  ProofOptions options = arguments.options;
  if (arguments.long_run) {
    options.vocab_size = std::max(options.vocab_size, 4);
    options.draft_len = std::max(options.draft_len, 4);
    options.long_run = true;
  }
  const std::vector<const ProofCase*> cases = wanted_cases(arguments.verifier);
  const std::vector<NamedFile> outputs{{"--certificate", arguments.certificate},
                                       {"--counterexamples", arguments.counterexamples}};
  require_no_overwriting({}, outputs);
  require_writable(outputs);
  require_artefacts(arguments.artefacts);
  // First, since one that would be too large is refused.
  if (!arguments.certificate.empty()) write_certificate(arguments.certificate, cases, options, context);
  std::vector<std::string> counterexamples;
  Json document = json_document(context.arguments);
  document["vocab"] = options.vocab_size;
  document["draft"] = options.draft_len;
  document["steps"] = options.steps;
  document["seed"] = options.seed;
  Json proofs = Json::array();
  if (!arguments.json) {
    const bool has_half = std::any_of(cases.begin(), cases.end(), [](const ProofCase* proof_case) {
      return proof_case->draft_tokens == DraftTokens::half;
    });
    std::cout << "V = " << options.vocab_size << ", K = " << options.draft_len << ", " << options.steps << " steps, "
              << options.instances << " pairs of models; distributions are compared as fractions\n"
              << (has_half ? "d2t: twice as many tokens, of which V can be drafted\n" : "")
              << "verifier                    claim     distribution     K    outcomes  accepted  oracles     floats   "
                 "   time\n"
              << std::flush;
  }
  Progress progress("proving", cases.size(), "verifiers");
  bool all_as_claimed = true;
  for (const ProofCase* proof_case : cases) {
    const ProofResult result = prove(*proof_case, options, arguments.threads);
    all_as_claimed = all_as_claimed && result.as_claimed();
    progress.advance();
    if (!arguments.json) print_row(result);
    std::cout << std::flush;  // minutes of proofs stay where it is interrupted
    proofs.push_back(json_of(result));
    if (result.counterexample && !result.counterexample->failure)
      counterexamples.push_back(counterexample_table(result));
  }
  document["proofs"] = proofs;
  document["claims"] = Json::array();
  if (arguments.verifier == "all") {
    const std::vector<ClaimResult> results = check_claims(arguments, options);
    for (const ClaimResult& result : results) {
      all_as_claimed = all_as_claimed && !result.refutation;
      document["claims"].push_back(json_of(result));
    }
    if (!arguments.json) print_claims(results);
  }
  const bool has_top_k = std::any_of(cases.begin(), cases.end(),
                                     [](const ProofCase* proof_case) { return proof_case->name == kTopKResample; });
  document["top_k_resample"] = has_top_k ? top_k_resample_json() : Json::array();
  if (arguments.verifier == kTopKResample && !arguments.json) print_top_k_resample();
  document["as_claimed"] = all_as_claimed;
  write_table_of(arguments.artefacts,
                 "Proofs over fractions: " + std::to_string(options.instances) + " pairs of models", context,
                 [&] { return table_of(proofs, proof_keys()); });
  if (!arguments.counterexamples.empty()) write_counterexamples(arguments.counterexamples, counterexamples, context);
  document["files"] = {{"certificate", path_or_null(arguments.certificate)},
                       {"counterexamples", path_or_null(arguments.counterexamples)}};
  if (arguments.json) print_json(document);
  if (!all_as_claimed) context.exit_code = ExitCode::finding;
}

}  // namespace

void add_prove(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<ProveArguments>();
  ProofOptions& proof = arguments->options;
  options.text("--verifier", arguments->verifier, "Name of a verifier or of a proof case, or all", "NAME");
  // With one token, or without a draft, a lossy rule is exact too, and nothing could be refuted.
  options.integer("--vocab", proof.vocab_size, {2, 6}, "Vocabulary size V");
  options.integer("-k,--num-speculative-tokens", proof.draft_len, {1, 6},
                  "Draft tokens K (of trees: depth, at most 2, or 3 with --long)");
  options.integer("--steps", proof.steps, {1, 4}, "Consecutive steps S");
  options.integer("--instances", proof.instances, {1, 100'000}, "Pairs of random models");
  options.seed(proof.seed, "Seed of the models");
  options.threads(arguments->threads);
  options.flag("--long", arguments->long_run, "V and K of at least 4, deeper trees: hours");
  options.file("--certificate", arguments->certificate,
               "Write one step of every case as data that exactness/proof/check_certificate.py checks on its own");
  options.file("--counterexamples", arguments->counterexamples,
               "Write the counterexamples of refuted rules as LaTeX tables (booktabs)");
  options.flag(
      "--equal-drafts", arguments->equal_drafts,
      "Verifiers at 2 and 4 drafts, instead of proofs: tokens a step, rows that the rule reads, distance paid");
  options.used_only({"--verifier", "--vocab", "--num-speculative-tokens", "--steps", "--instances", "--seed", "--long",
                     "--certificate", "--counterexamples"},
                    "with --equal-drafts", [arguments] { return !arguments->equal_drafts; });
  add_table(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"", "--verifier block --json", "--equal-drafts",
                    "--table proofs.tex --counterexamples appendix.tex",
                    "--verifier chain -k 2 --instances 7 --certificate chain.json", "--vocab 2 -k 1 --instances 5"});
  options.on_run([arguments, &context] { run_prove(*arguments, context); });
}

}  // namespace draftproof
