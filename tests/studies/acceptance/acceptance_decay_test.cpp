#include "studies/acceptance/acceptance_decay.hpp"

#include "studies/job.hpp"
#include "studies/worker.hpp"
#include "tests/support/test.hpp"

namespace {

AcceptanceDecaySnapshot snapshot_of(const AcceptanceDecaySettings& settings) {
  return last_snapshot<AcceptanceDecaySnapshot>(settings);
}

AcceptanceDecaySettings settings_of(const std::vector<std::string>& sources) {
  AcceptanceDecaySettings settings;
  settings.sources = sources;
  return settings;
}

DecayCurve curve_of(const std::string& source) {
  return snapshot_of(settings_of({source})).curves.front();
}

const std::string kLog =
    "INFO [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.60, Accepted throughput: 160.0 tokens/s, "
    "Drafted throughput: 500.0 tokens/s, Accepted: 1600 tokens, Drafted: 5000 tokens, Per-position acceptance rate: "
    "0.700, 0.450, 0.250, 0.130, 0.070, Avg Draft acceptance rate: 32.0%\n";

}  // namespace

TEST_CASE("the decay of a constant rate is its closed form at every position and length") {
  const DecayCurve curve = curve_of("constant:0.8");
  REQUIRE(curve.unconditional.size() == 8);
  REQUIRE(curve.tokens_per_step.size() == 9);
  for (int k = 0; k <= 8; ++k) {
    const auto i = static_cast<std::size_t>(k);
    CHECK(curve.tokens_per_step[i].value == Approx((1.0 - std::pow(0.8, k + 1)) / 0.2));
    CHECK(curve.speedup[i].value == Approx((1.0 - std::pow(0.8, k + 1)) / (0.2 * (1.0 + 0.1 * k))));
    CHECK_FALSE(curve.tokens_per_step[i].low);
    if (k == 0) continue;
    CHECK(curve.conditional[i - 1].value == Approx(0.8));
    CHECK(curve.unconditional[i - 1].value == Approx(std::pow(0.8, k)));
    CHECK(curve.survival_product[i - 1] == Approx(std::pow(0.8, k)));
  }
  CHECK(curve.pays_below == Approx(0.8));
  CHECK(curve.best_k == 6);
}

TEST_CASE("a server's log becomes conditional and unconditional rates with the intervals of its counts") {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/server.log";
  write_whole_file(log, kLog);
  const AcceptanceDecaySnapshot snapshot = snapshot_of(settings_of({log}));
  const DecayCurve& curve = snapshot.curves.front();
  REQUIRE_FALSE(curve.error);
  PlottedRows points{{0, 1, 1}}, intervals;
  for (std::size_t k = 1; k < curve.speedup.size(); ++k) {
    const DecayValue& s = curve.unconditional[k - 1];
    points.push_back({static_cast<double>(k), s.value, curve.speedup[k].value});
    if (s.low) intervals.push_back({static_cast<double>(k), s.value, *s.low, *s.high});
  }
  CHECK(intervals.size() == 5);
  check_plotted(to_figure(snapshot), "source0", points);
  check_plotted(to_figure(snapshot), "intervals0", intervals);
  CHECK(curve.format == "vLLM log");
  CHECK(curve.drafts == 1000);
  CHECK(curve.positions_known == 5);
  const std::vector<double> logged{0.7, 0.45, 0.25, 0.13, 0.07};
  for (std::size_t i = 0; i < logged.size(); ++i) {
    CHECK(curve.unconditional[i].value == Approx(logged[i]));
    CHECK(curve.conditional[i].value == Approx(i == 0 ? 0.7 : logged[i] / logged[i - 1]));
    CHECK(*curve.unconditional[i].low < logged[i]);
    CHECK(*curve.unconditional[i].high > logged[i]);
    // Fewer steps reach a later position: what is known of it is less.
    if (i > 0)
      CHECK(*curve.conditional[i].high - *curve.conditional[i].low >
            *curve.conditional[i - 1].high - *curve.conditional[i - 1].low);
  }
  CHECK(curve.tokens_per_step[5].value == Approx(2.6));
  // Clopper and Pearson, 700 of 1000: 0.67054, 0.72828 (R: binom.test(700, 1000)).
  CHECK(*curve.unconditional[0].low == Approx(0.6705383).epsilon(1e-6));
  CHECK(*curve.unconditional[0].high == Approx(0.7282789).epsilon(1e-6));
  CHECK_FALSE(curve.unconditional[5].low);
  CHECK_FALSE(curve.tokens_per_step[6].low);
}

