// Every field of what an importer returns, against numbers counted by hand from the text: a total that is dropped,
// taken twice or put into its neighbour's place fails.
#include "sim/import/read_acceptance.hpp"
#include "sim/import/speculate_table.hpp"
#include "tests/support/test.hpp"

// A field that the text does not say is not named below.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace {

bool is_near(double a, double b) {
  return a == Approx(b).epsilon(1e-12).margin(1e-15);
}
bool is_near(std::optional<double> a, std::optional<double> b) {
  return a.has_value() == b.has_value() && (!a || is_near(*a, *b));
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected, const std::string& what) {
  INFO(what);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-12));
}

std::vector<double> lows_and_highs(const std::vector<Bounds>& bounds) {
  std::vector<double> numbers;
  for (const Bounds& b : bounds) numbers.insert(numbers.end(), {b.low, b.high});
  return numbers;
}

// Does not compile when a field is added that is not compared here.
void check_every_field(const AcceptanceData& found, const AcceptanceData& expected) {
  const auto& [path, format, takes_choice, takes_rates, windows, draft_len, draft_len_is_least, tree_nodes, drafts,
               draft_tokens, accepted_tokens, acceptance_length, length_is_least, acceptance_length_error, survival,
               survival_error, survival_bounds, reach, draft_share, throughput, model, load, notes, not_used, replay] =
      found;
  INFO(expected.format);
  CHECK(path == "file");
  CHECK(format == expected.format);
  CHECK(takes_choice == expected.takes_choice);
  CHECK(takes_rates == expected.takes_rates);
  CHECK(windows == expected.windows);
  CHECK(draft_len == expected.draft_len);
  CHECK(draft_len_is_least == expected.draft_len_is_least);
  CHECK(tree_nodes == expected.tree_nodes);
  CHECK(drafts == expected.drafts);
  CHECK(draft_tokens == expected.draft_tokens);
  CHECK(accepted_tokens == expected.accepted_tokens);
  CHECK(acceptance_length == Approx(expected.acceptance_length).epsilon(1e-12));
  CHECK(length_is_least == expected.length_is_least);
  INFO("acceptance_length_error " << acceptance_length_error.value_or(-1.0));
  CHECK(is_near(acceptance_length_error, expected.acceptance_length_error));
  check_near(survival, expected.survival, "survival");
  check_near(survival_error, expected.survival_error, "survival_error");
  check_near(lows_and_highs(survival_bounds), lows_and_highs(expected.survival_bounds), "survival_bounds");
  check_near(lows_and_highs(reach), lows_and_highs(expected.reach), "reach");
  INFO("draft_share " << draft_share.value_or(-1.0));
  CHECK(is_near(draft_share, expected.draft_share));
  REQUIRE(throughput.size() == expected.throughput.size());
  for (std::size_t i = 0; i < throughput.size(); ++i) {
    const auto& [running, tokens_per_second, prompt_tokens_per_second, engine, tokens_per_step, mean_draft] =
        throughput[i];
    CHECK(running == expected.throughput[i].running);
    CHECK(tokens_per_second == expected.throughput[i].tokens_per_second);
    CHECK(prompt_tokens_per_second == expected.throughput[i].prompt_tokens_per_second);
    CHECK(engine == expected.throughput[i].engine);
    CHECK(is_near(tokens_per_step, expected.throughput[i].tokens_per_step));
    CHECK(is_near(mean_draft, expected.throughput[i].draft_tokens));
  }
  CHECK(model == expected.model);
  CHECK(load == expected.load);
  CHECK(notes == expected.notes);
  CHECK((replay != nullptr) == (expected.format == "recorded acceptances"));
}

void check_import(const std::string& text, const AcceptanceData& expected) {
  check_every_field(parse_acceptance(text, "file"), expected);
}

// Standard errors of rates over `drafts` steps that are coins.
std::vector<double> coin_errors(const std::vector<double>& rates, double drafts) {
  std::vector<double> errors;
  for (const double rate : rates) errors.push_back(std::sqrt(rate * (1.0 - rate) / drafts));
  return errors;
}

