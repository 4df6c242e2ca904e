// draftproof model as its users meet it.
#include "engine/chat/chat_template.hpp"
#include "tests/engine/heads/models_with_heads.hpp"
#include "tests/engine/tokenizer/tiny_tokenizer.hpp"
#include "tests/support/test.hpp"

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
        "byte-level BPE (smollm), 48 tokens, <|im_end|> ends a turn", "chat template", "F32"})
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
  CHECK(document["tokens"] ==
        json::array({{{"id", 39}, {"text", "the"}}, {{"id", 36}, {"text", " "}}, {{"id", 33}, {"text", "7"}}}));
}

TEST_CASE("model shows the prompt that a conversation becomes") {
  if (!has_jinja()) return;
  const TemporaryFolder folder;
  const std::string path = tiny_file(folder);
  const std::string start = "<|im_start|>system\nbe kind<|im_end|>\n<|im_start|>";
  CHECK(json_of({"model", path})["chat_template"]["example"] ==
        start + "user\nHello<|im_end|>\n<|im_start|>assistant\n");
  write_whole_file(folder.file("chat.json"), R"({"messages": [{"role": "user", "content": "the 7"}]})");
  const json document = json_of({"model", path, "--messages", folder.file("chat.json")});
  CHECK(document["prompt"] == start + "user\nthe 7<|im_end|>\n<|im_start|>assistant\n");
  CHECK(document["tokens"].size() == 39);
  CHECK(document["tokens"][23] == json{{"id", 39}, {"text", "the"}});
  for (const auto& [text, error] : {std::pair("{}", "is no list of messages"),
                                    {R"([{"role": "user"}])", "message 0 has no text \"content\""},
                                    {R"([{"role": "user", "content": "a", "name": "b"}])", "has the field 'name'"},
                                    {R"([{"role": "tool", "content": "a"}])", "expected system, user or assistant"}}) {
    write_whole_file(folder.file("chat.json"), text);
    const ProgramResult result = run_draftproof({"model", path, "--messages", folder.file("chat.json")});
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains(error));
  }
  CHECK_THAT(run_draftproof({"model", path, "--chat-date", "2026-02-30"}).err, Contains("expected a date like"));
}

TEST_CASE("a model with an MTP layer in its own file says so, and generate drafts with it") {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.gguf");
  GgufBuilder file = gguf_with_mtp(48);
  TinyTokenizer(48).add_to(file);
  write_whole_file(path, file.bytes());
  CHECK_THAT(run_draftproof({"model", path}).out, Contains("  layers         2, width 32") &&
                                                      Contains("drafting head  mtp in the model's own files, 0.0 M"));
  const json document = json_of({"model", path});
  CHECK(document["model"]["layers"] == 2);
  CHECK(document["head_inside"]["family"] == "mtp");
  CHECK(document["head_inside"]["own_embedding"] == false);
  CHECK(json_of({"model", tiny_file(TemporaryFolder())})["head_inside"] == nullptr);

  const auto generated = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"generate", "--model",      path, "--prompt",
                                       "the 7",    "--max-tokens", "24", "--json"};
    arguments.insert(arguments.end(), {"--ignore-eos", "--policy", "fixed:3"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments);
  };
  const json automatic = generated({});
  CHECK(automatic["drafter"] == "head@8:" + path);
  CHECK(automatic["requests"][0]["acceptance_length"] >= 1.0);
  const std::vector<std::string> guidance{"--cfg-scale", "1.5", "--negative-prompt", "7 7"};
  const auto with_guidance = [&](std::vector<std::string> more) {
    more.insert(more.end(), guidance.begin(), guidance.end());
    return generated(more)["requests"][0]["tokens"];
  };
  CHECK(automatic["requests"][0]["tokens"] == generated({"--drafter", "suffix"})["requests"][0]["tokens"]);
  CHECK(with_guidance({"--drafter", "head:" + path, "--guided-drafts"}) == with_guidance({"--drafter", "suffix"}));
}

