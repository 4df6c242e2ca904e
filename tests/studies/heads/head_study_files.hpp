// A tiny model with a tokenizer, heads for it in files, and a few prompts of two kinds of work.
#pragma once

#include "studies/heads/heads.hpp"
#include "tests/engine/heads/head_folders.hpp"
#include "tests/engine/tokenizer/tiny_tokenizer.hpp"
#include "tests/engine/weights/tiny_llama.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

struct HeadStudyFiles {
  TemporaryFolder folder;
  std::string model = folder.file("tiny.gguf");
  std::string prompts = folder.file("prompts.jsonl");
  std::string eagle3 = folder.file("eagle3");
  std::string dspark = folder.file("dspark");

  HeadStudyFiles() {
    TinyLlama tiny;
    tiny.layers = 3;
    tiny.vocab = 48;
    tiny.heads = 2;
    tiny.kv_heads = 1;
    tiny.head_size = 16;
    GgufBuilder file = tiny.gguf();
    TinyTokenizer(48).add_to(file);
    write_whole_file(model, file.bytes());
    write_whole_file(prompts,
                     "{\"work\": \"cats\", \"prompt\": \"the cat sat on the mat\"}\n"
                     "{\"work\": \"dogs\", \"prompt\": \"a dog\"}\n"
                     "{\"work\": \"cats\", \"prompt\": \"the other cat\"}\n");
    HeadFiles of_eagle3 = speculators_eagle3();
    write(of_eagle3, eagle3);
    HeadFiles of_dspark = speculators_dspark();
    of_dspark.config["aux_hidden_state_layer_ids"] = {1, 3};
    of_dspark.weights("markov_head.markov_w1.weight", {48, 32});
    write(of_dspark, dspark);
  }

  HeadsSettings settings(const std::string& head) const {
    HeadsSettings settings;
    settings.model = model;
    settings.head = head;
    settings.prompts = prompts;
    settings.max_tokens = 60;
    settings.seed = 8;           // whose texts are long
    settings.temperature = 1.0;  // at which drafts of random heads are accepted at times
    return settings;
  }

 private:
  // For a target with 48 tokens, whose embeddings it shares.
  static void write(HeadFiles& head, const std::string& path) {
    head.config["transformer_layer_config"]["vocab_size"] = 48;
    head.tensors.erase("embed_tokens.weight");
    head.tensors.erase("t2d");
    std::filesystem::create_directory(path);
    head.write(path);
  }
};

}  // namespace draftproof::testing