TEST_CASE("rates that are bounds, and a K that nothing says, advise nothing behind them") {
  const TemporaryFolder folder;
  const std::string metrics = folder.path() + "/metrics.prom";
  write_whole_file(metrics,
                   "vllm:spec_decode_num_drafts_total 10000\nvllm:spec_decode_num_draft_tokens_total 12000\n"
                   "vllm:spec_decode_num_accepted_tokens_total 7800\n"
                   "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 7000\n"
                   "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 500\n"
                   "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"2\"} 300\n");
  CHECK(curve_of(metrics).best_k <= 3);
  const std::string answer = folder.path() + "/answer.json";
  write_whole_file(answer, R"({"timings": {"predicted_n": 200, "draft_n": 347, "draft_n_accepted": 65}})");
  const DecayCurve curve = curve_of(answer);
  CHECK_FALSE(curve.running_k);
  CHECK(curve.notes.back() ==
        "K = 3 is the mean of the drafts, rounded up, since nothing says K; say it with -k K (predict: "
        "--metrics-drafts K).");
  AcceptanceDecaySettings known = settings_of({answer});
  known.drafts = 16;
  CHECK(snapshot_of(known).curves.front().running_k == 16);
  // Half of the drafted tokens accepted, 16 a draft.
  known.sources = {folder.path() + "/early.log"};
  write_whole_file(known.sources[0],
                   "SpecDecoding metrics: Draft acceptance rate: 50.0%, Accepted: 64 tokens, Drafted: 128 tokens\n");
  CHECK(snapshot_of(known).curves.front().acceptance_length == Approx(9.0));
}

TEST_CASE("rates of 0 and 1 have the one-sided intervals of the closed form") {
  const TemporaryFolder folder;
  const std::string table = folder.path() + "/rates.csv";
  write_whole_file(table, "position,accepted,drafts\n0,100,100\n1,0,100\n");
  const DecayCurve curve = curve_of(table);
  REQUIRE_FALSE(curve.error);
  CHECK(*curve.conditional[0].low == Approx(std::pow(0.025, 1.0 / 100.0)));
  CHECK(*curve.conditional[0].high == 1.0);
  CHECK(*curve.conditional[1].low == 0.0);
  CHECK(*curve.conditional[1].high == Approx(1.0 - std::pow(0.025, 1.0 / 100.0)));
  CHECK(curve.best_k == 1);
}

TEST_CASE("windows that differ more than coins would widen the interval") {
  const TemporaryFolder folder;
  const auto csv = [&](const std::string& name, const std::vector<int>& accepted) {
    std::string text;
    for (const int n : accepted) {
      const std::string rate = std::to_string(n / 1000.0);
      text += "SpecDecoding metrics: Mean acceptance length: " + std::to_string(1.0 + n / 1000.0) +
              ", Accepted: " + std::to_string(n) +
              " tokens, Drafted: 1000 tokens, Per-position acceptance rate: " + rate + "\n";
    }
    write_whole_file(folder.path() + "/" + name, text);
    const DecayCurve curve = curve_of(folder.path() + "/" + name);
    REQUIRE_FALSE(curve.error);
    CHECK(curve.unconditional[0].value == Approx(0.5));
    return *curve.unconditional[0].high - *curve.unconditional[0].low;
  };
  const double alike = csv("alike.log", {500, 510, 490, 505, 495, 500});
  const double apart = csv("apart.log", {200, 800, 300, 700, 400, 600});
  // 3000 of 6000: 1.96 x 2 x sqrt(0.25 / 6000) = 0.0253.
  CHECK(alike == Approx(0.0253).epsilon(0.02));
  // Standard error over six windows 0.0882: 1.96 x 2 x 0.0882 = 0.346, some more for the exact interval.
  CHECK(apart > 0.34);
  CHECK(apart < 0.40);
}

