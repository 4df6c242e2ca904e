// Lines as servers of different versions print them.
#include "sim/import/vllm_log.hpp"

#include "sim/import/read_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

AcceptanceData log_of(const std::string& text) {
  return parse_acceptance(text, "server.log");
}
std::string refusal_of_log(const std::string& text) {
  return error_of(ErrorKind::input, [&] { log_of(text); });
}

const std::string kPrefix = "(APIServer pid=1) INFO 05-30 07:49:21 [metrics.py:101] ";
const std::string kLine =
    "SpecDecoding metrics: Mean acceptance length: 3.07, Accepted throughput: 1.05 tokens/s, Drafted throughput: 1.51 "
    "tokens/s, Accepted: 141 tokens, Drafted: 204 tokens, Per-position acceptance rate: 0.897, 0.676, 0.500, Avg Draft "
    "acceptance rate: 69.1%";

}  // namespace

TEST_CASE("a line of vLLM gives its counts exactly: drafts, rates, acceptance length") {
  const AcceptanceData data = log_of(kPrefix + kLine + "\n");
  CHECK(data.format == "vLLM log");
  CHECK(data.windows == 1);
  CHECK(data.drafts == 68);
  CHECK(data.draft_tokens == 204);
  CHECK(data.accepted_tokens == 141);
  CHECK(data.draft_len == 3);
  REQUIRE(data.survival.size() == 3);
  CHECK(data.survival[0] == Approx(61.0 / 68));  // 0.897 of 68 steps
  CHECK(data.survival[1] == Approx(46.0 / 68));
  CHECK(data.survival[2] == Approx(34.0 / 68));
  CHECK(data.acceptance_length == Approx(1.0 + 141.0 / 68));
  CHECK(data.survival_error[1] == Approx(std::sqrt(46.0 / 68 * 22.0 / 68 / 68)));
  CHECK(data.notes.empty());
}

TEST_CASE("totals of a script are read under the names of several versions, and are not used beside windows") {
  const std::string totals =
      "Number of draft proposals: 100\nNumber of draft tokens generated: 300\nNumber of draft tokens accepted: 130\n"
      "Mean acceptance length: 2.30\nAcceptance rate at token 0: 0.70\nAcceptance rate at token 1: 0.40\n"
      "Acceptance rate at token 2: 0.20\n";
  const AcceptanceData data = log_of(totals);
  CHECK(data.drafts == 100);
  CHECK(data.draft_tokens == 300);
  CHECK(data.accepted_tokens == 130);
  CHECK(data.draft_len == 3);
  CHECK(data.survival == std::vector<double>{0.7, 0.4, 0.2});
  CHECK(data.not_used.empty());
  const AcceptanceData beside = log_of(kPrefix + kLine + "\n" + totals + "Draft hit share: 61 %\n");
  CHECK(beside.drafts == 68);
  CHECK(beside.not_used == std::vector<std::string>{"7 lines of totals, since the windows say more",
                                                    "1 line of acceptance that is not known, the first 'Draft hit "
                                                    "share: 61 %'"});
}

TEST_CASE("where the number of drafts changed, a position is counted over the windows that reach it") {
  const AcceptanceData data = log_of(
      "SpecDecoding metrics: Mean acceptance length: 1.60, Accepted: 60 tokens, Drafted: 100 tokens, Per-position "
      "acceptance rate: 0.600, Avg Draft acceptance rate: 60.0%\n"
      "SpecDecoding metrics: Mean acceptance length: 2.10, Accepted: 110 tokens, Drafted: 200 tokens, Per-position "
      "acceptance rate: 0.700, 0.400, Avg Draft acceptance rate: 55.0%\n");
  CHECK(data.survival[0] == Approx(0.65));
  CHECK(data.survival[1] == Approx(0.4));
  CHECK(data.notes.front().find("several lengths") != std::string::npos);
}

