#include "sim/import/server_setup.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The value of `key=value` in Python's form, without quotes; nothing for None and for no such key.
std::optional<std::string> value_of(std::string_view line, std::string_view key) {
  const std::string sought = std::string(key) + "=";
  for (std::size_t at = line.find(sought); at != std::string_view::npos; at = line.find(sought, at + 1)) {
    if (at > 0 && is_of_name(line[at - 1])) continue;
    std::string_view rest = line.substr(at + sought.size());
    if (rest.empty()) return std::nullopt;
    const char quote = rest.front();
    const bool quoted = quote == '\'' || quote == '"';
    if (quoted) rest.remove_prefix(1);
    const std::string value(rest.substr(0, quoted ? rest.find(quote) : rest.find_first_of(",) ]}")));
    return value == "None" || value.empty() ? std::nullopt : std::optional(value);
  }
  return std::nullopt;
}

std::optional<int> count_of(std::string_view line, std::string_view key, int most, const std::string& where) {
  const auto value = value_of(line, key);
  if (!value) return std::nullopt;
  const auto count = read_integer(*value, 1, most);
  if (!count)
    throw input_error(
        where, std::string(key) + " is " + in_quotes(*value) + "; expected a number from 1 to " + std::to_string(most));
  return static_cast<int>(*count);
}

// Folder names tell nothing but in their last part.
std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!path.starts_with('/') && !path.starts_with('.')) return path;
  return path.substr(path.rfind('/') + 1);
}

std::string lower_of(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// "fp8", "awq" (4 bits, or what the model's name says), with the cache's bits.
std::string precision_of_server(std::string_view line) {
  std::string weights;
  if (const auto quantization = value_of(line, "quantization")) {
    const std::string lower = lower_of(*quantization);
    if (lower.find("fp8") != std::string::npos) weights = "fp8";
    if (lower.find("awq") != std::string::npos || lower.find("gptq") != std::string::npos) weights = "w4a16";
    if (lower.find("mxfp4") != std::string::npos) weights = "int4";
  }
  const auto cache = value_of(line, "kv_cache_dtype");
  if (!cache || cache->find("fp8") == std::string::npos) return weights;
  return (weights.empty() ? "bf16" : weights) + ", KV fp8";
}

std::string drafter_named(const std::string& method, const std::optional<std::string>& draft_model) {
  const std::string lower = lower_of(method);
  constexpr std::array<std::pair<std::string_view, const char*>, 10> kMethods{{{"p-eagle", "P-EAGLE"},
                                                                               {"eagle3", "EAGLE-3"},
                                                                               {"eagle", "EAGLE"},
                                                                               {"medusa", "Medusa"},
                                                                               {"dspark", "DSpark"},
                                                                               {"dflash", "DFlash"},
                                                                               {"nextn", "MTP"},
                                                                               {"mtp", "MTP"},
                                                                               {"ngram", "n-gram"},
                                                                               {"suffix", "n-gram"}}};
  for (const auto& [word, name] : kMethods)
    if (lower.find(word) != std::string::npos) return name;
  return draft_model ? last_part(*draft_model) : std::string();
}

ServerSetup of_vllm(std::string_view line, const std::string& where) {
  ServerSetup setup;
  setup.engine = "vLLM";
  const std::size_t version = line.find("(v");
  if (version != std::string_view::npos && version < line.find("config"))
    setup.engine += " " + std::string(line.substr(version + 2, line.find(')', version) - version - 2));
  // The draft has keys of its own, some with the same names: it is cut out.
  std::string rest(line);
  constexpr std::string_view kDraft = "speculative_config=";
  if (const std::size_t at = rest.find(kDraft); at != std::string::npos) {
    const bool none = rest.compare(at + kDraft.size(), 4, "None") == 0;
    const std::size_t end = none ? at + kDraft.size() + 4 : std::min(rest.find(')', at), rest.size());
    const std::string draft = rest.substr(at + kDraft.size(), end - at - kDraft.size());
    rest.erase(at, end - at);
    if (!draft.starts_with("None")) {
      setup.drafter = drafter_named(value_of(draft, "method").value_or(""), value_of(draft, "model"));
      setup.drafts = count_of(draft, "num_spec_tokens", 64, where);
    }
  }
  setup.model = last_part(value_of(rest, "model").value_or(""));
  setup.tp = count_of(rest, "tensor_parallel_size", 1024, where);
  setup.dp = count_of(rest, "data_parallel_size", 1024, where).value_or(1);
  setup.pp = count_of(rest, "pipeline_parallel_size", 1024, where).value_or(1);
  setup.precision = precision_of_server(rest);
  return setup;
}

ServerSetup of_sglang(std::string_view line, const std::string& where) {
  ServerSetup setup;
  setup.engine = "SGLang";
  setup.model = last_part(value_of(line, "model_path").value_or(""));
  setup.tp = count_of(line, "tp_size", 1024, where);
  setup.pp = count_of(line, "pp_size", 1024, where).value_or(1);
  setup.expert_parallel = count_of(line, "ep_size", 1024, where).value_or(1) > 1;
  setup.precision = precision_of_server(line);
  if (const auto algorithm = value_of(line, "speculative_algorithm")) {
    setup.drafter = drafter_named(*algorithm, value_of(line, "speculative_draft_model_path"));
    setup.drafts = count_of(line, "speculative_num_steps", 64, where);
  }
  return setup;
}

}  // namespace

ServerSetup read_server_setup(std::string_view text, const std::string& name) {
  ServerSetup found;
  bool experts = false;
  TextLines lines(text, name);
  while (lines.next()) {
    const std::string& line = lines.line();
    if (line.find("non-default args:") != std::string::npos)
      experts = line.find("'enable_expert_parallel': True") != std::string::npos;
    if (line.find("Initializing a") != std::string::npos && line.find("LLM engine") != std::string::npos) {
      found = of_vllm(line, lines.where());
      found.expert_parallel = experts;
    } else if (line.find("server_args=ServerArgs(") != std::string::npos) {
      found = of_sglang(line, lines.where());
    }
  }
  return found;
}

}  // namespace draftproof
