// Tokenizers against the libraries `tokenizers` and `sentencepiece` (vectors from make_tokenizer_vectors.py), and what
// must hold of any text: all bytes come back, no time is lost on runs, and lies in a file are named.
#include "engine/tokenizer/tokenizer.hpp"

#include <ctime>

#include "engine/decode/stop.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"
#include "engine/weights/gguf.hpp"
#include "engine/weights/json_fields.hpp"
#include "tests/engine/weights/gguf_builder.hpp"
#include "tests/support/test.hpp"

using nlohmann::json;

namespace {

json read_json(const std::string& name) {
  std::ifstream file(DRAFTPROOF_SOURCE_DIR "/tests/vectors/" + name);
  return json::parse(file);
}

const json& vectors() {
  static const json kVectors = read_json("tokenizers.json");
  return kVectors;
}

std::shared_ptr<const Tokenizer> tokenizer_of_json(const json& document) {
  return std::make_shared<const Tokenizer>(parse_tokenizer_json(JsonFields::parse("tokenizer.json", document.dump())));
}

std::shared_ptr<const Tokenizer> tokenizer_of(const GgufBuilder& builder) {
  const std::string bytes = builder.bytes();
  return tokenizer_of_gguf(GgufFile::parse("m.gguf", as_file(bytes)));
}

// The tokenizer.json and the GGUF metadata of the small byte-level vocabulary under one pre-tokenizer.
json byte_level_json(const std::string& name) {
  const json& of_name = vectors()["byte_level"]["pre_tokenizers"][name];
  json document{{"model", vectors()["byte_level"]["model"]}, {"pre_tokenizer", of_name["pre_tokenizer"]}};
  document["model"]["ignore_merges"] = of_name["ignore_merges"];
  document["added_tokens"] = {{{"id", 420}, {"content", "<|end|>"}, {"special", true}},
                              {{"id", 421}, {"content", "<tool>"}, {"special", false}}};
  return document;
}

struct ByteLevelLists {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  std::vector<std::int32_t> types;
};

ByteLevelLists byte_level_lists() {
  const json& model = vectors()["byte_level"]["model"];
  ByteLevelLists lists;
  lists.tokens.resize(model["vocab"].size());
  for (const auto& [text, id] : model["vocab"].items()) lists.tokens[id.get<std::size_t>()] = text;
  for (const json& merge : model["merges"])
    lists.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  lists.types.assign(lists.tokens.size(), 1);
  lists.tokens.insert(lists.tokens.end(), {"<|end|>", "<tool>"});
  lists.types.insert(lists.types.end(), {3, 4});
  return lists;
}

GgufBuilder byte_level_gguf(const std::string& name, const ByteLevelLists& lists = byte_level_lists()) {
  GgufBuilder file;
  file.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", name);
  file.strings("tokenizer.ggml.tokens", lists.tokens).strings("tokenizer.ggml.merges", lists.merges);
  file.numbers<std::int32_t>("tokenizer.ggml.token_type", GgufType::i32, lists.types);
  return file;
}

int differing_cases(const Tokenizer& tokenizer, const json& cases, EncodeOptions options = {}) {
  int differing = 0;
  for (const json& of_text : cases) {
    const auto text = of_text[0].get<std::string>();
    const auto expected = of_text[1].get<std::vector<Token>>();
    const std::vector<Token> ids = tokenizer.encode(text, options);
    INFO(json(text).dump() << "\n  is " << json(ids).dump() << "\n  not " << json(expected).dump());
    CHECK(ids == expected);
    differing += ids != expected;
  }
  return differing;
}

TEST_CASE("byte-level tokenizers of both kinds of file give the ids of the library tokenizers") {
  for (const auto& [name, of_name] : vectors()["byte_level"]["pre_tokenizers"].items()) {
    INFO(name);
    CHECK(of_name["cases"].size() >= 65);
    CHECK(differing_cases(*tokenizer_of_json(byte_level_json(name)), of_name["cases"]) == 0);
    CHECK(differing_cases(*tokenizer_of(byte_level_gguf(name)), of_name["cases"]) == 0);
  }
}

TEST_CASE("the pre-tokenizers differ from one another on the texts that they are tested with") {
  const json& all = vectors()["byte_level"]["pre_tokenizers"];
  for (const auto& [a, of_a] : all.items())
    for (const auto& [b, of_b] : all.items()) {
      std::size_t differing = 0;
      for (std::size_t i = 0; i < 28; ++i) differing += of_a["cases"][i] != of_b["cases"][i];
      INFO(a << " and " << b);
      CHECK((differing > 0) == (a != b));
    }
}

TEST_CASE("text is composed to NFC first where the file asks for it, and bytes that are no UTF-8 stay as they are") {
  json document = byte_level_json("qwen2");
  const auto plain = tokenizer_of_json(document);
  document["normalizer"] = vectors()["composed"]["normalizer"];
  const auto composing = tokenizer_of_json(document);
  const json& cases = vectors()["composed"]["cases"];
  CHECK(cases.size() >= 100);
  CHECK(differing_cases(*composing, cases, {true, true}) == 0);
  std::size_t changed = 0;
  for (const json& of_text : cases)
    changed += plain->encode(of_text[0].get<std::string>(), {true, true}) != of_text[1].get<std::vector<Token>>();
  CHECK(changed > 40);
  CHECK(composing->decode(composing->encode("e\u0301\xff\xe6\x97 e\u0301\xc3")) == "\u00e9\xff\xe6\x97 \u00e9\xc3");
  CHECK(composing->decode(composing->encode("\xed\xa0\x80o\u0308\xf5")) == "\xed\xa0\x80\u00f6\xf5");
}

TEST_CASE("characters that merge by rank give the ids of the library tokenizers") {
  const json& metaspace = vectors()["metaspace"];
  CHECK(differing_cases(*tokenizer_of_json(metaspace["tokenizer"]), metaspace["cases"]) == 0);
}

GgufBuilder sentence_piece_gguf() {
  const json& of = vectors()["sentence_piece"];
  GgufBuilder file;
  file.string("tokenizer.ggml.model", "llama").boolean("tokenizer.ggml.add_bos_token", false);
  file.strings("tokenizer.ggml.tokens", of["pieces"].get<std::vector<std::string>>());
  file.numbers<float>("tokenizer.ggml.scores", GgufType::f32, of["scores"].get<std::vector<float>>());
  file.numbers<std::int32_t>("tokenizer.ggml.token_type", GgufType::i32, of["kinds"].get<std::vector<std::int32_t>>());
  file.u32("tokenizer.ggml.unknown_token_id", 0).u32("tokenizer.ggml.bos_token_id", 1);
  return file;
}

TEST_CASE("characters that merge by score give the ids of the library sentencepiece") {
  const json& cases = vectors()["sentence_piece"]["cases"];
  CHECK(cases.size() >= 60);
  CHECK(differing_cases(*tokenizer_of(sentence_piece_gguf()), cases) == 0);
}

TEST_CASE("the shipped model's tokenizer gives the ids of the library tokenizers") {
  const auto path = shipped_model_path();
  if (!path) return;
  const auto tokenizer = tokenizer_of_gguf(GgufFile::open(*path));
  CHECK(tokenizer->vocab_size() == 49152);
  CHECK(tokenizer->end_tokens() == std::vector<Token>{2});
  CHECK_FALSE(tokenizer->start_token());
  const json ids = read_json("smollm2_ids.json");
  CHECK(differing_cases(*tokenizer, ids["plain"]) == 0);
  CHECK(differing_cases(*tokenizer, ids["with_special"], {true, true}) == 0);
}

std::vector<std::shared_ptr<const Tokenizer>> some_tokenizers() {
  return {tokenizer_of(byte_level_gguf("smollm")), tokenizer_of(byte_level_gguf("llama-bpe")),
          tokenizer_of_json(byte_level_json("qwen2")), tokenizer_of_json(vectors()["metaspace"]["tokenizer"]),
          tokenizer_of(sentence_piece_gguf())};
}

TEST_CASE("every byte and any bytes, UTF-8 or not, come back from their ids") {
  TestRandom random(11);
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  std::vector<std::string> texts{every_byte, "\xff", "a\xe6\x97", "\xf0\x9f\x99\x82\xf0\x9f", "\xc0\xaf \xed\xa0\x80."};
  for (int i = 0; i < 300; ++i) {
    std::string text(static_cast<std::size_t>(random.below(30)), ' ');
    for (char& c : text) c = static_cast<char>(random.chance(0.5) ? random.below(256) : 32 + random.below(96));
    texts.push_back(text);
  }
  for (const auto& tokenizer : some_tokenizers()) {
    for (const std::string& text : texts) {
      const std::vector<Token> ids = tokenizer->encode(text);
      INFO(tokenizer->name());
      CHECK(tokenizer->decode(ids) == text);
    }
  }
}

TEST_CASE("a byte without a token is left out") {
  ByteLevelLists lists = byte_level_lists();
  const auto q = std::find(lists.tokens.begin(), lists.tokens.end(), "Q");
  REQUIRE(q != lists.tokens.end());
  *q = "[unused]";
  const auto tokenizer = tokenizer_of(byte_level_gguf("gpt-2", lists));
  CHECK(tokenizer->decode(tokenizer->encode("aQb")) == "ab");
}

TEST_CASE("special tokens are taken from text only where they are asked for, words of the user always") {
  for (const auto& tokenizer : {tokenizer_of(byte_level_gguf("gpt-2")), tokenizer_of_json(byte_level_json("gpt-2"))}) {
    const Token end = 420;
    CHECK(tokenizer->added_token("<|end|>") == end);
    CHECK(tokenizer->added_token("<tool>") == 421);
    CHECK_FALSE(tokenizer->added_token("a"));
    const std::vector<Token> parsed = tokenizer->encode("a<|end|><tool>", {true, true});
    CHECK(parsed.size() == 3);
    CHECK(parsed[1] == end);
    CHECK(parsed[2] == 421);
    const std::vector<Token> plain = tokenizer->encode("a<|end|><tool>");
    CHECK(std::count(plain.begin(), plain.end(), end) == 0);
    CHECK(plain.back() == 421);
    CHECK(tokenizer->decode(plain) == "a<|end|><tool>");
    CHECK(tokenizer->decode(parsed) == "a<tool>");  // a special token is no text
    CHECK(tokenizer->entry(end).is_special);
  }
}

TEST_CASE("what the file puts around a text is put around it, and left out on request") {
  GgufBuilder file = byte_level_gguf("gpt-2");
  file.boolean("tokenizer.ggml.add_bos_token", true).boolean("tokenizer.ggml.add_eos_token", true);
  file.u32("tokenizer.ggml.bos_token_id", 420).u32("tokenizer.ggml.eos_token_id", 421);
  file.u32("tokenizer.ggml.eot_token_id", 7);
  json document = byte_level_json("gpt-2");
  document["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<|end|>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
        {{"SpecialToken", {{"id", "<tool>"}, {"type_id", 0}}}}}},
      {"special_tokens",
       {{"<|end|>", {{"id", "<|end|>"}, {"ids", {420}}}}, {"<tool>", {{"id", "<tool>"}, {"ids", {421}}}}}}};
  CHECK(tokenizer_of(file)->end_tokens() == std::vector<Token>{421, 7});
  for (const auto& tokenizer : {tokenizer_of(file), tokenizer_of_json(document)}) {
    CHECK(tokenizer->start_token() == 420);
    const std::vector<Token> whole = tokenizer->encode("ab");
    const std::vector<Token> bare = tokenizer->encode("ab", {false, false});
    REQUIRE(whole.size() == bare.size() + 2);
    CHECK(whole.front() == 420);
    CHECK(whole.back() == 421);
    CHECK(std::equal(bare.begin(), bare.end(), whole.begin() + 1));
  }
}