TEST_CASE("where the depth changes with the load, a position is counted over the steps that drafted so far") {
  const std::string deep =
      "SpecDecoding metrics: Mean acceptance length: 2.50, Current speculative depth: 3, Accepted throughput: 150.00 "
      "tokens/s, Drafted throughput: 300.00 tokens/s, Accepted: 1500 tokens, Drafted: 3000 tokens, Per-position "
      "acceptance rate: 0.700, 0.500, 0.300, Avg Draft acceptance rate: 50.0%\n";
  const std::string shallow =
      "SpecDecoding metrics: Mean acceptance length: 1.70, Current speculative depth: 1, Accepted throughput: 630.00 "
      "tokens/s, Drafted throughput: 900.00 tokens/s, Accepted: 6300 tokens, Drafted: 9000 tokens, Per-position "
      "acceptance rate: 0.700, 0.000, 0.000, Avg Draft acceptance rate: 70.0%\n";
  const AcceptanceData data = log_of(deep + shallow);
  REQUIRE(data.survival.size() == 3);
  CHECK(data.survival[0] == Approx(0.7));
  CHECK(data.survival[1] == Approx(0.5));
  CHECK(data.survival[2] == Approx(0.3));
  CHECK(data.survival_bounds.empty());
  CHECK(data.reach[2].low == Approx(0.1));
  CHECK(data.drafts == 10000);
  CHECK(data.acceptance_length == Approx(1.78));
  // One token alone, all along: nothing is known of the second.
  CHECK(log_of(shallow).survival.size() == 1);
  // Nothing accepted: the depth says how many steps there were.
  const AcceptanceData none = log_of(
      "SpecDecoding metrics: Mean acceptance length: 1.00, Current speculative depth: 2, Accepted: 0 tokens, Drafted: "
      "40 "
      "tokens, Per-position acceptance rate: 0.000, 0.000, 0.000, Avg Draft acceptance rate: 0.0%\n" +
      deep);
  CHECK(none.drafts == 1020);
  CHECK(none.survival[2] == Approx(0.3));
  // A window within which the depth changed has bounds: 600 steps of three and 400 of one, or else.
  const AcceptanceData mixed = log_of(
      "SpecDecoding metrics: Mean acceptance length: 2.18, Current speculative depth: 1, Accepted: 1180 tokens, "
      "Drafted: "
      "2200 tokens, Per-position acceptance rate: 0.700, 0.300, 0.180, Avg Draft acceptance rate: 53.6%\n");
  REQUIRE(mixed.survival_bounds.size() == 3);
  CHECK(mixed.survival_bounds[1].low <= 0.5);
  CHECK(mixed.survival_bounds[1].high >= 0.5);
  CHECK(mixed.survival_bounds[2].low <= 0.3);
  CHECK(mixed.survival_bounds[2].high >= 0.3);
}

TEST_CASE("windows of several engines have loads of their own") {
  const auto engine = [](const std::string& name, double generated, int running) {
    return "INFO 01-01 10:00:00 [loggers.py:123] " + name + ": Avg prompt throughput: 0.0 tokens/s, Avg generation " +
           "throughput: " + std::to_string(generated) + " tokens/s, Running: " + std::to_string(running) +
           " reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%\n";
  };
  const AcceptanceData each = log_of(engine("Engine 000", 100, 4) + kLine + "\n" + engine("Engine 011", 50, 2));
  REQUIRE(each.throughput.size() == 2);
  CHECK(each.throughput[1].engine == 11);
  CHECK(each.throughput[1].running == 2.0);
  const AcceptanceData all = log_of(engine("4 Engines Aggregated", 100, 8) + kLine + "\n");
  REQUIRE(all.throughput.size() == 4);
  CHECK(all.throughput[3].engine == 3);
  CHECK(all.throughput[3].running == 2.0);
  CHECK(all.throughput[3].tokens_per_second == 25.0);
}

