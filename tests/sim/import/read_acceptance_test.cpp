// Formats told apart by their content, and those that need few words of their own.
#include "sim/import/read_acceptance.hpp"

#include "sim/acceptance/rates.hpp"
#include "sim/import/rates_csv.hpp"
#include "tests/support/test.hpp"

namespace {

AcceptanceData read(const std::string& text, const std::string& choice = "", const std::string& rates = "") {
  return parse_acceptance(text, "file", {choice, rates});
}
std::string refusal(const std::string& text) {
  return error_of(ErrorKind::input, [&] { read(text); });
}

}  // namespace

TEST_CASE("a table of positions says what its rates are") {
  const AcceptanceData conditional = read("position,conditional\n1,0.8\n2,0.5\n");
  CHECK(conditional.survival == std::vector<double>{0.8, 0.4});
  const AcceptanceData unconditional = read("position,unconditional\n0,0.8\n1,0.5\n");
  CHECK(unconditional.survival == std::vector<double>{0.8, 0.5});
  CHECK(unconditional.acceptance_length == Approx(2.3));
  const AcceptanceData counts = read("position,accepted,drafts\n0,80,100\n1,50,100\n");
  CHECK(counts.survival == std::vector<double>{0.8, 0.5});
  CHECK(counts.drafts == 100);
  // The demo's file: conditional and unconditional rates side by side, the latter over all steps.
  const AcceptanceData demo = read(
      "position,reached,accepted,conditional,conditional_standard_error,steps,accepted_all_steps,unconditional,"
      "unconditional_standard_error\n1,90,60,0.6667,0.05,120,60,0.5,0.04\n2,60,30,0.5,0.06,120,30,0.25,0.03\n");
  CHECK(demo.survival == std::vector<double>{0.5, 0.25});
  CHECK(demo.survival_error == std::vector<double>{0.04, 0.03});
  CHECK(read("Position;Acceptance Rate;Kind\n1;0.8;conditional\n2;0.5;conditional\n").survival ==
        std::vector<double>{0.8, 0.4});
  CHECK(read("pos\tsurvival\n1\t0.8\n2\t0.5\n").survival == std::vector<double>{0.8, 0.5});
  CHECK(read("position,rate\n1,0.8\n2,0.5\n", "", "conditional").survival == std::vector<double>{0.8, 0.4});
  CHECK(read("position,rate\n1,0.8\n2,0.5\n", "", "unconditional").survival == std::vector<double>{0.8, 0.5});
  CHECK(refusal("position,rate\n1,0.8\n").find("expected conditional, unconditional, or accepted with steps") !=
        std::string::npos);
  CHECK(refusal("position,unconditional\n1,0.8\n3,0.5\n") ==
        "file, line 3: position is '3'; expected positions in order, from 0 or 1");
  CHECK(refusal("position,unconditional\n1,0.5\n2,0.8\n").find("never rise") != std::string::npos);
  CHECK(refusal("position,conditional\n1,x\n") == "file, line 2: conditional is 'x'; expected a number");
}

