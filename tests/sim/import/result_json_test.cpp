// Documents of servers and benchmarks as their programs write them, with counts by hand.
#include "sim/import/result_json.hpp"

#include "sim/import/read_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

AcceptanceData document(const std::string& text, const std::string& choice = "") {
  return parse_acceptance(text, "file", {choice, ""});
}
std::string refusal_of_document(const std::string& text, const std::string& choice = "") {
  return error_of(ErrorKind::input, [&] { document(text, choice); });
}

// As `vllm bench serve --save-result` writes it, from vLLM's own test of its keys.
std::string vllm_run(const std::string& model, const std::string& figures) {
  return R"({"date": "20260701-101010", "model_id": ")" + model + R"(", "request_rate": Infinity, "completed": 80, )" +
         figures + R"(, "mean_ttft_ms": 90.1, "p99_itl_ms": NaN})";
}
const std::string kFigures =
    R"("spec_decode_acceptance_rate": 50.0, "spec_decode_acceptance_length": 2.8, "spec_decode_num_drafts": 5, )"
    R"("spec_decode_draft_tokens": 15, "spec_decode_accepted_tokens": 9, )"
    R"("spec_decode_per_position_acceptance_rates": [1.0, 0.6, 0.2])";

}  // namespace

TEST_CASE("vLLM's bench serve gives length, drafts and rates by position") {
  const AcceptanceData data = document(vllm_run("m", kFigures));
  CHECK(data.format == "vLLM benchmark JSON");
  CHECK(data.drafts == 5);
  CHECK(data.draft_tokens == 15);
  CHECK(data.accepted_tokens == 9);
  CHECK(data.draft_len == 3);
  CHECK(data.acceptance_length == Approx(2.8));
  CHECK(data.survival == std::vector<double>{1.0, 0.6, 0.2});
  // Another run of the same drafts, and plain ones beside.
  const std::string plain = vllm_run("m", R"("spec_decode_acceptance_length": null)");
  const AcceptanceData runs = document(vllm_run("m", kFigures) + "\n" + plain + "\n" + vllm_run("m", kFigures) + "\n");
  CHECK(runs.drafts == 10);
  const std::string two = "[" + vllm_run("m", kFigures) + "," + vllm_run("n", kFigures) + "]";
  CHECK_THAT(refusal_of_document(two), Contains("has runs of several configurations ('m, 3 drafts', 'n, 3 drafts')"));
  CHECK(document(two, "n, 3 drafts").drafts == 5);
  CHECK_THAT(refusal_of_document(two, "o"), Contains("expected one of 'm, 3 drafts'"));
  CHECK_THAT(refusal_of_document(vllm_run("m", R"("spec_decode_acceptance_length": NaN)")),
             Contains("spec_decode_acceptance_length is \"NaN\"; expected a number from 1"));
}

TEST_CASE("a benchmark names its model and the requests at a time that it kept running") {
  const auto run = [](const std::string& more) {
    return R"({"model_id": "Qwen/Qwen3-8B", "spec_decode_acceptance_length": 2.8)" + more + "}\n";
  };
  const AcceptanceData one = read_result_json(run(R"(, "max_concurrency": 16)"), "file");
  CHECK(one.model == "Qwen/Qwen3-8B");
  CHECK(one.load == 16);
  CHECK_FALSE(read_result_json(run(R"(, "max_concurrency": null)"), "file").load);
  CHECK_FALSE(read_result_json(run(R"(, "max_concurrency": 16)") + run(R"(, "max_concurrency": 32)"), "file").load);
}

