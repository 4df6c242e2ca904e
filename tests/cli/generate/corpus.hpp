// draftproof generate with an n-gram model of a text made here, which needs no download.
#pragma once

#include "tests/support/test.hpp"

namespace draftproof::testing {

using Arguments = std::vector<std::string>;

struct Corpus {
  TemporaryFolder folder;
  std::string model;
  Corpus() {
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += "the draft of the target is read by the verifier number " + std::to_string(i % 7) + ".\n";
    write_whole_file(folder.file("corpus"), text);
    model = "ngram:6:" + folder.file("corpus");
  }
};

inline Arguments arguments_of(const Corpus& corpus, Arguments more) {
  more.insert(more.begin(), {"generate", "--model", corpus.model});
  return more;
}

inline ordered_json generate_json(const Corpus& corpus, Arguments more, int exit_code = 0) {
  Arguments arguments = arguments_of(corpus, std::move(more));
  arguments.emplace_back("--json");
  const ProgramResult result = run_draftproof(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == exit_code);
  return ordered_json::parse(result.out);
}

inline void check_error(const Corpus& corpus, const Arguments& more, const std::string& words) {
  const ProgramResult result = run_draftproof(arguments_of(corpus, more));
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK_THAT(result.err, Contains(words));
}

inline std::string write_prompts(const Corpus& corpus, const std::string& text,
                                 const std::string& name = "prompts.jsonl") {
  const std::string path = corpus.folder.file(name);
  write_whole_file(path, text);
  return path;
}

}  // namespace draftproof::testing