TEST_CASE("rows of rates are conditional or unconditional as they say, or as their acceptance length shows") {
  const std::string header = "K,mean_acceptance_length,tau_kind,rate_kind,p1,p2,p3\n";
  const auto survival = [&](const std::string& row) { return read(header + row + "\n").survival; };
  CHECK(survival("3,2.2,incl. bonus,unconditional,0.6,0.4,0.2") == std::vector<double>{0.6, 0.4, 0.2});
  CHECK(survival("3,,,conditional n-alpha,0.6,0.5,0.5") == std::vector<double>{0.6, 0.3, 0.15});
  CHECK(survival("3,2.2,incl. bonus,,0.6,0.4,0.2") == std::vector<double>{0.6, 0.4, 0.2});
  CHECK(survival("3,2.05,incl. bonus,,0.6,0.5,0.5") == std::vector<double>{0.6, 0.3, 0.15});
  CHECK(refusal(header + "3,3.9,incl. bonus,,0.6,0.5,0.5\n").find("does not say whether p1, p2, ... are conditional") !=
        std::string::npos);
  CHECK(refusal(header + "3,,,per-RANK acceptance,0.6,0.1,0.05\n").find("rates of siblings by rank") !=
        std::string::npos);
  // Without the bonus token one more is emitted.
  CHECK(read("K,mean_acceptance_length,tau_kind\n3,1.4,accepted only (excl. bonus)\n").acceptance_length ==
        Approx(2.4));
  // Differences of separate runs are no rates; the length stays.
  const AcceptanceData differences =
      read(header + "3,2.1,incl. bonus,\"uncond. increments AL(K)-AL(K-1) across SEPARATE runs\",0.8,0.4,-0.1\n");
  CHECK(differences.survival.empty());
  CHECK(differences.acceptance_length == Approx(2.1));
  CHECK(differences.notes.front().find("not rates") != std::string::npos);
  CHECK(refusal("target_model,K,rate_kind,p1\na,1,unconditional,0.5\nb,1,unconditional,0.6\n")
            .find("has rows of several configurations ('a, K = 1', 'b, K = 1'); expected one, chosen by its name") !=
        std::string::npos);
  CHECK(parse_acceptance("target_model,K,rate_kind,p1\na,1,unconditional,0.5\nb,1,unconditional,0.6\n", "file",
                         {"b, K = 1", ""})
            .survival.front() == Approx(0.6));
}

TEST_CASE("tables of Markdown are read wherever they stand: tasks of a benchmark, K a row, rates by position") {
  // ik_llama.cpp's llama-spec-bench.
  const AcceptanceData bench = read(
      "Here is an example:\n\n"
      "| task     | run | tokens | tok/s | rounds | accepted | rate | a.len | pos accept |\n"
      "|----------|-----|--------|-------|--------|----------|------|-------|------------|\n"
      "| code     |   1 |    759 | 68.58 |    220 |  538/660 | 81.52% | 3.45 | 90.5% 80.5% 73.6% |\n"
      "| extract  |   1 |   1024 | 67.28 |    300 |  722/899 | 80.31% | 3.41 | 91.3% 80.0% 69.6% |\n\nThe end\n");
  CHECK(bench.format == "table of rates");
  CHECK(bench.drafts == 520);
  CHECK(bench.accepted_tokens == 1260);
  CHECK(bench.draft_tokens == 1559);
  CHECK(bench.draft_len == 3);
  CHECK(bench.acceptance_length == Approx(1.0 + 1260.0 / 520));
  CHECK(bench.survival.front() == Approx((199.0 + 274.0) / 520).epsilon(1e-3));
  // Accepted of drafted tokens by K, the row without speculation left out.
  const std::string by_k =
      "| spec-draft-n-max | average tk\\s | aggregate_accept_rate |\n| --- | --- | -- |\n"
      "| n/a - no mtp | 22.92 | n/a |\n|  1 | 27.58|  0.8835 |\n| **3** |  27.78 | **0.7127** |\n";
  CHECK(read(by_k, "3").acceptance_length == Approx(1.0 + 3 * 0.7127));
  CHECK(read(by_k, "K = 1").draft_len == 1);
  CHECK(refusal(by_k) ==
        "file: has rows of several configurations ('K = 1', 'K = 3'); expected one, chosen by its name");
  // Rates by position in per cent, by K.
  const AcceptanceData positions = read(
      "| K | Pos 0 (%) | Pos 1 (%) | Pos 2 (%) | Mean acceptance length |\n|---|---|---|---|---|\n"
      "| 1 | 74.1 | - | - | 1.74 |\n| 3 | `73.0` | 52.0 | 36.0 | 2.61 |\n",
      "3");
  CHECK(positions.survival == std::vector<double>{0.73, 0.52, 0.36});
  // Counts without steps need K; means of the rows are left out.
  const std::string counts =
      "| Prompt | Drafted | Accepted | Rate |\n| --- | --- | --- | --- |\n"
      "| **echo** | 150 | 150 | **100%** |\n| prose | 180 | 118 | 65.6% |\n| **Total** | 330 | 268 | 81% |\n";
  const AcceptanceData counted = parse_acceptance(counts, "file", {"", "", false, 3});
  CHECK(counted.drafts == 110);
  CHECK(counted.acceptance_length == Approx(1.0 + 268.0 / 110));
  CHECK_THAT(refusal(counts), Contains("accepted drafts with K: -k K (predict: --metrics-drafts K)"));
  // Tokens of a cycle, as people write down oMLX's.
  CHECK(read("| Round | Tokens | MTP tok/cycle | Accept % |\n|---|---|---|---|\n| 1 | 128 | 3.46 | 94.7% |\n"
             "| 2 | 128 | 3.56 | 95.7% |\n")
            .acceptance_length == Approx(3.51));
  // Versions are configurations, tasks are not; of means with their spread the mean is taken.
  const std::string versions =
      "| Version | Accept Rate | tok/cycle |\n|---|---|---|\n| **v0.6.2** (baseline) | 92.9% | 3.46 |\n"
      "| v0.6.3 | 64.5% | 2.17 |\n";
  CHECK(read(versions, "v0.6.3").acceptance_length == Approx(2.17));
  CHECK_THAT(refusal(versions), Contains("('v0.6.2 (baseline)', 'v0.6.3'); expected one"));
  CHECK(read("| | n-max | Acceptance |\n|---|---|---|\n| this | 2 | 0.59 |\n| same | 4 | 0.42 |\n", "4")
            .acceptance_length == Approx(1.0 + 4 * 0.42));
  CHECK(read("| task | rate mean/std | a.len mean/std |\n|---|---|---|\n| code | 92.15%/1.84% | 3.76/0.06 |\n"
             "| story | 46.58%/5.04% | 2.40/0.15 |\n")
            .acceptance_length == Approx(3.08));
}

