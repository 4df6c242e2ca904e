#include "cli/shared/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/shared/manual_page.hpp"

namespace draftproof {
namespace {

constexpr int kFilesMax = 1 << 16;

// "--num-speculative-tokens" of "-k,--num-speculative-tokens".
std::string long_name(const std::string& name) {
  return name.substr(name.rfind(',') + 1);
}

[[noreturn]] void refuse(const std::string& name, const std::string& text, const std::string& expected) {
  throw Error(ErrorKind::usage, "", long_name(name) + " is '" + text + "'; expected " + expected);
}

// Several values behind one name. An option of any number of them would take "[x]" for a list, and read x.
void take_many(CLI::Option& option) {
  option.expected(1, kFilesMax);
  if (option.get_positional()) option.allow_extra_args();  // positional ones behind the first
}

std::string type_of(IntegerRange range) {
  if (range.most == IntegerRange{}.most) return "INT";
  return "INT in [" + std::to_string(range.least) + ", " + std::to_string(range.most) + "]";
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

// The usage line of a positional argument: "file", or "[source...]" where it may be left out and given several times.
class UsageFormatter : public CLI::Formatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string text = make_option_name(option, true) + (option->get_expected_max() > 1 ? "..." : "");
    return option->get_required() ? text : "[" + text + "]";
  }
};

void require_text(const std::string& name, const std::string& text, const std::string& type) {
  if (text.empty())
    refuse(name, text, type == "FILE" ? "the name of a file" : type == "FOLDER" ? "the name of a folder" : "a text");
}

}  // namespace

// CLI11 takes "[x]" as a positional argument of any number of values for a list, and x out of it. Such arguments travel
// with a mark before them.
constexpr char kBracketMark = '\x01';

std::string marked(const std::string& argument) {
  return argument.starts_with('[') ? kBracketMark + argument : argument;
}

std::string unmarked(std::string argument) {
  std::erase(argument, kBracketMark);
  return argument;
}

// Message of CLI11, in the words of the other messages.
std::string message_of(const CLI::ParseError& error) {
  const std::string text = unmarked(error.what());
  const auto before = [&](const char* words) -> std::optional<std::string> {
    const std::size_t at = text.find(words);
    return at == std::string::npos ? std::nullopt : std::optional(text.substr(0, at));
  };
  if (const auto name = before(" was given a disallowed flag override")) return "--" + *name + " takes no value";
  if (const auto name = before(": At Most 1 required")) return *name + " is given several times; expected once";
  if (const auto name = before(": 1 required ")) {
    const std::size_t type = name->size() + std::string_view(": 1 required ").size();
    return *name + " has no value; expected " + text.substr(type, text.rfind(" missing") - type);
  }
  return text;
}

// Names that other programs give an option of ours.
struct OtherNames {
  const char* ours;
  std::vector<std::string> names;
};
const OtherNames kOtherNames[] = {
    {"--num-speculative-tokens",
     {"--k", "--gamma", "--draft", "--drafts", "--draft-len", "--draft-max", "--draft-tokens", "--num-draft-tokens",
      "--speculative-num-draft-tokens"}},
    {"--metrics-drafts", {"-k"}},
    {"--cfg-scale", {"--cfg", "--guidance", "--guidance-scale"}},
};

// Names the first of them alone: what stands behind an unknown option may be its value.
[[noreturn]] void refuse_extras(const CLI::App& verb) {
  const std::vector<std::string> extras = verb.remaining();
  const auto is_option = [](const std::string& text) { return text.size() > 1 && text.starts_with('-'); };
  const auto option = std::ranges::find_if(extras, is_option);
  const std::string see = " (see draftproof " + verb.get_name() + " --help)";
  if (option == extras.end())
    throw usage_error("", in_quotes(unmarked(extras.empty() ? "" : extras.front())) + " is not expected" + see);
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* declared : verb.get_options()) {
    for (const std::string& word : declared->get_snames()) known.push_back("-" + word);
    for (const std::string& word : declared->get_lnames()) known.push_back("--" + word);
  }
  std::string near = name.size() > 2 ? did_you_mean(name, known) : "";  // of one letter every other is near
  for (const OtherNames& others : kOtherNames)
    if (std::ranges::find(others.names, name) != others.names.end() &&
        std::ranges::find(known, others.ours) != known.end())
      near = std::string("; did you mean '") + others.ours + "'?";
  throw usage_error("", in_quotes(name) + " is not an option of " + verb.get_name() + near + see);
}

struct Options::Implementation {
  CLI::App program{"", "draftproof"};
  CLI::App* verb = nullptr;
  std::function<void()> run;
  std::function<bool(const Arguments&)> are_others;
  std::function<void(const Arguments&)> run_others;
  std::vector<std::function<void()>> checks;  // between parsing and running
  std::vector<std::string> maybe_flags;       // options of integer_or_flag()