TEST_CASE("model says what a drafting head is, in text and in JSON, and whether it fits a target") {
  const TemporaryFolder folder, head;
  speculators_eagle3().write(head);
  const ProgramResult text = run_draftproof({"model", head.path()});
  CHECK(text.exit_code == 0);
  CHECK(text.err.empty());
  for (const char* const words :
       {"eagle3 in the format speculators", "behind layers 1, 2, 3 of the target, counted from 1: outputs 0, 1, 2",
        "10 of 40 tokens (25.0 %); trained for 3 drafts", "1, width 32, feed-forward 64, 2 heads of 16 over 1 KV heads",
        "embedding      its own; logits its own", "weights a pass, of one draft"})
    CHECK_THAT(text.out, Contains(words));
  CHECK_THAT(text.out, !Contains("LOSSY"));

  json document = json_of({"model", head.path()})["head"];
  CHECK(document["family"] == "eagle3");
  CHECK(document["feature_layers"] == json{1, 2, 3});
  CHECK(document["feature_outputs"] == json{0, 1, 2});
  CHECK(document["draft_vocab_share"] == 0.25);
  CHECK(document["lossy"] == false);
  CHECK(document["text_coverage"] == nullptr);
  // Q of 32 x 64, K and V of 16 x 64, O of 32 x 32, three matrices of 64 x 32, ten rows of logits.
  CHECK(document["weights_per_pass"] == 32 * 64 + 2 * 16 * 64 + 32 * 32 + 3 * 64 * 32 + 10 * 32);
  CHECK(document["tensors"].size() == 14);

  // A head for the tokens of a target, with settings that accept other drafts than the target's.
  HeadFiles lossy = speculators_eagle3();
  lossy.config["transformer_layer_config"]["vocab_size"] = 48;
  lossy.config["eagle_aux_hidden_state_layer_ids"] = {1, 2};
  lossy.config["speculators_config"]["proposal_methods"][0]["verifier_accept_k"] = 3;
  lossy.weights("embed_tokens.weight", {48, 32}).weights("fc.weight", {32, 64});
  lossy.marks("t2d", std::vector<std::uint8_t>(48, 0));
  for (std::size_t i = 0; i < 10; ++i) lossy.tensors["t2d"].data[1 + 4 * i] = 1;
  lossy.write(head);
  const std::string target = tiny_file(folder);
  write_whole_file(folder.file("text"), "the 7");  // tokens 39, 36, 33, of which 33 is drafted
  CHECK_THAT(run_draftproof({"model", head.path(), "--target", target, "--text", folder.file("text")}).out,
             Contains("33.3 % of 3 in the text") && Contains("LOSSY"));
  document = json_of({"model", head.path(), "--target", target, "--text", folder.file("text")})["head"];
  CHECK(document["text_coverage"]["tokens"] == 3);
  CHECK(document["text_coverage"]["drafted"] == 1);
  CHECK(document["lossy"] == true);
  CHECK(document["verifier_accept_k"] == 3);

  speculators_eagle3().write(head);
  check_refused({"model", head.path(), "--target", target}, {"vocabulary size 40", "has 48; expected the target"});
  check_refused({"model", head.path(), "--encode", "a"}, {"--encode", "has no tokens of its own"});
  check_refused({"model", head.path(), "--text", "t"}, {"--text", "has no use without --target"});
  check_refused({"model", target, "--target", target}, {"--target", "expected a drafting head"});
}

TEST_CASE("model refuses what is no model in one line") {
  const TemporaryFolder folder;
  write_whole_file(folder.file("m.gguf"), "no model at all, but some text");
  for (const std::string& path : {folder.file("m.gguf"), folder.file("none"), folder.path()})
    check_refused({"model", path}, {"draftproof: error: " + path});
}

}  // namespace