TEST_CASE("the best number of drafts falls as drafts cost more, to none where the first is accepted less often") {
  const AcceptanceDecaySnapshot snapshot = snapshot_of(settings_of({"positions:0.7,0.6,0.5", "constant:0.9"}));
  for (const DecayCurve& curve : snapshot.curves) {
    REQUIRE(curve.best_k_by_cost.size() == snapshot.costs.size());
    for (std::size_t i = 0; i < snapshot.costs.size(); ++i) {
      if (i > 0) CHECK(curve.best_k_by_cost[i] <= curve.best_k_by_cost[i - 1]);
      CHECK((curve.best_k_by_cost[i] == 0) == (snapshot.costs[i] >= curve.pays_below));
    }
  }
  CHECK(snapshot.curves[0].pays_below == Approx(0.7));
}

TEST_CASE("the slider of the draft cost leads to the K that the command line prints") {
  Worker<AcceptanceDecaySettings, AcceptanceDecaySnapshot> worker(
      [](const AcceptanceDecaySettings& settings, Job& job, const auto& publish) { compute(settings, job, publish); });
  AcceptanceDecaySettings settings = settings_of({"constant:0.8", "drafter:n-gram"});
  std::set<std::int32_t> seen;
  for (const double cost : {0.0, 0.1, 0.3, 0.9}) {
    settings.draft_cost = cost;
    worker.request(settings);
    worker.settle();
    const auto snapshot = worker.latest();
    REQUIRE(snapshot);
    CHECK(snapshot->settings.draft_cost == cost);
    seen.insert(snapshot->curves[0].best_k);
    CHECK(without_envelope(printed_by(command_arguments(settings))) == to_json(*snapshot));
  }
  CHECK(seen.size() == 4);
  CHECK(seen.contains(0));
}

TEST_CASE("the folder of a demo is a source, and its rates are those of its table") {
  const TemporaryFolder folder;
  const std::string out = folder.path() + "/demo";
  REQUIRE(run_draftproof(
              {"demo", "--no-download", "--tokens", "20", "--samples", "1000", "--continuations", "6", "--out", out})
              .exit_code == 0);
  const DecayCurve curve = curve_of(out);
  REQUIRE_FALSE(curve.error);
  const auto document = nlohmann::json::parse(read_whole_file(out + "/result.json"));
  const auto& rates = document.at("acceptance_by_position");
  for (std::size_t i = 0; i < rates.at("conditional").size(); ++i) {
    CHECK(curve.conditional[i].value == Approx(rates.at("conditional")[i].get<double>()));
    CHECK(curve.unconditional[i].value == Approx(rates.at("unconditional")[i].get<double>()));
    CHECK(curve.unconditional[i].low);
  }
  CHECK(curve.tokens_per_step[5].value == Approx(document.at("tokens_per_step").get<double>()));
}

