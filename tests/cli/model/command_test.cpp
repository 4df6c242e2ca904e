// draftproof model as its users meet it.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/engine/tokenizer/tiny_tokenizer.hpp"
#include "tests/engine/weights/tiny_llama.hpp"
#include "tests/reference/trace/temporary_folder.hpp"
#include "tests/support/run_verb.hpp"

using namespace draftproof;
using namespace draftproof::testing;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

std::string tiny_file(const TemporaryFolder& folder) {
  TinyLlama tiny;
  tiny.vocab = 48;
  GgufBuilder file = tiny.gguf();
  TinyTokenizer(48).add_to(file);
  write_whole_file(folder.file("m.gguf"), file.bytes());
  return folder.file("m.gguf");
}

TEST_CASE("model says what is in a file, in text and in JSON") {
  const TemporaryFolder folder;
  const std::string path = tiny_file(folder);
  const ProgramResult text = run_draftproof({"model", path});
  CHECK(text.exit_code == 0);
  CHECK(text.err.empty());
  for (const char* const words :
       {"llama, head tied to the embedding", "2, width 32, feed-forward 64, 4 heads of 8 over 2",
        "byte-level BPE (smollm), 48 tokens, <|im_end|> ends a turn", "ChatML", "F32"})
    CHECK_THAT(text.out, Contains(words));

  const json document = json_of({"model", path, "--encode", "the 7"});
  CHECK(document["model"]["architecture"] == "llama");
  CHECK(document["model"]["layers"] == 2);
  CHECK(document["model"]["rope_pairing"] == "adjacent");
  // 48 x 32 of the embedding, 32 of the last norm, and in each of 2 layers two norms, Q and O of 32 x 32, K and V of
  // 16 x 32, and three matrices of 64 x 32.
  const int parameters = 48 * 32 + 32 + 2 * (2 * 32 + 2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32);
  CHECK(document["model"]["parameters"] == parameters);
  CHECK(document["model"]["weight_bytes"] == 4 * parameters);
  CHECK(document["model"]["kinds"] == json::array({{{"kind", "F32"}, {"tensors", 20}, {"bytes", 4 * parameters}}}));
  CHECK(document["tokenizer"]["end_tokens"] == json::array({47}));
  CHECK(document["chat_template"] == json{{"form", "ChatML"}, {"default_system", "be kind"}});
  CHECK(document["tokens"] ==
        json::array({{{"id", 39}, {"text", "the"}}, {{"id", 36}, {"text", " "}}, {{"id", 33}, {"text", "7"}}}));
}

TEST_CASE("model refuses what is no model in one line") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("m.gguf"), "no model at all, but some text");
  for (const std::string& path : {folder.file("m.gguf"), folder.file("none"), folder.path()})
    check_refused({"model", path}, {"draftproof: error: " + path});
}

}  // namespace
