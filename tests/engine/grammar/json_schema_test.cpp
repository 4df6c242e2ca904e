// Schemas as XGrammar applies them: which documents are left.
#include "engine/grammar/json_schema.hpp"

#include "tests/engine/grammar/byte_grammar.hpp"
#include "tests/support/test.hpp"

namespace {

struct SchemaCase {
  std::string schema;
  std::vector<std::string> documents;
  std::vector<std::string> others;
};

// The documents and the others were told apart by the Python package jsonschema 4.26.
const std::vector<SchemaCase> kSchemaCases = {
    {R"({"type":"object","properties":{"m":{"type":["string","null"],"enum":["a","b"]}},"required":["m"]})",
     {R"({"m":"a"})", R"({"m": "b"})"},
     {R"({"m":null})", R"({"m":"c"})", "{}"}},
    {R"({"enum":[1,2.5,"x",null],"type":["integer","string"],"not":{"const":1}})", {"\"x\""}, {"1", "2.5", "null"}},
    {R"({"const":"ab","minLength":2,"pattern":"^a"})", {"\"ab\""}, {"\"a\""}},
    {R"({"allOf":[{"type":"integer"},{"minimum":3},{"maximum":9,"multipleOf":2}]})", {"4", "8"}, {"3", "10", "2"}},
    {R"({"anyOf":[{"minimum":5},{"maximum":1}],"type":"integer","exclusiveMaximum":7})",
     {"6", "5", "1", "-3"},
     {"7", "3", "\"a\""}},
    {R"({"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object",
        "properties":{"a":{"type":"null"},"b":{"type":"null"}}})",
     {R"({"a":null})", R"({"b":null})"},
     {R"({"a":null,"b":null})", "{}"}},
    {R"({"$ref":"#/definitions/a~1b","maxLength":2,"definitions":{"a/b":{"type":"string","minLength":2}}})",
     {"\"xy\""},
     {"\"x\"", "\"xyz\""}},
    {R"({"type":"object","properties":{"next":{"$ref":"#"},"v":{"type":"boolean"}},"required":["v"]})",
     {R"({"v":true})", R"({"next":{"v":false},"v":true})"},
     {R"({"next":{},"v":true})"}},
    {R"({"type":"string","pattern":"^[a-z]([-a-z0-9]*[a-z0-9])?$","minLength":2,"maxLength":4})",
     {"\"ab\"", "\"a-b\"", "\"a--9\""},
     {"\"a\"", "\"ab-\"", "\"abcde\"", "\"Ab\""}},
    {R"({"type":"string","pattern":"^(0|[1-9][0-9]*)(-x([.]y)*)?$"})",
     {"\"0\"", "\"10-x.y.y\""},
     {"\"0.y\"", "\"01\""}},
    {R"({"type":"string","pattern":"^[^a]\"\\\\?$"})", {R"("b\"")", R"("b\"\\")"}, {R"("a\"")", R"("b"")"}},
    {R"({"type":"object","required":["k"],"properties":{"k":{"enum":["p","q"]},"n":{"type":"integer"}},
        "if":{"properties":{"k":{"const":"p"}}},"then":{"required":["n"]}})",
     {R"({"k":"p","n":1})", R"({"k":"q"})"},
     {R"({"k":"p"})"}},
    {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"dependentRequired":{"a":["b"]}})",
     {"{}", R"({"b":null})", R"({"a":null,"b":null})"},
     {R"({"a":null})"}},
    // As llguidance has them: XGrammar alone takes {"type":"object"} for any object.
    {R"({"type":"object","properties":{},"additionalProperties":false})", {"{}"}, {R"({"a":1})", "[]"}},
    {R"({"type":"array","items":{"type":"object","maxProperties":3,"additionalProperties":false}})",
     {"[]", "[{},{}]"},
     {R"([{"a":1}])"}},
    {R"({"type":"object","required":["a"],"additionalProperties":{"type":"integer"}})",
     {R"({"a":1})"},
     {"{}", R"({"a":"x"})"}},
    {R"({"type":"object","properties":{"x1":{"type":"integer"}},"patternProperties":{"^x[0-9]$":{"minimum":5}}})",
     {R"({"x1":5})"},
     {R"({"x1":4})", R"({"x1":"s"})"}},
    {R"({"items":[{"type":"null"},{"type":"boolean"}],"additionalItems":false,"minItems":2})",
     {"[null,true]"},
     {"[null]", "[true,null]", "[null,true,1]"}},
    {R"({"type":"integer","minimum":0.5,"exclusiveMaximum":true,"maximum":3})", {"1", "2"}, {"0", "3"}},
    {R"({"minLength":1})", {"\"a\""}, {"\"\""}},
    {R"({"oneOf":[{"minLength":2},{"maxLength":3}],"type":"string"})",
     {"\"a\"", "\"\"", "\"abcd\""},
     {"\"ab\"", "\"abc\""}},
    {R"({"oneOf":[{"type":"integer","minimum":0,"maximum":10},{"type":"number","exclusiveMinimum":10}]})",
     {"0", "10", "11", "10.5"},
     {"-1", "\"a\""}},
    {R"({"type":"integer","oneOf":[{"minimum":5},{"maximum":7}]})", {"4", "8", "-2"}, {"5", "7"}},
    {R"({"oneOf":[{"type":"integer"},{"type":["integer","null"]}]})", {"null"}, {"1"}},
    {R"({"oneOf":[{"type":"array","minItems":2},{"type":"array","maxItems":3}],"items":{"type":"null"}})",
     {"[null]", "[]", "[null,null,null,null]"},
     {"[null,null]", "[null,null,null]"}},
    {R"({"not":{"maximum":3},"type":"integer"})", {"4"}, {"3"}},
    {R"({"type":"array","items":{"type":"null"},"uniqueItems":true})", {"[]", "[null]"}, {"[null,null]"}},
    {R"({"type":"array","items":{"enum":["a","b",1,1.0]},"uniqueItems":true,"minItems":2})",
     {R"(["a","b"])", R"(["b",1])", R"(["b",1,"a"])"},
     {R"(["a","a"])", R"(["a"])", "[1,1]"}},
    {R"({"type":"array","items":{"type":"integer","minimum":3,"maximum":5},"uniqueItems":true,"maxItems":2})",
     {"[3,5]", "[4]", "[]"},
     {"[3,3]", "[3,4,5]", "[6]"}},
    {R"({"allOf":[{"prefixItems":[{"type":"string"},{"type":"number"}],"items":false},{"uniqueItems":true}],"type":"array"})",
     {R"(["a",1])"},
     {R"([1,"a"])", R"(["a",1,1])"}},
    {R"({"enum":[[1,2],[1,1.0],[{"a":1,"b":2},{"b":2,"a":1}]],"type":"array","uniqueItems":true})",
     {"[1,2]"},
     {"[1,1.0]", R"([{"a":1,"b":2},{"b":2,"a":1}])"}},
    {R"({"type":"string","maxLength":3})", {"\"abc\""}, {"\"\t\"", "\"\x01\""}},
    {R"({"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"const":1}}})", {"1"}, {"2"}},
    {R"({"name":"n","strict":true,"schema":{"type":"null"}})", {"null"}, {"1"}},
    {"true", {"1", "[]"}, {"x"}}};

