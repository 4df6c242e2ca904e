#include "sim/import/prometheus_text.hpp"

#include "engine/metrics/prometheus.hpp"
#include "sim/import/read_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

AcceptanceData metrics_of(const std::string& text, const std::string& model = "") {
  return parse_acceptance(text, "metrics.txt", {model, ""});
}
std::string refusal_of_metrics(const std::string& text, const std::string& model = "") {
  return error_of(ErrorKind::input, [&] { metrics_of(text, model); });
}

// Counters of one engine: drafts, accepted by position.
std::string counters(const std::string& labels, double drafts, const std::vector<double>& accepted) {
  std::string text =
      "# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.\n"
      "# TYPE vllm:spec_decode_num_drafts_total counter\n";
  double sum = 0.0;
  for (const double a : accepted) sum += a;
  const auto sample = [&](const std::string& name, const std::string& more, double value) {
    text += "vllm:spec_decode_" + name + "{" + labels + more + "} " + std::to_string(value) + "\n";
  };
  sample("num_drafts_total", "", drafts);
  sample("num_drafts_created", "", 1.7802746209391844e9);
  sample("num_draft_tokens_total", "", drafts * static_cast<double>(accepted.size()));
  sample("num_accepted_tokens_total", "", sum);
  for (std::size_t i = 0; i < accepted.size(); ++i)
    sample("num_accepted_tokens_per_pos_total", ",position=\"" + std::to_string(i) + "\"", accepted[i]);
  sample("num_accepted_tokens_per_pos_created", ",position=\"0\"", 1.78e9);
  return text;
}

}  // namespace

TEST_CASE("what the engine writes as Prometheus text is read back") {
  EngineMetrics metrics;
  AcceptanceCounts counts(3);
  for (int step = 0; step < 100; ++step)
    counts.add_step({3, static_cast<std::size_t>(step % 4), step % 4 < 3, static_cast<std::size_t>(step % 4 + 1)});
  metrics.acceptance = counts;
  const AcceptanceData data = metrics_of(prometheus_text(metrics, "a \"model\"\\with\nnames"));
  CHECK(data.drafts == 100);
  CHECK(data.draft_tokens == 300);
  CHECK(data.accepted_tokens == 150);
  CHECK(data.survival == std::vector<double>{0.75, 0.5, 0.25});
  CHECK(data.acceptance_length == 2.5);
  CHECK_FALSE(data.draft_share);
}

TEST_CASE("engines are added up, exponents read, and the times of creation ignored") {
  const std::string text = counters("engine=\"0\",model_name=\"m\"", 100, {80, 50}) +
                           counters("engine=\"1\",model_name=\"m\"", 300, {180, 70});
  const AcceptanceData data = metrics_of(text);
  CHECK(data.drafts == 400);
  CHECK(data.survival[0] == Approx(260.0 / 400));
  CHECK(data.acceptance_length == Approx(1.0 + 380.0 / 400));
  CHECK(data.draft_len == 2);
  const AcceptanceData large = metrics_of(
      "vllm:spec_decode_num_drafts_total{model_name=\"m\"} 1.5e+06\r\n"
      "vllm:spec_decode_num_draft_tokens_total{model_name=\"m\"} 4.5e+06\r\n"
      "vllm:spec_decode_num_accepted_tokens_total{model_name=\"m\"} 3e6 1712345678000\r\n");
  CHECK(large.drafts == 1'500'000);
  CHECK(large.acceptance_length == Approx(3.0));
  CHECK(large.draft_len == 3);
  CHECK(large.survival.empty());
}

TEST_CASE("of several models one is chosen by its name") {
  const std::string text = counters("model_name=\"a\"", 100, {80}) + counters("model_name=\"b\"", 100, {20});
  CHECK(refusal_of_metrics(text) ==
        "metrics.txt: has counters of several models ('a', 'b'); expected one, chosen by its model_name");
  CHECK(metrics_of(text, "b").survival[0] == Approx(0.2));
  CHECK(refusal_of_metrics(text, "c").find("no counters of speculation with model_name 'c'") != std::string::npos);
}

TEST_CASE("of very many models a few are named") {
  std::string text;
  constexpr int kModels = 20'000;
  for (int i = 0; i < kModels; ++i)
    text += "vllm:spec_decode_num_drafts_total{model_name=\"m" + std::to_string(i) + "\"} 7\n";
  CHECK(refusal_of_metrics(text) ==
        "metrics.txt: has counters of several models ('m0', 'm1', 'm2', 'm3' and 19996 more); expected one, chosen by "
        "its model_name");
  CHECK(metrics_of(text + "vllm:spec_decode_num_accepted_tokens_total{model_name=\"m7\"} 7\n", "m7").drafts == 7);
}