TEST_CASE("every field of an SGLang log is counted by hand") {
  const std::string server =
      "[2026-07-21 15:00:10] server_args=ServerArgs(speculative_num_steps=3, speculative_eagle_topk=1, "
      "speculative_num_draft_tokens=4, port=1)\n";
  const std::string decode =
      "[2026-07-21 15:00:13 TP0] Decode batch, #running-req: 24, #token: 233600, accept len: 3.00, accept rate: 0.68, "
      "gen throughput (token/s): 239.06, #queue-req: 2\n"
      "[2026-07-21 15:00:13 TP1] Decode batch, #running-req: 24, accept len: 1.00, gen throughput (token/s): 1.0\n"
      "[2026-07-21 15:00:14 TP2] Decode batch, #running-req: 24, accept len: 1.00, gen throughput (token/s): 1.0\n"
      "[2026-07-21 15:00:15 DP1 TP1] Decode batch, #running-req: 10, accept len: 2.20, gen throughput (token/s): 77.5\n"
      "[2026-07-21 15:00:16 TP0] Decode batch, #running-req: 0, accept len: 1.00, gen throughput (token/s): 2.0\n"
      "[2026-07-21 15:00:17 TP0] Decode batch, #running-req: 8, accept len: 2.50, accept rate: 0.5\n";
  AcceptanceData expected{.format = "SGLang log", .windows = 3, .draft_len = 3};
  expected.acceptance_length = 1.0 + (24 * 2.0 + 10 * 1.2 + 8 * 1.5) / 42;
  expected.throughput = {{24.0, 239.06, 0.0, 0, 3.0}, {10.0, 77.5, 0.0, 1, 2.2}};
  expected.notes = {"2 lines of further tensor-parallel ranks left out: they repeat the first one's."};
  check_import(server + decode, expected);

  // Without the steps of the drafter K is the number of draft tokens less the root.
  check_import("speculative_num_draft_tokens=6\n" + decode, [&] {
    AcceptanceData of_tokens = expected;
    of_tokens.draft_len = 5;
    return of_tokens;
  }());

  AcceptanceData tree = expected;
  tree.draft_len = 5;
  tree.tree_nodes = 7;
  tree.notes.push_back("The drafts were trees of 7 nodes (num_draft_tokens counts the root).");
  check_import("speculative_num_steps=5 speculative_eagle_topk=4 speculative_num_draft_tokens=8\n" + decode, tree);

  // Five lines have a standard error: residuals of -2, 0, 2, 0, 0 accepted tokens.
  std::string five;
  for (const char* const length : {"2.0", "2.5", "3.0", "2.5", "2.5"})
    five += "Decode batch, #running-req: 4, accept len: " + std::string(length) + ", accept rate: 0.5\n";
  AcceptanceData errors{.format = "SGLang log", .windows = 5, .acceptance_length = 2.5};
  errors.acceptance_length_error = std::sqrt(5.0 / 4.0 * 8.0) / 20.0;
  check_import(five, errors);

  AcceptanceData summary{.format = "SGLang log", .windows = 2, .acceptance_length = 3.0};
  summary.notes = {"The windows do not all say how many drafts they had; they are weighted equally."};
  check_import("accept_length: 3.5\naccept_length: 2.5\n", summary);
}

TEST_CASE("every field of a vLLM log is counted by hand") {
  const std::string log =
      "INFO [loggers.py:123] Engine 000: Avg prompt throughput: 5.0 tokens/s, Avg generation throughput: 100.0 "
      "tokens/s, Running: 4 reqs, Waiting: 1 reqs\n"
      "SpecDecoding metrics: Mean acceptance length: 3.00, Accepted throughput: 40.00 tokens/s, Drafted throughput: "
      "60.00 tokens/s, Accepted: 400 tokens, Drafted: 600 tokens, Per-position acceptance rate: 0.800, 0.700, 0.500, "
      "Avg Draft acceptance rate: 66.7%\n"
      "INFO [loggers.py:123] Engine 000: Avg prompt throughput: 7.5 tokens/s, Avg generation throughput: 50.0 "
      "tokens/s, Running: 2 reqs, Waiting: 0 reqs\n"
      "SpecDecoding metrics: Mean acceptance length: 2.50, Accepted throughput: 30.00 tokens/s, Drafted throughput: "
      "60.00 tokens/s, Accepted: 300 tokens, Drafted: 600 tokens, Per-position acceptance rate: 0.800, 0.400, 0.300, "
      "Avg Draft acceptance rate: 50.0%\n";
  AcceptanceData expected{.format = "vLLM log",
                          .windows = 2,
                          .draft_len = 3,
                          .drafts = 400,
                          .draft_tokens = 1200,
                          .accepted_tokens = 700,
                          .acceptance_length = 2.75};
  expected.survival = {320.0 / 400, 220.0 / 400, 160.0 / 400};
  expected.survival_error = coin_errors(expected.survival, 400);
  // 40 / 2 + 30 / 1.5 drafts in (100 - 40) + (50 - 30) steps.
  expected.draft_share = 0.5;
  // 100 tokens/s of 100 - 40 steps/s; in the second window every step drafted.
  expected.throughput = {{4.0, 100.0, 5.0, 0, 100.0 / 60, 3.0}, {2.0, 50.0, 7.5, 0, 2.5, 3.0}};
  expected.notes = {
      "By the generation throughput only 50 % of the steps had a draft; the acceptance length is of those."};
  check_import(log, expected);

  // A window that does not count: nothing is known of the counts of all.
  AcceptanceData equal = expected;
  equal.windows = 3;
  equal.drafts = equal.draft_tokens = equal.accepted_tokens = std::nullopt;
  equal.acceptance_length = 1.0 + (2.0 + 1.5 + 1.0) / 3;
  equal.survival = {2.2 / 3, 1.5 / 3, 0.8 / 3};
  equal.survival_error = {};
  equal.notes.insert(equal.notes.begin(), {"The windows do not all say how many drafts they had; they are weighted "
                                           "equally.",
                                           "The drafts have several lengths: each position is counted over those that "
                                           "reach it."});
  equal.survival[2] = 0.8 / 2;
  equal.reach = {{1.0, 1.0}, {1.0, 1.0}, {2.0 / 3, 2.0 / 3}};
  check_import(log + "SpecDecoding metrics: Mean acceptance length: 2.00, Per-position acceptance rate: 0.600, 0.400\n",
               equal);
}

