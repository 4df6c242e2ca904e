#include "sim/acceptance/acceptance_choice.hpp"

#include "sim/acceptance/beta_mixture.hpp"
#include "sim/acceptance/rates.hpp"
#include "tests/support/test.hpp"

namespace {

std::vector<double> survival_of_text(const char* text, std::int32_t depth, std::int32_t context_len = 0) {
  return make_acceptance(text, 0, "--acceptance")->survival(depth, depth, context_len);
}

std::string refusal(const char* text) {
  return error_of(ErrorKind::usage, [&] { make_acceptance(text, 0, "--acceptance"); });
}

}  // namespace

TEST_CASE("acceptance models are made from their text") {
  CHECK(survival_of_text("constant:0.8", 2) == std::vector<double>{0.8, 0.8 * 0.8});
  CHECK(survival_of_text("positions:0.8,0.5", 2) == std::vector<double>{0.8, 0.4});
  CHECK(survival_of_text("unconditional:0.8,0.5", 2)[1] == Approx(0.5));
  CHECK(survival_of_text("beta:mean=0.6,spread=0.2", 3) == beta_survival(beta_of(0.6, 0.2, ""), 1.0, 3));
  CHECK(survival_of_text("beta", 1)[0] == Approx(0.7));
  CHECK(survival_of_text("markov:good=1,bad=1", 3) == std::vector<double>{1.0, 1.0, 1.0});
  CHECK(survival_of_text("entropy:mean=0", 1) == std::vector<double>{1.0});
  CHECK(make_acceptance("ranks:0.6,0.2", 0, "")->survival(2, 1) == std::vector<double>{0.8});
  CHECK(survival_of_text("verifier:vocab=16,noise=0,samples=100,by=block", 3) == std::vector<double>{1.0, 1.0, 1.0});
  CHECK(survival_of_text("verifier:samples=100,drafts=1,by=synthetic:rate=1", 1) == std::vector<double>{1.0});
  const auto half = survival_of_text("constant:0.8+context:trained=100,half=64", 2, 164);
  CHECK(half[0] == Approx(0.4));
  CHECK(survival_of_text("constant:0.8+context", 1, 2048) == std::vector<double>{0.8});
}

TEST_CASE("a replay is named by its file, and by its drafter where there are several") {
  const TemporaryFolder folder;
  const std::string path = folder.file("replay.jsonl");
  write_whole_file(path, "{\"acc_eagle\": {\"acc_len\": [1, 3]}, \"acc_ngram\": {\"acc_len\": [1, 1]}}\n");
  CHECK(survival_of_text(("replay:" + path).c_str(), 1) == std::vector<double>{0.5});
  CHECK(survival_of_text(("replay:drafter=ngram,file=" + path).c_str(), 1) == std::vector<double>{0.0});
  CHECK_THROWS_WITH(make_acceptance("replay:" + folder.file("none"), 0, "x"), Contains(folder.file("none")));
}

// Lengths of JetSpec's README (github:hao-ai-lab/JetSpec): trees of 127 drafts, 20 deep.
TEST_CASE("published rates of a causal parallel head give the lengths of its trees") {
  const std::pair<const char*, double> lengths[] = {
      {"mathematics", (9.56 + 7.94 + 8.79) / 3.0}, {"code", (6.92 + 7.61 + 7.66) / 3.0}, {"chat", 4.88}};
  for (const auto& [domain, length] : lengths) {
    const auto model = make_acceptance(std::string("published:drafter=JetSpec,domain=") + domain, 0, "test");
    CHECK(acceptance_length_of(model->survival(127, 20)) == Approx(length).margin(0.01));
  }
}

// Acceptance lengths of arXiv:2607.05147, Table 1, Qwen3-4B; slot 1 and shape as the paper gives them.
TEST_CASE("published rates by slot give the lengths of their table, and rise, fall and stay level as published") {
  struct Published {
    const char* text;
    std::vector<double> lengths;  // of three benchmarks
  };
  for (const Published& p : {Published{"published:drafter=EAGLE-3,domain=mathematics", {5.14, 4.62, 3.92}},
                             Published{"published:drafter=EAGLE-3,domain=code", {3.69, 4.16, 3.77}},
                             Published{"published:EAGLE-3", {2.39, 2.26, 2.55}},
                             Published{"published:drafter=DFlash,domain=mathematics", {5.40, 4.85, 4.15}},
                             Published{"published:drafter=DFlash,domain=code", {4.40, 4.74, 4.18}},
                             Published{"published:DFlash", {3.07, 2.96, 2.83}},
                             Published{"published:drafter=DSpark,domain=mathematics", {6.11, 5.70, 4.89}},
                             Published{"published:drafter=DSpark,domain=code", {5.13, 5.38, 4.86}},
                             Published{"published:drafter=DSpark,domain=chat", {3.64, 3.54, 3.29}}}) {
    INFO(p.text);
    const double mean = (p.lengths[0] + p.lengths[1] + p.lengths[2]) / 3.0;
    CHECK(acceptance_length_of(survival_of_text(p.text, 7)) == Approx(mean).margin(0.005));
    // Every row of the table, by its length alone.
    const std::string named = std::string(p.text).find('=') == std::string::npos
                                  ? "published:drafter=" + std::string(p.text).substr(10)
                                  : p.text;
    for (const double length : p.lengths)
      CHECK(acceptance_length_of(survival_of_text((named + ",length=" + std::to_string(length)).c_str(), 7)) ==
            Approx(length).margin(1e-4));
  }
  const auto conditional = [](const char* text) { return conditional_of(survival_of_text(text, 7), "test"); };
  const std::vector<double> rising = conditional("published:EAGLE-3");
  CHECK(rising.front() == Approx(0.53));
  CHECK(rising.back() == Approx(0.74));
  CHECK(std::ranges::is_sorted(rising));
  CHECK(conditional("published:drafter=EAGLE-3,domain=mathematics").front() == Approx(0.81));
  const std::vector<double> falling = conditional("published:drafter=DFlash,domain=code");
  CHECK(falling.front() == Approx(0.87));
  CHECK(falling.back() == Approx(0.78));
  CHECK(std::ranges::is_sorted(falling, std::greater()));
  CHECK(conditional("published:DFlash").front() == Approx(0.72));
  const std::vector<double> level = conditional("published:DSpark");
  CHECK(level.back() == Approx(level.front()));
}