TEST_CASE("a folder of a sweep is its runs, without their summaries") {
  const TemporaryFolder folder;
  const std::string below = folder.path() + "/K=3-batch=8";
  std::filesystem::create_directories(below);
  write_whole_file(below + "/run=0.json", vllm_run("m", kFigures));
  write_whole_file(below + "/run=1.json", vllm_run("m", kFigures));
  write_whole_file(below + "/summary.json", "[" + vllm_run("m", kFigures) + "," + vllm_run("m", kFigures) + "]");
  write_whole_file(folder.path() + "/plan.json", R"({"runs": 2})");
  const AcceptanceData data = read_acceptance(folder.path());
  CHECK(data.drafts == 10);
  CHECK(data.windows == 2);
  REQUIRE(!data.notes.empty());
  CHECK(data.notes.back() == "1 of 3 files without acceptance.");
  const TemporaryFolder empty;
  CHECK_THAT(error_of(ErrorKind::input, [&] { read_acceptance(empty.path()); }), Contains("0 JSON files"));
}

TEST_CASE("SGLang's server info says the shape of drafts, and its benchmarks are weighted by requests") {
  const AcceptanceData info = document(
      R"({"model_path":"Qwen/Qwen3-8B","speculative_algorithm":"EAGLE3","speculative_num_steps":3,
      "speculative_eagle_topk":1,"speculative_num_draft_tokens":4,
      "internal_states":[{"last_gen_throughput":312.4,"avg_spec_accept_length":2.41}],"version":"0.5.6"})");
  CHECK(info.format == "SGLang JSON");
  CHECK(info.draft_len == 3);
  CHECK(info.acceptance_length == Approx(2.41));
  const auto shape = [](const std::string& fields) {
    return document("{" + fields + R"(, "internal_states": [{"avg_spec_accept_length": 2.0}]})");
  };
  const AcceptanceData tree =
      shape(R"("speculative_num_steps": 5, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 8)");
  CHECK(tree.draft_len == 5);
  CHECK(tree.tree_nodes == 7);
  CHECK(shape(R"("speculative_num_steps": 1, "speculative_num_draft_tokens": 16)").draft_len == 15);  // DFLASH
  const AcceptanceData bench = document(
      "{\"task\": \"mtbench\", \"throughput\": 763.948, \"accept_length\": 4.0, \"num_requests\": 80}\n"
      "{\"task\": \"gsm8k\", \"throughput\": 199.983, \"accept_length\": 3.0, \"num_requests\": 240}\n");
  CHECK(bench.format == "SGLang benchmark JSON");
  CHECK(bench.acceptance_length == Approx(3.25));
  CHECK(!bench.drafts);  // requests are no steps
  CHECK(document(R"({"run_name": "default", "batch_size": 1, "acc_length": 2.5, "cache_hit_rate": null})")
            .acceptance_length == 2.5);
  CHECK_THAT(refusal_of_document(R"({"spec_accept_length": 2.5, "spec_verify_ct": -5})"),
             Contains("has -5 steps in a window"));
  CHECK_THAT(refusal_of_document(R"({"spec_accept_length": 2.5, "spec_verify_ct": 9000000000000000000})"),
             Contains("spec_verify_ct is 9000000000000000000; expected a count"));
  CHECK_THAT(refusal_of_document(R"({"run_name": "default", "batch_size": 33, "acc_length": -1.0})"),
             Contains("no acceptance"));
  // Several settings in one file, as SpecForge's sweep writes them.
  const std::string sweep =
      R"({"mtbench": [{"steps": 3, "topk": 1, "num_draft_tokens": 4, "accept_length": 2.5, "num_questions": 5},
                      {"steps": 7, "topk": 1, "num_draft_tokens": 8, "accept_length": 3.5, "num_questions": 5}]})";
  CHECK_THAT(refusal_of_document(sweep), Contains("'steps 3, topk 1, num_draft_tokens 4'"));
  CHECK(document(sweep, "steps 7, topk 1, num_draft_tokens 8").acceptance_length == 3.5);
}

