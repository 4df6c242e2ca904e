// Lines as trtllm-bench, oMLX and mtp-bench.py print them.
#include "sim/import/report_lines.hpp"

#include "sim/import/read_acceptance.hpp"
#include "sim/import/server_setup.hpp"
#include "tests/support/test.hpp"

namespace {

AcceptanceData report(const std::string& text) {
  return parse_acceptance(text, "file");
}
std::string refusal_of_report(const std::string& text) {
  return error_of(ErrorKind::input, [&] { report(text); });
}

}  // namespace

TEST_CASE("trtllm-bench's report says the mean length, K by its tokens, the load, and how the engine was started") {
  const std::string head =
      "= PYTORCH BACKEND\n"
      "Model:\t\t\tQwen/Qwen3-235B-A22B\n"
      "Model Path:\t\t/models/x\n"
      "TensorRT LLM Version:\t1.1.0\n"
      "Dtype:\t\t\tbfloat16\n"
      "KV Cache Dtype:\t\tFP8\n"
      "Quantization:\t\tFP8\n"
      "Number of requests:             512\n"
      "Number of concurrent requests:  7.9512\n"
      "TP Size:                4\nPP Size:                2\nEP Size:                1\n";
  const std::string statistics =
      "= DECODING STATISTICS (Eagle)\n\n"
      "[DT] MINIMUM: 30.00\n[DT] AVERAGE: 324.00\n[ADT] AVERAGE: 92.90\n[DAR] AVERAGE: 0.29\n"
      "[AL] MINIMUM: 1.20\n[AL] MAXIMUM: 2.90\n[AL] AVERAGE: 1.86\n[AL] P50    : 1.84\n";
  const AcceptanceData data = report(head + statistics);
  CHECK(data.format == "TensorRT-LLM report");
  CHECK(data.acceptance_length == Approx(1.86));
  CHECK(data.draft_len == 3);  // 0.86 x 324 / 92.9
  CHECK(data.load == 8);
  const ServerSetup setup = read_server_setup(head, "file");
  CHECK(setup.engine == "TensorRT-LLM 1.1.0");
  CHECK(setup.model == "Qwen/Qwen3-235B-A22B");
  CHECK(setup.precision == "fp8, KV fp8");
  CHECK(setup.tp == 4);
  CHECK(setup.pp == 2);
  CHECK_FALSE(setup.expert_parallel);
  // In versions without [DAR] the rates are lengths; runs weigh their requests.
  const AcceptanceData old = report("[AR] MINIMUM: 1.73\n[AR] AVERAGE: 1.81\n[AR] P50    : 1.82\n");
  CHECK(old.acceptance_length == Approx(1.81));
  CHECK(old.draft_len == 0);
  const AcceptanceData two =
      report("Number of requests: 30\n[AL] AVERAGE: 2.0\nNumber of requests: 10\n[AL] AVERAGE: 3.0\n");
  CHECK(two.acceptance_length == Approx(2.25));
  CHECK(two.notes.front() == "The lengths of 2 runs are averaged.");
  CHECK_THAT(refusal_of_report("[AL] AVERAGE: 0.86\nx\n"), Contains("expected at least 1"));
  CHECK_THAT(refusal_of_report("Number of concurrent requests: 1e12\n[AL] AVERAGE: 1.86\nx\n"),
             Contains("line 1: has 1e+12 running requests"));
}

TEST_CASE("oMLX's lines give rates by position over the cycles that drafted so far") {
  const AcceptanceData data = report(
      "2026-08-26 13:01:03,000 - omlx - INFO - MTP[1] finish=stop tokens=335 cycles=127 tok/cycle=2.64 "
      "accept=207/257 (80.5%) depth[d1=111/124,d2=77/107,d3=19/26] d0=3 "
      "emits[init=2,draft=207,bonus=76,verify=50] timing[backbone=7407.0ms]\n");
  CHECK(data.format == "oMLX log");
  CHECK(data.drafts == 124);
  CHECK(data.accepted_tokens == 207);
  CHECK(data.draft_tokens == 257);
  CHECK(data.acceptance_length == Approx(1.0 + 207.0 / 124));
  REQUIRE(data.survival.size() == 3);
  CHECK(data.survival[0] == Approx(111.0 / 124));
  CHECK(data.survival[1] == Approx(77.0 / 107));
  CHECK(data.draft_share == Approx(124.0 / 127));
  // Without positions; and of a version that adds no token behind drafts that are all accepted.
  const AcceptanceData alone =
      report("MTP[8] finish=length tokens=256 cycles=87 tok/cycle=2.94 accept=167/167 (100.0%)\n");
  CHECK(alone.acceptance_length == Approx(1.0 + 167.0 / 87));
  CHECK(alone.draft_len == 2);
  CHECK(alone.draft_len_is_least);
  CHECK(report("tokens=64 cycles=30 tok/cycle=2.13 accept=42/60 (70.0%) emits[init=1,draft=42,bonus=0,verify=21]\n")
            .acceptance_length == Approx(63.0 / 30));
  // A drafter beside the model: two requests, a block of three tokens.
  const std::string rounds = "omlx.scheduler - INFO - [-] - vlm_mtp stats: request=a finish=stop rounds=";
  const AcceptanceData block =
      report(rounds + "605 accepted=418/1210 (34.5%) tokens_per_round=1.69 emitted=1023 block_size=3\n" + rounds +
             "237 accepted=347/474 (73.2%) tokens_per_round=2.46 emitted=583 block_size=3\n");
  CHECK(block.acceptance_length == Approx(1.0 + 765.0 / 842));
  CHECK(block.draft_len == 2);
  CHECK_FALSE(block.draft_len_is_least);
  CHECK_THAT(refusal_of_report("MTP[8] tokens=2 cycles=8 tok/cycle=2 accept=9/8 (1%)\nx\n"),
             Contains("file, line 1: accept= is no ACCEPTED/DRAFTED"));
}

TEST_CASE("mtp-bench's lines are requests of llama.cpp's server, counted by their tokens") {
  const std::string run =
      "  code_python        pred= 192 draft= 180 acc= 146 rate=0.811 tok/s=31.3\n"
      "  summarize          pred=  53 draft=  52 acc=  39 rate=0.750 tok/s=33.3\n";
  const AcceptanceData data = report("python mtp-bench.py\n" + run + "\nAggregate: {\n  \"n_requests\": 2\n}\n");
  CHECK(data.format == "llama.cpp benchmark");
  CHECK(data.drafts == 45 + 13);
  CHECK(data.draft_tokens == 232);
  CHECK(data.acceptance_length == Approx(1.0 + 185.0 / 58));
  CHECK(data.draft_len == 4);
  CHECK(data.notes.size() == 1);
  // Quoted, and run twice; without speculation nothing is drafted.
  const AcceptanceData twice =
      report("> translation        pred= 192 draft= 142 acc= 119 rate=0.838 tok/s=141.7\n" + run + run);
  CHECK(twice.drafts == 72 + 2 * 58);
  CHECK(twice.notes.back() == "2 runs of the benchmark are added up.");
  CHECK_THAT(refusal_of_report("  code_python        pred= 192 draft=   0 acc=   0 rate=n/a tok/s=6.7\n"),
             Contains("no request drafted"));
  CHECK_THAT(refusal_of_report(run + "[AL] AVERAGE: 1.86\nx\n"),
             Contains("line 3: is of a TensorRT-LLM report, and lines before it of a llama.cpp benchmark"));
}