TEST_CASE("beyond its block a published head falls as its training says, EAGLE-3 does not") {
  const auto length = [](const char* text, std::int32_t k) { return acceptance_length_of(survival_of_text(text, k)); };
  CHECK(length("published:DSpark", 8) < length("published:DSpark", 7));
  CHECK(length("published:EAGLE-3", 8) > length("published:EAGLE-3", 7));
  CHECK(length("published:DFlash", 15) > length("published:DFlash", 14));
  CHECK(length("published:DFlash", 16) < length("published:DFlash", 15));
  CHECK(length("constant:0.9+block:trained=3,factor=0.8", 4) < length("constant:0.9", 3));
  CHECK(length("constant:0.9+block", 7) == length("constant:0.9", 7));
}

TEST_CASE("confidences and decays stand behind any model") {
  for (const char* text : {"constant:0.8+confidence", "published:DSpark+confidence:explained=0.5,error=0.1",
                           "beta+block+confidence", "constant:0.8+confidence:explained=1+context:trained=10,half=20"})
    CHECK(make_acceptance(text, 1, "test")->gives_confidences());
  CHECK(!make_acceptance("constant:0.8+context", 1, "test")->gives_confidences());
  CHECK(survival_of_text("constant:0.8+confidence+context:trained=100,half=64", 1, 164)[0] == Approx(0.4));
}

TEST_CASE("what is not an acceptance model is refused in one sentence") {
  for (const auto& [text, error] :
       {std::pair(
            "konstant:0.8",
            "the acceptance model is 'konstant'; expected one of constant, positions, unconditional, ranks, beta, "
            "markov, entropy, replay, verifier, published; did you mean 'constant'?"),
        {"constant", "acceptance model constant has no parameters; expected constant:RATE"},
        {"constant:1.5", "rate 1 is '1.5'; expected a number in [0, 1]"},
        {"constant:0.8,0.7", "constant has 2 rates; expected one (several are positions: or unconditional:)"},
        {"positions:0.8,", "rate 2 is ''; expected a number in [0, 1]"},
        {"unconditional:0.5,0.6",
         "unconditional rate 2 is above the one before it; expected rates that never rise (conditional ones are "
         "positions:)"},
        {"beta:mean=0.7,mean=0.6", "mean is given twice; expected once"},
        {"beta:mean=0.5,spread=0.499",
         "the spread is 0.499; with a mean of 0.5 expected a standard deviation in [5e-07, 0.49], or constant:0.5 for "
         "none"},
        {"beta:rate=0.7", "acceptance model beta has no parameter 'rate'; expected one of mean, spread, decay"},
        {"beta:decay=2", "decay is '2'; expected a number in [0.01, 1]"},
        {"markov:good=0.5,", "ends with a comma; expected a parameter behind it"},
        {"constant:0.8+context:half=0", "half is '0'; expected a whole number in [1, 268435456]"},
        {"constant:0.8+block:trained=0", "trained is '0'; expected a whole number in [1, 64]"},
        {"constant:0.8+block:factor=1.1", "factor is '1.1'; expected a number in [0, 1]"},
        {"constant:0.8+confidence:explained=2", "explained is '2'; expected a number in [0, 1]"},
        {"constant:0.8+context+confidence",
         "has +confidence behind +context; expected it before, since confidences fall with them"},
        {"constant:0.8+confidence+confidence", "has +confidence twice; expected it once"},
        {"published", "acceptance model published has no parameters; expected published:DRAFTER"},
        {"published:Medusa",
         "the acceptance by slot of 'Medusa' is not published; expected one of EAGLE-3, DFlash, DSpark, JetSpec"},
        {"published:drafter=DSpark,domain=poems", "domain is 'poems'; expected one of mathematics, code, chat"},
        {"published:drafter=DSpark,length=8",
         "length is 8; expected a number in (1, 8), the tokens of a step with 7 drafts"}})
    CHECK(refusal(text) == std::string("--acceptance: ") + error);
  for (const auto& [text, error] :
       {std::pair("beta:mean=0.5,spread=1e-12", "expected a standard deviation in [5e-07, 0.49]"),
        {"ranks:0.8,0.4", "sum to 1.2"},
        {"verifier:tree=2x2,by=block", "takes a chain"}})
    CHECK_THAT(refusal(text), Contains(error));
}