TEST_CASE("counters beyond what a double counts, and drafts beyond what one has, are refused") {
  const auto drafts = [](const std::string& value, const std::string& engine = "0") {
    return "vllm:spec_decode_num_drafts_total{model_name=\"m\",engine=\"" + engine + "\"} " + value + "\n";
  };
  const std::string accepted = "vllm:spec_decode_num_accepted_tokens_total{model_name=\"m\"} 9007199254740992\n";
  CHECK(metrics_of(drafts("9007199254740992") + accepted).drafts == std::int64_t{1} << 53);
  for (const char* const value : {"9007199254740994", "9223372036854775808", "1e19", "1e300"})
    CHECK_THAT(refusal_of_metrics(drafts(value) + accepted),
               Contains("metrics.txt, line 1: vllm:spec_decode_num_drafts_total is ") &&
                   Contains("; expected a count up to 2^53"));
  CHECK(refusal_of_metrics(drafts("8e15") + drafts("8e15", "1") + accepted) ==
        "metrics.txt: spec_decode_num_drafts adds up to 1.6e+16; expected at most 2^53");
  CHECK(refusal_of_metrics(drafts("1") + "vllm:spec_decode_num_draft_tokens_total{model_name=\"m\"} 9e15\n" +
                           accepted.substr(0, accepted.size() - 17) + "1\n") ==
        "metrics.txt: a draft has 9e+15 tokens on average; expected at most 1024");
}

TEST_CASE("steps without a draft show in the generated tokens") {
  // 1000 tokens, 100 of them first ones and 300 accepted: 600 steps, of which 150 drafted.
  const AcceptanceData data = metrics_of(counters("model_name=\"m\"", 150, {120, 100, 80}) +
                                         "vllm:generation_tokens_total{model_name=\"m\"} 1000.0\n"
                                         "vllm:time_to_first_token_seconds_count{model_name=\"m\"} 100.0\n");
  REQUIRE(data.draft_share);
  CHECK(*data.draft_share == Approx(0.25));
  CHECK(data.tokens_per_step() == Approx(1.5));
}

TEST_CASE("SGLang's gauge is the acceptance length") {
  const AcceptanceData data = metrics_of(
      "# TYPE sglang:spec_accept_length gauge\n"
      "sglang:spec_accept_length{engine_type=\"unified\",model_name=\"glm\",tp_rank=\"0\"} 2.9\n"
      "sglang:spec_accept_rate{model_name=\"glm\"} 0.63\n");
  CHECK(data.acceptance_length == Approx(2.9));
  CHECK(data.survival.empty());
  // Ranks of different loads.
  const AcceptanceData ranks = metrics_of(
      "sglang:spec_accept_length{dp_rank=\"0\"} 2.0\nsglang:spec_accept_length{dp_rank=\"1\"} 3.5\n"
      "sglang:spec_accept_length{dp_rank=\"2\"} 9.0\n"
      "sglang:num_running_reqs{dp_rank=\"0\"} 30\nsglang:num_running_reqs{dp_rank=\"1\"} 10\n"
      "sglang:num_running_reqs{dp_rank=\"2\"} 0\n");
  CHECK(ranks.windows == 2);
  CHECK(ranks.acceptance_length == Approx(1.0 + (30 * 1.0 + 10 * 2.5) / 40).epsilon(1e-12));
}

