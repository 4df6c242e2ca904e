// Lines as llama.cpp's versions and programs print them; the counts beside them are llama.cpp's own.
#include "sim/import/llama_cpp_log.hpp"

#include "sim/import/read_acceptance.hpp"
#include "tests/support/test.hpp"

namespace {

AcceptanceData llama_log(const std::string& text, const std::string& choice = "") {
  return parse_acceptance(text, "file", {choice, ""});
}
std::string refusal_of_llama(const std::string& text, const std::string& choice = "") {
  return error_of(ErrorKind::input, [&] { llama_log(text, choice); });
}
std::vector<double> to_three_digits(std::vector<double> values) {
  for (double& value : values) value = std::round(1000.0 * value) / 1000.0;
  return values;
}

const std::string kLlamaServer =
    "0.06.895.980 I slot print_timing: id  1 | task 0 | prompt eval time =     300.11 ms /    20 tokens (   15.01 ms "
    "per "
    "token,    66.64 tokens per second)\n"
    "0.06.895.998 I slot print_timing: id  1 | task 0 |        eval time =    2296.72 ms /   256 tokens (    8.97 ms "
    "per "
    "token,   111.46 tokens per second)\n"
    "0.06.896.015 I slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 generated), "
    "mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)\n"
    "0.06.896.057 I statistics     draft-eagle3: #calls(b,g,a) =    1     87     87, #gen drafts =     87, #acc drafts "
    "= "
    "   70, #gen tokens =    259, #acc tokens =   167, #mean acc len = 2.92, #acc rate/pos = (0.805, 0.632, 0.483), "
    "dur(b,g,a) = 0.005, 325.555, 0.114 ms\n";

}  // namespace

TEST_CASE("llama-server's requests of 2026 say lengths and rates over the steps with a draft") {
  const AcceptanceData data = llama_log(kLlamaServer);
  CHECK(data.format == "llama.cpp log");
  CHECK(data.drafts == 87);
  CHECK(data.draft_tokens == 259);
  CHECK(data.accepted_tokens == 167);
  CHECK(data.draft_len == 3);
  CHECK(data.acceptance_length == Approx(1.0 + 167.0 / 87));
  CHECK(to_three_digits(data.survival) == std::vector<double>{0.805, 0.632, 0.483});
  CHECK(!data.draft_share);
  // Since August 2026 the rates follow in a line of their own, at a level of debugging.
  const AcceptanceData newest = llama_log(
      "0.10.206.986 I slot print_timing: id  0 | task 0 | draft acceptance = 0.75430 (  307 accepted /   407 "
      "generated), "
      "mean len =  2.50\n"
      "0.10.206.987 T slot print_timing: id  0 | task 0 |      acc per pos = (0.833, 0.667)\n");
  CHECK(newest.drafts == 205);
  CHECK(to_three_digits(newest.survival) == std::vector<double>{0.834, 0.668});  // 171 and 137 of 205
  CHECK(llama_log("draft acceptance = 0.75430 (307 accepted / 407 generated), mean len =  2.50\n").acceptance_length ==
        Approx(2.5).margin(0.005));
}

TEST_CASE("llama-server's requests of 2025 are counted by their tokens") {
  // 353 tokens: the prompt's, and 352 of steps of which 257 were accepted drafts.
  const std::string lines =
      "slot print_timing: id  0 | task 42 | \n"
      "prompt eval time =     714.79 ms /  1091 tokens (    0.66 ms per token,  1526.33 tokens per second)\n"
      "       eval time =    3133.20 ms /   353 tokens (    8.88 ms per token,   112.66 tokens per second)\n"
      "      total time =    3847.99 ms /  1444 tokens\n"
      "slot print_timing: id  0 | task 42 | \n"
      "draft acceptance rate = 0.66237 (  257 accepted /   388 generated)\n";
  const AcceptanceData data = llama_log(lines + "slot print_timing: id  1 | task 43 | no more\n");
  CHECK(data.drafts == 95);
  CHECK(data.acceptance_length == Approx(1.0 + 257.0 / 95));
  CHECK(data.survival.empty());
  CHECK(data.draft_len == 5);  // 388 of 95 steps: no more is known of K
  CHECK(data.draft_len_is_least);
  REQUIRE(data.notes.size() == 1);
  CHECK_THAT(data.notes[0], Contains("those without a draft included"));
  CHECK_THAT(refusal_of_llama("draft acceptance rate = 0.66237 (  257 accepted /   388 generated)\n"),
             Contains("neither steps nor tokens"));
}

