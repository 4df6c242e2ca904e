// The command line of a verb: its options, their help, defaults and limits. Behind it stands CLI11, which options.cpp
// alone includes.
//
//   void add_command(Options& options, ProgramContext& context) {
//     const auto arguments = std::make_shared<Arguments>();
//     options.integer("--tokens", arguments->tokens, {1, 20'000}, "Tokens of the text");
//     options.number("--top-p", arguments->top_p, kNucleusRange, "Nucleus");
//     options.choice("--sampler", arguments->sampler, {"inverse", "race"}, "How a token is drawn");
//     options.json(arguments->json);
//     options.on_run([arguments, &context] { run(*arguments, context); });
//   }
//
// A declared variable holds its default, which the help shows; an optional one has none and stays empty unless the
// option is given. Variables must live until on_run's function returns.
//
// Values are read strictly (base/strict_number.hpp): no empty text, "010", "-1" for a count, 2^64, "nan" or "1x".
// A refusal is an Error (usage) in one sentence, as "--top-p is '1.5'; expected a number in (0, 1]".
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/strict_number.hpp"

namespace draftproof {

inline constexpr NumberRange kShareRange{0.0, 1.0};
// Range of top-p, which must not be 0 as a float either.
inline constexpr NumberRange kNucleusRange{std::numeric_limits<float>::denorm_min(), 1.0, false, "a number in (0, 1]"};
// Range of temperatures: below 1e-6 divided logits leave the range of the fixed-point masses.
inline constexpr NumberRange kTemperatureRange{1e-6, std::numeric_limits<float>::max(), true,
                                               "0 (greedy) or a finite number from 1e-6"};
inline constexpr IntegerRange kTopKRange{0, std::numeric_limits<std::int32_t>::max()};
inline constexpr IntegerRange kThreadRange{1, 1024};

class Options {
 public:
  // Called with the text of an option each time it is given; throws Error.
  using Reader = std::function<void(const std::string&)>;

  Options(const std::string& verb, const std::string& purpose);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // --- Declarations. `name` is "--name" or "-n,--name"; without dashes it is a positional argument.
  // ------

  // Value: an integer type or an optional of one.
  template <class Value>
  void integer(const std::string& name, Value& value, IntegerRange range, const std::string& help) {
    option(name, "INT", text_of(value), help,
           [=, &value](const std::string& text) { assign(value, read_integer_option(name, text, range)); });
  }
  // Several, as 1,2,4 and 0.5,0.3.
  void integers(const std::string& name, std::vector<int>& values, IntegerRange range, const std::string& help);
  void numbers(const std::string& name, std::vector<double>& values, const NumberRange& range, const std::string& help);
  // Without an argument the option stands for `implied`.
  void integer_or_flag(const std::string& name, std::optional<std::int64_t>& value, IntegerRange range,
                       std::int64_t implied, const std::string& help);
  // Value: float, double or an optional of one.
  template <class Value>
  void number(const std::string& name, Value& value, NumberRange range, const std::string& help) {
    option(name, "NUMBER", text_of(value), help,
           [=, &value](const std::string& text) { assign(value, read_number_option(name, text, range)); });
  }
  // "--seed", a whole number in [0, 2^64).
  void seed(std::uint64_t& value, const std::string& help);
  // "--threads"; all cores unless `value` says otherwise.
  void threads(int& value, const std::string& help = "Threads; they change no result");
  // A text that is not empty. `type` is what the help calls it.
  void text(const std::string& name, std::string& value, const std::string& help, const std::string& type = "TEXT");
  void required_text(const std::string& name, std::string& value, const std::string& help, const std::string& type);
  void file(const std::string& name, std::string& path, const std::string& help) { text(name, path, help, "FILE"); }
  // Several texts that are not empty: the option given several times, or positional arguments behind one another.
  void texts(const std::string& name, std::vector<std::string>& values, const std::string& help,
             const std::string& type);
  // The same of files, of which one option may also take several.
  void files(const std::string& name, std::vector<std::string>& paths, const std::string& help);
  // Several names, as a,b,c.
  void names(const std::string& name, std::vector<std::string>& values, const std::string& help);
  // A text that may be empty.
  void free_text(const std::string& name, std::string& value, const std::string& help);
  void free_text(const std::string& name, std::optional<std::string>& value, const std::string& help);
  // One of some words.
  void choice(const std::string& name, std::string& value, const std::vector<std::string>& words,
              const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  // "--json", which every verb has: one JSON document on standard output instead of text.
  void json(bool& wanted);
  // Anything else: `read` gets the text, which is not empty.
  void option(const std::string& name, const std::string& type, const std::string& default_text,
              const std::string& help, Reader read);
  // Declares options that have a use only at times: a usage error where one of `names` is given and `used` says no, as
  // "--model: has no use without --this-machine", where `when_not` is "without --this-machine".
  void used_only(const std::vector<std::string>& names, const std::string& when_not, const std::function<bool()>& used);
  // A paragraph at the end of the help; several stand below one another.
  void footer(const std::string& text);
  // Commands that show what the verb is for, at the end of the help; each is what stands behind the verb's name.
  void examples(const std::vector<std::string>& commands);

  // Runs the verb once its options are read.
  void on_run(std::function<void()> run);
  // Arguments behind the verb for which `are_others` says so are not read: `run` hands them to another program.
  using Arguments = std::vector<std::string>;
  void on_other_arguments(std::function<bool(const Arguments&)> are_others, std::function<void(const Arguments&)> run);

  // --- For the main program.
  // ---------------------------------------------------------------------------------------------

  // Reads the arguments behind the verb and runs what on_run() was given, or prints the help, or the manual page for
  // --manual-page alone. Error (usage) for what was not declared, is missing or is out of range.
  void parse_and_run(const std::vector<std::string>& arguments);

 private:
  static std::int64_t read_integer_option(const std::string& name, const std::string& text, IntegerRange range);
  static double read_number_option(const std::string& name, const std::string& text, NumberRange range);

  template <class Value, class Number>
  static void assign(Value& value, Number number) {
    value = static_cast<Value>(number);
  }
  template <class Value, class Number>
  static void assign(std::optional<Value>& value, Number number) {
    value = static_cast<Value>(number);
  }
  static std::string text_of(std::int64_t value) { return std::to_string(value); }
  static std::string text_of(int value) { return std::to_string(value); }
  static std::string text_of(double value);
  static std::string text_of(float value) { return text_of(static_cast<double>(value)); }
  template <class Value>
  static std::string text_of(const std::optional<Value>&) {
    return "";
  }

  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace draftproof