TEST_CASE("counters of drafts shorter than K bound the rates by position") {
  const auto text = [](int drafts, int drafted, int first, int second, int third) {
    const auto line = [](const std::string& name, int value, const std::string& labels) {
      return "vllm:spec_decode_num_" + name + "{model_name=\"m\"" + labels + "} " + std::to_string(value) + "\n";
    };
    return line("drafts_total", drafts, "") + line("draft_tokens_total", drafted, "") +
           line("accepted_tokens_total", first + second + third, "") +
           line("accepted_tokens_per_pos_total", first, ",position=\"0\"") +
           line("accepted_tokens_per_pos_total", second, ",position=\"1\"") +
           line("accepted_tokens_per_pos_total", third, ",position=\"2\"");
  };
  // 9,000 steps of one draft and 1,000 of three give these counters, and so do others: of the 2,000 tokens behind the
  // first position 1,000 to 1,700 are at the second, and 300 to 1,000 at the third.
  const AcceptanceData data = metrics_of(text(10000, 12000, 7000, 500, 300));
  REQUIRE(data.survival_bounds.size() == 3);
  CHECK(data.survival_bounds[0].is_exact());
  CHECK(data.survival[0] == Approx(0.7));
  CHECK(data.survival_bounds[1].low == Approx(500.0 / 1700));
  CHECK(data.survival_bounds[1].high == Approx(500.0 / 1000));
  CHECK(data.survival_bounds[2].low == Approx(300.0 / 1000));
  CHECK(data.survival_bounds[2].high == Approx(0.5));  // not above the one before it
  CHECK(data.reach[1].low == Approx(0.1));
  CHECK(data.reach[1].high == Approx(0.17));
  CHECK(data.acceptance_length == Approx(1.78));
  CHECK_THAT(data.notes.back(), Contains("Rates are bounds: position 2 0.294 to 0.5, position 3 0.3 to 0.5."));
  CHECK(data.survival_error[1] > 0.2 / 3.5);
  // All drafts of two tokens, of a server that may draft three.
  const AcceptanceData two = metrics_of(text(1000, 2000, 700, 500, 0));
  CHECK(two.survival == std::vector<double>{0.7, 0.5});
  CHECK(two.survival_bounds.empty());
  CHECK(two.draft_len == 2);
  // Drafts that the end of a text cut: as good as whole.
  CHECK(metrics_of(text(1000, 2998, 700, 500, 300)).survival_bounds.empty());
}

TEST_CASE("counters of any engine are read, whatever prefix they have") {
  const auto counters_of = [](const std::string& prefix, const std::string& labels) {
    return prefix + "spec_decode_num_drafts_total" + labels + " 100\n" + prefix + "spec_decode_num_draft_tokens_total" +
           labels + " 300\n" + prefix + "spec_decode_num_accepted_tokens_total" + labels + " 150\n";
  };
  for (const auto& [prefix, format] : {std::pair("vllm:", "Prometheus text (vLLM)"),
                                       {"ray_vllm_", "Prometheus text (vLLM)"},
                                       {"llamacpp:", "Prometheus text (llama.cpp)"},
                                       {"lmdeploy:", "Prometheus text (LMDeploy)"},
                                       {"other_engine_", "Prometheus text (other_engine)"}}) {
    const AcceptanceData data = metrics_of(counters_of(prefix, ""));
    CHECK(data.format == format);
    CHECK(data.drafts == 100);
    CHECK(data.acceptance_length == Approx(2.5));
  }
  // llama.cpp's positions; 1,001 tokens of one request, of which 900 are accepted drafts.
  const AcceptanceData positions = metrics_of(
      "llamacpp:spec_decode_num_drafts_total 40\nllamacpp:spec_decode_num_accepted_tokens_total 60\n"
      "llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 36\n"
      "llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 24\n"
      "llamacpp:tokens_predicted_total 160\n");
  CHECK(positions.survival == std::vector<double>{0.9, 0.6});
  CHECK(positions.draft_share == Approx(0.4));
  CHECK(refusal_of_metrics(counters_of("vllm:", "") + counters_of("lmdeploy:", "{model_name=\"m\"}")) ==
        "metrics.txt: has counters of several models ('vllm:', 'lmdeploy:m'); expected one, chosen by its model_name");
  CHECK(metrics_of(counters_of("vllm:", "") + counters_of("lmdeploy:", "{model_name=\"m\"}"), "lmdeploy:m").drafts ==
        100);
}

TEST_CASE("TensorRT-LLM's gauge is the length, and its counters are beside it") {
  const AcceptanceData data = metrics_of(
      "trtllm_request_success_total{finished_reason=\"stop\",model_name=\"m\",engine_type=\"trtllm\"} 12.0\n"
      "trtllm_spec_decode_num_draft_tokens_total{engine_type=\"trtllm\",model_name=\"m\"} 480.0\n"
      "trtllm_spec_decode_num_accepted_tokens_total{engine_type=\"trtllm\",model_name=\"m\"} 280.0\n"
      "trtllm_spec_decode_acceptance_length{engine_type=\"trtllm\",model_name=\"m\"} 2.75\n");
  CHECK(data.format == "Prometheus text (TensorRT-LLM)");
  CHECK(data.acceptance_length == 2.75);
  CHECK(data.draft_tokens == 480);
  CHECK(data.accepted_tokens == 280);
  CHECK(data.draft_len == 3);  // 1.75 of 3 is 280 of 480
}