TEST_CASE("every field of a vLLM log whose lists of rates are shorter than its drafts is counted by hand") {
  // Three drafts a step, and rates of two: 400 accepted tokens are 267 times 1.5, as far as these rates know. The mean
  // acceptance length stays as it is printed.
  AcceptanceData expected{.format = "vLLM log",
                          .windows = 1,
                          .draft_len = 2,
                          .drafts = 267,
                          .draft_tokens = 600,
                          .accepted_tokens = 400,
                          .acceptance_length = 3.0};
  expected.survival = {214.0 / 267, 187.0 / 267};
  expected.survival_error = coin_errors(expected.survival, 267);
  expected.notes = {"1 list of rates shorter than the drafts: the sum is below the mean acceptance length."};
  check_import(
      "SpecDecoding metrics: Mean acceptance length: 3.00, Accepted: 400 tokens, Drafted: 600 tokens, Per-position "
      "acceptance rate: 0.800, 0.700, Avg Draft acceptance rate: 66.7%\n",
      expected);
}

TEST_CASE("every field of the counters of earlier vLLM is counted by hand") {
  const auto line = [](int accepted, int drafted, int emitted) {
    return "Speculative metrics: Number of speculative tokens: 2, Number of accepted tokens: " +
           std::to_string(accepted) + ", Number of draft tokens: " + std::to_string(drafted) +
           ", Number of emitted tokens: " + std::to_string(emitted) + ",\n";
  };
  // The server began anew behind its second line: 150 drafts with 270 tokens, and 20 with 30.
  check_import(line(50, 100, 90) + line(150, 300, 270) + line(10, 20, 15) + line(20, 40, 30),
               {.format = "vLLM log",
                .windows = 2,
                .draft_len = 2,
                .drafts = 170,
                .draft_tokens = 340,
                .accepted_tokens = 130,
                .acceptance_length = 1.0 + 130.0 / 170,
                .notes = {"Counters of vLLM before 0.9: the acceptance length is emitted tokens / drafts, since their "
                          "accepted tokens count drafts behind a rejected one."}});
  // A line that was written before anything was drafted, or says too little, is none.
  for (const char* const nothing : {"Number of draft tokens: 300", "Number of accepted tokens: 30",
                                    "Number of accepted tokens: 0, Number of draft tokens: 0"})
    for (const char* const more : {"", ", Number of speculative tokens: 2, Number of emitted tokens: 9"})
      check_import("config: num_spec_tokens=2\nSpeculative metrics: " + std::string(nothing) + more +
                       "\nSpeculative metrics: Number of accepted tokens: 60, Number of draft tokens: 100\n",
                   {.format = "vLLM log",
                    .windows = 1,
                    .draft_len = 2,
                    .drafts = 50,
                    .draft_tokens = 100,
                    .accepted_tokens = 60,
                    .acceptance_length = 1.0 + 60.0 / 50});
  // A version in between does not say how many tokens were emitted, or with how many drafts: each line counts.
  for (const char* const more : {"", ", Number of speculative tokens: 4", ", Number of emitted tokens: 9",
                                 ", Number of emitted tokens: 9, Number of speculative tokens: 0"})
    check_import(
        "config: num_spec_tokens=4\n"
        "Speculative metrics: Number of accepted tokens: 60, Number of draft tokens: 100" +
            std::string(more) + "\nSpeculative metrics: Number of accepted tokens: 90, Number of draft tokens: 300" +
            more + "\n",
        {.format = "vLLM log",
         .windows = 2,
         .draft_len = 4,
         .drafts = 100,
         .draft_tokens = 400,
         .accepted_tokens = 150,
         .acceptance_length = 2.5});
}

