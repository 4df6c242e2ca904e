// draftproof features as its users meet it, on a tiny transformer with random weights: the shards against the model
// itself.
#include <bit>

#include "base/archives/safetensors.hpp"
#include "base/dtype.hpp"
#include "engine/model/text_model.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "tests/engine/tokenizer/tiny_tokenizer.hpp"
#include "tests/engine/weights/tiny_llama.hpp"
#include "tests/support/forward_alone.hpp"
#include "tests/support/test.hpp"

namespace {

using Arguments = std::vector<std::string>;

struct Tiny {
  TemporaryFolder folder;
  std::string model = folder.file("tiny.gguf");
  std::string prompts = folder.file("prompts.jsonl");
  std::string out = folder.file("features");

  Tiny() {
    TinyLlama tiny;
    tiny.layers = 3;
    tiny.vocab = 48;
    tiny.heads = 2;
    tiny.kv_heads = 1;
    tiny.head_size = 16;
    GgufBuilder file = tiny.gguf();
    TinyTokenizer(48).add_to(file);
    write_whole_file(model, file.bytes());
    write_whole_file(
        prompts,
        "{\"prompt\": \"the cat\"}\n{\"prompt\": \"a dog\", \"temperature\": 0}\n"
        "{\"prompt\": \"it is the third of all\", \"max_tokens\": 3}\n{\"prompt\": \"is it\", \"chat\": true}\n"
        "{\"prompt\": \"and one more\"}\n");
  }

  Arguments arguments(const Arguments& more = {}) const {
    Arguments all{"features", "--model",      model, "--prompts",           prompts, "--out",  out, "--layers",
                  "1,3",      "--max-tokens", "12",  "--prompts-per-shard", "2",     "--seed", "7"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string shard(int index) const { return out + "/shard-0000" + std::to_string(index) + ".safetensors"; }
};

TEST_CASE("features are those of a pass over each text alone, and its tokens those that generate draws") {
  const Tiny tiny;
  const auto document = json_of(tiny.arguments());
  REQUIRE(document.at("shards").size() == 3);
  CHECK(document.at("texts") == 5);
  const auto generated = json_of({"generate", "--model", tiny.model, "--prompts", tiny.prompts, "--drafter", "none",
                                  "--max-tokens", "12", "--temperature", "0.7", "--top-p", "0.95", "--seed", "7"});
  const TextModel text_model = open_text_model("tiny", tiny.model, {false, 1}, "--model");
  const std::vector<std::int32_t> layers{1, 3};
  std::int64_t total = 0;
  std::size_t texts = 0;
  for (int index = 0; index < 3; ++index) {
    const SafetensorsFile file = SafetensorsFile::open(tiny.shard(index));
    const TensorView tokens_view = file.tensor("tokens");
    const TensorView features_view = file.tensor("features");
    const TensorView ends = file.tensor("cu_tokens");
    const TensorView prompt_len = file.tensor("prompt_len");
    const auto tokens = tokens_view.as<std::int32_t>();
    const auto features = features_view.as<Float16>();
    REQUIRE(features_view.shape == std::vector<std::uint64_t>{tokens.size(), 2, 32});
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < ends.as<std::int64_t>().size(); ++i, ++texts) {
      const std::int64_t end = ends.as<std::int64_t>()[i];
      const auto text = tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
      // The last token drawn has no features, and is not there.
      const auto drawn = generated.at("requests")[texts].at("tokens").get<std::vector<Token>>();
      const auto prompt = static_cast<std::size_t>(prompt_len.as<std::int32_t>()[i]);
      REQUIRE(text.size() == prompt + drawn.size() - 1);
      CHECK(std::equal(drawn.begin(), drawn.end() - 1, text.begin() + static_cast<std::ptrdiff_t>(prompt)));
      const std::vector<float> alone = forward_alone(*text_model.model, text, {}, layers).out.hidden;
      REQUIRE(alone.size() == text.size() * 64);
      bool equal = true;
      for (std::size_t v = 0; v < alone.size(); ++v)
        equal = equal && f32_to_f16(alone[v]) == features[static_cast<std::size_t>(begin) * 64 + v].bits;
      CHECK(equal);
      begin = end;
    }
    total += begin;
  }
  CHECK(texts == 5);
  CHECK(document.at("tokens") == total);
}

TEST_CASE("features go on behind the shards that are there, and have the same bytes with any batch and threads") {
  const Tiny tiny;
  json_of(tiny.arguments());
  std::vector<std::string> bytes;
  for (int i = 0; i < 3; ++i) bytes.push_back(read_whole_file(tiny.shard(i)));
  std::filesystem::remove(tiny.shard(1));
  const auto document = json_of(tiny.arguments({"--batch", "1", "--threads", "2"}));
  for (int i = 0; i < 3; ++i) {
    CHECK(document.at("shards")[static_cast<std::size_t>(i)].at("found") == (i != 1));
    CHECK(read_whole_file(tiny.shard(i)) == bytes[static_cast<std::size_t>(i)]);
  }
  // As many tokens as the first shard has are reached by it.
  const auto few = json_of(tiny.arguments({"--tokens", "1"}));
  CHECK(few.at("shards").size() == 1);
  CHECK(few.at("generated_tokens") == 0);
}

TEST_CASE("features refuse other options for shards that are there, and what a model has not") {
  const Tiny tiny;
  json_of(tiny.arguments());
  check_refused(tiny.arguments({"--temperature", "0.9"}), {"shard-00000.safetensors", "other options"});
  check_refused(tiny.arguments({"--activations", "f32"}), {"shard-00000.safetensors", "another model"});
  write_whole_file(tiny.shard(0), "no safetensors file");
  check_refused(tiny.arguments(), {"shard-00000.safetensors"});
  const auto with_layers = [&](const std::string& layers) {
    return Arguments{"features", "--model", tiny.model, "--prompts", tiny.prompts, "--out", tiny.folder.file("x"),
                     "--layers", layers};
  };
  check_refused(with_layers("1,4"), {"--layers", "has 4", "1 to 3"});
  check_refused(with_layers("2,1"), {"--layers", "ascending"});
  Arguments without_layers = with_layers("1");
  without_layers.resize(without_layers.size() - 2);
  check_refused(without_layers, {"--layers", "is not given", "3 layers"});
  write_whole_file(tiny.folder.file("corpus"), "the cat and the dog and the cat and the dog");
  check_refused({"features", "--model", "ngram:3:" + tiny.folder.file("corpus"), "--prompts", tiny.prompts, "--out",
                 tiny.folder.file("x")},
                {"--model", "has no layers"});
  write_whole_file(tiny.prompts, "{\"prompt\": \"\", \"work\": 1}\n");
  check_refused(with_layers("1"), {"prompts.jsonl, line 1", "work"});
}

}  // namespace