TEST_CASE("MAX's histograms are rates by position, in per cent, each batch once") {
  const std::string name = "maxserve_spec_decode_acceptance_rate_per_position";
  const auto dump = [&](const char* first, const char* second, const char* count) {
    return "# TYPE " + name + " histogram\n" + name + "_bucket{position=\"0\",le=\"50\"} 3\n" + name +
           "_sum{position=\"0\"} " + first + "\n" + name + "_count{position=\"0\"} " + count + "\n" + name +
           "_sum{position=\"1\"} " + second + "\n" + name + "_count{position=\"1\"} " + count + "\n";
  };
  const AcceptanceData data = metrics_of(dump("8400.0", "5000.0", "100"));
  CHECK(data.format == "Prometheus text (MAX)");
  CHECK(data.survival == std::vector<double>{0.84, 0.5});
  CHECK(data.acceptance_length == Approx(2.34));
  CHECK(data.draft_len == 2);
  // The time between two dumps; a server that has not drafted.
  const AcceptanceData between =
      read_prometheus_difference(dump("8400.0", "5000.0", "100"), "a", dump("9000.0", "5400.0", "110"), "b");
  CHECK(between.survival == std::vector<double>{0.6, 0.4});
  CHECK_THAT(refusal_of_metrics(dump("0", "0", "0")), Contains("no batch verified a draft yet"));
}

TEST_CASE("llama.cpp's counters without steps say what cannot be known") {
  const std::string text =
      "# HELP llamacpp:n_decode_total Total number of llama_decode() calls\n"
      "llamacpp:prompt_tokens_total 1022\nllamacpp:tokens_predicted_total 794\nllamacpp:n_decode_total 281\n"
      "llamacpp:n_draft_total 834\nllamacpp:n_draft_accepted_total 516\n";
  const AcceptanceData data = metrics_of(text);
  CHECK(data.draft_tokens == 834);
  CHECK(data.accepted_tokens == 516);
  CHECK(!data.drafts);
  CHECK(data.draft_len == 3);
  CHECK(data.acceptance_length == Approx(1.0 + 516.0 / 278));
  CHECK(data.length_is_least);
  REQUIRE(data.notes.size() == 1);
  CHECK_THAT(data.notes[0], Contains("of the 281 decodes some are of prompts") &&
                                Contains("at most 278, so the acceptance length is at least 2.86"));
  CHECK_THAT(refusal_of_metrics("llamacpp:n_draft_total 834\nllamacpp:n_draft_accepted_total 516\n"),
             Contains("neither drafts nor generated tokens"));
  // Names of a descendant.
  CHECK(metrics_of("llamacpp:n_drafted_total 10\nllamacpp:n_drafted_accepted_total 6\nllamacpp:n_decode_total 4\n")
            .acceptance_length == Approx(2.5));
}

TEST_CASE("metrics are read as tables, as vLLM's and promtool's lists and as answers of Prometheus' API") {
  // A table as people paste it: 5,191 of 22,836 drafts in 3,806 steps.
  const AcceptanceData table = metrics_of(
      "| metric | value |\n|---|---|\n| vllm:spec_decode_num_drafts_total | 3806 |\n"
      "| `vllm:spec_decode_num_draft_tokens_total{engine=\"0\"}` | **22836** |\n"
      "| vllm:spec_decode_num_accepted_tokens_total | 5191 |\n"
      "| vllm:generation_tokens_total | Counter |\n");
  CHECK(table.drafts == 3806);
  CHECK(table.draft_len == 6);
  CHECK(table.acceptance_length == Approx(2.364).margin(0.0005));
  const AcceptanceData listed = metrics_of(
      "vllm:spec_decode_num_drafts (counter) = 100\nvllm:spec_decode_num_draft_tokens (counter) = 200\n"
      "vllm:spec_decode_num_accepted_tokens (counter) = 110\n"
      "vllm:spec_decode_num_accepted_tokens_per_pos (vector) = [80, 30]\n");
  CHECK(listed.survival == std::vector<double>{0.8, 0.3});
  CHECK(metrics_of("vllm:spec_decode_num_drafts_total{engine=\"0\"} => 100 @[1754000000.123]\n"
                   "vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} => 110 @[1754000000.123]\n")
            .acceptance_length == Approx(2.1));
  const auto result = [](const std::string& metric, const std::string& labels, const std::string& values) {
    return R"({"metric": {"__name__": "vllm:spec_decode_)" + metric + R"(", "job": "vllm")" + labels + "}, " + values +
           "}";
  };
  const auto answer = [](const std::string& type, const std::string& results) {
    return R"({"status":"success","data":{"resultType":")" + type + R"(","result":[)" + results + "]}}\n";
  };
  const std::string drafts = result("num_drafts_total", "", R"("value": [1754000000.1, "100"])");
  const std::string accepted = result("num_accepted_tokens_total", "", R"("value": [1754000000.1, "110"])");
  const std::string first =
      result("num_accepted_tokens_per_pos_total", R"(, "position": "0")", R"("value": [1754000000.1, "80"])");
  const std::string second =
      result("num_accepted_tokens_per_pos_total", R"(, "position": "1")", R"("value": [1754000000.1, "30"])");
  const AcceptanceData api = metrics_of(answer("vector", drafts + "," + accepted + "," + first + "," + second));
  CHECK(api.survival == std::vector<double>{0.8, 0.3});
  // A query a line, and a range in which the server began anew at 40.
  CHECK(metrics_of(answer("vector", drafts) + answer("vector", accepted)).drafts == 100);
  CHECK(metrics_of(answer("matrix", result("num_drafts_total", "", R"("values": [[1, "10"], [2, "100"], [3, "40"]])") +
                                        "," + accepted))
            .drafts == 140);
  CHECK_THAT(refusal_of_metrics(answer("vector", R"({"metric": {}, "value": [1, "0.6"]})")),
             Contains("without __name__; expected counters themselves"));
  CHECK_THAT(refusal_of_metrics(answer("vector", result("num_drafts_total", "", R"("value": [1, "many"])"))),
             Contains("has a sample [1,\"many\"]"));
}

