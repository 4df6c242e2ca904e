// draftproof model: what a model file is.
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/model_path.hpp"
#include "engine/model/model_files.hpp"

namespace draftproof {
namespace {

struct Arguments {
  std::string model;
  std::optional<std::string> encode;
  bool no_download = false;
  bool json = false;
};

struct KindCount {
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
};

struct Sizes {
  std::map<TensorKind, KindCount> kinds;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;
};

Sizes sizes_of(const ModelWeights& weights) {
  Sizes sizes;
  for (const WeightTensor* const tensor : weights.tensors()) {
    const std::int64_t bytes = std::ssize(tensor->bytes);
    sizes.parameters += tensor->rows * tensor->columns;
    sizes.bytes += bytes;
    ++sizes.kinds[tensor->kind].tensors;
    sizes.kinds[tensor->kind].bytes += bytes;
  }
  return sizes;
}

std::string pairing_name(RopePairing pairing) {
  return pairing == RopePairing::adjacent ? "adjacent" : "halves";
}

bool is_scaled(const ModelDescription& description) {
  for (const float divisor : description.rope_divisors)
    if (divisor != 1) return true;
  return false;
}

std::string millions(std::int64_t count) {
  return number("%.1f", static_cast<double>(count) / 1e6);
}

Json json_of(const ModelFiles& files, const Sizes& sizes) {
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
  json["rope_pairing"] = pairing_name(d.rope_pairing);
  json["rope_scaled"] = is_scaled(d);
  json["qkv_bias"] = d.has_qkv_bias;
  json["qk_norm"] = d.has_qk_norm;
  json["tied"] = d.tied;
  json["parameters"] = sizes.parameters;
  json["weight_bytes"] = sizes.bytes;
  json["kinds"] = Json::array();
  for (const auto& [kind, count] : sizes.kinds)
    json["kinds"].push_back(
        {{"kind", std::string(info_of(kind).name)}, {"tensors", count.tensors}, {"bytes", count.bytes}});
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

Json json_of_template(const ModelFiles& files) {
  if (!files.chat_template) return nullptr;
  try {
    const ChatTemplate chat = files.chat();
    Json json{{"form", std::string(chat.name())}, {"default_system", nullptr}};
    if (!chat.default_system().empty()) json["default_system"] = printable(chat.default_system());
    return json;
  } catch (const Error& error) {
    return {{"error", printable_line(error.what())}};
  }
}

std::string template_text(const ModelFiles& files) {
  const Json json = json_of_template(files);
  if (json.is_null()) return "none";
  if (json.contains("error")) return json["error"].get<std::string>();
  const std::string form = json["form"].get<std::string>();
  return json["default_system"].is_null() ? form
                                          : form + ", default system: " + json["default_system"].get<std::string>();
}

void print_text(const ModelFiles& files, const Sizes& sizes, std::ostream& out) {
  const ModelDescription& d = files.weights.description;
  const Tokenizer& tokenizer = *files.tokenizer;
  out << printable_line(files.path) << "\n"
      << "  architecture   " << d.architecture << (d.has_qkv_bias ? ", biases of Q, K and V" : "")
      << (d.has_qk_norm ? ", norms of Q and K" : "") << (d.tied ? ", head tied to the embedding" : "") << "\n"
      << "  layers         " << d.num_layers << ", width " << d.width << ", feed-forward " << d.feed_forward << ", "
      << d.num_heads << " heads of " << d.head_size << " over " << d.num_kv_heads << " KV heads\n"
      << "  context        " << d.context_len_max << " tokens, RoPE base " << d.rope_base << ", pairs "
      << pairing_name(d.rope_pairing) << (is_scaled(d) ? ", scaled" : "") << "\n"
      << "  parameters     " << millions(sizes.parameters) << " M in " << millions(sizes.bytes) << " MB\n";
  for (const auto& [kind, count] : sizes.kinds)
    out << "    " << std::left << std::setw(8) << info_of(kind).name << std::right << std::setw(5) << count.tensors
        << (count.tensors == 1 ? " tensor   " : " tensors  ") << std::setw(8) << millions(count.bytes) << " MB\n";
  out << "  tokenizer      " << tokenizer.name() << ", " << tokenizer.vocab_size() << " tokens";
  for (const Token token : tokenizer.end_tokens())
    out << ", " << printable_line(tokenizer.entry(token).text) << " ends a turn";
  out << "\n  chat template  " << template_text(files) << "\n";
}

void run(const Arguments& arguments, const ProgramContext& context) {
  const ModelFiles files = open_model_files(model_path(arguments.model));
  const Sizes sizes = sizes_of(files.weights);
  std::vector<Token> ids;
  if (arguments.encode) ids = files.tokenizer->encode(*arguments.encode);
  if (!arguments.json) {
    print_text(files, sizes, std::cout);
    for (const Token id : ids)
      std::cout << std::setw(8) << id << "  " << Json(printable(files.tokenizer->bytes_of(id))).dump() << "\n";
    return;
  }
  Json document = json_document(context.arguments);
  document["model"] = json_of(files, sizes);
  document["tokenizer"] = json_of(*files.tokenizer);
  document["chat_template"] = json_of_template(files);
  document["tokens"] = nullptr;
  if (arguments.encode) {
    document["tokens"] = json_list(ids, [&](Token id) -> Json {
      return {{"id", id}, {"text", printable(files.tokenizer->bytes_of(id))}};
    });
  }
  print_json(document);
}

}  // namespace

void add_model(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<Arguments>();
  options.required_text("model", arguments->model, "GGUF file, Hugging Face folder, or smollm2", "MODEL");
  options.free_text("--encode", arguments->encode, "Show the tokens of this text");
  add_no_download(options, arguments->no_download);
  options.json(arguments->json);
  options.examples({"smollm2", "model.gguf --encode 'Hello world'"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
