// A byte-level tokenizer of a few dozen tokens: small letters, digits, space and line feed, "th" and "the", and the
// marks of ChatML.
#pragma once

#include "tests/engine/weights/gguf_builder.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

struct TinyTokenizer {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;

  // vocab_size is 42 at least; what is left over is unused.
  explicit TinyTokenizer(std::size_t vocab_size) {
    for (char c = 'a'; c <= 'z'; ++c) tokens.emplace_back(1, c);
    for (char c = '0'; c <= '9'; ++c) tokens.emplace_back(1, c);
    tokens.insert(tokens.end(), {"\u0120", "\u010a", "th", "the"});  // space and line feed, as they are written
    while (tokens.size() + 2 < vocab_size) tokens.push_back("[unused " + std::to_string(tokens.size()) + "]");
    types.assign(tokens.size(), 1);
    tokens.insert(tokens.end(), {"<|im_start|>", "<|im_end|>"});
    types.insert(types.end(), {3, 3});
  }

  void add_to(GgufBuilder& file) const {
    file.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "smollm");
    file.strings("tokenizer.ggml.tokens", tokens)
        .strings("tokenizer.ggml.merges", std::vector<std::string>{"t h", "th e"});
    file.numbers<std::int32_t>("tokenizer.ggml.token_type", GgufType::i32, types);
    file.u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(tokens.size() - 1));
    file.string("tokenizer.chat_template", kChat);
  }

  static constexpr const char* kChat =
      "{{ '<|im_start|>system\\nbe kind<|im_end|>\\n' }}{% for message in messages %}{{ '<|im_start|>' + "
      "message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}{{ '<|im_start|>assistant\\n' }}";

  // As tokenizer.json, with the same ids.
  std::string json() const {
    std::string vocab;
    std::string added;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string id = std::to_string(i);
      (types[i] == 3 ? added : vocab) += types[i] == 3
                                             ? std::string(added.empty() ? "" : ",") + "{\"id\":" + id +
                                                   ",\"content\":\"" + tokens[i] + "\",\"special\":true}"
                                             : std::string(vocab.empty() ? "" : ",") + "\"" + tokens[i] + "\":" + id;
    }
    return "{\"added_tokens\":[" + added + "],\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" +
           R"({"type":"Digits","individual_digits":true},)" +
           R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true}]},)" +
           R"("model":{"type":"BPE","vocab":{)" + vocab + R"(},"merges":["t h","th e"]}})";
  }
};

}  // namespace draftproof::testing
