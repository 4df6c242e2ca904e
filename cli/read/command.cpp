// draftproof read: what a file is, what of it is used, and what is not; of any file that the program knows.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/archives/safetensors.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/words.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "engine/heads/head_files.hpp"
#include "engine/model/model_files.hpp"
#include "sim/cost/drafter_config.hpp"
#include "sim/cost/model_shape.hpp"
#include "sim/predict/seen_log.hpp"
#include "sim/serving/arrivals_file.hpp"
#include "sim/toml.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// Everything that a reader may look at to recognise its file.
struct Content {
  std::string path;
  bool is_folder = false;
  LogText log = {};     // empty of a folder; of weights their beginning
  Json json = nullptr;  // where the text is no JSON document

  const std::string& text() const { return log.text; }
  bool has(std::string_view words) const { return text().find(words) != std::string::npos; }
  bool has_key(const char* key) const { return json.is_object() && json.contains(key); }
  bool has_text(const char* key) const { return has_key(key) && json[key].is_string(); }
};

std::string count_of(double count) {
  if (count >= 1e12) return number("%.3g T", count * 1e-12);
  return count >= 1e9 ? number("%.3g B", count * 1e-9) : number("%.3g M", count * 1e-6);
}

SeenFile see_head(const Content& content) {
  const HeadTensors head = open_head_files(content.path);
  const HeadDescription& d = head.description;
  return {"",
          "drafting head in the format of " + d.format,
          {std::string(name_of(d.family)), "width " + std::to_string(d.target_width),
           counted_noun(d.shape.vocab_size, "row of logits", "rows of logits"),
           counted_noun(std::ssize(tensors_of(head)), "tensor")},
          {},
          {}};
}

// The config.json of a folder, else the file itself.
std::string config_path(const Content& content) {
  return content.is_folder ? (fs::path(content.path) / "config.json").string() : content.path;
}
std::string config_of(const Content& content) {
  return content.is_folder ? read_log_text(config_path(content)).text : content.text();
}

// A head as predict takes it, without its weights.
SeenFile see_head_config(const Content& content) {
  const HeadConfigFile head = *read_head_config(config_of(content), config_path(content), nullptr);
  SeenFile seen{"", "drafting head's config.json", {head.method}, {}, {}};
  if (head.target_width > 0.0) seen.is.push_back(number("width %.0f", head.target_width));
  if (head.layers)
    seen.is.push_back(number(head.layers->layers == 1.0 ? "%.0f layer" : "%.0f layers", head.layers->layers));
  if (head.draft_vocab > 0.0) seen.is.push_back(number("%.0f rows of logits", head.draft_vocab));
  if (head.count.drafts > 0) seen.is.push_back(head.count.said);
  if (head.drafts > 0) seen.used.push_back("K = " + std::to_string(head.drafts));
  if (content.is_folder) seen.not_used.emplace_back("no safetensors file of its weights");
  return seen;
}

SeenFile see_weights(const Content& content) {
  const ModelFiles files = open_model_files(content.path);
  const ModelDescription& d = files.weights.description;
  SeenFile seen{
      "",
      content.is_folder ? "model folder" : "model in GGUF",
      {d.architecture, counted_noun(d.num_layers, "layer"), "width " + std::to_string(d.width),
       counted_noun(files.tokenizer->vocab_size(), "token") + " (" + std::string(files.tokenizer->name()) + ")"},
      {},
      {}};
  if (!files.chat_template) seen.not_used.emplace_back("no chat template in it");
  return seen;
}

