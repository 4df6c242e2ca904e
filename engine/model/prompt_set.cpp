#include "engine/model/prompt_set.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/archives/sha256.hpp"
#include "base/files/input_file.hpp"
#include "base/files/own_files.hpp"
#include "base/json_lines.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kFileMax = std::uint64_t{1} << 26;
constexpr const char* kExample = R"({"work": "code", "prompt": "...", "chat": false})";

std::string text_of(const nlohmann::json& line, const char* key, const std::string& where) {
  if (!line.contains(key)) throw input_error(where, std::string("has no \"") + key + "\"; expected one in " + kExample);
  const nlohmann::json& value = line.at(key);
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    throw input_error(where, std::string("\"") + key + "\" is " + value.dump() + "; expected a text that is not empty");
  return value.get<std::string>();
}

WorkPrompt prompt_of(const nlohmann::json& line, const std::string& where) {
  for (const auto& item : line.items())
    if (item.key() != "work" && item.key() != "prompt" && item.key() != "chat" && !is_grammar_field(item.key()))
      throw input_error(where, "has the field \"" + item.key() +
                                   "\"; expected work, prompt, chat, or one of grammar, json_schema, regex and choice");
  WorkPrompt prompt{where, text_of(line, "work", where), text_of(line, "prompt", where), false, std::nullopt};
  for (const auto& [name, value] : line.items()) {
    if (!is_grammar_field(name)) continue;
    if (prompt.grammar)
      throw input_error(where, "has two grammars; expected one of grammar, json_schema, regex and choice");
    prompt.grammar = grammar_field(name, value, where);
  }
  if (line.contains("chat")) {
    if (!line.at("chat").is_boolean())
      throw input_error(where, "\"chat\" is " + line.at("chat").dump() + "; expected true or false");
    prompt.chat = line.at("chat").get<bool>();
  }
  return prompt;
}

}  // namespace

PromptSet read_prompt_set(const std::string& path) {
  const InputFile file(path, kFileMax);
  PromptSet set;
  set.sha256 = sha256_hex(file.text());
  for_each_json_line(path, file.text(), kExample, [&](const nlohmann::json& line, const std::string& where) {
    WorkPrompt prompt = prompt_of(line, where);
    auto work = std::ranges::find(set.works, prompt.work, &Work::name);
    if (work == set.works.end()) work = set.works.insert(work, {prompt.work, {}});
    work->prompts.push_back(std::move(prompt));
  });
  if (set.works.empty()) throw input_error(path, std::string("has no prompt; expected lines like ") + kExample);
  return set;
}

std::vector<Token> tokens_of(const WorkPrompt& prompt, const TextModel& model) {
  return prompt.chat ? model.chat_tokens(prompt.prompt, prompt.where) : model.tokenizer->encode(prompt.prompt);
}

std::span<const WorkPrompt> first_prompts(const Work& work, std::int64_t most) {
  const std::span<const WorkPrompt> prompts(work.prompts);
  return most > 0 ? prompts.first(std::min(prompts.size(), static_cast<std::size_t>(most))) : prompts;
}

std::string own_prompts() {
  return own_file("prompts.jsonl");
}

}  // namespace draftproof