TEST_CASE("JSON documents of this project and of SGLang are read") {
  const AcceptanceData demo = read(
      "{\"command\": \"demo\", \"steps\": 400, \"draft_tokens\": 700, \"accepted\": 300, \"acceptance_length\": 2.0, "
      "\"acceptance_by_position\": {\"conditional\": [0.6, 0.5, null], \"unconditional\": [0.5, 0.25, null], "
      "\"conditional_standard_error\": [0.1, 0.1, null], \"unconditional_standard_error\": [0.02, 0.01, null]}}");
  CHECK(demo.format == "draftproof JSON");
  CHECK(demo.survival == std::vector<double>{0.5, 0.25});
  CHECK(demo.survival_error == std::vector<double>{0.02, 0.01});
  CHECK(demo.drafts == 400);
  CHECK(demo.acceptance_length == Approx(1.75));
  const AcceptanceData sglang = read(
      "{\"internal_states\": [{\"avg_spec_accept_length\": 3.5}, "
      "{\"avg_spec_accept_length\": 2.5}]}");
  CHECK(sglang.acceptance_length == Approx(3.0));
  const AcceptanceData lines = read(
      "{\"meta_info\": {\"spec_accept_length\": 3.2, \"spec_verify_ct\": 100}}\n"
      "{\"meta_info\": {\"spec_accept_length\": 2.0, \"spec_verify_ct\": 300}}\n");
  CHECK(lines.acceptance_length == Approx((3.2 * 100 + 2.0 * 300) / 400));
  CHECK(refusal("{\"acceptance\": 3}").find("has no acceptance") != std::string::npos);
  CHECK(refusal("{\"a\": ").find("is no JSON document") != std::string::npos);
}

TEST_CASE("recorded acceptances are replayed, and what is no known format is refused") {
  const std::string lines =
      "{\"acc_eagle\": {\"acc_len\": [1, 3, 2, 1]}, \"acc_ngram\": {\"acc_len\": [1, 1, 1, 1]}}\n";
  const AcceptanceData data = read(lines);
  REQUIRE(data.replay);
  CHECK(data.replay->survival_in_run(1, 1) == std::vector<double>{0.5});
  CHECK(read(lines, "ngram").acceptance_length == 1.0);
  CHECK(refusal("").find("is empty") != std::string::npos);
  CHECK(refusal("hello\nworld\n").find("says nothing of speculation in a form that is known") != std::string::npos);
  // As PowerShell's > writes it.
  std::string utf16 = "\xFF\xFE";
  for (const char c : lines) utf16 += {c, '\0'};
  CHECK(read(utf16).replay);
}