SeenFile see_config(const Content& content) {
  // A folder, or a file with what a quantiser wrote beside it; any other text is the description itself.
  const bool is_named = content.is_folder || fs::path(content.path).extension() == ".json";
  const ModelShape shape = is_named ? find_model(content.path) : model_from_config_json(content.text(), content.path);
  SeenFile seen{"", "model's config.json", {printable_line(shape.name)}, {}, {}};
  seen.is.push_back(name_of(shape.precision));
  seen.used = {count_of(shape.total_parameters()) + " parameters", count_of(shape.active_parameters()) + " active",
               number("%g layer", shape.layers) + (shape.layers == 1.0 ? "" : "s") + " of a mixer and a feed-forward"};
  if (!shape.assumption.empty()) seen.not_used.push_back(printable_line(shape.assumption));
  if (shape.layers == 1.0) seen.not_used.emplace_back("whether its one layer is a small model or EAGLE's head");
  return seen;
}

SeenFile see_safetensors(const Content& content) {
  return {"",
          "safetensors file",
          {counted_noun(std::ssize(SafetensorsFile::open(content.path).names()), "tensor")},
          {},
          {}};
}

SeenFile see_grammar(const Content& content) {
  std::int64_t rules = 0;
  for (std::size_t at = content.text().find("::="); at != std::string::npos; at = content.text().find("::=", at + 3))
    ++rules;
  return {"", "grammar (GBNF)", {counted_noun(rules, "rule")}, {}, {}};
}

SeenFile see_schema(const Content& content) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : content.json.items()) keys.push_back(printable_line(key));
  return {"", "JSON Schema", {"keys " + joined(keys, " ")}, {}, {}};
}

SeenFile see_template(const Content& content) {
  SeenFile seen{"", "chat template (Jinja)", {}, {}, {}};
  for (const char* word : {"system", "tools", "enable_thinking"})
    if (content.has(word)) seen.is.push_back(std::string("asks for ") + word);
  if (!content.has("add_generation_prompt"))
    seen.not_used.emplace_back("add_generation_prompt, which it does not ask for");
  return seen;
}

SeenFile see_toml(const Content& content) {
  const TomlValue file = read_toml(content.path);
  SeenFile seen{"", "TOML file", {}, {}, {}};
  for (const auto& [key, of] : {std::pair("server", "scenario of sim"),
                                {"grid", "grid of sweep"},
                                {"run", "study"},
                                {"model", "model preset"},
                                {"gpu", "GPU preset"},
                                {"engine", "engine preset"},
                                {"claim", "experiment"}})
    if (file.find(key) != nullptr) {
      seen.format = of;
      break;
    }
  return seen;
}

SeenFile see_arrivals(const Content& content) {
  const ArrivalTrace trace = parse_arrivals(content.text(), content.path == "-" ? "standard input" : content.path);
  double prompts = 0.0;
  double outputs = 0.0;
  for (const RecordedArrival& arrival : trace.requests) {
    prompts += arrival.prompt_len;
    outputs += arrival.output_len;
  }
  const auto requests = static_cast<double>(trace.requests.size());
  SeenFile seen{
      "",
      "trace of requests",
      {counted_noun(std::ssize(trace.requests), "request")},
      {number("arrivals over %.4g s", trace.seconds()) + " (in " + trace.unit + ")",
       number("prompts of %.0f tokens on average", prompts / requests), number("outputs of %.0f", outputs / requests)},
      {}};
  if (trace.left_out > 0) seen.not_used.push_back(counted_noun(trace.left_out, "request") + " without output");
  return seen;
}

SeenFile see_own(const Content& content) {
  return {"",
          "document of draftproof " + content.json.at("version").get<std::string>(),
          {printable_line(content.json.at("command").get<std::string>())},
          {},
          {}};
}

