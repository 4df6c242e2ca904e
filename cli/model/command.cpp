// draftproof model: what the files of a model or a drafting head are.
#include <iomanip>
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "cli/model/head_report.hpp"
#include "cli/model/tensor_sizes.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/model_path.hpp"
#include "engine/heads/head_files.hpp"
#include "engine/model/model_files.hpp"

namespace draftproof {
namespace {

struct Arguments {
  std::string model;
  std::optional<std::string> encode;
  std::string messages, chat_date;
  std::string target, text;
  bool no_download = false;
  bool json = false;
};

Json json_of(const ModelFiles& files, const TensorSizes& sizes) {
  const ModelDescription& d = files.weights.description;
  Json json;
  json["path"] = printable(files.path);
  json["architecture"] = d.architecture;
  json["name"] = printable(d.name);
  json["layers"] = d.num_layers;
  json["width"] = d.width;
  json["feed_forward"] = d.feed_forward;
  json["heads"] = d.num_heads;
  json["kv_heads"] = d.num_kv_heads;
  json["head_size"] = d.head_size;
  json["vocab_size"] = d.vocab_size;
  json["context_len_max"] = d.context_len_max;
  json["rms_epsilon"] = d.rms_epsilon;
  json["rope_base"] = d.rope_base;
  json["rope_pairing"] = name_of_pairing(d.rope_pairing);
  json["rope_scaled"] = is_scaled(d);
  json["qkv_bias"] = d.has_qkv_bias;
  json["qk_norm"] = d.has_qk_norm;
  json["tied"] = d.tied;
  json["parameters"] = sizes.parameters;
  json["weight_bytes"] = sizes.bytes;
  json["kinds"] = json_of(sizes);
  return json;
}

Json json_of(const Tokenizer& tokenizer) {
  Json json;
  json["name"] = tokenizer.name();
  json["tokens"] = tokenizer.vocab_size();
  json["start_token"] = or_null(tokenizer.start_token());
  json["end_tokens"] = tokenizer.end_tokens();
  return json;
}

std::optional<std::time_t> now_of(const Arguments& arguments) {
  if (arguments.chat_date.empty()) return std::nullopt;
  return parse_chat_date(arguments.chat_date, "--chat-date");
}

// The messages of a file: [{"role": "user", "content": "..."}, ...], or an object with such "messages".
std::vector<ChatMessage> read_messages(const std::string& path) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 26;
  Json list = Json::parse(InputFile(path, kBytesMax).text(), nullptr, false);
  if (list.is_object() && list.contains("messages")) list = Json(list["messages"]);
  if (!list.is_array())
    throw input_error(path, "is no list of messages; expected [{\"role\": \"user\", \"content\": \"...\"}, ...]");
  std::vector<ChatMessage> messages;
  for (const Json& entry : list) {
    const auto text = [&](const char* key) {
      if (!entry.is_object() || !entry.contains(key) || !entry[key].is_string())
        throw input_error(path, "message " + std::to_string(messages.size()) + " has no text \"" + key + "\"");
      return entry[key].get<std::string>();
    };
    if (entry.is_object())
      for (const auto& [key, value] : entry.items())
        if (key != "role" && key != "content")
          throw input_error(path, "message " + std::to_string(messages.size()) + " has the field " + in_quotes(key) +
                                      "; expected role and content");
    messages.push_back({text("role"), text("content")});
  }
  return messages;
}

Json json_of_template(const ModelFiles& files, const Arguments& arguments) {
  if (!files.chat_template) return nullptr;
  try {
    const ChatMessage message{"user", "Hello"};
    return {{"example", printable(files.chat(now_of(arguments)).render(std::span(&message, 1)))}};
  } catch (const Error& error) {
    return {{"error", printable_line(error.what())}};
  }
}

std::string template_text(const ModelFiles& files, const Arguments& arguments) {
  const Json json = json_of_template(files, arguments);
  if (json.is_null()) return "none";
  if (json.contains("error")) return json["error"].get<std::string>();
  return "a user's \"Hello\" becomes " + json["example"].dump();
}

// The drafting head in the model's own files: null, what it is, or why it cannot be opened.
Json json_of_head_inside(const ModelFiles& files) {
  if (mtp_layers_inside(files.path) == 0) return nullptr;
  try {
    return json_of_head(open_head_files(files.path), files.weights.description.num_layers, std::nullopt);
  } catch (const Error& error) {
    return {{"error", printable_line(error.what())}};
  }
}

void print_head_inside(const ModelFiles& files, std::ostream& out) {
  const Json head = json_of_head_inside(files);
  if (head.is_null()) return;
  out << "  drafting head  ";
  if (head.contains("error"))
    out << head["error"].get<std::string>() << "\n";
  else
    out << head["family"].get<std::string>() << " in the model's own files, "
        << millions(head["parameters"].get<std::int64_t>()) << " M parameters; --drafter auto drafts with it\n";
}

void print_text(const ModelFiles& files, const TensorSizes& sizes, const Arguments& arguments, std::ostream& out) {
  const ModelDescription& d = files.weights.description;
  const Tokenizer& tokenizer = *files.tokenizer;
  out << printable_line(files.path) << "\n"
      << "  architecture   " << d.architecture << (d.has_qkv_bias ? ", biases of Q, K and V" : "")
      << (d.has_qk_norm ? ", norms of Q and K" : "") << (d.tied ? ", head tied to the embedding" : "") << "\n"
      << "  layers         " << d.num_layers << ", width " << d.width << ", feed-forward " << d.feed_forward << ", "
      << d.num_heads << " heads of " << d.head_size << " over " << d.num_kv_heads << " KV heads\n"
      << "  context        " << d.context_len_max << " tokens, RoPE base " << d.rope_base << ", pairs "
      << name_of_pairing(d.rope_pairing) << (is_scaled(d) ? ", scaled" : "") << "\n"
      << "  parameters     " << millions(sizes.parameters) << " M in " << millions(sizes.bytes) << " MB\n";
  print_kinds(sizes, out);
  out << "  tokenizer      " << tokenizer.name() << ", " << tokenizer.vocab_size() << " tokens";
  for (const Token token : tokenizer.end_tokens())
    out << ", " << printable_line(tokenizer.entry(token).text) << " ends a turn";
  out << "\n  chat template  " << template_text(files, arguments) << "\n";
  print_head_inside(files, out);
}

void run_head(const Arguments& arguments, const ProgramContext& context, const std::string& path) {
  if (arguments.encode || !arguments.messages.empty())
    throw usage_error(arguments.encode ? "--encode" : "--messages",
                      "is given with a drafting head, which has no tokens of its own");
  const HeadTensors head = open_head_files(path);
  std::int64_t num_layers = head.description.target_layers;
  std::optional<DraftCoverage> coverage;
  if (!arguments.target.empty()) {
    const ModelFiles target = open_model_files(model_path(arguments.target));
    require_target(head, target);
    num_layers = target.weights.description.num_layers;
    if (!arguments.text.empty())
      coverage = coverage_of(head.description, target.tokenizer->encode(InputFile(arguments.text).text()));
  }
  if (!arguments.json) return print_head(head, num_layers, coverage, std::cout);
  Json document = json_document(context.arguments);
  document["head"] = json_of_head(head, num_layers, coverage);
  print_json(document);
}

void run(const Arguments& arguments, const ProgramContext& context) {
  const std::string path = model_path(arguments.model);
  if (!arguments.text.empty() && arguments.target.empty())
    throw usage_error("--text", "has no use without --target, whose tokens it is cut into");
  if (is_head(path)) return run_head(arguments, context, path);
  if (!arguments.target.empty()) throw usage_error("--target", "is given with a model; expected a drafting head");
  const std::optional<std::time_t> now = now_of(arguments);
  const ModelFiles files = open_model_files(path);
  const TensorSizes sizes = sizes_of(files.weights.tensors());
  std::vector<Token> ids;
  if (arguments.encode) ids = files.tokenizer->encode(*arguments.encode);
  std::string prompt;
  if (!arguments.messages.empty()) {
    if (arguments.encode) throw usage_error("--messages", "is given beside --encode; expected one of them");
    const std::vector<ChatMessage> messages = read_messages(arguments.messages);
    prompt = files.chat(now).render(messages);
    ids = files.chat(now).encode(*files.tokenizer, messages);
  }
  if (!arguments.json) {
    print_text(files, sizes, arguments, std::cout);
    if (!prompt.empty()) std::cout << "  prompt         " << Json(printable(prompt)).dump() << "\n";
    for (const Token id : ids)
      std::cout << std::setw(8) << id << "  " << Json(printable(files.tokenizer->bytes_of(id))).dump() << "\n";
    return;
  }
  Json document = json_document(context.arguments);
  document["model"] = json_of(files, sizes);
  document["tokenizer"] = json_of(*files.tokenizer);
  document["chat_template"] = json_of_template(files, arguments);
  document["head_inside"] = json_of_head_inside(files);
  document["prompt"] = nullptr;
  document["tokens"] = nullptr;
  if (!arguments.messages.empty()) document["prompt"] = printable(prompt);
  if (arguments.encode || !arguments.messages.empty()) {
    document["tokens"] = json_list(ids, [&](Token id) -> Json {
      return {{"id", id}, {"text", printable(files.tokenizer->bytes_of(id))}};
    });
  }
  print_json(document);
}

}  // namespace

void add_model(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<Arguments>();
  options.required_text("model", arguments->model,
                        "GGUF file or Hugging Face folder of a model or a drafting head, or smollm2", "MODEL");
  options.free_text("--encode", arguments->encode, "Show the tokens of this text");
  options.file(
      "--messages", arguments->messages,
      "Show the prompt, and its tokens, that the chat template makes of these: a JSON list of role and content");
  options.text("--chat-date", arguments->chat_date, "The day that chat templates write (default: today)", "YYYY-MM-DD");
  options.text("--target", arguments->target, "Target that a head must fit", "MODEL");
  options.file("--text", arguments->text, "Text: which share of its tokens can the head draft? With --target");
  add_no_download(options, arguments->no_download);
  options.json(arguments->json);
  options.examples({"smollm2", "model.gguf --encode 'Hello world'", "model.gguf --messages chat.json",
                    "head --target smollm2 --text corpus.txt"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