TEST_CASE("text that is released token by token never cuts a character") {
  for (const auto& tokenizer : some_tokenizers()) {
    const std::string text = "x 日本 🙂👍🏽 é.";
    const std::vector<Token> ids = tokenizer->encode(text, {false, false});
    StopConditions stop(StopParameters{}, static_cast<std::size_t>(tokenizer->vocab_size()), 1, tokenizer.get());
    std::string released;
    for (const Token id : ids) {
      released += stop.push(std::vector<Token>{id}).released_text;
      CHECK(incomplete_utf8_tail(released) == 0);
    }
    CHECK(released.substr(released.starts_with(' ') ? 1 : 0) == text);
  }
}

TEST_CASE("a long run of one character takes time in proportion to its length") {
  // Time of this process, which others on the machine do not change.
  const auto seconds = [](const Tokenizer& tokenizer, const std::string& text) {
    double least = 1e9;
    for (int attempt = 0; attempt < 2; ++attempt) {
      const std::clock_t start = std::clock();
      CHECK(tokenizer.encode(text).size() > 0);
      least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return least;
  };
  const char* const units[] = {" ", "a", "0", "!", "\n", " \n", "é", "\xff", "\u3000", "日", " a", "'"};
  for (const auto& tokenizer : some_tokenizers()) {
    for (const std::string unit : units) {
      std::string small;
      for (int i = 0; i < fewer_if_sanitized(8'000); ++i) small += unit;
      std::string large;
      for (int i = 0; i < 8; ++i) large += small;
      INFO(tokenizer->name() << " of " << json(unit == "\xff" ? "ff" : unit).dump());
      // Eight times the length: 64 times as long where it is quadratic.
      CHECK(seconds(*tokenizer, large) < 30 * (seconds(*tokenizer, small) + 1e-3));
    }
  }
}

std::string gguf_failure(const std::function<void(ByteLevelLists&)>& change, const std::string& name = "gpt-2") {
  ByteLevelLists lists = byte_level_lists();
  change(lists);
  return error_of(ErrorKind::input, [&] { tokenizer_of(byte_level_gguf(name, lists)); });
}

TEST_CASE("a GGUF file whose tokenizer is unknown or contradicts itself is refused by its key") {
  CHECK_THAT(
      gguf_failure([](ByteLevelLists& l) { l.types.pop_back(); }),
      Contains("m.gguf: metadata 'tokenizer.ggml.token_type' has 421 elements; expected one for each of the 422"));
  CHECK_THAT(gguf_failure([](ByteLevelLists& l) { l.merges.push_back("a QQ"); }),
             Contains("is 'a QQ'; expected two tokens whose join is a token"));
  CHECK_THAT(gguf_failure([](ByteLevelLists& l) { l.merges.push_back("ab"); }), Contains("is 'ab'; expected two"));
  CHECK_THAT(gguf_failure([](ByteLevelLists&) {}, "tekken"),
             Contains("'tokenizer.ggml.pre': is 'tekken'; expected one of gpt-2, smollm, llama-bpe, qwen2"));
  CHECK_THAT(error_of(ErrorKind::input, [] { tokenizer_of(GgufBuilder{}); }),
             Contains("'tokenizer.ggml.tokens' is missing or empty"));
  CHECK_THAT(error_of(ErrorKind::input,
                      [] { tokenizer_of(byte_level_gguf("gpt-2").u32("tokenizer.ggml.eos_token_id", 422)); }),
             Contains("'tokenizer.ggml.eos_token_id' is 422; expected an id below 422"));
  GgufBuilder file;
  file.strings("tokenizer.ggml.tokens", std::vector<std::string>{"a"}).string("tokenizer.ggml.model", "bert");
  CHECK_THAT(error_of(ErrorKind::input, [&] { tokenizer_of(file); }), Contains("is 'bert'; expected gpt2"));
  GgufBuilder bare;
  bare.strings("tokenizer.ggml.tokens", std::vector<std::string>{"a"}).string("tokenizer.ggml.model", "llama");
  CHECK_THAT(error_of(ErrorKind::input, [&] { tokenizer_of(bare); }), Contains("'tokenizer.ggml.scores' is missing"));
}

std::string json_failure(const std::function<void(json&)>& change) {
  json document = byte_level_json("smollm");
  change(document);
  return error_of(ErrorKind::input, [&] { tokenizer_of_json(document); });
}

TEST_CASE("a tokenizer.json that is of another kind or contradicts itself is refused by the field") {
  struct Lie {
    const char* pointer;
    json value;
    const char* error;
  };
  const json of_b = byte_level_json("smollm")["model"]["vocab"]["b"];
  for (const Lie& lie :
       {Lie{"/model/type", "Unigram", "tokenizer.json: 'model': 'type' is 'Unigram'; expected BPE"},
        {"/model/vocab/a", -1, "the id of 'a' is -1"},
        {"/model/vocab/a", 1 << 23, "the id of 'a' is 8388608"},
        {"/model/vocab/a", of_b, "both have the id"},
        {"/model/merges/-", {"a", "QQ"}, "is 'a' and 'QQ'; expected two tokens whose join is a token"},
        {"/model/merges", 3, "'merges' is of type number"},
        {"/model/unk_token", "<none>", "'unk_token' is '<none>'"},
        {"/pre_tokenizer",
         {{"type", "Whitespace"}},
         "'type' is 'Whitespace'; expected one of Sequence, ByteLevel, Digits"},
        {"/pre_tokenizer", nullptr, "expected a byte-level tokenizer or"},
        {"/normalizer", {{"type", "Lowercase"}}, "'Lowercase'"},
        {"/pre_tokenizer/pretokenizers/0",
         {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}, {"invert", false}},
         "the expression of the pre-tokenizer cannot be used"}}) {
    INFO(lie.pointer << ": " << lie.value.dump());
    CHECK_THAT(json_failure([&](json& d) { d[json::json_pointer(lie.pointer)] = lie.value; }), Contains(lie.error));
  }
  CHECK_THAT(json_failure([](json& d) { d.erase("model"); }), Contains("'model' is missing"));
  CHECK_THAT(json_failure([](json& d) {
               const json token = {{"SpecialToken", {{"id", "<|end|>"}, {"type_id", 0}}}};
               d["post_processor"] = {{"type", "TemplateProcessing"},
                                      {"single", json::array_t(20'000, token)},
                                      {"special_tokens", {{"<|end|>", {{"ids", json::array_t(20'000, 420)}}}}}};
             }),
             Contains("'post_processor'") && Contains("puts more than 1024 special tokens around a text"));
  const TemporaryFolder folder;
  write_whole_file(folder.file("tokenizer.json"), byte_level_json("gpt-2").dump());
  write_whole_file(folder.file("config.json"), R"({"eos_token_id": [420, 500]})");
  CHECK_THAT(error_of(ErrorKind::input, [&] { tokenizer_of_folder(folder.path()); }),
             Contains("the id of 'eos_token_id' is 500; expected an integer from 0 to 421"));
  write_whole_file(folder.file("config.json"), R"({"eos_token_id": 420})");
  CHECK(tokenizer_of_folder(folder.path())->end_tokens() == std::vector<Token>{420});
}

TEST_CASE("an added token that is ill-formed or contradicts another one is refused by its place") {
  const auto failure = [](const std::function<void(json&)>& change) {
    return json_failure([&](json& document) { change(document["added_tokens"]); });
  };
  const std::string where = "tokenizer.json: 'added_tokens' 1: ";
  CHECK(failure([](json& added) { added[1].erase("content"); }) == where + "'content' is missing; expected a string");
  CHECK(failure([](json& added) { added[1].erase("id"); }) ==
        where + "the id of '<tool>' is null; expected an integer from 0 to 1867");
  CHECK(failure([](json& added) { added[1] = "<tool>"; }) == "tokenizer.json: 'added_tokens' 1 is no object");
  CHECK(failure([](json& added) { added = 3; }) ==
        "tokenizer.json: 'added_tokens' is of type number; expected an array of objects");
  struct Lie {
    const char* field;
    json value;
    const char* error;
  };
  for (const Lie& lie :
       {Lie{"content", 7, "'content' is of type number; expected a string"},
        {"content", "", "'content' is empty; expected a text"},
        {"content", "<|end|>", "it is '<|end|>' with the id 421, and 420 is that text too; expected each text once"},
        {"content", "(",
         "it is '(' with the id 421, and the vocabulary has that text with the id 7; expected one id for each text"},
        {"special", 1, "'special' is of type number; expected true or false"},
        {"lstrip", true, "'lstrip' is true; expected false"},
        {"id", 420, "it is '<tool>' with the id 420, which is that of '<|end|>' too; expected an id of its own"},
        {"id", 7,
         "it is '<tool>' with the id 7, which is that of '(' in the vocabulary; expected one text for each id"}})
    CHECK(failure([&](json& added) { added[1][lie.field] = lie.value; }) == where + lie.error);
  for (const json& id : {json("421"), json(421.0), json(-1), json(1868), json(std::uint64_t{1} << 63)})
    CHECK(failure([&](json& added) { added[1]["id"] = id; }) ==
          where + "the id of '<tool>' is " + id.dump() + "; expected an integer from 0 to 1867");
  json document = byte_level_json("gpt-2");
  document["added_tokens"][1] = {{"id", 7}, {"content", "("}};  // as the vocabulary has it
  CHECK(tokenizer_of_json(document)->added_token("(") == 7);
}

TEST_CASE("an expression of a tokenizer.json that backtracks without end or cuts characters is refused") {
  const auto with_expression = [](const std::string& expression) {
    json document = byte_level_json("gpt-2");
    document["pre_tokenizer"] = {{"type", "Sequence"},
                                 {"pretokenizers",
                                  {{{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}},
                                   {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
    return document;
  };
  const std::string text = std::string(1000, 'a') + "!";
  for (const char* const expression :
       {R"((?:\p{L}+)+\p{N})", R"((?:\p{L}|\p{L}\p{L})*\p{N})", R"(\p{L}*\p{L}*\p{L}*\p{L}*\p{N})"}) {
    const auto tokenizer = tokenizer_of_json(with_expression(expression));
    const std::clock_t start = std::clock();
    CHECK(
        error_of(ErrorKind::input, [&] { tokenizer->encode(text); }) ==
        "tokenizer.json: 'model': the expression of the pre-tokenizer takes more than 20112 steps to match in a piece "
        "of 1001 bytes; expected one that does not backtrack without end");
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 1.0);
  }
  // One that backtracks over a piece once for each of its characters is served.
  const auto tokenizer = tokenizer_of_json(with_expression(R"(\p{L}*\p{N})"));
  CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  CHECK_THAT(error_of(ErrorKind::input, [&] { tokenizer_of_json(with_expression("a\\C")); }),
             Contains("the expression of the pre-tokenizer cannot be used: using \\C is disabled"));
}

}  // namespace
