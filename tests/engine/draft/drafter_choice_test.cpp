#include "engine/draft/drafter_choice.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/reference/trace/temporary_folder.hpp"

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

}  // namespace
}  // namespace draftproof::testing