  // `read` gets all that was given at once.
  CLI::Option* add(const std::string& name, const std::string& type, const std::string& default_text,
                   const std::string& help, std::function<void(const std::vector<std::string>&)> read) {
    const CLI::callback_t callback = [read = std::move(read)](std::vector<std::string> texts) {
      for (std::string& text : texts) text = unmarked(text);
      read(texts);
      return true;
    };
    CLI::Option* const added = verb->add_option(name, callback, help)->type_name(type);
    if (!default_text.empty()) added->default_str(default_text);
    return added;
  }
};

Options::Options(const std::string& verb, const std::string& purpose)
    : implementation_(std::make_unique<Implementation>()) {
  implementation_->verb = implementation_->program.add_subcommand(verb, purpose);
  implementation_->verb->formatter(std::make_shared<UsageFormatter>());
  implementation_->program.require_subcommand(1);
}

Options::~Options() = default;

std::int64_t Options::read_integer_option(const std::string& name, const std::string& text, IntegerRange range) {
  if (const auto number = read_integer(text, range.least, range.most)) return *number;
  refuse(name, text, expected_text(range));
}

double Options::read_number_option(const std::string& name, const std::string& text, NumberRange range) {
  if (const auto number = read_number(text, range)) return *number;
  refuse(name, text, expected_text(range));
}

std::string Options::text_of(double value) {
  return draftproof::number("%g", value);
}

void Options::integers(const std::string& name, std::vector<int>& values, IntegerRange range, const std::string& help) {
  option(name, type_of(range) + ",...", "", help, [=, &values](const std::string& text) {
    const std::vector<std::int64_t> read = read_integers(text, long_name(name), "number", range);
    values.assign(read.begin(), read.end());
  });
}

void Options::numbers(const std::string& name, std::vector<double>& values, const NumberRange& range,
                      const std::string& help) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(text_of(value));
  option(name, "NUMBER,...", joined(texts, ","), help,
         [=, &values](const std::string& text) { values = read_numbers(text, long_name(name), "number", range); });
}

void Options::integer_or_flag(const std::string& name, std::optional<std::int64_t>& value, IntegerRange range,
                              std::int64_t implied, const std::string& help) {
  const auto read = [=, &value](const std::vector<std::string>& texts) {
    value = texts.empty() ? implied : read_integer_option(name, texts.front(), range);
  };
  implementation_->add(name, type_of(range), std::to_string(implied), help, read)->expected(0, 1);
  implementation_->maybe_flags.push_back(name);
}

void Options::seed(std::uint64_t& value, const std::string& help) {
  option("--seed", "UINT", std::to_string(value), help, [&value](const std::string& text) {
    const auto number = read_unsigned(text);
    if (!number) refuse("--seed", text, "a whole number in [0, 2^64)");
    value = *number;
  });
}

void Options::threads(int& value, const std::string& help) {
  value = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  integer("--threads", value, kThreadRange, help);
}

void Options::text(const std::string& name, std::string& value, const std::string& help, const std::string& type) {
  // A study gives every run a folder of its own.
  if (const char* const own = std::getenv("DRAFTPROOF_OUT"); own != nullptr && name == "--out" && !value.empty())
    value = own;
  option(name, type, value, help, [=, &value](const std::string& text) {
    require_text(name, text, type);
    value = text;
  });
}

void Options::required_text(const std::string& name, std::string& value, const std::string& help,
                            const std::string& type) {
  text(name, value, help, type);
  implementation_->verb->get_option(name)->required();
}

void Options::texts(const std::string& name, std::vector<std::string>& values, const std::string& help,
                    const std::string& type) {
  const auto read = [name, type, &values](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) require_text(name, text, type);
    values = texts;
  };
  CLI::Option* const added = implementation_->add(name, type, "", help, read);
  // An option takes one value each time, since a positional one may stand behind it.
  if (name.starts_with('-'))
    added->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  else
    take_many(*added);
}

void Options::files(const std::string& name, std::vector<std::string>& paths, const std::string& help) {
  texts(name, paths, help, "FILE");
  take_many(*implementation_->verb->get_option(name));
}

void Options::names(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  option(name, "NAME,...", "", help, [=, &values](const std::string& text) {
    values.clear();
    for (const std::string_view value : split(text, ',')) {
      if (value.empty()) refuse(name, text, "names with a comma between two");
      values.emplace_back(value);
    }
  });
}

void Options::free_text(const std::string& name, std::string& value, const std::string& help) {
  option(name, "TEXT", value, help, [&value](const std::string& text) { value = text; });
}

void Options::free_text(const std::string& name, std::optional<std::string>& value, const std::string& help) {
  option(name, "TEXT", "", help, [&value](const std::string& text) { value = text; });
}

void Options::choice(const std::string& name, std::string& value, const std::vector<std::string>& words,
                     const std::string& help) {
  option(name, "{" + joined(words, ",") + "}", value, help, [=, &value](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) == words.end())
      refuse(name, text, joined(words, " or ") + did_you_mean(text, words));
    value = text;
  });
}