bool is_gguf(const Content& content) {
  return content.text().starts_with("GGUF");
}
bool is_safetensors(const Content& content) {
  return content.text().size() > 9 && content.text()[8] == '{' && content.text().substr(6, 2) == std::string(2, '\0');
}
bool is_config(const Content& content) {
  return content.has_key("model_type") || content.has_key("architectures") || content.has_key("num_hidden_layers");
}
bool is_head_config(const Content& content) {
  const auto is_weights = [](const fs::directory_entry& entry) { return entry.path().extension() == ".safetensors"; };
  if (content.is_folder ? !fs::exists(fs::path(content.path) / "config.json") ||
                              std::ranges::any_of(fs::directory_iterator(content.path), is_weights)
                        : !content.json.is_object())
    return false;
  return !head_method_in(config_of(content), config_path(content)).empty();
}
bool is_schema(const Content& content) {
  if (content.has_key("$schema") || content.has_key("properties")) return true;
  return std::ranges::any_of(std::initializer_list<const char*>{"anyOf", "oneOf", "allOf", "$defs", "const", "enum"},
                             [&](const char* key) { return content.has_key(key); });
}
bool is_toml(const Content& content) {
  return fs::path(content.path).extension() == ".toml";
}
bool is_trace(const Content& content) {
  return names_arrivals(std::string_view(content.text()).substr(0, content.text().find('\n')));
}

bool has_file(const Content& content, const char* name) {
  return fs::exists(fs::path(content.path) / name);
}
// A model's shape alone, without its tokens.
bool is_config_folder(const Content& content) {
  return content.is_folder && has_file(content, "config.json") && !has_file(content, "tokenizer.json");
}

struct Kind {
  bool (*is)(const Content&);
  SeenFile (*see)(const Content&);
};

// In this order; what is none of them is a server's or a benchmark's file, or unknown.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {is_head_config, see_head_config},
      {[](const Content& c) { return (is_gguf(c) || has_file(c, "config.json")) && is_head(c.path); }, see_head},
      {is_config_folder, see_config},
      {[](const Content& c) { return is_gguf(c) || (c.is_folder && has_file(c, "config.json")); }, see_weights},
      {is_safetensors, see_safetensors},
      {[](const Content& c) { return c.has_text("version") && c.has_text("command"); }, see_own},
      {is_config, see_config},
      {is_trace, see_arrivals},
      {is_schema, see_schema},
      {is_toml, see_toml},
      {[](const Content& c) { return c.has("::=") && c.has("root"); }, see_grammar},
      {[](const Content& c) { return c.has("{%") && (c.has("messages") || c.has("message")); }, see_template},
  };
  return all;
}

// Reads only the beginning of weights, which may be large.
LogText text_of(const std::string& path) {
  if (path != "-") {
    std::string begin(16, '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<std::size_t>(file.gcount()));
    const Content content{path, false, {begin, 0}};
    if (is_gguf(content) || is_safetensors(content)) return content.log;
  }
  return read_log_text(path);
}

SeenFile see(const std::string& path) {
  if (names_two_dumps(path)) return see_log(path);
  Content content{path};
  std::error_code ignored;
  content.is_folder = fs::is_directory(path, ignored);
  if (!content.is_folder) content.log = text_of(path);
  const std::size_t first = content.text().find_first_not_of(" \t\r\n");
  if (first != std::string::npos && content.text()[first] == '{') content.json = parse_json<Json>(content.text(), path);
  if (content.json.is_discarded()) content.json = nullptr;
  const auto kind = std::ranges::find_if(kinds(), [&](const Kind& of) { return of.is(content); });
  if (kind == kinds().end()) return content.is_folder ? see_log(path) : see_log(content.log, path);
  SeenFile seen = kind->see(content);
  seen.name = path == "-" ? "standard input" : printable_line(path);
  return seen;
}

}  // namespace

void add_read(Options& options, ProgramContext& context) {
  struct Arguments {
    std::string path;
    bool json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  options.required_text("file", arguments->path,
                        "A server's log or metrics, BEFORE..AFTER of two dumps, results of a benchmark, a trace of "
                        "requests, a model's or head's files, a grammar, a chat template; gzip or - too",
                        "FILE");
  options.json(arguments->json);
  options.examples({"server.log", "model.gguf --json"});
  options.on_run([arguments, &context] {
    const SeenFile seen = see(arguments->path);
    if (!arguments->json) {
      std::cout << seen.text() << "\n";
      return;
    }
    Json document = json_document(context.arguments);
    document["read"] = seen_json(seen);
    print_json(document);
  });
}

}  // namespace draftproof