TEST_CASE("every field of the summary of vLLM's benchmark is counted by hand") {
  AcceptanceData expected{.format = "vLLM log",
                          .windows = 1,
                          .draft_len = 5,
                          .drafts = 3221,
                          .draft_tokens = 16105,
                          .accepted_tokens = 5430,
                          .acceptance_length = 1.0 + 5430.0 / 3221};
  for (const int accepted : {2358, 1530, 802, 461, 279}) expected.survival.push_back(accepted / 3221.0);
  expected.survival_error = coin_errors(expected.survival, 3221);
  check_import(
      "---------------Speculative Decoding---------------\nAcceptance rate (%):                     33.70     \n"
      "Acceptance length:                       2.69      \nDrafts:                                  3221      \n"
      "Draft tokens:                            16105     \nAccepted tokens:                         5430      \n"
      "Per-position acceptance (%):\n  Position 0:                            73.21     \n"
      "  Position 1:                            47.50     \n  Position 2:                            24.90     \n"
      "  Position 3:                            14.30     \n  Position 4:                            8.67      \n",
      expected);
}

TEST_CASE("every field of a table of rates is counted by hand") {
  const std::string header =
      "engine,K,num_drafts,num_draft_tokens,num_accepted_tokens,mean_acceptance_length,tau_kind,rate_kind,p1,p2,p3\n";
  const std::string rows =
      "v,3,100,300,120,2.2,incl. bonus,unconditional,0.6,0.4,0.2\n"
      "v,3,300,900,510,2.7,incl. bonus,unconditional,0.8,0.5,0.4\n";
  AcceptanceData expected{.format = "CSV of rates",
                          .takes_choice = true,
                          .takes_rates = true,
                          .windows = 2,
                          .draft_len = 3,
                          .drafts = 400,
                          .draft_tokens = 1200,
                          .accepted_tokens = 630,
                          .acceptance_length = 1.0 + 630.0 / 400};
  expected.survival = {300.0 / 400, 190.0 / 400, 140.0 / 400};
  expected.survival_error = coin_errors(expected.survival, 400);
  check_import(header + rows, expected);

  // Drafts of two tokens beside others of three.
  AcceptanceData two = expected;
  two.draft_tokens = 1000;
  two.accepted_tokens = 580;
  two.acceptance_length = 1.0 + 580.0 / 400;
  two.survival = {300.0 / 400, 190.0 / 400, 90.0 / 200};
  two.survival_error = {coin_errors({0.75}, 400)[0], coin_errors({0.475}, 400)[0], coin_errors({0.45}, 200)[0]};
  two.reach = {{1.0, 1.0}, {1.0, 1.0}, {0.5, 0.5}};
  two.notes = {"The drafts have several lengths: each position is counted over those that reach it."};
  check_import(header +
                   "v,3,200,600,330,2.65,incl. bonus,unconditional,0.7,0.5,0.45\n"
                   "v,3,200,400,250,2.25,incl. bonus,unconditional,0.8,0.45,0.0\n",
               two);

  // A row without its draft tokens: nothing is known of all.
  AcceptanceData unknown = expected;
  unknown.windows = 3;
  unknown.drafts = 500;
  unknown.draft_tokens = unknown.accepted_tokens = std::nullopt;
  unknown.survival = {350.0 / 500, 190.0 / 500, 140.0 / 500};
  unknown.survival_error = coin_errors(unknown.survival, 500);
  unknown.acceptance_length = 1.0 + 680.0 / 500;
  check_import(header + rows + "v,3,100,,50,1.5,incl. bonus,unconditional,0.5,0.0,0.0\n", unknown);
}