TEST_CASE("statistics of drafters count since the start, restarts included, and add up") {
  // The documentation's example of December 2025, in which two drafters take turns.
  const AcceptanceData both = llama_log(
      "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n"
      "statistics ngram_simple: #calls = 15, #gen drafts = 5, #acc drafts = 5, #gen tokens = 187, #acc tokens = 73\n"
      "statistics draft: #calls = 10, #gen drafts = 10, #acc drafts = 10, #gen tokens = 110, #acc tokens = 98\n");
  CHECK(both.drafts == 15);
  CHECK(both.draft_tokens == 297);
  CHECK(both.accepted_tokens == 171);
  CHECK(both.acceptance_length == Approx(1.0 + 171.0 / 15));
  CHECK(!both.draft_share);  // 15 drafts in 15 calls
  // Another of its examples: drafts in 15 of 810 steps.
  const AcceptanceData rare = llama_log(
      "draft acceptance rate = 0.70312 (   90 accepted /   128 generated)\n"
      "statistics ngram_mod: #calls = 810, #gen drafts = 15, #acc drafts = 15, #gen tokens = 960, #acc tokens = 730, "
      "dur(b,g,a) = 0.149, 0.347, 0.005 ms\n");
  CHECK(rare.draft_share == Approx(15.0 / 810));
  CHECK(rare.tokens_per_step() == Approx(1.0 + 730.0 / 810));
  const std::string first =
      "statistics draft: #calls(b,g,a) = 1 10 10, #gen drafts = 10, #acc drafts = 9, #gen tokens = 30, #acc tokens = "
      "20\n";
  const std::string later =
      "statistics draft: #calls(b,g,a) = 2 20 20, #gen drafts = 20, #acc drafts = 9, #gen tokens = 60, #acc tokens = "
      "30\n";
  CHECK(llama_log(first + later).accepted_tokens == 30);
  CHECK(llama_log(later + first).accepted_tokens == 50);
  // With two drafters of unlike lengths a list of rates ends before the drafts.
  const AcceptanceData unlike = llama_log(
      "statistics ngram-mod: #calls(b,g,a) = 4 542 31, #gen drafts = 31, #acc drafts = 28, #gen tokens = 920, #acc "
      "tokens "
      "= 527, #mean acc len = 18.00, #acc rate/pos = (0.903, 0.806), dur(b,g,a) = 0.688, 0.851, 0.021 ms\n"
      "statistics draft-dflash: #calls(b,g,a) = 4 511 511, #gen drafts = 511, #acc drafts = 390, #gen tokens = 2041, "
      "#acc "
      "tokens = 974, #mean acc len = 2.91, #acc rate/pos = (0.763, 0.526, 0.362, 0.254), dur(b,g,a) = 0.004, 1.5, 0.1 "
      "ms\n");
  CHECK(unlike.survival.front() == Approx(418.0 / 542));  // the first position is counted all the same
  CHECK(unlike.acceptance_length == Approx(1.0 + 1501.0 / 542));
}

TEST_CASE("statistics without lists of rates count the first position exactly, and bound those behind it") {
  const auto statistics = [](const std::string& counts) {
    return llama_log("statistics mtp: #calls(b,g,a) = 1 " + counts + ", dur(b,g,a) = 0.001, 1.0, 0.1 ms\n");
  };
  // Two of four drafts accepted a token, three tokens in all: the second position is known, too.
  const AcceptanceData two = statistics("4 4, #gen drafts = 4, #acc drafts = 2, #gen tokens = 8, #acc tokens = 3");
  CHECK(two.draft_len == 2);
  REQUIRE(two.survival.size() == 2);
  CHECK(two.survival[0] == Approx(0.5));
  CHECK(two.survival[1] == Approx(0.25));
  CHECK(two.survival_bounds.empty());
  // With three positions the others share what is left, 30 of 100 steps.
  const AcceptanceData three =
      statistics("100 100, #gen drafts = 100, #acc drafts = 60, #gen tokens = 300, #acc tokens = 90");
  REQUIRE(three.survival.size() == 3);
  CHECK(three.survival[0] == Approx(0.6));
  CHECK(three.survival[1] + three.survival[2] == Approx(0.3));
  CHECK(three.survival[1] / 0.6 == Approx(three.survival[2] / three.survival[1]));
  CHECK(three.survival_bounds[1].low == Approx(0.15));
  CHECK(three.survival_bounds[1].high == Approx(0.3));
  CHECK(three.survival_bounds[2].low == Approx(0.0).margin(1e-12));
  CHECK(three.survival_bounds[2].high == Approx(0.15));
  // Every draft accepted its first token, and nothing says K.
  const AcceptanceData all =
      statistics("862 690, #gen drafts = 690, #acc drafts = 690, #gen tokens = 1242, #acc tokens = 1187");
  CHECK(all.survival.front() == 1.0);
  CHECK(all.acceptance_length == Approx(1.0 + 1187.0 / 690));
  CHECK_THAT(refusal_of_llama("statistics mtp: #gen drafts = 4, #acc drafts = 4, #gen tokens = 8, #acc tokens = 3\n"),
             Contains("4 of 4 drafts accepted a token, and 3 tokens were accepted"));
}

TEST_CASE("the steps at which an adaptive depth changes are no sample, and requests beside them are read") {
  const std::string changes =
      "2.07.530.515 I spec accept: adaptive draft depth seq 0: 7 -> 6 (n_draft=7, n_accepted=4, n_cur=6)\n"
      "0.48.122.337 I spec accept: adaptive n : 1 -> 2 (seq 0, n_draft=1, n_accepted=1)\n";
  CHECK_THAT(refusal_of_llama(changes), Contains("names only the steps at which the depth of drafts changed"));
  CHECK(llama_log(changes + kLlamaServer).drafts == 87);
}

