// Options of every kind with values that fit and values that do not.
#include "cli/shared/options.hpp"

#include "base/printable.hpp"
#include "tests/support/test.hpp"

namespace {

struct Values {
  std::int32_t count = 3;
  std::optional<std::int64_t> maybe;
  double share = 0.5;
  std::optional<float> temperature;
  std::uint64_t seed = 0;
  std::string name = "anna";
  std::string prompt = "text";
  std::string kind = "inverse";
  std::vector<int> list;
  std::vector<std::string> names;
  std::vector<std::string> files;
  std::optional<std::int64_t> batteries;
  bool flag = false;
  bool json = false;
  int threads = 0;
  bool ran = false;
};

// The values after parsing.
Values parse(std::vector<std::string> arguments) {
  Values v;
  Options options("verb", "A verb for tests");
  options.integer("-c,--count", v.count, {1, 10}, "A count");
  options.integer("--maybe", v.maybe, {-5, 5}, "A count or none");
  options.number("--share", v.share, kShareRange, "A share");
  options.number("--temperature", v.temperature, kTemperatureRange, "A temperature");
  options.seed(v.seed, "A seed");
  options.text("--name", v.name, "A text");
  options.free_text("--prompt", v.prompt, "A text or none");
  options.choice("--kind", v.kind, {"inverse", "race"}, "A kind");
  options.integers("--list", v.list, {1, 10}, "Counts");
  options.names("--names", v.names, "Names");
  options.files("--files", v.files, "Files");
  options.integer_or_flag("--batteries", v.batteries, {1, 100}, 10, "Batteries");
  options.flag("--flag", v.flag, "A flag");
  options.json(v.json);
  options.threads(v.threads);
  options.used_only({"--maybe", "--flag"}, "without --kind race", [&] { return v.kind == "race"; });
  options.on_run([&] { v.ran = true; });
  arguments.insert(arguments.begin(), "verb");
  options.parse_and_run(arguments);
  return v;
}

std::string refusal(const std::vector<std::string>& arguments) {
  return error_of(ErrorKind::usage, [&] { parse(arguments); });
}

TEST_CASE("options keep their defaults and take what is given") {
  const Values none = parse({});
  CHECK(none.ran);
  CHECK(none.count == 3);
  CHECK_FALSE(none.maybe);
  CHECK_FALSE(none.temperature);
  CHECK(none.name == "anna");
  CHECK(none.threads >= 1);
  const Values all = parse(shell_arguments(
      "-c 10 --maybe -5 --share 0.25 --temperature 0 --seed 18446744073709551615 --name bob --prompt '' --kind race "
      "--list 1,10 --names a,b --files x y --batteries --flag --json --threads 1024"));
  CHECK(all.count == 10);
  CHECK(all.maybe == -5);
  CHECK(all.share == 0.25);
  CHECK(all.temperature == 0.0f);
  CHECK(all.seed == ~std::uint64_t{0});
  CHECK(all.name == "bob");
  CHECK(all.prompt.empty());
  CHECK(all.kind == "race");
  CHECK(all.list == std::vector{1, 10});
  CHECK(all.names == std::vector<std::string>{"a", "b"});
  CHECK(all.files == std::vector<std::string>{"x", "y"});
  CHECK(all.batteries == 10);
  CHECK(all.flag);
  CHECK(all.json);
  CHECK(all.threads == 1024);
  CHECK(parse({"--batteries", "7"}).batteries == 7);
}

TEST_CASE("Several files may stand without an option's name, before options and behind them") {
  std::vector<std::string> files;
  int count = 0;
  const auto parse_files = [&](const std::vector<std::string>& arguments) {
    Options options("verb", "A verb for tests");
    options.files("file", files, "Files");
    options.integer("--count", count, {0, 10}, "A count");
    options.on_run([] {});
    options.parse_and_run(arguments);
  };
  parse_files({"verb", "a", "b:c", "--count", "3", "d"});
  CHECK(files == std::vector<std::string>{"a", "b:c", "d"});
  CHECK(count == 3);
  parse_files({"verb", "[x]", "[y,z]", "w"});  // names like any other
  CHECK(files == std::vector<std::string>{"[x]", "[y,z]", "w"});
  CHECK(parse({"--files", "x", "[y,z]", "--count", "3"}).files == std::vector<std::string>{"x", "[y,z]"});
}

TEST_CASE("an option of texts takes one value each time, so that a positional one may stand behind it") {
  std::vector<std::string> changes;
  std::string file;
  Options options("verb", "A verb for tests");
  options.text("file", file, "A file", "FILE");
  options.texts("--set", changes, "Changes", "KEY=VALUE");
  options.on_run([] {});
  options.parse_and_run(std::vector<std::string>{"verb", "--set", "a=1", "--set", "[b]", "chat"});
  CHECK(changes == std::vector<std::string>{"a=1", "[b]"});
  CHECK(file == "chat");
}

TEST_CASE("a value that does not fit is refused in a sentence that names the option, the value and what was expected") {
  CHECK(refusal({"--count", "11"}) == "--count is '11'; expected a whole number in [1, 10]");
  CHECK(refusal({"-c", "010"}) == "--count is '010'; expected a whole number in [1, 10]");
  CHECK(refusal({"--share", "nan"}) == "--share is 'nan'; expected a number in [0, 1]");
  CHECK(refusal({"--temperature", "1e-7"}) ==
        "--temperature is '1e-7'; expected 0 (greedy) or a finite number from 1e-6");
  CHECK(refusal({"--seed", "-1"}) == "--seed is '-1'; expected a whole number in [0, 2^64)");
  CHECK(refusal({"--seed", "18446744073709551616"}) ==
        "--seed is '18446744073709551616'; expected a whole number in [0, 2^64)");
  CHECK(refusal({"--kind", "gumbel"}) == "--kind is 'gumbel'; expected inverse or race");
  CHECK(refusal({"--list", "1,11"}) == "--list: number 2 is '11'; expected a whole number in [1, 10]");
  CHECK(refusal({"--name", ""}) == "--name is ''; expected a text");
  CHECK(refusal({"--names", "a,,b"}) == "--names is 'a,,b'; expected names with a comma between two");
  CHECK(refusal({"--files", "x", ""}) == "--files is ''; expected the name of a file");
}

TEST_CASE("an option without its value, given twice, or a flag with a value is refused with what was expected") {
  const std::string help = " (see draftproof verb --help)";
  CHECK(refusal({"--count"}) == "--count has no value; expected INT" + help);
  CHECK(refusal({"--name="}) == "--name has no value; expected TEXT" + help);
  CHECK(refusal({"--count", "1", "--count", "2"}) == "--count is given several times; expected once" + help);
  CHECK(refusal({"--flag=1"}) == "--flag takes no value" + help);
  CHECK(refusal({"--batteries="}) == "--batteries is ''; expected a whole number behind =");
  CHECK(refusal({"--no-such"}).find("--no-such") != std::string::npos);
  CHECK_FALSE(refusal({"word"}).empty());
}

TEST_CASE("no option takes an empty value, a sign it has no use for, another base, infinity or trailing characters") {
  for (const char* option :
       {"--count", "--maybe", "--share", "--temperature", "--seed", "--list", "--batteries", "--threads"}) {
    for (const char* value : {"", " ", "nan", "inf", "-inf", "010", "0x1", "1x", "+1", "1 ", "[1]", "[1,1]",
                              "99999999999999999999", "1e999"}) {
      // 1e20 is a temperature; and what may stand alone takes a dash for the next option.
      if (option == std::string("--temperature") && value == std::string("99999999999999999999")) continue;
      if (option == std::string("--batteries") && value[0] == '-') continue;
      INFO(option << " '" << value << "'");
      const std::string message = refusal({option, value});
      CHECK(message.find(option) == 0);
      CHECK(message.find("; expected ") != std::string::npos);
    }
  }
  for (const char* option : {"--name", "--kind", "--names", "--files"}) CHECK(refusal({option, ""}).find(option) == 0);
}

TEST_CASE("an option that has no use with the others is refused, and not ignored") {
  CHECK(refusal({"--maybe", "2"}) == "--maybe: has no use without --kind race");
  CHECK(refusal({"--flag"}) == "--flag: has no use without --kind race");
  CHECK(parse({"--maybe", "2", "--kind", "race"}).maybe == 2);
}

}  // namespace
