#include "cli/study/study_file.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "sim/toml.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kRunsMax = 10'000;

std::string text_of(const TomlValue& value) {
  switch (value.kind()) {
    case TomlValue::Kind::text:
      return value.text();
    case TomlValue::Kind::integer:
      return std::to_string(value.integer(INT64_MIN, INT64_MAX));
    case TomlValue::Kind::number: {
      std::ostringstream text;
      text << value.number();
      return text.str();
    }
    default:
      throw input_error(value.where(), "is no text and no number; expected a list of texts or numbers");
  }
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

bool is_file_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

// "NAME:/json/pointer" of a comparison's side, or a table with that as `items` beside the values of rows.
StudyItems items_of(const TomlValue& side) {
  StudyItems items;
  const TomlValue& value = side.kind() == TomlValue::Kind::table ? side.at("items") : side;
  if (side.kind() == TomlValue::Kind::table)
    for (const std::string& key : side.keys())
      if (key != "items") items.only.emplace_back(key, text_of(side.at(key)));
  const std::string& text = value.text();
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size() || text[colon + 1] != '/')
    throw input_error(value.where(), "is " + in_quotes(text) + "; expected RUN:/path/to/a/list of its document");
  items.run = text.substr(0, colon);
  items.pointer = text.substr(colon + 1);
  const bool stars = items.pointer.find("/*/") != std::string::npos;
  if (!items.only.empty() && !stars)
    throw input_error(side.where(), "chooses rows, and " + in_quotes(items.pointer) +
                                        " has none; expected a path with /*/, as /rows/*/requests");
  return items;
}

// Where a command says --out. Relative names are those of the run's own folder, and stay below it.
std::optional<std::size_t> out_of(const std::vector<std::string>& arguments, const std::string& where) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool joined = arguments[i].starts_with("--out=");
    if (!joined && (arguments[i] != "--out" || i + 1 == arguments.size())) continue;
    const std::size_t at = joined ? i : i + 1;
    const std::string path = joined ? arguments[at].substr(6) : arguments[at];
    if (*std::filesystem::path(path).lexically_normal().begin() == "..")
      throw input_error(where, "has --out " + in_quotes(path) +
                                   ", which leads out of the run's own folder; expected a name below it, a whole path, "
                                   "or no --out");
    return at;
  }
  return std::nullopt;
}

// Error (input): two runs would write one file, or a run that of the comparisons.
void require_files_of_their_own(const Study& study) {
  std::map<std::string, std::string> writers;
  if (!study.comparisons.empty()) writers["tables/comparisons"] = "the study, for its comparisons";
  const auto claim = [&](const StudyRun& run, const std::string& file) {
    const auto [other, is_new] = writers.try_emplace(file, "run " + in_quotes(run.name));
    if (!is_new)
      throw input_error(run.where, "run " + in_quotes(run.name) + " writes " + in_quotes(file) + ", and so does " +
                                       other->second + "; expected another name or --out");
  };
  for (const StudyRun& run : study.runs) {
    if (!run.rows.empty()) claim(run, "tables/" + run.name);
    if (run.figure)
      for (const FigureForm& form : kFigureForms) claim(run, "figures/" + run.name + form.suffix);
    if (!run.out) continue;
    const std::string& out = run.arguments[*run.out];
    const std::filesystem::path path = out.substr(out.starts_with("--out=") ? 6 : 0);
    if (path.is_absolute()) claim(run, (path / "").lexically_normal().string());
  }
}

void add_runs(const TomlValue& entry, Study& study) {
  entry.allow_only({"name", "command", "over", "rows", "columns", "figure"});
  struct Named {
    std::string name, command;
  };
  std::vector<Named> all{{entry.at("name").text(), entry.at("command").text()}};
  if (const TomlValue* over = entry.find("over"))
    for (const std::string& key : over->keys()) {
      std::vector<Named> more;
      for (const Named& one : all)
        for (const TomlValue& value : over->at(key).items()) {
          Named with = one;
          for (std::string* text : {&with.name, &with.command}) replace_all(*text, "{" + key + "}", text_of(value));
          more.push_back(with);
        }
      all = std::move(more);
      if (all.size() > kRunsMax)
        throw input_error(over->where(), "there are more than " + std::to_string(kRunsMax) + " combinations");
    }
  for (const Named& named : all) {
    StudyRun run;
    run.where = entry.at("name").where();
    run.name = named.name;
    if (!is_file_name(run.name))
      throw input_error(run.where, "is " + in_quotes(run.name) +
                                       "; expected letters, digits, and - _ . of a file name, with every key of `over` "
                                       "that there is in braces");
    if (std::ranges::find(study.runs, run.name, &StudyRun::name) != study.runs.end())
      throw input_error(run.where, "two runs are " + in_quotes(run.name) +
                                       "; expected names that differ, with the keys of `over` in braces");
    run.arguments = shell_arguments(named.command);
    for (const std::string& argument : run.arguments)
      for (const char* own : {"--json", "--table", "--figure", "--paper-width"})
        if (argument == own || argument.starts_with(std::string(own) + "="))
          throw input_error(entry.at("command").where(),
                            "has " + argument + ", which a study sets itself; expected the command without it");
    if (run.arguments.empty() || run.arguments.front() == "study" || run.arguments.front() == "dash")
      throw input_error(entry.at("command").where(), "is no command of a study; expected a verb and its options");
    run.out = out_of(run.arguments, entry.at("command").where());
    run.rows = entry.text_or("rows", "");
    run.columns = entry.texts_or_none("columns");
    if (run.rows.empty() != run.columns.empty())
      throw input_error(run.where, "has rows or columns alone; expected both: a list and the keys of its items");
    run.figure = entry.flag_or("figure", false);
    study.runs.push_back(run);
  }
}

}  // namespace

Study read_study(const std::string& path) {
  const TomlValue file = read_toml(path);
  file.allow_only({"title", "text", "run", "compare"});
  Study study;
  study.title = file.at("title").text();
  study.text = file.text_or("text", "");
  for (const TomlValue& entry : file.at("run").items()) add_runs(entry, study);
  if (const TomlValue* all = file.find("compare"))
    for (const TomlValue& entry : all->items()) {
      entry.allow_only({"title", "a", "b", "quantity", "per", "detect", "spread"});
      StudyComparison comparison;
      comparison.where = entry.at("title").where();
      comparison.title = entry.at("title").text();
      comparison.a = items_of(entry.at("a"));
      comparison.b = items_of(entry.at("b"));
      comparison.quantity = entry.at("quantity").text();
      comparison.per = entry.text_or("per", "");
      constexpr double kLeast = 1e-12, kMost = 1e12;
      if (const TomlValue* detect = entry.find("detect")) comparison.detect = detect->number(kLeast, kMost);
      if (const TomlValue* spread = entry.find("spread")) {
        comparison.spread = spread->number(kLeast, kMost);
        if (!comparison.detect)
          throw input_error(spread->where(), "has no use without detect, the difference that should show");
      }
      for (const auto& [key, run] : {std::pair("a", &comparison.a.run), std::pair("b", &comparison.b.run)})
        if (std::ranges::find(study.runs, *run, &StudyRun::name) == study.runs.end())
          throw input_error(entry.at(key).where(), "names the run " + in_quotes(*run) + ", which there is not");
      study.comparisons.push_back(comparison);
    }
  require_files_of_their_own(study);
  return study;
}

}  // namespace draftproof