TEST_CASE("answers of vLLM with metrics of their speculation give rates by position, over requests") {
  // The example of vLLM's pull request 48915: 43 steps, 10 accepted drafts, a mean length of 1.2326.
  const std::string one = R"({"metrics": {"speculative_decoding": {"mean_acceptance_length": 1.2326,
      "acceptance_histogram": [39, 1, 0, 3], "num_spec_steps": 43, "num_accepted_draft_tokens": 10}}})";
  const AcceptanceData data = read(one);
  CHECK(data.format == "vLLM JSON");
  CHECK(data.drafts == 43);
  CHECK(data.draft_len == 3);
  CHECK(data.acceptance_length == Approx(1.2326).margin(5e-5));
  REQUIRE(data.survival.size() == 3);
  CHECK(data.survival[0] == Approx(4.0 / 43));
  CHECK(data.survival[1] == Approx(3.0 / 43));
  CHECK(data.survival[2] == Approx(3.0 / 43));
  // A second request counts by its steps; one without steps says nothing.
  const AcceptanceData both = read(
      "{\"metrics\": {\"speculative_decoding\": {\"acceptance_histogram\": [39, 1, 0, 3]}}}\n"
      "{\"metrics\": {\"speculative_decoding\": {\"acceptance_histogram\": [0, 0, 0, 57]}}}\n"
      "{\"metrics\": {\"speculative_decoding\": {\"acceptance_histogram\": [0, 0, 0, 0]}}}\n");
  CHECK(both.windows == 2);
  CHECK(both.survival[2] == Approx(0.6));
  CHECK_THAT(refusal(R"({"acceptance_histogram": [3, -1]})"), Contains("expected counts of steps"));
  CHECK_THAT(refusal(R"({"acceptance_histogram": [3, 1], "num_accepted_draft_tokens": 2})"),
             Contains("expected the same"));
  CHECK_THAT(refusal(R"({"acceptance_histogram": [0, 0]})"), Contains("has no acceptance"));
}

