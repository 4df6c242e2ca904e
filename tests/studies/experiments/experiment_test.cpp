#include "studies/experiments/experiment.hpp"

#include "tests/support/test.hpp"

namespace {

const std::string kExperiments = DRAFTPROOF_SOURCE_DIR "/experiments";
const std::string kClaims = DRAFTPROOF_SOURCE_DIR "/docs/claims.md";

const std::string kHead = R"(title = "t"
question = "q"
source = "s"
quantity = "x"
reading = "r"
tolerance = 0.05
)";

ExperimentResult run_text(const std::string& rest) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("one"));
  write_whole_file(folder.file("one/experiment.toml"), kHead + rest);
  return run_experiment(folder.path(), "one", 1);
}

}  // namespace

// Values of a + a^2 at 0.5 and 0.6, worked out by hand: 0.75 and 0.96.
TEST_CASE("a claim of accepted tokens is held against the chain formula, a tenth above it is refuted") {
  const std::string claim =
      "kind = \"chain_formula\"\n[[claim]]\nwhat = \"w\"\nrate = [0.5, 0.6]\ndrafts = 2\nclaimed = ";
  const ExperimentResult good = run_text(claim + "[0.76, 0.95]\n");
  REQUIRE(good.claims.size() == 1);
  CHECK(good.claims[0].model.low == Approx(0.75));
  CHECK(good.claims[0].model.high == Approx(0.96));
  CHECK(good.count(ClaimOutcome::consistent) == 1);
  const ExperimentResult bad = run_text(claim + "[0.85, 1.06]\n");
  CHECK(bad.count(ClaimOutcome::consistent) == 0);
  // a + a^2 = 1.06 for a = (sqrt(1 + 4 * 1.06) - 1) / 2
  CHECK(bad.claims[0].why.find(text_of(
            {100 * (std::sqrt(1 + 4 * 0.85) - 1) / 2, 100 * (std::sqrt(1 + 4 * 1.06) - 1) / 2})) != std::string::npos);
  CHECK(run_text(claim + "[2.0, 2.5]\n").claims[0].why == "no rate gives more than 2 accepted tokens");
}

// Speedups made of c = 0.1: (1 + a) / 1.1 for K = 1.
TEST_CASE("one draft cost that explains all speedups is found, and rows that no one cost explains are refuted") {
  const auto claims = [](double first, double second) {
    return "kind = \"draft_cost\"\n[[claim]]\nwhat = \"a\"\nrate = 0.5\ndrafts = 1\nclaimed = " +
           std::to_string(first) +
           "\n[[claim]]\nwhat = \"b\"\nrate = 0.9\ndrafts = 1\nclaimed = " + std::to_string(second) + "\n";
  };
  const ExperimentResult good = run_text(claims(1.5 / 1.1, 1.9 / 1.1));
  CHECK(good.count(ClaimOutcome::consistent) == 2);
  CHECK(good.claims[0].model.low == Approx(1.5 / 1.1).epsilon(1e-3));
  CHECK(run_text(claims(1.5 / 1.02, 1.9 / 1.3)).count(ClaimOutcome::consistent) == 0);
}

TEST_CASE("what must be read is a bound: a time above it is possible and not consistent, one below is refuted") {
  const std::string claim =
      "kind = \"bytes\"\n[[claim]]\nwhat = \"w\"\nrows = 1000\nvocab = 67000\nvalue_bytes = 2\ngpu = \"H100\"\nclaimed "
      "= ";
  const ExperimentResult above = run_text(claim + "0.041\n");
  CHECK(above.claims[0].model.low == Approx(0.04));  // 134 MB at 3,350 GB/s
  CHECK(above.claims[0].outcome == ClaimOutcome::possible);
  CHECK(above.count(ClaimOutcome::consistent) == 0);
  CHECK(run_text(claim + "0.03\n").claims[0].outcome == ClaimOutcome::refuted);
}

TEST_CASE("speedups of one target latency are consistent, others are not") {
  const auto claims = [](double second) {
    return "kind = \"target_latency\"\n[[claim]]\nwhat = \"a\"\ndraft_ms = 1.0\npasses = 5\ntokens = 4.0\nclaimed = " +
           std::to_string(4.0 * 20 / 25) +
           "\n[[claim]]\nwhat = \"b\"\ndraft_ms = 0.2\npasses = 5\ntokens = 3.0\nclaimed = " + std::to_string(second) +
           "\n";
  };
  CHECK(run_text(claims(3.0 * 20 / 21)).count(ClaimOutcome::consistent) == 2);
  CHECK(run_text(claims(3.0 * 5 / 6)).count(ClaimOutcome::consistent) < 2);
}