TEST_CASE("records of llama.cpp whose line ends were lost are each counted") {
  const std::string request =
      "slot print_timing: id  1 | task 0 | draft acceptance = 0.5 (  5 accepted /  10 generated), mean len = 2.00";
  CHECK(llama_log(request + " " + request + "\n").drafts == 10);
  CHECK(llama_log(request + "\n" + request + " x\n" + request).drafts == 15);
}

TEST_CASE("the servers of a router's log are told apart, by their models where it names them") {
  const std::string two =
      "0.01.000.100 I srv load: spawning server instance with name=gemma on port 41000\n"
      "[41000] 0.02 I slot print_timing: id 0 | task 0 | draft acceptance = 0.5 (  5 accepted /  10 generated), mean "
      "len "
      "= 1.50\n"
      "Sep 15 15:05:27 host llama-server[1449]: [41001] 0.03 I slot print_timing: id 0 | task 0 | draft acceptance = "
      "0.9 "
      "(  9 accepted /  10 generated), mean len = 1.90\n";
  CHECK(llama_log(two, "gemma").acceptance_length == Approx(1.5));
  CHECK(llama_log(two, "41001").acceptance_length == Approx(1.9));
  CHECK(refusal_of_llama(two) ==
        "file: has several servers that speculate ('41001', 'gemma'); expected one, chosen by its name");
  CHECK_THAT(refusal_of_llama(two, "41000"), Contains("has no server '41000' that speculates"));
}

TEST_CASE("runs of llama.cpp's examples are counted") {
  const std::string run =
      "encoded   58 tokens in    6.941 seconds, speed:    8.356 t/s\n"
      "decoded  259 tokens in  115.649 seconds, speed:    2.240 t/s\n\n"
      "n_draft   = 2\nn_predict = 259\nn_drafted = 178\nn_accept  = 170\naccept    = 95.506%\n";
  const AcceptanceData alone = llama_log(run);
  CHECK(alone.drafts == 89);
  CHECK(alone.draft_len == 2);
  CHECK(alone.draft_tokens == 178);
  CHECK(alone.acceptance_length == Approx(1.0 + 170.0 / 89));
  const AcceptanceData with_statistics =
      llama_log(run +
                "2.58.860.703 I spec common_specu: statistics        draft-mtp: "
                "#calls(b,g,a) =    1     89     89, #gen drafts =     "
                "89, #acc drafts =    87, #gen tokens =    178, #acc tokens =   170, "
                "#mean acc len = 2.91, #acc rate/pos = (0.978, "
                "0.933), dur(b,g,a) = 0.009, 7596.425, 0.512 ms\n");
  CHECK(with_statistics.drafts == 89);
  CHECK(to_three_digits(with_statistics.survival) == std::vector<double>{0.978, 0.933});
  CHECK(llama_log(run + run).drafts == 178);
}

TEST_CASE("steps that llama-server prints where it is debugged are a histogram") {
  const AcceptanceData data = llama_log(
      "slot update_slots: id  3 | task 0 | accepted 0/1 draft tokens, new n_tokens = 18\n"
      "slot update_slots: id  3 | task 0 | accepted  2/ 3 draft tokens, new n_past = 21\n"
      "slot update_slots: id  3 | task 0 | accepted 3/3 draft tokens, new n_tokens = 25\n");
  CHECK(data.drafts == 3);
  CHECK(data.accepted_tokens == 5);
  CHECK(data.draft_tokens == 7);
  CHECK(data.acceptance_length == Approx(1.0 + 5.0 / 3));
  CHECK(data.draft_len == 3);
  // A log of May 2026, with nothing behind.
  const AcceptanceData bare = llama_log(
      "1.32.991.645 I slot update_slots: id  0 | task 691 | accepted 64/64 draft tokens\n"
      "1.33.718.493 I slot update_slots: id  0 | task 691 | accepted  1/ 3 draft tokens\n");
  CHECK(bare.drafts == 2);
  CHECK(bare.acceptance_length == Approx(33.5));
}

TEST_CASE("what contradicts itself in a log of llama.cpp is named with its line") {
  CHECK_THAT(refusal_of_llama("x\ndraft acceptance = 0.5 (  11 accepted /  10 generated), mean len = 1.50\n"),
             Contains("file, line 2: 11 of 10 drafted tokens are accepted"));
  CHECK_THAT(refusal_of_llama("draft acceptance = 0.5 (  1 accepted /  10 generated), mean len = 0.50\n"),
             Contains("expected at least 1"));
  CHECK_THAT(refusal_of_llama("draft acceptance = 0.5 (  1 accepted /  10 generated), mean len = many\nx\n"),
             Contains("file, line 1: mean len is \"many\""));
  CHECK_THAT(refusal_of_llama("slot x | accepted 4/3 draft tokens, new n_past = 3\nx\n"), Contains("expected it"));
  // A log that is being written.
  CHECK(llama_log(kLlamaServer +
                  "0.1 I slot print_timing: id 1 | task 7 | draft acceptance = 0.6 (  1 accepted / generated), me")
            .drafts == 87);
}
