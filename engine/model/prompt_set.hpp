// The prompts that speculation and drafting heads are measured on, by kind of work.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/grammar/grammar_source.hpp"
#include "engine/model/text_model.hpp"

namespace draftproof {

struct WorkPrompt {
  std::string where;  // "FILE, line 3"
  std::string work;   // code, prose, question, editing, or what the file says
  std::string prompt;
  bool chat = false;
  std::optional<GrammarSource> grammar;  // what the answer follows
};

struct Work {
  std::string name;
  std::vector<WorkPrompt> prompts;  // in the order of the file
};

struct PromptSet {
  std::vector<Work> works;  // in the order of their first prompts
  std::string sha256;       // of the file
};

// The file's prompts: an object a line, with `work` and `prompt`, and maybe `chat` and a grammar
// (grammar_source.hpp). Errors (input) name file and line;
// a file without prompts.
PromptSet read_prompt_set(const std::string& path);

// As the model reads it. Error (input) at the prompt's `where`: it asks for a chat, and the model has no chat
// template.
std::vector<Token> tokens_of(const WorkPrompt& prompt, const TextModel& model);

// The first `most` prompts of a kind of work; 0: all.
std::span<const WorkPrompt> first_prompts(const Work& work, std::int64_t most);

// The project's own set: ten prompts each of code, prose, question and editing.
std::string own_prompts();

}  // namespace draftproof
