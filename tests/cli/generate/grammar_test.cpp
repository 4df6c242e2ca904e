// draftproof generate with grammars, on an n-gram model of bytes. Where the program was built without XGrammar it says
// so, and nothing else is looked at.
#include <regex>

#include "base/files/input_file.hpp"
#include "base/json_lines.hpp"
#include "engine/grammar/compile_grammar.hpp"
#include "tests/support/test.hpp"

namespace {

using Arguments = std::vector<std::string>;

struct Setting {
  TemporaryFolder folder;
  std::string model;
  Setting() {
    std::string text;
    for (int i = 0; i < 60; ++i)
      text +=
          "{\"name\": \"value " + std::to_string(i) + "\", \"list\": [1, 2, " + std::to_string(i) + "], \"b\": true}\n";
    write_whole_file(folder.file("corpus"), text);
    model = "ngram:4:" + folder.file("corpus");
  }
  std::string file(const std::string& name, const std::string& text) const {
    write_whole_file(folder.file(name), text);
    return folder.file(name);
  }
  Arguments arguments(Arguments more) const {
    more.insert(more.begin(), {"generate", "--model", model, "--prompt", "{\"name\": "});
    return more;
  }
  ordered_json generate(Arguments more) const { return json_of(arguments(std::move(more))); }
};

// Enough of JSON Schema for the schemas below, written for this test: type, enum, const, ranges, lengths, properties.
bool is_valid(const ordered_json& value, const ordered_json& schema) {
  if (schema.contains("const")) return value == schema["const"];
  if (schema.contains("enum"))
    return std::any_of(schema["enum"].begin(), schema["enum"].end(), [&](const auto& one) { return one == value; });
  const std::string type = schema["type"];
  if (type == "integer") return value.is_number_integer() && value >= schema["minimum"] && value <= schema["maximum"];
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string() && value.get<std::string>().size() <= schema["maxLength"];
  if (type == "array")
    return value.is_array() && value.size() <= schema["maxItems"] &&
           std::all_of(value.begin(), value.end(), [&](const auto& item) { return is_valid(item, schema["items"]); });
  if (!value.is_object()) return false;
  for (const auto& [name, below] : value.items())
    if (!schema["properties"].contains(name) || !is_valid(below, schema["properties"][name])) return false;
  return std::all_of(schema["required"].begin(), schema["required"].end(),
                     [&](const auto& name) { return value.contains(name.template get<std::string>()); });
}

}  // namespace

TEST_CASE("a program without XGrammar says how grammars come into it") {
  if (has_grammars()) return;
  const Setting setting;
  check_refused(setting.arguments({"--regex", "a"}), {"--regex", "./draftproof fetch xgrammar"});
}

TEST_CASE("outputs match their regular expression, their choice and their grammar, drawn or greedy, drafted or not") {
  if (!has_grammars()) return;
  const Setting setting;
  const std::string gbnf =
      setting.file("list.gbnf", "root ::= \"[\" item (\",\" item){0,3} \"]\"\nitem ::= [0-9]{1,3}\n");
  const std::vector<std::pair<Arguments, std::regex>> grammars = {
      {{"--regex", "[a-c]{2,4}-[0-9]+x"}, std::regex("[a-c]{2,4}-[0-9]+x")},
      {{"--choice", "yes,no,may be"}, std::regex("yes|no|may be")},
      {{"--grammar", gbnf}, std::regex("\\[[0-9]{1,3}(,[0-9]{1,3}){0,3}\\]")}};
  for (const auto& [grammar, pattern] : grammars) {
    std::set<std::string> texts;
    for (const char* drafter : {"none", "suffix", "ngram:2", "grammar", "grammar+ngram:2"}) {
      INFO(grammar[1] << ", drafter " << drafter);
      Arguments more = grammar;
      more.insert(more.end(), {"--outputs", "20", "--temperature", "1", "--drafter", drafter, "--max-tokens", "60"});
      const ordered_json document = setting.generate(more);
      for (const ordered_json& request : document["requests"]) {
        const std::string text = request["text"];
        INFO(text);
        texts.insert(text);
        // Digits may go on to the limit; what ended says so, and whether it is whole.
        CHECK(request["grammar"]["complete"] == std::regex_match(text, pattern));
        CHECK((request["finish_reason"] == "length" || request["grammar"]["complete"] == true));
        CHECK((request["finish_reason"] == "length" || request["finish_reason"] == "grammar"));
      }
      more = grammar;
      more.insert(more.end(), {"--drafter", drafter});
      const ordered_json greedy = setting.generate(more);
      more = grammar;
      more.insert(more.end(), {"--drafter", "none"});
      CHECK(greedy["requests"][0]["text"] == setting.generate(more)["requests"][0]["text"]);
    }
    CHECK(texts.size() >= 3);
  }
}