TEST_CASE("tables, mails, terminals and Ray pass lines on in forms of their own") {
  const AcceptanceData plain = log_of(kPrefix + kLine);
  const auto is_plain = [&](const std::string& text) {
    INFO(text);
    const AcceptanceData data = log_of(text);
    CHECK(data.windows == 1);
    CHECK(data.survival == plain.survival);
    CHECK(data.acceptance_length == plain.acceptance_length);
    CHECK(data.drafts == plain.drafts);
  };
  is_plain("| 04:22:04.341 | APIServer | `" + kLine + "` |\n");
  is_plain("(ServeReplica:default:LLM pid=123, ip=10.0.0.7) INFO 05-30 07:49:21 [metrics.py:101] " + kLine +
           " [repeated 3x across cluster]\n");
  is_plain("> " + kPrefix + kLine + "\n> and so on\n");
  // A mail breaks lines at blanks, a terminal anywhere; both after every length.
  for (std::size_t width = 44; width < 140; ++width) {
    std::string mail, terminal, line;
    for (const std::string& text = kPrefix + kLine; const char c : text + " ") {
      if (c == ' ' && line.size() > width) {
        mail += "> > " + line + "\n";
        line.clear();
      } else {
        line += c;
      }
    }
    mail += "> > " + line + "\n";
    const std::string text = kPrefix + kLine;
    for (std::size_t at = 0; at < text.size(); at += width) terminal += text.substr(at, width) + "\n";
    is_plain(mail + "> Thanks\n");
    is_plain(terminal + "INFO 05-30 07:49:31 nothing\n");
  }
}

TEST_CASE("colours, carriage returns, byte order marks, prefixes and the order of fields do not matter") {
  const AcceptanceData plain = log_of(kLine);
  const std::string coloured =
      "\xEF\xBB\xBF\x1b[0;36m(EngineCore_DP0 pid=42)\x1b[0;0m \x1b[32mINFO\x1b[0m 2026-05-30T07:49:21Z "
      "[loggers.py:1] " +
      kLine + "\x1b[0m\r\n";
  CHECK(log_of(coloured).survival == plain.survival);
  CHECK(log_of("{\"level\": \"INFO\", \"message\": \"" + kLine + "\"}\n").acceptance_length == plain.acceptance_length);
  // vLLM 0.10.2 wrote the rate first and the list last.
  const AcceptanceData other = log_of(
      "INFO 09-09 11:51:35 [metrics.py:96] SpecDecoding metrics: Draft acceptance rate: 88.8%, Mean acceptance length: "
      "5.44, Accepted throughput: 4.37 tokens/s, Drafted throughput: 4.92 tokens/s, Accepted: 262 tokens, Drafted: 295 "
      "tokens, Per-position acceptance rate: 0.983, 0.949, 0.915, 0.881, 0.712\n");
  CHECK(other.drafts == 59);
  CHECK(other.acceptance_length == Approx(1.0 + 262.0 / 59));
  CHECK(other.survival[4] == Approx(42.0 / 59));
}

TEST_CASE("lines without positions give the acceptance length, those without a length need the number of drafts") {
  const AcceptanceData data = log_of(
      "SpecDecoding metrics: Mean acceptance length: 1.90, Accepted throughput: 27.20 "
      "tokens/s, Drafted throughput: 30.10 tokens/s, Accepted: 272 tokens, Drafted: 301 "
      "tokens\n");
  CHECK(data.survival.empty());
  CHECK(data.drafts == 302);  // 272 / 0.90, which two digits leave open by one or two
  CHECK(data.acceptance_length == Approx(1.9).margin(0.002));
  const std::string early =
      "SpecDecoding metrics: Draft acceptance rate: 50.0%, Accepted: 66 tokens, Drafted: 132 tokens\n";
  CHECK(refusal_of_log(early).find("does not say how many tokens a draft has") != std::string::npos);
  const AcceptanceData with_config = log_of("config: SpeculativeConfig(method='eagle', num_spec_tokens=4)\n" + early);
  CHECK(with_config.acceptance_length == Approx(3.0));
  CHECK(with_config.draft_len == 4);
  CHECK(parse_acceptance(early, "file", {"", "", false, 4}).acceptance_length == Approx(3.0));
  // Before it, counters; of 66 tokens a draft is shorter.
  CHECK(parse_acceptance("Speculative metrics: Draft acceptance rate: 1.000, Number of accepted tokens: 66, Number of "
                         "draft tokens: 66, \n",
                         "file", {"", "", false, 4})
            .acceptance_length == Approx(1.0 + 66.0 / 17));
}