TEST_CASE("a table of speculate is a source with a curve for every drafter") {
  const TemporaryFolder folder;
  write_whole_file(folder.path() + "/result.json",
                   R"({"command": "draftproof speculate", "left_out": [], "rows": [
    {"drafter": "suffix", "k": 2, "tree": null, "temperature": 0, "steps": 100, "drafts": 50, "draft_tokens": 100,
     "accepted": 45, "acceptance_by_position": {"unconditional": [0.3, 0.15],
     "unconditional_standard_error": [0.04, 0.03]}},
    {"drafter": "layer_skip:12", "k": 2, "tree": null, "temperature": 0, "steps": 80, "drafts": 80,
     "draft_tokens": 160, "accepted": 80, "acceptance_by_position": {"unconditional": [0.6, 0.4],
     "unconditional_standard_error": [null, null]}}]})");
  const AcceptanceDecaySnapshot snapshot = snapshot_of(settings_of({folder.path(), "constant:0.5"}));
  REQUIRE(snapshot.curves.size() == 3);
  CHECK(snapshot.curves[0].name == folder.path() + ": suffix, T = 0");
  CHECK(snapshot.curves[0].source == folder.path());
  CHECK(snapshot.curves[0].draft_share == 0.5);
  // 45 of 50 in two positions: of all steps 1 + 0.3 + 0.15 tokens.
  CHECK(snapshot.curves[0].tokens_per_step[2].value == Approx(1.45));
  CHECK(snapshot.curves[0].speedup[2].value == Approx(1.45 / (1.0 + 0.5 * 2 * 0.1)));
  CHECK(snapshot.curves[1].unconditional[1].value == Approx(0.4));
  CHECK(snapshot.curves[2].name == "constant:0.5");
}

TEST_CASE("a source that cannot be read has its message, and the others their curves") {
  const TemporaryFolder folder;
  const std::string broken = folder.path() + "/broken.log";
  write_whole_file(broken, "{\"acceptance_by_position\": 3}");
  const AcceptanceDecaySnapshot snapshot =
      snapshot_of(settings_of({"constant:0.8", broken, folder.path(), "no such file", "constant:2"}));
  REQUIRE(snapshot.curves.size() == 5);
  CHECK_FALSE(snapshot.curves[0].error);
  CHECK(std::string(snapshot.curves[1].error->what()).find("broken.log: acceptance_by_position") != std::string::npos);
  CHECK(std::string(snapshot.curves[2].error->what()).find("result.json") != std::string::npos);
  CHECK(std::string(snapshot.curves[3].error->what()).find("there is no such file or folder") != std::string::npos);
  CHECK(std::string(snapshot.curves[4].error->what()).find("expected a number in [0, 1]") != std::string::npos);
  CHECK(to_json(snapshot).at("sources")[1].at("error").is_string());
  CHECK(to_table(snapshot).rows.size() == 8);
  CHECK(to_figure(snapshot_of(settings_of({"no such file"}))).empty());
  const auto printed = run_draftproof({"acceptance", "constant:0.8", broken});
  CHECK(printed.exit_code == 2);
  CHECK_THAT(printed.err, Contains("broken.log"));
}

TEST_CASE("acceptance refuses an option that none of its sources has a use for") {
  const TemporaryFolder folder;
  const std::string table = folder.path() + "/rates.csv";
  write_whole_file(table, "position,rate\n1,0.8\n2,0.6\n");
  for (const auto& [more, error] : {std::pair(std::vector<std::string>{"--name", "x"}, "--name: has no use"),
                                    {{"--rates", "conditional"}, "--rates: has no use"},
                                    {{"-k", "3"}, "--num-speculative-tokens: has no use"},
                                    {{table, "--rates", "unconditional", "--name", "x"}, "--name: has no use"}}) {
    std::vector<std::string> arguments{"acceptance", "constant:0.8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused(arguments, {error});
  }
  CHECK(run_draftproof({"acceptance", "constant:0.8", table, "--rates", "unconditional"}).exit_code == 0);
}

TEST_CASE("settings out of range are refused with what is expected") {
  AcceptanceDecaySettings settings;
  settings.draft_cost = -1.0;
  CHECK_THAT(error_of(ErrorKind::usage, [&] { snapshot_of(settings); }), Contains("expected a number in [0, 100]"));
  settings = {};
  settings.drafts_max = 65;
  CHECK(error_of(ErrorKind::usage, [&] { snapshot_of(settings); }).find("expected 1 to 64") != std::string::npos);
  settings = {};
  settings.sources.clear();
  CHECK(error_of(ErrorKind::usage, [&] { snapshot_of(settings); }).find("expected a file") != std::string::npos);
}