TEST_CASE("malformed samples are named with their line, and those of others are passed over") {
  const std::string good = counters("model_name=\"m\"", 10, {5});
  CHECK(metrics_of("vllm:foo{bar baz\nprocess_cpu_seconds_total zero\n" + good).drafts == 10);
  CHECK(refusal_of_metrics("vllm:spec_decode_num_drafts_total{model_name=\"m\"} many\n") ==
        "metrics.txt, line 1: the value is 'many'; expected NAME{LABEL=\"...\",...} NUMBER");
  CHECK(refusal_of_metrics("\nvllm:spec_decode_num_drafts_total{model_name=\"m} 3\n")
            .starts_with("metrics.txt, line 2: has a label that does not end"));
  CHECK(refusal_of_metrics(good +
                           "vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name=\"m\",position=\"x\"} 3\n")
            .find("has position 'x'; expected a whole number from 0") != std::string::npos);
  CHECK(
      refusal_of_metrics("vllm:spec_decode_num_drafts_total{model_name=\"m\"} 0.0\n").find("nothing was drafted yet") !=
      std::string::npos);
  // Conditional counts do not exist: one that rises with the position contradicts itself.
  CHECK(refusal_of_metrics(counters("model_name=\"m\"", 10, {5, 7})).find("expected rates that never rise") !=
        std::string::npos);
}

TEST_CASE("two dumps of a server give the acceptance of the time between them") {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& text) {
    write_whole_file(folder.file(name), text);
    return folder.file(name);
  };
  const std::string before = file("before", counters("engine=\"0\",model_name=\"m\"", 100, {80, 50}));
  const std::string after = file("after", counters("engine=\"0\",model_name=\"m\"", 300, {180, 70}));
  const AcceptanceData data = read_acceptance(before + ".." + after);
  CHECK(data.drafts == 200);
  CHECK(data.accepted_tokens == 120);
  CHECK(data.survival == std::vector<double>{0.5, 0.1});
  CHECK(data.acceptance_length == 1.6);
  CHECK(holds_acceptance(before + ".." + after));
  const auto refusal = [](const std::string& path) {
    return error_of(ErrorKind::input, [&] { read_acceptance(path); });
  };
  CHECK_THAT(refusal(after + ".." + before), Contains("falls between the two"));
  CHECK_THAT(refusal(after + ".." + after), Contains("nothing was drafted"));
  const std::string other = file("other", counters("engine=\"1\",model_name=\"m\"", 900, {180, 70}));
  CHECK_THAT(refusal(before + ".." + other), Contains("is gone between the two"));
  const std::string model = file("model", counters("engine=\"0\",model_name=\"n\"", 900, {180, 70}));
  CHECK_THAT(refusal(before + ".." + model), Contains("model_name"));
  const std::string sglang = file("sglang", "sglang:spec_accept_length 2.5\n");
  CHECK_THAT(refusal(sglang + ".." + sglang), Contains("gauge"));
  CHECK_THAT(refusal(before + "..none"), Contains("none"));
}