TEST_CASE("every field of a table of positions is counted by hand") {
  AcceptanceData counts{.format = "CSV of rates",
                        .takes_rates = true,
                        .windows = 1,
                        .draft_len = 3,
                        .drafts = 100,
                        .acceptance_length = 2.5,
                        .survival = {0.8, 0.5, 0.2}};
  counts.survival_error = coin_errors(counts.survival, 100);
  check_import("position,accepted,drafts\n0,80,100\n1,50,100\n2,20,100\n", counts);
  counts.survival_error = {0.01, 0.02, 0.03};
  check_import("position,accepted,steps,unconditional_standard_error\n1,80,100,0.01\n2,50,100,0.02\n3,20,100,0.03\n",
               counts);
  check_import("position,reached,accepted\n1,200,160\n2,160,80\n3,80,60\n", {.format = "CSV of rates",
                                                                             .takes_rates = true,
                                                                             .windows = 1,
                                                                             .draft_len = 3,
                                                                             .acceptance_length = 1.0 + 0.8 + 0.4 + 0.3,
                                                                             .survival = {0.8, 0.4, 0.3}});
}

TEST_CASE("every field of JSON results is counted by hand") {
  check_import(
      R"({"steps": 400, "draft_tokens": 700, "accepted": 300, "acceptance_length": 9.0, "acceptance_by_position": {
      "conditional": [0.9, 0.8, null], "unconditional": [0.5, 0.25, null],
      "conditional_standard_error": [0.1, 0.1, null], "unconditional_standard_error": [0.02, 0.01, null]}})",
      {.format = "draftproof JSON",
       .takes_choice = true,
       .windows = 1,
       .draft_len = 2,
       .drafts = 400,
       .draft_tokens = 700,
       .accepted_tokens = 300,
       .acceptance_length = 1.75,
       .survival = {0.5, 0.25},
       .survival_error = {0.02, 0.01},
       .notes = {"The rates are over all steps, those without a draft included."}});
  check_import(
      "{\"meta_info\": {\"spec_accept_length\": 3.25, \"spec_verify_ct\": 100}}\n"
      "{\"meta_info\": {\"spec_accept_length\": 2.0, \"spec_verify_ct\": 300}}\n",
      {.format = "SGLang JSON",
       .takes_choice = true,
       .windows = 2,
       .drafts = 400,
       .acceptance_length = 1.0 + 525.0 / 400});
}

TEST_CASE("every field of recorded acceptances is counted by hand") {
  // acc_len counts the bonus token: a draft of three tokens was accepted once.
  const AcceptanceData data = parse_acceptance(
      "{\"acc_eagle\": {\"acc_len\": [1, 1, 1, 1]}}\n{\"acc_eagle\": {\"acc_len\": [1, 4, 1]}}\n", "file");
  AcceptanceData expected{.format = "recorded acceptances", .takes_choice = true, .windows = 2, .draft_len = 3};
  expected.survival = data.replay->survival_in_run(3, 3);
  REQUIRE(expected.survival.size() == 3);
  expected.acceptance_length = 1.0 + expected.survival[0] + expected.survival[1] + expected.survival[2];
  expected.notes = {"Recorded acceptances of drafter eagle: every number of drafts is replayed on its own."};
  check_every_field(data, expected);
}

TEST_CASE("every field of speculate's table is counted by hand") {
  const auto row = [](int steps, int drafts, int draft_tokens, int accepted, const std::vector<double>& rates,
                      const std::vector<double>& errors) {
    return nlohmann::json{
        {"drafter", "suffix"},
        {"k", 3},
        {"tree", nullptr},
        {"temperature", 0.5},
        {"steps", steps},
        {"drafts", drafts},
        {"draft_tokens", draft_tokens},
        {"accepted", accepted},
        {"acceptance_by_position", {{"unconditional", rates}, {"unconditional_standard_error", errors}}}};
  };
  const nlohmann::json rows{row(100, 80, 240, 120, {0.6, 0.4, 0.2}, {0.03, 0.02, 0.01}),
                            row(300, 120, 330, 150, {0.3, 0.15, 0.05}, {0.01, 0.01, 0.01})};
  const auto found = acceptances_of_speculate({{"rows", rows}, {"left_out", nlohmann::json::array()}}, "file");
  REQUIRE(found.size() == 1);
  CHECK(found[0].drafter == "suffix, T = 0.5");
  check_every_field(found[0].data, {.format = "speculate's table",
                                    .windows = 2,
                                    .draft_len = 3,
                                    .drafts = 200,
                                    .draft_tokens = 570,
                                    .accepted_tokens = 270,
                                    .acceptance_length = 1.0 + 270.0 / 200,
                                    .survival = {150.0 / 200, 85.0 / 200, 35.0 / 200},
                                    .survival_error = {std::hypot(3.0, 3.0) / 200, std::hypot(2.0, 3.0) / 200,
                                                       std::hypot(1.0, 3.0) / 200},
                                    .draft_share = 0.5,
                                    .notes = {"The rates are over the steps with a draft of all kinds of work."}});
}

}  // namespace

#pragma GCC diagnostic pop