TEST_CASE("counters of early versions count drafts behind a rejected one, so that emitted tokens are used") {
  const AcceptanceData data = log_of(
      "INFO 10-16 19:05:40 metrics.py:367] Speculative metrics: Draft acceptance rate: 0.600, System efficiency: "
      "0.500, "
      "Number of speculative tokens: 3, Number of accepted tokens: 180, Number of draft tokens: 300, Number of emitted "
      "tokens: 200.\n"
      "INFO 10-16 19:05:47 metrics.py:367] Speculative metrics: Draft acceptance rate: 0.642, System efficiency: "
      "0.598, "
      "Number of speculative tokens: 3, Number of accepted tokens: 8547, Number of draft tokens: 13311, Number of "
      "emitted tokens: 10616.\n");
  CHECK(data.windows == 1);  // the counters run on
  CHECK(data.drafts == 4437);
  CHECK(data.acceptance_length == Approx(10616.0 / 4437));  // 0.598 of 4
  CHECK(data.acceptance_length == Approx(0.598 * 4).epsilon(1e-3));
  CHECK(data.draft_len == 3);
}

TEST_CASE("the summary of an offline benchmark is read") {
  const AcceptanceData offline = log_of(
      "--------------------------------------------------\ntotal_num_output_tokens: 101774\nnum_drafts: 36593\n"
      "num_draft_tokens: 109779\nnum_accepted_tokens: 65181\nmean acceptance length: 2.78\n"
      "--------------------------------------------------\nacceptance at token 0: 0.75\nacceptance at token 1: 0.57\n"
      "acceptance at token 2: 0.46\n");
  CHECK(offline.survival.size() == 3);
  CHECK(offline.acceptance_length == Approx(1.0 + 65181.0 / 36593));
}

TEST_CASE("records whose line ends were lost are each counted, with what a server writes in front of them") {
  const auto window = [](const char* accepted, const char* rates, const char* length) {
    return std::string(
               "(APIServer pid=1) INFO 07-20 18:11:49 [metrics.py:101] SpecDecoding metrics: Mean acceptance "
               "length: ") +
           length + ", Accepted: " + accepted + " tokens, Drafted: 453 tokens, Per-position acceptance rate: " + rates;
  };
  const std::string first = window("282", "0.821, 0.609, 0.437", "2.87");
  const std::string second = window("299", "0.821, 0.675, 0.483", "2.98");
  const std::string load =
      "INFO Engine 002: Avg prompt throughput: 0.1 tokens/s, Avg generation throughput: 43.3 tokens/s, Running: 1 reqs";
  for (const std::string& text : {load + " " + first + " " + second + "\n", load + "\n" + first + second + "\n",
                                  load + "\\n" + first + "\\n" + second}) {
    const AcceptanceData data = parse_acceptance(text, "file");
    CHECK(data.drafts == 302);
    CHECK(data.accepted_tokens == 581);
    REQUIRE(data.throughput.size() == 1);
    CHECK(data.throughput[0].engine == 2);
  }
}

TEST_CASE("what people quote of a line of metrics is read") {
  const AcceptanceData alone = parse_acceptance(
      "Per-position acceptance rate: 0.844, 0.599, 0.385, 0.271\nAvg Draft acceptance rate: 52.5%\n", "file");
  CHECK(alone.survival == std::vector<double>{0.844, 0.599, 0.385, 0.271});
  const AcceptanceData with_length =
      parse_acceptance("Mean acceptance length: 1.83\nPer-position acceptance rate: 0.833\n", "file");
  CHECK(with_length.draft_len == 1);
  CHECK(with_length.acceptance_length == Approx(1.833));
}

