#include "engine/draft/drafter_choice.hpp"

#include "engine/draft/drafter_factory.hpp"
#include "tests/engine/heads/models_with_heads.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

TEST_CASE("the drafter of a model folder is the draft model in it, else suffix decoding") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("config.json"), "{}");
  write_whole_file(folder.file("model.gguf"), "");
  CHECK(automatic_drafter(folder.file("")) == "suffix");
  CHECK(automatic_drafter(folder.file("model.gguf")) == "suffix");
  CHECK(automatic_drafter("ngram:6") == "suffix");

  write_whole_file(folder.file("draft.gguf"), "");
  const std::string file = "model:" + folder.file("draft.gguf");
  CHECK(automatic_drafter(folder.file("")) == file);
  CHECK(automatic_drafter(folder.file("model.gguf")) == file);

  // A folder of that name without a model in it is something else.
  std::filesystem::create_directory(folder.file("draft"));
  CHECK(automatic_drafter(folder.file("model.gguf")) == file);
  write_whole_file(folder.file("draft/config.json"), "{}");
  CHECK(automatic_drafter(folder.file("model.gguf")) == "model:" + folder.file("draft"));
  CHECK(parse_drafter(automatic_drafter(folder.file("")), "--drafter").kind == DrafterKind::model);
}

TEST_CASE("the drafter of a model with an MTP layer in its own files is that layer, unless a head lies beside it") {
  const TemporaryFolder folder;
  const std::string file = folder.file("model.gguf");
  write_whole_file(file, gguf_with_mtp().bytes());
  write_whole_file(folder.file("draft.gguf"), "");
  CHECK(automatic_drafter(file) == "head:" + file);
  write_whole_file(folder.file("head.gguf"), "");
  CHECK(automatic_drafter(file) == "head:" + folder.file("head.gguf"));

  for (const bool is_qwen : {false, true}) {
    const TemporaryFolder model;
    write_folder_with_mtp(model, is_qwen);
    CHECK(automatic_drafter(model.path()) == "head:" + model.path());
  }
}

TEST_CASE("a head of wide weights is packed to 8 bits unless its file's types are asked for, and its name says so") {
  const TemporaryFolder folder;
  const std::string wide = folder.file("wide.gguf");
  write_whole_file(wide, gguf_with_mtp().bytes());
  const auto packed = [](const std::string& text) { return with_packed_head(parse_drafter(text, "--drafter")); };
  CHECK(packed("head:" + wide).number == 8);
  CHECK(packed("head:" + wide).text == "head@8:" + wide);
  CHECK(packed("suffix+head:" + wide).text == "suffix+head@8:" + wide);
  CHECK(packed("head@4:" + wide).number == 4);
  CHECK(packed("head@file:" + wide).number == 0);
  CHECK(packed("head@file:" + wide).text == "head@file:" + wide);
  CHECK(packed("suffix").text == "suffix");
  const std::string narrow = DRAFTPROOF_SOURCE_DIR "/experiments/heads/smollm2-eagle3/eagle3.gguf";
  CHECK(packed("head:" + narrow).number == 0);
}

TEST_CASE("a drafter in front of another is named before a plus and stands before one other alone") {
  const DrafterChoice choice = parse_drafter("suffix+head@8:some/head", "--drafter");
  CHECK(choice.first == DrafterKind::suffix);
  CHECK(choice.kind == DrafterKind::head);
  CHECK(choice.path == "some/head");
  CHECK(choice.has_probabilities());
  CHECK(parse_drafter("grammar+suffix", "--drafter").first == DrafterKind::grammar);
  for (const std::string name : {"suffix+suffix", "suffix+grammar", "grammar+suffix+head:x", "suffix+none"})
    CHECK_THROWS_WITH(parse_drafter(name, "--drafter"), Contains("one other drafter behind +"));
}

}  // namespace
}  // namespace draftproof::testing