TEST_CASE("a schema takes documents of all its keywords together, and no others") {
  if (!has_grammars()) return;
  for (const SchemaCase& one : kSchemaCases) {
    CAPTURE(one.schema);
    const auto grammar = byte_grammar({GrammarForm::json_schema, one.schema, {}, "s"});
    for (const std::string& text : one.documents) {
      CAPTURE(text);
      CHECK(is_sentence(*grammar, text));
    }
    for (const std::string& text : one.others) {
      CAPTURE(text);
      CHECK_FALSE(is_sentence(*grammar, text));
    }
  }
}

TEST_CASE("halves of surrogate pairs are in no text under a grammar, and a state taken back forgets them") {
  if (!has_grammars()) return;
  const auto grammar = byte_grammar({GrammarForm::json_schema, R"({"type":"string"})", {}, "s"});
  CHECK(is_sentence(*grammar, "\"\xed\x9f\xbf\xee\x80\x80\""));
  CHECK_FALSE(is_sentence(*grammar, "\"\xed\xa0\x80\""));
  const auto state = grammar->start();
  for (const unsigned char byte : {'"', '\xed'}) CHECK(state->accept(byte));
  CHECK_FALSE(state->accept(0xbc));
  state->roll_back(1);
  CHECK(state->accept('a'));
  CHECK(state->accept('"'));
}