TEST_CASE("a load that no engine runs is refused with its line") {
  CHECK_THAT(error_of(ErrorKind::input,
                      [&] {
                        parse_acceptance("INFO Avg generation throughput: 9.0 tokens/s, Running: 99999999999 reqs\n\n",
                                         "file", {"", "", true});
                      }),
             Contains("file, line 1: has 1e+11 running requests; expected at most 1048576"));
}

TEST_CASE("steps without a draft are counted where the example says their tokens") {
  const std::string example =
      "total_num_output_tokens: 5376\nnum_drafts: 993\nnum_draft_tokens: 4960\nnum_accepted_tokens: 3562\n"
      "mean acceptance length: 4.59\nacceptance at token 0: 0.81\nacceptance at token 1: 0.74\n";
  const AcceptanceData data = parse_acceptance(example + "num_tokens_generated_without_sd: 821\n", "file");
  CHECK(data.draft_share == Approx(993.0 / 1814));
  CHECK(data.tokens_per_step() == Approx(1.0 + 3562.0 / 1814));
  CHECK_FALSE(parse_acceptance(example + "num_tokens_generated_without_sd: 0\n", "file").draft_share);
}

TEST_CASE("steps without a draft show in the generation throughput") {
  // 100 tokens/s, 40 of them accepted drafts: 60 steps a second, and 40 / (3 - 1) = 20 had a draft.
  const AcceptanceData data = log_of(
      "INFO [loggers.py:123] Engine 000: Avg prompt throughput: 5.0 tokens/s, Avg generation throughput: 100.0 "
      "tokens/s, "
      "Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.2%, Prefix cache hit rate: 0.0%\n"
      "INFO [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 3.00, Accepted throughput: 40.00 tokens/s, "
      "Drafted throughput: 60.00 tokens/s, Accepted: 400 tokens, Drafted: 600 tokens, Per-position acceptance rate: "
      "0.800, 0.700, 0.500, Avg Draft acceptance rate: 66.7%\n");
  REQUIRE(data.draft_share);
  CHECK(*data.draft_share == Approx(1.0 / 3));
  CHECK(data.tokens_per_step() == Approx(1.0 + 2.0 / 3));
  REQUIRE(data.throughput.size() == 1);
  CHECK(data.throughput[0].running == 4.0);
  CHECK(data.throughput[0].tokens_per_second == 100.0);
  // Before throughputs stood beside counts the clock says the time: 1,000 tokens and 400 accepted in ten seconds.
  const auto early = [](int second) {
    const std::string time = "INFO 06-06 14:20:" + std::to_string(second);
    return time +
           " [loggers.py:116] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 100.0 "
           "tokens/s, Running: 4 reqs\n" +
           time +
           " [metrics.py:86] SpecDecoding metrics: Draft acceptance rate: 66.7%, Mean acceptance length: 3.00, "
           "Accepted: 400 tokens, Drafted: 600 tokens, Per-position acceptance rate: 0.800, 0.700, 0.500\n";
  };
  CHECK_FALSE(log_of(early(10)).draft_share);
  CHECK(*log_of(early(10) + early(20) + early(30)).draft_share == Approx(1.0 / 3));
  // Metrics of the 108 seconds since a server drafted last, beside the throughput of ten: they say nothing of a share.
  CHECK_FALSE(
      log_of("Engine 000: Avg prompt throughput: 9.1 tokens/s, Avg generation throughput: 2.1 tokens/s, Running: 0 "
             "reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 0.0%\n"
             "SpecDecoding metrics: Mean acceptance length: 3.00, Current speculative depth: 5, Accepted "
             "throughput: 0.13 tokens/s, Drafted throughput: 0.32 tokens/s, Accepted: 14 tokens, Drafted: 35 "
             "tokens, Per-position acceptance rate: 0.714, 0.429, 0.286, 0.286, 0.286, Avg Draft acceptance rate: "
             "40.0%\n")
          .draft_share);
}

