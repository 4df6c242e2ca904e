// Decode lines and arguments as SGLang of several versions prints them.
#include "sim/import/sglang_log.hpp"

#include <type_traits>

#include "sim/import/read_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

AcceptanceData sglang_log_of(const std::string& text, bool plain = false) {
  return parse_acceptance(text, "server.log", {"", "", plain});
}
std::string decode(const std::string& prefix, int running, double length, double throughput) {
  const std::string accept = length > 0.0 ? "accept len: " + std::to_string(length) + ", accept rate: 0.50, " : "";
  return "[2026-01-05 10:00:01" + prefix + "] Decode batch, #running-req: " + std::to_string(running) +
         ", #token: 108, token usage: 0.00, " + accept +
         "cuda graph: True, gen throughput (token/s): " + std::to_string(throughput) + ", #queue-req: 0, \n";
}
std::string arguments(const std::string& speculation) {
  return "[2026-01-05 10:00:00] server_args=ServerArgs(model_path='m', dtype='auto', quantization=None, tp_size=1, " +
         speculation + ")\n";
}

}  // namespace

TEST_CASE("ranks and lengths that SGLang writes otherwise are read, and a length that is none is named") {
  // A number this long is no rank: the line counts.
  CHECK(sglang_log_of("[x TP34030465999] Decode batch, #running-req: 1, accept len: 2.0\n").windows == 1);
  CHECK(sglang_log_of("Accept length:                           5.86      \n").acceptance_length == Approx(5.86));
  CHECK(sglang_log_of("accept_length: 3.1\naccept_length: 2.9\n").acceptance_length == Approx(3.0));
  CHECK(error_of(ErrorKind::input, [&] {
          sglang_log_of("[x] Decode batch, #running-req: 1, accept len: many\nfoo\n");
        }) == "server.log, line 1: accept len is \"many\"; expected a number");
}

TEST_CASE("a weight is no count: at few requests the length is the mean of the lines") {
  // The mix-up does not compile.
  static_assert(!std::is_convertible_v<Weight, Steps> && !std::is_constructible_v<Steps, Weight>);
  static_assert(!std::is_constructible_v<Steps, double> && !std::is_convertible_v<std::int64_t, WindowSize>);
  CHECK(sglang_log_of(decode("", 1, 1.45, 1) + decode("", 1, 1.48, 1) + decode("", 1, 1.42, 1)).acceptance_length ==
        Approx(1.45).epsilon(1e-12));
  CHECK(sglang_log_of(decode("", 2, 1.2, 1) + decode("", 1, 1.3, 1)).acceptance_length ==
        Approx(1.0 + (2 * 0.2 + 0.3) / 3).epsilon(1e-12));
  // Five lines at one request have the standard error of their scatter.
  std::string five;
  for (const double length : {1.3, 1.4, 1.5, 1.4, 1.4}) five += decode("", 1, length, 1);
  CHECK(*sglang_log_of(five).acceptance_length_error == Approx(std::sqrt(5.0 / 4.0 * 0.02) / 5.0));
}

TEST_CASE("the drafts of blocks are their tokens without the root") {
  const std::string line = decode("", 4, 2.8, 162);
  const auto levels = [&](const std::string& speculation) {
    return sglang_log_of(arguments(speculation) + line).draft_len;
  };
  CHECK(levels("speculative_algorithm='DFLASH', speculative_num_steps=1, speculative_eagle_topk=1, "
               "speculative_num_draft_tokens=16") == 15);
  CHECK(levels("speculative_algorithm='DSPARK', speculative_num_steps=None, speculative_eagle_topk=None, "
               "speculative_num_draft_tokens=8") == 7);
  CHECK(levels("speculative_algorithm='NEXTN', speculative_num_steps=1, speculative_eagle_topk=1, "
               "speculative_num_draft_tokens=2") == 1);
  CHECK(levels("speculative_algorithm='EAGLE3', speculative_draft_model_path=None, speculative_num_steps=5, "
               "speculative_eagle_topk=1, speculative_num_draft_tokens=6") == 5);
  const AcceptanceData tree = sglang_log_of(
      arguments("speculative_num_steps=5, speculative_eagle_topk=4, speculative_num_draft_tokens=8") + line);
  CHECK(tree.tree_nodes == 7);
  CHECK(tree.draft_len == 5);
  // A line alone does not say it; people may. A dictionary, from 0.5.20 on: what lies deeper is another's.
  CHECK(sglang_log_of(
            "[x] server_args={'model_loader_extra_config': {'speculative_num_steps': 9}, 'speculative_num_steps': 3, "
            "'speculative_eagle_topk': 1, 'speculative_num_draft_tokens': 4}\n" +
            line)
            .draft_len == 3);
}

TEST_CASE("a load is of a data-parallel rank, and ranks weigh what they run") {
  const std::string text = decode(" DP0 TP0", 32, 1.8, 1100) + decode(" DP1 TP1 EP1", 8, 2.3, 400) +
                           decode(" DP0 TP1", 32, 1.8, 1100) + decode(" DP2 TP2", 0, 1.0, 0.1);
  const AcceptanceData data = sglang_log_of(text);
  CHECK(data.windows == 2);
  CHECK(data.acceptance_length == Approx(1.0 + (32 * 0.8 + 8 * 1.3) / 40).epsilon(1e-12));
  REQUIRE(data.throughput.size() == 2);
  CHECK(data.throughput[0].engine == 0);
  CHECK(data.throughput[0].running == 32.0);
  CHECK(data.throughput[1].engine == 1);
  CHECK(data.throughput[1].tokens_per_step == 2.3);
}

TEST_CASE("the line of SGLang's benchmark is its own, and runs weigh their questions") {
  const AcceptanceData one =
      parse_acceptance("EAGLE-3:\n#questions: 80, Throughput: 276.30 token/s, Acceptance length: 5.36\n", "file");
  CHECK(one.format == "SGLang log");
  CHECK(one.acceptance_length == Approx(5.36));
  const AcceptanceData two = parse_acceptance(
      "#questions: 30, Throughput: 1.0 token/s, Acceptance length: 2.00\n"
      "#questions: 10, Throughput: 1.0 token/s, Acceptance length: 3.00\n",
      "file");
  CHECK(two.acceptance_length == Approx(2.25));
  CHECK(two.notes.front() == "The lengths of 2 runs are averaged.");
}

TEST_CASE("a log without speculation has a throughput") {
  const std::string text = arguments("speculative_algorithm=None, speculative_num_steps=None") +
                           decode("", 1, 0.0, 148.64) + decode("", 1, 0.0, 147.64);
  const AcceptanceData data = sglang_log_of(text, true);
  CHECK(data.windows == 0);
  REQUIRE(data.throughput.size() == 2);
  CHECK(data.throughput[1].tokens_per_second == 147.64);
  CHECK_FALSE(data.throughput[1].tokens_per_step);
  CHECK_THAT(error_of(ErrorKind::input, [&] { sglang_log_of(text); }), Contains("has no line with an accept length"));
  // The form of 2024, with what stands before the words.
  CHECK(sglang_log_of(
            "[gpu=0] Decode batch. #running-req: 233, #token: 370959, token usage: 0.82, gen throughput (token/s): "
            "4594.01, #queue-req: 317\n",
            true)
            .throughput.size() == 1);
}
