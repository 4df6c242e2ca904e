// A model as a whole: weights, tokenizer and chat template of one file or folder, which must agree.
#include "engine/model/model_files.hpp"

#include "engine/model/text_model.hpp"
#include "engine/weights/json_fields.hpp"
#include "tests/engine/tokenizer/tiny_tokenizer.hpp"
#include "tests/engine/weights/tiny_llama.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::uint32_t kVocab = 48;

TinyLlama tiny_llama() {
  TinyLlama tiny;
  tiny.vocab = kVocab;
  return tiny;
}

void write_gguf(const std::string& path, std::size_t tokens) {
  GgufBuilder file = tiny_llama().gguf();
  TinyTokenizer(tokens).add_to(file);
  write_whole_file(path, file.bytes());
}

void write_folder(const TemporaryFolder& folder, std::size_t tokens) {
  tiny_llama().write_folder(folder);
  write_whole_file(folder.file("tokenizer.json"), TinyTokenizer(tokens).json());
}

std::string failure_of(const std::string& path) {
  return error_of(ErrorKind::input, [&] { open_model_files(path); });
}

TEST_CASE("a GGUF file and a folder give the same model, tokenizer and prompt") {
  const TemporaryFolder folder;
  write_gguf(folder.file("m.gguf"), kVocab);
  write_folder(folder, kVocab);
  write_whole_file(folder.file("tokenizer_config.json"),
                   nlohmann::json{{"chat_template", TinyTokenizer::kChat}}.dump());
  const ModelFiles of_gguf = open_model_files(folder.file("m.gguf"));
  const ModelFiles of_folder = open_model_files(folder.path());
  CHECK(of_gguf.weights.description.vocab_size == of_gguf.tokenizer->vocab_size());
  CHECK(of_gguf.tokenizer->encode("the 42 th") == std::vector<Token>{39, 36, 30, 28, 36, 38});
  CHECK(of_gguf.chat_context.end == "<|im_end|>");
  if (!has_jinja()) return;
  const std::vector<ChatMessage> messages{{"user", "the 42 th\n"}};
  const std::vector<Token> prompt = of_gguf.chat().encode(*of_gguf.tokenizer, messages);
  CHECK(prompt == of_folder.chat().encode(*of_folder.tokenizer, messages));
  // <|im_start|> s y s t e m \n b e ...: letter by letter but for "the" and "th".
  CHECK(std::vector<Token>(prompt.begin(), prompt.begin() + 10) ==
        std::vector<Token>{46, 18, 24, 18, 19, 4, 12, 37, 1, 4});
}

TEST_CASE("the chat template of a folder may be a file, a text or one of a list") {
  const TemporaryFolder folder;
  write_folder(folder, kVocab);
  CHECK_THAT(error_of(ErrorKind::input, [&] { open_model_files(folder.path()).chat(); }),
             Contains("has no chat template"));
  write_whole_file(folder.file("tokenizer_config.json"),
                   R"({"chat_template": [{"name": "tools", "template": "x"},
                                         {"name": "default", "template": "{{ messages }}"}]})");
  CHECK(open_model_files(folder.path()).chat_template == "{{ messages }}");
  write_whole_file(folder.file("chat_template.jinja"), "own");
  CHECK(open_model_files(folder.path()).chat_template == "own");
}

TEST_CASE("a vocabulary that disagrees with the tokenizer is refused") {
  const TemporaryFolder folder;
  write_gguf(folder.file("m.gguf"), kVocab - 1);
  CHECK_THAT(failure_of(folder.file("m.gguf")), Contains("m.gguf: metadata 'tokenizer.ggml.tokens' has 47 elements; "
                                                         "expected one for each of the 48 rows of the embedding"));
  write_folder(folder, kVocab + 1);
  CHECK(failure_of(folder.path()) == folder.file("tokenizer.json") +
                                         ": the token '<|im_end|>' has the id 48, but the embedding has 48 rows; "
                                         "expected ids below that");
  write_folder(folder, kVocab - 2);  // rows of padding
  CHECK(open_model_files(folder.path()).tokenizer->vocab_size() == 46);
}

TEST_CASE("a tokenizer_config.json whose fields are of another type is refused by the field") {
  const TemporaryFolder folder;
  write_folder(folder, kVocab);
  const auto failure = [&](const std::string& config) {
    write_whole_file(folder.file("tokenizer_config.json"), config);
    return failure_of(folder.path());
  };
  const std::string where = folder.file("tokenizer_config.json") + ": ";
  for (const auto& [chat_template, error] :
       {std::pair("3", "'chat_template' is of type number; expected a text or an array of named ones"),
        {R"(["x"])", "'chat_template' 0 is no object"},
        {R"([{"template": "x"}])", "'chat_template' 0: 'name' is missing; expected a string"},
        {R"([{"name": "default", "template": {}}])",
         "'chat_template' 0: 'template' is of type object; expected a string"}})
    CHECK(failure(std::string(R"({"chat_template": )") + chat_template + "}") == where + error);
  for (const std::string key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    CHECK(failure("{\"" + key + "\": 2}") ==
          where + "'" + key + "' is of type number; expected a text or an object with 'content'");
    CHECK(failure("{\"" + key + "\": {\"content\": []}}") ==
          where + "'" + key + "': 'content' is of type array; expected a string");
  }
  // A template of its own does not hide what is wrong beside it.
  write_whole_file(folder.file("chat_template.jinja"), "own");
  CHECK(failure("[]") == where + "is not a JSON object");
  write_whole_file(
      folder.file("tokenizer_config.json"),
      R"({"bos_token": null, "eos_token": {"content": "<|im_end|>"}, "pad_token": "a", "chat_template": ""})");
  CHECK(open_model_files(folder.path()).chat_template == "own");
  CHECK(open_model_files(folder.path()).chat_context.start == std::nullopt);
  CHECK(open_model_files(folder.path()).chat_context.end == "<|im_end|>");
}

TEST_CASE("what is no model is refused with its name") {
  const TemporaryFolder folder;
  CHECK_THAT(failure_of(folder.file("none.gguf")), Contains("none.gguf: cannot be opened"));
  CHECK_THAT(failure_of(folder.path()), Contains("config.json: cannot be opened"));
  write_whole_file(folder.file("m.gguf"), "GGUF");
  CHECK_THAT(failure_of(folder.file("m.gguf")), Contains("m.gguf: has 4 bytes"));
}

TEST_CASE("sizes that the kernels do not take are refused with the name of the file") {
  const TemporaryFolder folder;
  const std::string path = folder.file("m.gguf");
  write_gguf(path, kVocab);
  CHECK(error_of(ErrorKind::input, [&] { open_text_model(path, path, {}, "--model"); }) ==
        path + ": the length of a head is 8; expected a multiple of 16");
}

TEST_CASE("JSON that nests without end is refused before it takes memory") {
  const std::string deep = "{\"a\":" + std::string(200, '[');
  CHECK_THAT(error_of(ErrorKind::input, [&] { JsonFields::parse("c.json", deep); }),
             Contains("c.json: nests deeper than 64 levels"));
}

}  // namespace
