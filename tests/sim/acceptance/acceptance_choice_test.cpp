#include "sim/acceptance/acceptance_choice.hpp"

#include <catch2/catch.hpp>

#include "sim/acceptance/beta_mixture.hpp"
#include "sim/acceptance/rates.hpp"
#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/error_of.hpp"

using namespace draftproof;

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
  const testing::TemporaryFolder folder;
  const std::string path = folder.file("replay.jsonl");
  testing::write_whole_file(path, "{\"acc_eagle\": {\"acc_len\": [1, 3]}, \"acc_ngram\": {\"acc_len\": [1, 1]}}\n");
  CHECK(survival_of_text(("replay:" + path).c_str(), 1) == std::vector<double>{0.5});
  CHECK(survival_of_text(("replay:drafter=ngram,file=" + path).c_str(), 1) == std::vector<double>{0.0});
  CHECK_THROWS_WITH(make_acceptance("replay:" + folder.file("none"), 0, "x"), Catch::Contains(folder.file("none")));
}

TEST_CASE("what is not an acceptance model is refused in one sentence") {
  for (const auto& [text, error] :
       {std::pair(
            "konstant:0.8",
            "the acceptance model is 'konstant'; expected one of constant, positions, unconditional, ranks, beta, "
            "markov, entropy, replay, verifier; did you mean 'constant'?"),
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
        {"constant:0.8+context:half=0", "half is '0'; expected a whole number in [1, 268435456]"}})
    CHECK(refusal(text) == std::string("--acceptance: ") + error);
  for (const auto& [text, error] :
       {std::pair("beta:mean=0.5,spread=1e-12", "expected a standard deviation in [5e-07, 0.49]"),
        {"ranks:0.8,0.4", "sum to 1.2"},
        {"verifier:tree=2x2,by=block", "takes a chain"}})
    CHECK_THAT(refusal(text), Catch::Contains(error));
}
