// draftproof start: a few questions, then the one command.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/json_values.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"

namespace draftproof {
namespace {

enum class AnswerKind { word, file, address };  // a file must be there
struct StartQuestion {
  const char* text;
  const char* example;  // taken where nothing is answered; empty: the words with it are left out
  AnswerKind kind = AnswerKind::word;
};
struct StartPath {
  std::string name;
  const char* have;
  std::vector<StartQuestion> questions;
  std::vector<std::string> command;  // %1: the first answer; an option stands before its value
  const char* next;
};

const std::vector<StartPath>& start_paths() {
  static const StartQuestion kModel{"Which model?", "Llama-3.1-8B"};
  static const StartQuestion kGpu{"On which GPU?", "H100"};
  static const StartQuestion kModule{"In which Python module?", "my_kernels"};
  static const std::vector<StartPath> kPaths{
      {"log",
       "a server's log, its metrics or a benchmark of it",
       {{"Which file?", "server.log", AnswerKind::file},
        kGpu,
        {"Which model, if the file does not say it?", ""},
        {"Which drafter, if the file does not say it?", ""}},
       {"draftproof", "predict", "%1", "--gpu", "%2", "--model", "%3", "--drafter", "%4"},
       "draftproof read FILE shows what it says; of a file that does not name model or drafter they are the third and "
       "fourth answer. docs/should_i.md reads the answer; --write-config vllm|sglang|trtllm|llama.cpp prints the "
       "engine's settings"},
      {"server",
       "a server that runs, and its address",
       {{"Which address?", "http://127.0.0.1:8000", AnswerKind::address}},
       {"draftproof", "audit", "%1"},
       "docs/server.md; --save keeps the run, which is judged again offline"},
      {"plan",
       "a model and a GPU, and no server yet",
       {kModel, kGpu, {"Which drafter?", "EAGLE-3"}},
       {"draftproof", "predict", "--model", "%1", "--gpu", "%2", "--drafter", "%3"},
       "draftproof sim chat: policies on the same requests, with TTFT, TPOT and goodput"},
      {"sampler",
       "a sampler, a filter or a verifier that Python can call",
       {kModule, {"Which function?", "sample"}, {"sample, filter, verify or constrained?", "sample"}},
       {"python3", "-c", "import draftproof, %1; print(draftproof.audit_callable(%1.%2, kind='%3', profile='quick'))"},
       "python/README.md has what the function gets and returns; as a test of pytest: draftproof_audit(FUNCTION). "
       "draftproof regress "
       "--python MODULE:FUNCTION runs it on the cases of kernels"},
      {"kernel",
       "kernels in C, C++ or CUDA",
       {{"cpu or cuda?", "cpu"}, {"Into which new folder?", "my-kernels"}},
       {"draftproof", "regress", "--skeleton", "%1", "%2"},
       "put your kernels into that library, build it, then draftproof regress --library FILE (docs/your_kernel.md)"},
      {"tokens",
       "tokens that a sampler drew, with their logits",
       {{"Which file?", "samples.safetensors", AnswerKind::file}},
       {"draftproof", "audit", "%1"},
       "docs/audit.md has the files; docs/conclusions.md what may be concluded"},
      {"rule",
       "a verification rule, of a paper or your own",
       {kModule, {"Which function, rule(draft, p, q, chance)?", "rule"}},
       {"python3", "-c", "import draftproof, %1; print(draftproof.prove(%1.%2).sentence)"},
       "docs/exactness.md has the chain rule in ten lines; draftproof prove proves the rules that are here"},
      {"paper",
       "a question for a paper: several commands, compared",
       {{"Into which new file?", "study.toml"}},
       {"draftproof", "study", "%1", "--init"},
       "draftproof study FILE --check, then draftproof study FILE --out FOLDER (docs/studies.md)"},
      {"course",
       "an hour, and no idea yet what speculation is",
       {},
       {"draftproof", "lesson", "1"},
       "draftproof lesson lists all eight; draftproof dash --lesson filters shows the first one"}};
  return kPaths;
}

struct StartArguments {
  std::vector<std::string> answers;
  bool json = false;
};

const StartPath& path_named(const std::string& name) {
  static const std::map<std::string, std::string> kOtherWords{
      {"teach", "course"}, {"learn", "course"}, {"lesson", "course"},  {"url", "server"},
      {"model", "plan"},   {"predict", "plan"}, {"samples", "tokens"}, {"study", "paper"}};
  const auto other = kOtherWords.find(name);
  std::vector<std::string> names;
  for (const StartPath& path : start_paths()) {
    if (path.name == (other == kOtherWords.end() ? name : other->second)) return path;
    names.push_back(path.name);
  }
  throw usage_error("start", "there is no path " + in_quotes(name) + "; expected one of " + joined(names, ", ") +
                                 did_you_mean(name, names));
}

std::string asked(const std::string& question, const std::string& example) {
  std::cout << question << (example.empty() ? "" : " [" + example + "]") << ' ' << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer.empty() ? example : answer;
}

std::vector<std::string> command_of(const StartPath& path, const std::vector<std::string>& answers) {
  std::vector<std::string> command = path.command;
  for (std::size_t i = 0; i < path.questions.size(); ++i) {
    const std::string place = "%" + std::to_string(i + 1);
    const std::string answer = i < answers.size() ? answers[i] : path.questions[i].example;
    if (const auto word = std::ranges::find(command, place); answer.empty() && word != command.end())
      command.erase(word - 1, word + 1);
    for (std::string& word : command)
      for (std::size_t at = 0; (at = word.find(place, at)) != std::string::npos; at += answer.size())
        word.replace(at, place.size(), answer);
  }
  return command;
}

void print_paths() {
  for (const StartPath& path : start_paths())
    std::cout << "  " << path.name << std::string(10 - path.name.size(), ' ') << path.have << '\n';
}

Json json_of(const StartPath& path) {
  return {{"name", path.name},
          {"have", path.have},
          {"questions", json_list(path.questions,
                                  [](const StartQuestion& question) -> Json {
                                    return {{"text", question.text}, {"example", question.example}};
                                  })},
          {"command", path.command},
          {"next", path.next}};
}

void run_start(const StartArguments& arguments, ProgramContext& context) {
  std::vector<std::string> answers = arguments.answers;
  const bool asks = !arguments.json && is_terminal(0) && is_terminal(1);
  if (answers.empty() && asks) {
    print_paths();
    answers.push_back(asked("What have you?", "plan"));
  }
  const StartPath* const path = answers.empty() ? nullptr : &path_named(answers.front());
  if (!answers.empty()) answers.erase(answers.begin());
  if (path != nullptr && answers.size() > path->questions.size())
    throw usage_error("start", "has " + std::to_string(answers.size()) + " answers behind " + path->name +
                                   "; expected " + std::to_string(path->questions.size()) + " at most");
  while (path != nullptr && asks && answers.size() < path->questions.size())
    answers.push_back(asked(path->questions[answers.size()].text, path->questions[answers.size()].example));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const AnswerKind kind = path->questions[i].kind;
    if (kind == AnswerKind::file && !std::filesystem::exists(answers[i]))
      throw input_error(answers[i], "is no file; expected " + std::string(path->have));
    if (kind == AnswerKind::address && !answers[i].starts_with("http://") && !answers[i].starts_with("https://"))
      throw usage_error("start",
                        in_quotes(answers[i]) + " is no address; expected one as " + path->questions[i].example);
  }
  const std::vector<std::string> command = path == nullptr ? std::vector<std::string>() : command_of(*path, answers);
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document["paths"] = json_list(start_paths(), [](const StartPath& one) { return json_of(one); });
    document["command"] = path == nullptr ? Json() : Json(command);
    return print_json(document);
  }
  if (path == nullptr) {
    std::cout << "What have you? draftproof start NAME, with what it asks for behind it:\n";
    return print_paths();
  }
  std::cout << printable_line(shell_command(command)) << "\nThen: " << path->next << '\n';
  if (!asks || asked("Run it now? y or n", "n") != "y") return;
  std::vector<std::string> words = command;
  if (words.front() == "draftproof") words.front() = own_program();
  context.exit_code = static_cast<ExitCode>(std::system(shell_command(words).c_str()) == 0 ? 0 : 1);
}

}  // namespace

void add_start(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<StartArguments>();
  options.texts("answers", arguments->answers,
                "Your situation (none: asked for on a terminal, else listed), and answers to the questions that follow",
                "ANSWER");
  options.json(arguments->json);
  options.examples(
      {"", "log server.log H100 Llama-3.1-8B EAGLE-3", "plan Llama-3.1-8B H100 EAGLE-3", "kernel cuda my-kernels"});
  options.on_run([arguments, &context] { run_start(*arguments, context); });
}

}  // namespace draftproof