TEST_CASE("K follows from counts and rates where no list says it") {
  CHECK(log_of("num_drafts: 4816\nnum_draft_tokens: 33712\nnum_accepted_tokens: 12208\nmean acceptance length: 3.53\n")
            .draft_len == 7);
  CHECK(log_of("SpecDecoding metrics: Mean acceptance length: 2.66,\n  Accepted throughput: 60.09 tokens/s,\n  Drafted "
               "throughput: 72.19 tokens/s,\n  Avg Draft acceptance rate: 83.2%\n")
            .draft_len == 2);
  CHECK(log_of("SpecDecoding metrics: Mean acceptance length: 3.51, Current speculative depth: 3, Avg Draft acceptance "
               "rate: 83.7%\n")
            .draft_len == 3);
  CHECK(
      log_of("SpecDecoding metrics: Mean acceptance length: 2.82\nAccepted throughput: 830.21 tokens/s\n").draft_len ==
      0);
}

TEST_CASE("windows without drafts count nothing, and a log without any is refused") {
  const std::string nothing =
      "SpecDecoding metrics: Mean acceptance length: nan, Accepted throughput: 0.00 tokens/s, "
      "Drafted throughput: 0.00 tokens/s, Accepted: 0 tokens, Drafted: 0 tokens, Per-position "
      "acceptance rate: , Avg Draft acceptance rate: nan%\n";
  CHECK(
      log_of("SpecDecoding metrics: Mean acceptance length: 1.00, Accepted: 0 tokens, Drafted: 60 tokens, Per-position "
             "acceptance rate: 0.000, 0.000, 0.000, Avg Draft acceptance rate: 0.0%\n")
          .acceptance_length == 1.0);
  CHECK(refusal_of_log("INFO: Speculative metrics and SpecDecoding metrics are logged every 10 s\n")
            .find("has no line of speculative-decoding metrics") != std::string::npos);
  CHECK(log_of(kLine + "\n" + nothing.substr(0, nothing.find(", Per-position")) + "\n").windows == 1);
}

TEST_CASE("a malformed line is named with its number") {
  CHECK(refusal_of_log(kLine + "\nfoo\nSpecDecoding metrics: Mean acceptance length: abc, Accepted: 3 tokens\n") ==
        "server.log, line 3: mean acceptance length is \"abc, Accepted: 3 tokens\"; expected a number");
  const std::string rates = "2.20, Per-position acceptance rate: ";
  for (const auto& [line, error] :
       {std::pair(std::string("2.0, Accepted: 1.5 tokens, Drafted: 3 tokens"), "server.log, line 1: accepted is 1.5"),
        {rates + "0.7, 1.4", "server.log, line 1: acceptance rate 2 is 1.4"},
        {rates + "0.5, 0.7", "above the one before it"},
        // Conditional rates where unconditional ones belong.
        {rates + "0.7, 0.65, 0.6", "add up to an acceptance length of 2.95"},
        {"0.62, Accepted: 3 tokens, Drafted: 9 tokens", "expected at least 1"},
        {"2.0, Accepted: 9 tokens, Drafted: 3 tokens", "9 of 3 drafted tokens are accepted"}})
    CHECK_THAT(refusal_of_log("SpecDecoding metrics: Mean acceptance length: " + line + "\n"), Contains(error));
}

TEST_CASE("a last line that was cut while it was written is left out") {
  const AcceptanceData data = log_of(kLine + "\nSpecDecoding metrics: Mean acceptance length: 2.6");
  CHECK(data.windows == 1);
  const AcceptanceData cut = log_of(kLine + "\nSpecDecoding metrics: Mean acceptance length: ");
  CHECK(cut.windows == 1);
  CHECK(cut.notes.front().find("ends early") != std::string::npos);
}

TEST_CASE("a number of draft tokens that no server has is refused") {
  CHECK_THAT(refusal_of_log("INFO num_spec_tokens=1000000000000000\n" + kPrefix +
                            "SpecDecoding metrics: Draft acceptance rate: 50.0%, Accepted: 100 tokens, Drafted: 201 "
                            "tokens\n"),
             Contains("server.log, line 1: num_spec_tokens is 1000000000000000; expected at most 1024"));
}