TEST_CASE("histograms of SGLang, TensorRT-LLM and AIPerf are read as vLLM's are") {
  // SGLang's end behind the most that a request had: the third position of the first request is a zero.
  const AcceptanceData sglang = read(
      "{\"meta_info\": {\"spec_accept_length\": 2.1, \"spec_verify_ct\": 10, \"spec_correct_drafts_histogram\": [4, 2, "
      "4]}}\n"
      "{\"meta_info\": {\"spec_accept_length\": 3.9, \"spec_verify_ct\": 10, \"spec_accept_histogram\": [0, 0, 0, "
      "10]}}\n"
      "{\"meta_info\": {\"spec_accept_length\": 1.0, \"spec_verify_ct\": 20, \"spec_correct_drafts_histogram\": "
      "[20]}}\n");
  CHECK(sglang.format == "SGLang JSON");
  CHECK(sglang.windows == 3);
  CHECK(sglang.drafts == 40);
  REQUIRE(sglang.survival.size() == 3);
  CHECK(sglang.survival[0] == Approx(16.0 / 40));
  CHECK(sglang.survival[1] == Approx(14.0 / 40));
  CHECK(sglang.survival[2] == Approx(10.0 / 40));
  CHECK(sglang.acceptance_length == Approx(1.0 + 40.0 / 40));
  // The example of TensorRT-LLM's adapter in AIPerf's pull request 1433: 20 steps, 30 of 60 drafts, 2.5 tokens a step.
  const AcceptanceData trtllm = read(
      R"({"choices": [{"index": 0, "avg_decoded_tokens_per_iter": 2.5, "speculative_decoding": {"acceptance_rate": 0.5,
      "total_accepted_draft_tokens": 30, "total_draft_tokens": 60, "num_spec_steps": 20,
      "acceptance_histogram": [8, 0, 6, 6], "num_spec_tokens": 3}}]})");
  CHECK(trtllm.format == "TensorRT-LLM JSON");
  CHECK(trtllm.windows == 1);
  CHECK(trtllm.acceptance_length == Approx(2.5));
  CHECK(trtllm.survival == std::vector<double>{0.6, 0.6, 0.3});
  // Its perf_metrics count iterations, and answers without them their tokens.
  const AcceptanceData iterations = read(
      R"([{"request_id": 1, "perf_metrics": {"first_iter": 5, "last_iter": 25, "speculative_decoding":
      {"acceptance_rate": 0.5, "total_accepted_draft_tokens": 30, "total_draft_tokens": 60}}},
      {"request_id": 2, "perf_metrics": {"first_iter": 5, "last_iter": 65, "speculative_decoding":
      {"acceptance_rate": 0.25, "total_accepted_draft_tokens": 30, "total_draft_tokens": 180}}}])");
  CHECK(iterations.drafts == 80);
  CHECK(iterations.acceptance_length == Approx(1.0 + 60.0 / 80));
  CHECK(read(R"({"choices": [{"avg_decoded_tokens_per_iter": 2.25}]})").acceptance_length == 2.25);
  // AIPerf's test: the records {0:1, 1:1, 2:2, 3:3, 4:1} and {0:1, 1:2} pooled are 11 steps with 20 accepted drafts.
  const AcceptanceData pooled = read(
      R"({"request_latency": {"avg": 3.0}, "pooled_spec_decode_acceptance_histogram": {"0": 2, "1": 3, "2": 2, "3": 3, "4": 1}})");
  const AcceptanceData records = read(
      "{\"spec_decode_acceptance\": {\"engine\": \"vllm\", \"acceptance_histogram\": {\"0\": 1, \"1\": 1, \"2\": 2, "
      "\"3\": 3, "
      "\"4\": 1}, \"num_accepted_draft_tokens\": 18}}\n"
      "{\"spec_decode_acceptance\": {\"engine\": \"vllm\", \"acceptance_histogram\": {\"0\": 1, \"1\": 2}}}\n");
  for (const AcceptanceData& data : {pooled, records}) {
    CHECK(data.format == "AIPerf JSON");
    CHECK(data.drafts == 11);
    CHECK(data.acceptance_length == Approx(1.0 + 20.0 / 11));
    CHECK(data.survival[3] == Approx(1.0 / 11));
  }
  CHECK_THAT(refusal(R"({"acceptance_histogram": {"x": 3}})"), Contains("has an entry 'x'"));
  CHECK_THAT(refusal(R"({"acceptance_histogram": {"65": 3}})"), Contains("from 0 to 64"));
  CHECK_THAT(
      refusal(R"({"first_iter": 9, "last_iter": 9, "speculative_decoding": {"total_accepted_draft_tokens": 3}})"),
      Contains("last_iter is not after first_iter"));
  CHECK_THAT(refusal("{\"acceptance_histogram\": [3, 1]}\n{\"spec_accept_length\": 2.0}\n"),
             Contains("has SGLang JSON and vLLM JSON; expected the answers of one server"));
}

