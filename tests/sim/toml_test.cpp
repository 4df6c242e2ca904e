// TOML files as values: strict readers, and messages with file and line.
#include "sim/toml.hpp"
#include "tests/support/test.hpp"

TEST_CASE("A TOML file becomes tables, arrays, texts, numbers and flags, keys in the file's order") {
  const TomlValue file = parse_toml("b = 1\na = \"x\"\n[t]\nz = [1.5, 2]\ny = true\n", "f.toml");
  CHECK(file.keys() == std::vector<std::string>{"b", "a", "t"});
  CHECK(file.at("b").integer(0, 1) == 1);
  CHECK(file.at("b").number() == 1.0);
  CHECK(file.at("a").text() == "x");
  CHECK(file.at("t").at("z").items().at(0).number() == 1.5);
  CHECK(file.at("t").at("z").items().at(1).number() == 2.0);
  CHECK(file.at("t").flag_or("y", false));
  CHECK(file.at("t").flag_or("absent", true));
  CHECK(file.texts_or_none("a") == std::vector<std::string>{"x"});
  CHECK(file.find("absent") == nullptr);
}

TEST_CASE("What is wrong in a TOML file is named with file, line and the dotted name of the value") {
  const TomlValue file = parse_toml("[gpu]\nmemory_gb = -1\nname = 3\nbandwith = 2\nbad = nan\n", "f.toml");
  const TomlValue& gpu = file.at("gpu");
  CHECK_THROWS_WITH(gpu.at("memory_gb").number(0.1, 100),
                    "f.toml:2: gpu.memory_gb: it is -1; expected a number in [0.1, 100]");
  CHECK_THROWS_WITH(gpu.at("memory_gb").integer(1, 9),
                    "f.toml:2: gpu.memory_gb: it is -1; expected a whole number in [1, 9]");
  CHECK_THROWS_WITH(gpu.at("name").text(), "f.toml:3: gpu.name: it is a whole number; expected a text");
  CHECK_THROWS_WITH(gpu.at("bad").number(), Catch::StartsWith("f.toml:5: gpu.bad: it is nan"));
  CHECK_THROWS_WITH(gpu.at("width"), "f.toml:1: gpu: it has no 'width'");
  CHECK_THROWS_WITH(gpu.allow_only({"memory_gb", "name", "bandwidth", "bad"}),
                    "f.toml:4: gpu.bandwith: unknown key 'bandwith'; expected one of memory_gb, name, bandwidth, bad");
  CHECK_THROWS_WITH(parse_toml("a = 1\nb = \n", "f.toml"), Catch::StartsWith("f.toml:2: it is not TOML"));
  CHECK_THROWS_WITH(parse_toml("[(]\n", "f.toml"), Catch::StartsWith("f.toml:1: it is not TOML"));
  CHECK_THROWS_WITH(parse_toml("d = 2026-01-01\n", "f.toml"), Contains("f.toml:1: d: it is a date"));
  CHECK_THROWS_AS(read_toml("/nowhere/f.toml"), Error);
}

TEST_CASE("TOML that nests too deep is refused by line, whatever makes it deep, and strings make nothing deep") {
  const auto repeated = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  const std::string deep = "a" + repeated(" . 'a.b.c'", 20000);
  for (const std::string& line : {deep + " = 1", "[" + deep + "]", "[[" + deep + "]]", "x = { " + deep + " = 1 }"})
    CHECK_THROWS_WITH(parse_toml("a = 1\n" + line + "\n", "f.toml"), "f.toml:2: a key has more than 16 parts");
  for (const std::string open : {"[", "{ a = "})
    CHECK_THROWS_WITH(parse_toml("t = \"\"\"\n[\"\"\"\n# [\nx = " + repeated(open, 33), "f.toml"),
                      "f.toml:4: it nests deeper than 32 levels");
  CHECK(parse_toml("a" + repeated(".'a.b'", 15) + " = 1", "f.toml").keys().size() == 1);

  const std::string many = repeated("[.", 100);
  const TomlValue file = parse_toml("a = \"" + many + "\\\"" + many + "\" # " + many + "\nb = '''\n" + many +
                                        "''''\nc = [" + repeated("0.5, ", 40) + "]\nd = 'C:\\' # '" + many + "\n",
                                    "f.toml");
  CHECK(file.at("a").text() == many + "\"" + many);
  CHECK(file.at("b").text() == many + "'");
  CHECK(file.at("c").items().size() == 40);
  CHECK(file.at("d").text() == "C:\\");
}

TEST_CASE("A table with another value under a dotted name keeps the rest, and the value its own place") {
  const TomlValue file = parse_toml("a = { b = 1, c = 2 }\nlist = [{ x = 1 }, { x = 2 }]\n", "f.toml");
  const TomlValue grid = parse_toml("\n\nvalue = 7\n", "g.toml");
  const TomlValue& seven = grid.at("value");
  const TomlValue changed = file.with("a.b", seven).with("list.1.x", seven).with("a.d", seven);
  CHECK(changed.at("a").at("b").integer(0, 9) == 7);
  CHECK(changed.at("a").at("c").integer(0, 9) == 2);
  CHECK(changed.at("a").at("d").integer(0, 9) == 7);
  CHECK(changed.at("list").items()[1].at("x").integer(0, 9) == 7);
  CHECK(changed.at("list").items()[0].at("x").integer(0, 9) == 1);
  CHECK(file.at("a").at("b").integer(0, 9) == 1);
  CHECK_THROWS_WITH(changed.at("a").at("b").integer(0, 3), Catch::StartsWith("g.toml:3: value: it is 7"));
  CHECK_THROWS_WITH(file.with("e.b", seven), "g.toml:3: value: there is no 'e' in f.toml:1");
  CHECK_THROWS_WITH(file.with("list.2.x", seven), "g.toml:3: value: there is no '2' in f.toml:2: list");
}

TEST_CASE("A text written as a TOML string is read back as it was") {
  for (const std::string text : {"", "plain", "a \"quote\" and a \\", "tab\tline\nend"})
    CHECK(parse_toml("t = " + toml_quoted(text), "f").at("t").text() == text);
}