TEST_CASE("what a schema cannot be made to say is refused by its place") {
  for (const auto& [text, error] :
       {std::pair("{", "s: is no JSON: byte 2"),
        {"[]", "at its root is no schema"},
        {"{}", "says nothing about the document"},
        {R"({"title":"x","description":"y"})", "expected one, or `true` for any JSON document"},
        {"false", "nothing satisfies"},
        {R"({"allOf":[{"type":"string"},{"type":"null"}]})", "nothing satisfies"},
        {R"({"type":"text"})", "has the \"type\" \"text\""},
        {R"({"type":"object","propertes":{}})", "'propertes', which is no keyword; did you mean 'properties'?"},
        {R"({"properties":{"a":{"min_items":1}}})", "at /properties/a has 'min_items'"},
        {R"({"type":"string","format":"date","maxLength":3})", "\"format\" beside a length"},
        {R"({"type":"number","multipleOf":0.1})", "\"multipleOf\": 0.1, which is not supported"},
        {R"({"type":"array","items":{"type":"string"},"uniqueItems":true})", "\"uniqueItems\" over more than 500"},
        {R"({"type":"array","items":{"enum":[1,2,3,4,5,6]},"uniqueItems":true})", "\"uniqueItems\" over more than 500"},
        {R"({"prefixItems":[{"type":"string"},{"minLength":1}],"items":false,"uniqueItems":true})",
         "expected items of few values, or places that share none"},
        {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "numbers that are not whole cannot be said"},
        {R"({"type":"number","not":{"type":"integer"}})", "numbers that are not whole cannot be said"},
        {R"({"$ref":"#/definitions/none"})", "the \"$ref\" \"#/definitions/none\""},
        {R"({"oneOf":[{"pattern":"a"},{"maxLength":3}]})", "alternatives 0 and 1 may hold together"},
        {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", "a second \"pattern\" for the same text"},
        {R"({"type":"object","required":"a"})", "\"required\" that is no list"},
        {R"({"minimum":1e999})", "has a number beyond 1.8e308"},
        {R"({"name":"n","schema":{},"strct":true})", "a wrapper with the field 'strct'"},
        {R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}},"enum":[1],"$ref":"#/$defs/a"})",
         "cannot be compared with the value 1"}}) {
    CAPTURE(text);
    CHECK_THAT(error_of(ErrorKind::input, [&] { supported_schema(text, "s"); }), Contains(error));
  }
  // Schemas that would take hours, or the stack.
  SchemaJson wide, long_pattern = {{"enum", {"a"}}, {"pattern", std::string(100'000, 'a')}};
  for (const char letter : std::string("abcdefghijklmnopqrst")) {
    const std::string one(1, letter), two(2, letter);
    wide["properties"][one] = wide["properties"][two] = {{"type", "null"}};
    wide["oneOf"].push_back({{"required", {one, two}}});
  }
  for (const auto& [schema, error] :
       {std::pair(wide, "too many combinations of alternatives"), {long_pattern, "cannot be compared"}})
    CHECK_THAT(error_of(ErrorKind::input, [&] { supported_schema(schema.dump(), "s"); }), Contains(error));
}

}  // namespace