TEST_CASE("SGLang's sglext has the histogram of a request") {
  // A request of 64 tokens with three drafts a step: 21 steps, 43 of 63 drafts, 3.0476 tokens a step.
  const AcceptanceData data = document(
      R"({"choices": [], "sglext": {"spec_tokens_details": {"spec_accept_rate": 0.6825, "spec_accept_length": 3.0476,
      "spec_num_correct_drafts": 43, "spec_num_proposed_drafts": 63, "spec_verify_ct": 21,
      "spec_correct_drafts_histogram": [3, 5, 1, 12], "spec_cap_lens_histogram": []}}})");
  CHECK(data.drafts == 21);
  CHECK(data.draft_len == 3);
  CHECK(data.acceptance_length == Approx(3.0476).margin(5e-5));
  CHECK(data.survival[2] == Approx(12.0 / 21));
  CHECK_THAT(refusal_of_document(R"({"spec_num_correct_drafts": 4, "spec_correct_drafts_histogram": [3, 5]})"),
             Contains("spec_num_correct_drafts is 4; expected the same"));
}

TEST_CASE("of an answer in parts the last part counts") {
  const auto timings = [](int tokens, int drafted, int accepted) {
    return "\"timings\": {\"predicted_n\": " + std::to_string(tokens) + ", \"draft_n\": " + std::to_string(drafted) +
           ", \"draft_n_accepted\": " + std::to_string(accepted) + "}";
  };
  // llama.cpp with timings_per_token: of each answer 10 steps with 20 of 30 drafts.
  const std::string answer = "data: {\"content\": \"a\", \"stop\": false, " + timings(16, 15, 10) +
                             "}\n\ndata: {\"content\": \"\", \"stop\": true, " + timings(31, 30, 20) + "}\n\n";
  CHECK(document(answer).drafts == 10);
  CHECK(document(answer).acceptance_length == Approx(3.0));
  CHECK(document(answer).draft_len == 3);
  CHECK(document(answer + answer).drafts == 20);
  // Behind what curl prints, and with ids: two answers at once.
  const auto chunk = [&](const std::string& id, int tokens, int drafted, int accepted) {
    return "data: {\"id\": \"" + id + "\", \"object\": \"chat.completion.chunk\", " +
           timings(tokens, drafted, accepted) + "}\n\n";
  };
  const std::string both = "< HTTP/1.1 200 OK\n" + chunk("a", 4, 3, 2) + chunk("b", 11, 9, 6) + chunk("a", 31, 30, 20) +
                           "data: {\"id\": \"a\", \"choices\": []}\ndata: [DONE]\n\n";
  CHECK(document(both).drafts == 10 + 4);
  // Parts as lines, without the words of a stream.
  CHECK(document("{\"id\": \"a\", \"object\": \"chat.completion.chunk\", " + timings(16, 15, 10) +
                 "}\n{\"id\": \"a\", \"object\": \"chat.completion.chunk\", " + timings(31, 30, 20) + "}\n")
            .drafts == 10);
  // vLLM's last part has the histogram.
  CHECK(
      document("data: {\"id\": \"x\", \"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\n"
               "data: {\"id\": \"x\", \"metrics\": {\"speculative_decoding\": {\"acceptance_histogram\": [1, 3]}}}\n\n"
               "data: [DONE]\n")
          .acceptance_length == Approx(1.75));
}

TEST_CASE("LM Studio's counts are in usage or stats") {
  // An answer as its REST interface gives it: 300 tokens, 176 of 492 drafts; 123 steps of 4 drafts.
  for (const char* text :
       {R"({"usage": {"prompt_tokens": 66, "completion_tokens": 300, "total_draft_tokens_count": 492,
            "accepted_draft_tokens_count": 176, "rejected_draft_tokens_count": 316}, "stats": {"tokens_per_second": 17.9}})",
        R"({"usage": {"completion_tokens": 300}, "stats": {"total_draft_tokens_count": 492,
            "accepted_draft_tokens_count": 176}})",
        R"({"stats": {"predictedTokensCount": 300, "totalDraftTokensCount": 492, "acceptedDraftTokensCount": 176}})"}) {
    const AcceptanceData data = document(text);
    CHECK(data.format == "LM Studio JSON");
    CHECK(data.drafts == 123);
    CHECK(data.draft_len == 4);
    CHECK(data.acceptance_length == Approx(1.0 + 176.0 / 123));
  }
}