void Options::flag(const std::string& name, bool& value, const std::string& help) {
  implementation_->verb->add_flag(name, value, help)->disable_flag_override();
}

void Options::json(bool& wanted) {
  flag("--json", wanted, "One JSON document on standard output (schema: docs/json.md)");
}

void Options::option(const std::string& name, const std::string& type, const std::string& default_text,
                     const std::string& help, Reader read) {
  implementation_->add(name, type, default_text, help, [read = std::move(read)](const std::vector<std::string>& texts) {
    read(texts.empty() ? "" : texts.front());
  });
}

void Options::used_only(const std::vector<std::string>& names, const std::string& when_not,
                        const std::function<bool()>& used) {
  for (const std::string& name : names) {
    const CLI::Option* const option = implementation_->verb->get_option(name);
    implementation_->checks.push_back([=] {
      if (option->count() > 0 && !used()) throw usage_error(name, "has no use " + when_not);
    });
  }
}

void Options::footer(const std::string& text) {
  const std::string before = implementation_->verb->get_footer();
  implementation_->verb->footer(before.empty() ? text : before + "\n\n" + text);
}

void Options::examples(const std::vector<std::string>& commands) {
  std::string text = "Examples:";
  for (const std::string& command : commands)
    text += "\n  draftproof " + implementation_->verb->get_name() + (command.empty() ? "" : " " + command);
  footer(text);
}

void Options::on_run(std::function<void()> run) {
  implementation_->run = std::move(run);
}

void Options::on_other_arguments(std::function<bool(const Arguments&)> are_others,
                                 std::function<void(const Arguments&)> run) {
  implementation_->are_others = std::move(are_others);
  implementation_->run_others = std::move(run);
}

// The manual page of a verb. Its defaults are those of every machine: not how many threads there are, nor where the
// program lies.
std::string manual_page_of(const CLI::App& verb) {
  const std::string& name = verb.get_name();
  std::string page = manual_title("draftproof-" + name, verb.get_description()) + ".SH SYNOPSIS\n.B draftproof " +
                     name + "\n[OPTIONS]";
  std::string arguments;
  std::string options;
  for (const CLI::Option* const option : verb.get_options()) {
    const std::string written = option->get_name(option->get_positional(), true);
    std::string default_text = written == "--threads" ? "" : option->get_default_str();
    if (const std::size_t at = default_text.find(program_prefix().string()); at != std::string::npos)
      default_text.replace(at, program_prefix().string().size(), "PREFIX");
    const std::string type = option->get_type_size() == 0 ? "" : option->get_type_name();
    std::string entry = ".TP\n.B " + roff(written) + "\n";
    if (!type.empty()) entry.insert(entry.size() - 1, " \\fR" + roff(type));
    entry +=
        roff(option->get_description()) + (default_text.empty() ? "" : " (default: " + roff(default_text) + ")") + "\n";
    if (option->get_positional()) {
      page += " " + std::string(option->get_required() ? "" : "[") + roff(option->get_single_name()) +
              (option->get_expected_max() > 1 ? "..." : "") + (option->get_required() ? "" : "]");
      arguments += entry;
    } else {
      options += entry;
    }
  }
  page += '\n';
  if (!arguments.empty()) page += ".SH ARGUMENTS\n" + arguments;
  page += ".SH OPTIONS\n" + options;
  if (!verb.get_footer().empty()) page += ".SH NOTES\n.nf\n" + roff(verb.get_footer()) + "\n.fi\n";
  return page + manual_end();
}

void Options::parse_and_run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 2 && arguments.back() == "--manual-page") {
    std::cout << manual_page_of(*implementation_->verb);
    return;
  }
  const bool is_check = std::getenv("DRAFTPROOF_CHECK") != nullptr;  // only options are looked at: study
  const Arguments behind(arguments.begin() + 1, arguments.end());
  if (implementation_->are_others && implementation_->are_others(behind)) {
    if (!is_check) implementation_->run_others(behind);
    return;
  }
  for (const std::string& name : implementation_->maybe_flags)  // which CLI11 takes for the flag
    if (std::ranges::find(arguments, name + "=") != arguments.end()) refuse(name, "", "a whole number behind =");
  CLI::App& program = implementation_->program;
  std::vector<std::string> backwards;  // which CLI11 wants
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument)
    backwards.push_back(marked(*argument));
  try {
    program.parse(backwards);
  } catch (const CLI::Success& help) {
    program.exit(help);
    return;
  } catch (const CLI::ExtrasError&) {
    refuse_extras(*implementation_->verb);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, "",
                message_of(error) + " (see draftproof " + implementation_->verb->get_name() + " --help)");
  }
  for (const auto& check : implementation_->checks) check();
  if (!is_check) implementation_->run();
}

}  // namespace draftproof