TEST_CASE("acceptance lengths by K give rates whose sums they are") {
  const std::string text =
      "# dataset: coding\nqwen:\n  thinking_off:\n    1: 1.9\n    2: 2.6\n    4: 3.6\n  thinking_on:  # T = 1\n    7: "
      "3.67\n";
  const AcceptanceData off = read(text, "qwen/thinking_off");
  REQUIRE(off.survival.size() == 4);
  CHECK(off.survival[0] == Approx(0.9));
  CHECK(off.survival[1] == Approx(0.7));
  CHECK(off.survival[2] + off.survival[3] == Approx(1.0));
  CHECK(off.survival[3] / off.survival[2] == Approx(off.survival[2] / 0.7));
  CHECK(off.takes_choice);
  const AcceptanceData on = read(text, "thinking_on");
  CHECK(on.draft_len == 7);
  CHECK(on.acceptance_length == Approx(3.67));
  CHECK(on.notes.size() == 1);
  // A published file: MiniMax-M3 with EAGLE-3, thinking off (github:SemiAnalysisAI/InferenceX@ce4e6f0).
  const AcceptanceData published = read(
      "_metadata:\n  draft-model: Inferact/MiniMax-M3-EAGLE3\nminimax-m3:\n  thinking_off:\n    1: 1.84\n    2: 2.52\n"
      "    3: 2.93\n    4: 3.41\n    5: 3.59\n    6: 3.57\n    7: 3.85\n    8: 4.06\n");
  CHECK(published.survival[1] == Approx(0.68));
  CHECK(published.survival[2] == Approx(0.445));  // 0.41 and 0.48 pooled
  CHECK(published.survival[3] == published.survival[2]);
  CHECK(published.survival[7] == Approx((4.06 - 3.59) / 3));
  CHECK(published.acceptance_length == Approx(4.06));
  REQUIRE(published.notes.size() == 2);
  CHECK_THAT(published.notes[1], Contains("with 6 drafts they are 0.177 above the file's"));
  // No rates add up to a length that falls: as near as they come, and said.
  const AcceptanceData falls = read("m:\n  a:\n    1: 1.5\n    2: 1.4\n");
  CHECK(falls.survival == std::vector<double>{falls.survival[0], falls.survival[1]});
  CHECK(falls.acceptance_length == Approx(1.5));
  REQUIRE(falls.notes.size() == 2);
  CHECK_THAT(falls.notes[1], Contains("with 2 drafts they are 0.100 above the file's"));
  CHECK_THAT(refusal(text), Contains("has 2 curves; expected one of 'qwen/thinking_off', 'qwen/thinking_on'"));
  CHECK_THAT(refusal("m:\n  a:\n    1: 2.5\n"), Contains("line 3: the length is '2.5'; expected a number from 1 to 2"));
  CHECK_THAT(refusal("m:\n  a:\n    2: 2.5\n    2: 2.6\n"), Contains("line 4: K is '2'"));
  CHECK_THAT(refusal("m:\n  a:\n    2: 2.5\n   3: 2.6\n"), Contains("line 4: is '   3: 2.6'"));
}

TEST_CASE("answers of llama.cpp give tokens a step") {
  const AcceptanceData data = read(
      "{\"content\": \"a\", \"timings\": {\"predicted_n\": 16, \"draft_n\": 12, \"draft_n_accepted\": 9}}\n"
      "{\"content\": \"b\", \"timings\": {\"predicted_n\": 9, \"draft_n\": 12, \"draft_n_accepted\": 0}}\n");
  CHECK(data.format == "llama.cpp JSON");
  CHECK(data.windows == 2);
  CHECK(data.drafts == 14);  // the first token is the prompt's
  CHECK(data.acceptance_length == Approx(23.0 / 14));
  CHECK(data.draft_len == 2);  // 24 of 14 steps: K is no less
  CHECK(data.draft_len_is_least);
  // mlx-vlm counts its steps with a draft: 30, of 3 drafts each.
  const AcceptanceData rounds = read(
      R"({"timings": {"predicted_n": 111, "draft_kind": "mtp", "draft_rounds": 30, "draft_n": 90, "draft_n_accepted": 81}})");
  CHECK(rounds.drafts == 30);
  CHECK(rounds.draft_len == 3);
  CHECK_FALSE(rounds.draft_len_is_least);
  CHECK(rounds.acceptance_length == Approx(3.7));
  CHECK(rounds.notes.empty());
  // Drafts behind the end of the answer are counted.
  CHECK(read(R"({"timings": {"predicted_n": 2, "draft_rounds": 1, "draft_n": 7, "draft_n_accepted": 6}})")
            .acceptance_length == Approx(7.0));
  CHECK_THAT(refusal(R"({"timings": {"predicted_n": 9, "draft_rounds": 4, "draft_n": 3, "draft_n_accepted": 2}})"),
             Contains("draft_rounds is 4; expected at most the drafts, 3"));
  CHECK_THAT(refusal(R"({"timings": {"predicted_n": 9, "draft_n": 3, "draft_n_accepted": 4}})"),
             Contains("draft_n_accepted is 4; expected at most the drafts, 3"));
}
