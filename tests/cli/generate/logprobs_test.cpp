// Log-probabilities of draftproof generate, and of the trace that it writes.
#include "base/archives/safetensors.hpp"
#include "base/token.hpp"
#include "tests/cli/generate/corpus.hpp"

namespace {

TEST_CASE("given ids are recorded in the trace, whose replay has the log-probabilities that generate lists") {
  const Corpus corpus;
  const std::string trace = corpus.folder.file("steps.safetensors");
  const ordered_json request = generate_json(corpus, {"--prompt", "the draft ", "--max-tokens", "40", "--temperature",
                                                      "1", "--top-k", "3", "--drafter", "ngram:3", "--trace", trace,
                                                      "--logprobs", "0", "--logprob-token-ids", "120,101"})
                                   .at("requests")[0];
  const std::string result = corpus.folder.file("result.safetensors");
  REQUIRE(run_draftproof({"verify", trace, "--out", result}).exit_code == 0);
  const SafetensorsFile file = SafetensorsFile::open(result);
  const auto tokens = file.tensor("output_tokens").as<Token>();
  const auto listed = file.tensor("raw_token_id_logprob").as<float>();
  const std::size_t width = file.tensor("output_tokens").shape[1];
  std::size_t i = 0;
  std::size_t compared = 0;
  for (std::size_t place = 0; place < tokens.size() && i < request.at("tokens").size(); ++place) {
    if (tokens[place] == kPaddingToken) continue;
    for (std::size_t j = 0; j < 2; ++j)
      for (const ordered_json& entry : request.at("logprobs")[i])
        if (entry.at("token") == (j == 0 ? 120 : 101)) {
          CHECK(listed[(2 * (place / width) + j) * width + place % width] == entry.at("logprob").get<float>());
          ++compared;
        }
    ++i;
  }
  CHECK(compared == 80);
  CHECK(run_draftproof({"verify", trace, "--compare", result}).exit_code == 0);
  // Without lists in the document, too; without a use, refused.
  generate_json(corpus, {"--prompt", "the draft ", "--max-tokens", "9", "--drafter", "ngram:3", "--trace", trace,
                         "--logprob-token-ids", "120"});
  CHECK(SafetensorsFile::open(trace).contains("logprob_token_ids"));
  check_error(corpus, {"--prompt", "x", "--logprob-token-ids", "120"},
              "--logprob-token-ids: has no use without --logprobs, --prompt-logprobs or --trace");
}

TEST_CASE("log-probabilities of a token are those of its own row, however many drafts were accepted before it") {
  const Corpus corpus;
  const auto request = [&](Arguments more) {
    more.insert(more.end(), {"--prompt", "the draft of ", "--max-tokens", "60", "--logprobs", "3"});
    return generate_json(corpus, more).at("requests")[0];
  };
  const ordered_json plain = request({"--drafter", "none"});
  REQUIRE(plain.at("logprobs").size() == 60);
  for (const Arguments& drafter : std::vector<Arguments>{
           {"--drafter", "prompt_lookup", "--policy", "likely"},
           {"--drafter", "ngram:3", "--policy", "fixed:5"},
           {"--drafter", "ngram:3", "--tree", "2x2x1", "--verifier", "target_only", "--policy", "fixed:14"}}) {
    INFO(drafter.back());
    const ordered_json found = request(drafter);
    CHECK(found.at("num_steps") < 40);
    CHECK(found.at("tokens") == plain.at("tokens"));
    CHECK(found.at("logprobs") == plain.at("logprobs"));
  }
}

}  // namespace
