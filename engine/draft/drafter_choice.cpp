#include "engine/draft/drafter_choice.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/near_names.hpp"
#include "base/strict_number.hpp"
#include "engine/heads/head_files.hpp"

namespace draftproof {
namespace {

constexpr std::int64_t kLayersMax = 4096;

Error unknown(std::string_view text, const std::string& where) {
  const std::vector<std::string> names{"none",       "prompt_lookup", "suffix", "grammar", "model",
                                       "layer_skip", "requantised",   "ngram",  "head"};
  const std::string_view name = text.substr(0, text.find_first_of(":@"));
  const bool known = std::ranges::find(names, name) != names.end();
  return usage_error(where, "is '" + std::string(text) +
                                "'; expected none, prompt_lookup, suffix, model:PATH, head:PATH, layer_skip:LIST (as "
                                "10-14,20), requantised:BITS (2 to 8), of n-gram models ngram:ORDER (1 to 12), or "
                                "grammar, alone or before one of "
                                "these as grammar+suffix, or suffix+NAME" +
                                (known ? "" : did_you_mean(name, names)));
}

}  // namespace

DrafterChoice parse_drafter(std::string_view text, const std::string& where) {
  for (const DrafterKind first : {DrafterKind::grammar, DrafterKind::suffix}) {
    const std::string_view name = first == DrafterKind::grammar ? "grammar" : "suffix";
    if (!text.starts_with(std::string(name) + "+")) continue;
    DrafterChoice choice = parse_drafter(text.substr(name.size() + 1), where);
    if (choice.kind == DrafterKind::none || choice.kind == DrafterKind::grammar || choice.kind == first ||
        choice.first != DrafterKind::none)
      throw usage_error(where, "is '" + std::string(text) + "'; expected " + std::string(name) +
                                   " alone, or one other drafter behind +");
    choice.first = first;
    choice.text = text;
    return choice;
  }
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view argument = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  DrafterChoice choice;
  choice.text = text;
  const bool bare = colon == std::string_view::npos;
  if (bare && name == "none") return choice;
  const std::pair<std::string_view, DrafterKind> bare_kinds[] = {{"prompt_lookup", DrafterKind::prompt_lookup},
                                                                 {"suffix", DrafterKind::suffix},
                                                                 {"grammar", DrafterKind::grammar}};
  for (const auto& [known, kind] : bare_kinds) {
    if (!bare || name != known) continue;
    choice.kind = kind;
    return choice;
  }
  if (argument.empty()) throw unknown(text, where);
  if (name == "model") {
    choice.kind = DrafterKind::model;
    choice.path = argument;
    return choice;
  }
  if (name == "head" || name.starts_with("head@")) {
    choice.kind = DrafterKind::head;
    choice.path = argument;
    choice.as_in_file = name == "head@file";
    if (name == "head" || choice.as_in_file) return choice;
    const auto bits = read_integer(name.substr(5), 2, 8);
    if (!bits)
      throw usage_error(
          where, "is '" + std::string(text) + "'; expected head:PATH, head@file:PATH or head@BITS:PATH, 2 to 8 bits");
    choice.number = static_cast<int>(*bits);
    return choice;
  }
  if (name == "layer_skip") {
    choice.kind = DrafterKind::layer_skip;
    choice.left_out = read_ascending_ranges(argument, where, "layer", {0, kLayersMax});
    return choice;
  }
  const bool is_ngram = name == "ngram";
  const auto number = is_ngram ? read_integer(argument, 1, 12) : read_integer(argument, 2, 8);
  if (!number || (!is_ngram && name != "requantised")) throw unknown(text, where);
  choice.kind = is_ngram ? DrafterKind::ngram : DrafterKind::requantised;
  choice.number = static_cast<int>(*number);
  return choice;
}

namespace {

bool has_head_inside(const std::string& path) {
  try {
    return mtp_layers_inside(path) == 1;
  } catch (const Error&) {  // opening the model says what is wrong with it
    return false;
  }
}

}  // namespace

std::string automatic_drafter(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return "suffix";
  const fs::path folder = fs::is_directory(path, ignored) ? fs::path(path) : fs::path(path).parent_path();
  for (const auto& [kind, name] : {std::pair{"head:", "head"}, std::pair{"model:", "draft"}}) {
    if (fs::exists(folder / name / "config.json", ignored)) return kind + (folder / name).string();
    const fs::path file = folder / (std::string(name) + ".gguf");
    if (fs::is_regular_file(file, ignored)) return kind + file.string();
    if (std::string_view(name) == "head" && has_head_inside(path)) return kind + path;
  }
  return "suffix";
}

}  // namespace draftproof