TEST_CASE("an experiment that is none is refused by file and line") {
  const std::string message =
      error_of(ErrorKind::input, [] { run_text("kind = \"guess\"\n[[claim]]\nwhat = \"w\"\nclaimed = 1\n"); });
  CHECK(message.find("experiment.toml:7: kind: it is 'guess'; expected one of chain_formula") != std::string::npos);
  CHECK_THAT(error_of(ErrorKind::input,
                      [] { run_text("kind = \"chain_formula\"\n[[claim]]\nwhat = \"w\"\nclaimed = 1\nrates = 2\n"); }),
             Contains("experiment.toml:11: claim[0].rates: unknown key"));
}

const std::string kRun = R"(kind = "scenario"
scenario = "s.toml"
[[claim]]
what = "w"
policy = "k2"
claimed = 1
)";

ExperimentResult run_scenario(const std::string& rest) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("one"));
  write_whole_file(folder.file("one/experiment.toml"), kHead + kRun + rest);
  write_whole_file(folder.file("one/s.toml"), R"(acceptance = "positions:1,0"
[linear]
target_ms = 1.0
draft_pass_ms = 0.5
[workload]
requests = 4
arrivals = { kind = "closed", concurrency = 2 }
prompt = 10
output = 100
[run]
mode = "static"
[[policy]]
name = "off"
speculation = "off"
[[policy]]
name = "k1"
speculation = "fixed:1"
[[policy]]
name = "k2"
speculation = "fixed:2"
)");
  return run_experiment(folder.path(), "one", 1);
}

// Two tokens a step: 2 over 1.5 ms with one draft, over 2 ms with two, of which the second is never accepted.
TEST_CASE("a claim may be of any figure of a run, of one slot's acceptance, and over another policy") {
  CHECK(run_scenario("").claims[0].model.low == Approx(1.0).epsilon(0.01));
  CHECK(run_scenario("figure = \"tokens_per_step\"\n").claims[0].model.low == Approx(2.0).epsilon(0.01));
  CHECK(run_scenario("figure = \"acceptance_at:1\"\n").claims[0].model.low == Approx(1.0));
  CHECK(run_scenario("figure = \"acceptance_at:2\"\n").claims[0].model.low == Approx(0.0));
  const ClaimVerdict ratio = run_scenario("figure = \"throughput\"\nover = \"k1\"\n").claims[0];
  CHECK(ratio.model.low == Approx(0.75).epsilon(0.01));
  CHECK(ratio.outcome == ClaimOutcome::refuted);
  // Over the same policy with a step of 3 ms in place of 1 ms and what drafting adds.
  const auto slower = run_scenario("figure = \"step_ms\"\nover = \"k1\"\nover_set = { \"linear.target_ms\" = 3.0 }\n");
  CHECK(slower.claims[0].model.low == Approx(2.0 / 3.5).epsilon(0.01));
  const auto refusal = [](const std::string& rest) { return error_of(ErrorKind::input, [&] { run_scenario(rest); }); };
  for (const auto& [rest, error] :
       {std::pair("figure = \"speed\"\n", "it is 'speed'; expected a figure of a run (throughput, "),
        {"figure = \"acceptance_at:3\"\n", "it is 'acceptance_at:3'; expected a slot from 1 to 2, the longest draft"},
        {"figure = \"tpot_ms_p99\"\n", "the runs have no such figure: nan over 1"},
        {"over = \"k1\"\n", "it stands without figure; expected one, since the speedup is over the first policy"},
        {"figure = \"throughput\"\nover = \"k9\"\n", "the scenario has no policy 'k9'"}})
    CHECK_THAT(refusal(rest), Contains(error));
}

// The page has verdicts and no figures of the model, which move a little with presets and fitted constants.
TEST_CASE("docs/claims.md is what the experiments give") {
  std::vector<ExperimentResult> results;
  for (const std::string& name : experiment_names(kExperiments))
    results.push_back(run_experiment(kExperiments, name, 1));
  REQUIRE(results.size() >= 9);
  INFO("to write it again: ./draftproof experiments --claims docs/claims.md");
  CHECK(claims_markdown(results) == read_whole_file(kClaims));
}