TEST_CASE("documents are of their schema, request by request, in one batch") {
  if (!has_grammars()) return;
  const Setting setting;
  const auto integer = ordered_json{{"type", "integer"}, {"minimum", 0}, {"maximum", 20}};
  const auto text = ordered_json{{"type", "string"}, {"maxLength", 6}};
  const std::vector<ordered_json> schemas = {
      {{"type", "object"}, {"properties", {{"name", text}, {"n", integer}}}, {"required", {"name", "n"}}},
      {{"type", "array"}, {"items", integer}, {"maxItems", 3}},
      {{"type", "object"},
       {"properties", {{"list", {{"type", "array"}, {"items", {{"type", "boolean"}}}, {"maxItems", 2}}}}},
       {"required", {"list"}}},
      {{"enum", {"left", "right", nullptr}}},
      {{"const", {{"a", 1}}}}};
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += ordered_json{{"prompt", "{"},
                          {"max_tokens", 200},
                          {"temperature", i % 2},
                          {"json_schema", schemas[static_cast<std::size_t>(i) % schemas.size()]}}
                 .dump() +
             "\n";
  const std::string prompts = setting.file("prompts.jsonl", lines);
  std::vector<ordered_json> documents;
  for (const char* drafter : {"none", "suffix", "ngram:2"}) {
    INFO("drafter " << drafter);
    documents.push_back(
        json_of({"generate", "--model", setting.model, "--prompts", prompts, "--drafter", drafter, "--batch", "16"}));
    int complete = 0;
    for (std::size_t i = 0; i < 60; ++i) {
      const ordered_json& request = documents.back()["requests"][i];
      INFO(request["text"]);
      CHECK(request["grammar"]["form"] == "json_schema");
      if (request["finish_reason"] == "length") continue;
      ++complete;
      const auto value = ordered_json::parse(request["text"].get<std::string>(), nullptr, false);
      REQUIRE_FALSE(value.is_discarded());
      CHECK(is_valid(value, schemas[i % schemas.size()]));
      if (i % 2 == 0) CHECK(request["tokens"] == documents.front()["requests"][i]["tokens"]);  // greedy
    }
    CHECK(complete >= 50);
  }
}

TEST_CASE("a bad grammar is one error that names it, before anything runs") {
  if (!has_grammars()) return;
  const Setting setting;
  const auto refused = [&](const Arguments& more, const std::vector<std::string>& words) {
    check_refused(setting.arguments(more), words);
  };
  const auto schema = [&](const std::string& text, const std::vector<std::string>& words) {
    const std::string file = setting.file("schema.json", text);
    std::vector<std::string> all = words;
    all.push_back(file);
    refused({"--json-schema", file}, all);
  };
  refused({"--regex", "a", "--choice", "b"}, {"--choice", "beside another grammar"});
  refused({"--regex", "(a"}, {"--regex", "expected a regular expression"});
  refused({"--choice", "a,,b"}, {"--choice", "empty text"});
  refused({"--grammar", setting.file("a.gbnf", "root ::= item\n")}, {"a.gbnf", "item"});
  refused({"--grammar", setting.file("b.gbnf", "start ::= \"a\"\n")}, {"b.gbnf", "root"});
  refused({"--grammar", setting.folder.file("none.gbnf")}, {"none.gbnf"});
  refused({"--drafter", "grammar"}, {"--drafter", "there is no grammar"});
  refused({"--unmasked-drafts"}, {"--unmasked-drafts"});
  schema("{", {"is no JSON"});
  schema("[]", {"at its root", "is no schema"});
  schema(R"({"not": {"pattern": "a"}})", {"\"pattern\" under \"not\"", "not supported"});
  schema(R"({"title": "all"})", {"says nothing about the document"});
  schema(R"({"type": "string", "max_length": 3})", {"'max_length'", "did you mean 'maxLength'?"});
  schema(R"({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}})",
         {"/properties/a", "uniqueItems"});
  schema(R"({"type": "string", "pattern": "(?=a)b"})", {"\"pattern\"", "not supported"});
  schema(R"({"type": "string", "pattern": "^a{1,2}$", "minLength": 3})", {"nothing satisfies"});
  schema(R"({"type": "object", "additionalProperties": true, "minProperties": 2})", {"minProperties", "twice"});
  std::string deep = R"({"type": "null"})";
  for (int i = 0; i < 5000; ++i) deep = R"({"type": "array", "items": )" + deep + "}";
  schema(deep, {"nested deeper than 200"});
  schema(R"({"oneOf": [{"pattern": "a"}, {"type": "string"}]})", {"oneOf", "alternatives 0 and 1 may hold together"});
  schema(R"({"$ref": "https://example.org/schema"})", {"$ref"});
  schema(R"({"enum": ["a"], "minLength": 2})", {"nothing satisfies"});
  schema(R"({"type": "integer", "minimum": 5, "maximum": 2})", {"expected a JSON Schema that can be satisfied"});
  const std::string prompts = setting.file("two.jsonl", "{\"prompt\": \"a\", \"regex\": \"a\", \"choice\": [\"b\"]}\n");
  check_refused({"generate", "--model", setting.model, "--prompts", prompts}, {"line 1", "two grammars"});
}