TEST_CASE("TensorRT-LLM's iterations give drafts, and throughput where they only decode") {
  const std::string iterations =
      R"([{"iter": 2, "iterLatencyMS": 50.0, "inflightBatchingStats": {"numContextRequests": 8, "numGenRequests": 0},
           "specDecodingStats": {"numDraftTokens": 0, "numAcceptedTokens": 0, "numRequestsWithDraftTokens": 0}},
          {"iter": 3, "iterLatencyMS": 20.0, "inflightBatchingStats": {"numContextRequests": 0, "numGenRequests": 8},
           "specDecodingStats": {"numDraftTokens": 24, "numAcceptedTokens": 12, "numRequestsWithDraftTokens": 8,
           "acceptanceLength": 2.5, "iterLatencyMS": 3.0}},
          {"iter": 4, "iterLatencyMS": 30.0, "inflightBatchingStats": {"numContextRequests": 1, "numGenRequests": 8},
           "specDecodingStats": {"numDraftTokens": 24, "numAcceptedTokens": 16, "numRequestsWithDraftTokens": 8,
           "acceptanceLength": 3.0}}])";
  const AcceptanceData data = document(iterations);
  CHECK(data.format == "TensorRT-LLM JSON");
  CHECK(data.drafts == 16);
  CHECK(data.draft_len == 3);
  CHECK(data.acceptance_length == Approx(2.75));
  REQUIRE(data.throughput.size() == 1);
  CHECK(data.throughput[0].running == 8.0);
  CHECK(data.throughput[0].tokens_per_second == Approx(20.0 / 0.02));
  CHECK_THAT(refusal_of_document(R"([{"specDecodingStats": {"numDraftTokens": 2, "numAcceptedTokens": 3,
                          "numRequestsWithDraftTokens": 1}}])"),
             Contains("numAcceptedTokens is 3; expected at most numDraftTokens, 2"));
  const AcceptanceData report = document(
      R"({"engine": {"model": "m", "backend": "Pytorch"}, "request_info": {"num_requests": 200},
      "decoding_stats": {"mode": "Eagle", "num_draft_tokens_percentiles": {"average": 900.0},
      "acceptance_length_percentiles": {"p50": 2.4, "average": 2.5, "minimum": 1.5}}})");
  CHECK(report.acceptance_length == 2.5);
}

TEST_CASE("of a text in which nothing is known the likeliest formats are named with what they need") {
  CHECK_THAT(
      refusal_of_document(
          R"({"model": "llama3.2", "done": true, "total_duration": 5, "eval_count": 290, "prompt_eval_count": 2})"),
      Contains("has no acceptance. It looks most like an answer of Ollama"));
  CHECK_THAT(refusal_of_document(R"([{"id": 0, "id_task": 3, "n_ctx": 8192, "speculative": true, "is_processing": false,
                          "next_token": [{"n_decoded": 5}]}])"),
             Contains("It looks most like llama.cpp's /slots (which needs counts of drafts, which it has not"));
  CHECK_THAT(refusal_of_document("INFO [APIServer] vllm 0.11\nKV cache usage: 3 %\n"),
             Contains("It looks most like vLLM's log (which needs lines \"SpecDecoding metrics"));
  CHECK_THAT(refusal_of_document("# HELP process_cpu_seconds_total\n# TYPE process_cpu_seconds_total counter\n"),
             Contains("It looks most like Prometheus text"));
  CHECK_THAT(refusal_of_document("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n"),
             Contains("It looks most like a trace of requests (which needs no speculation: it is the workload"));
  CHECK_THAT(refusal_of_document("hello\nworld\n"),
             Contains("vLLM's log") && Contains("SGLang's log") && Contains("or llama.cpp's log"));
}
