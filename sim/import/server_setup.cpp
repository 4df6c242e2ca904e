#include "sim/import/server_setup.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "base/words.hpp"
#include "sim/cost/quantization.hpp"
#include "sim/import/log_records.hpp"
#include "sim/import/python_arguments.hpp"
#include "sim/import/text_lines.hpp"

namespace draftproof {
namespace {

constexpr int kGpusMax = 1024;
constexpr int kDraftsMax = 1024;

// Folder names tell nothing but in their last part.
std::string last_part(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!path.starts_with('/') && !path.starts_with('.') && !path.starts_with('~')) return path;
  return path.substr(path.rfind('/') + 1);
}

constexpr const char* kUnquantised = "none";

// Errors (input) at `where`: as of precision_error.
std::string weights_of_server(const std::optional<std::string>& method, const std::string& where) {
  if (!method) return "";
  if (*method == kUnquantised) return "bf16";
  std::string precision = precision_of_method(*method, where);
  if (precision.empty())
    throw input_error(where, "quantization is " + in_quotes(*method) +
                                 ", which leaves the bits of weights to the model's config.json; expected --precision, "
                                 "or --model with that file");
  return precision;
}
std::string cache_of_server(const std::optional<std::string>& type, const std::string& where) {
  const std::string lower = lower_case(type.value_or("auto"));
  const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  if (lower == "auto" || has("16") || lower == "half") return "";
  if (has("fp8") || has("int8")) return "KV fp8";
  if (has("fp4") || has("int4")) return "KV fp4";
  throw input_error(
      where, "kv_cache_dtype is " + in_quotes(*type) + "; expected auto, bfloat16, fp8, fp8_e4m3, ..., or --precision");
}

// The precision, as far as it can be read.
void set_precision(const std::optional<std::string>& method, const std::optional<std::string>& kv_cache,
                   const std::string& where, ServerSetup& setup) {
  setup.precision.clear();
  setup.precision_error.reset();
  try {
    setup.precision = cache_of_server(kv_cache, where);
    const std::string weights = weights_of_server(method, where);
    setup.precision = weights + (weights.empty() || setup.precision.empty() ? "" : ", ") + setup.precision;
  } catch (const Error& error) {
    setup.precision_error = error;
  }
}

std::string drafter_named(const std::string& method, const std::optional<std::string>& draft_model) {
  const std::string lower = lower_case(method);
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

// The engine's own configuration, or what people asked for where that alone stands in the log.
ServerSetup of_vllm(const PythonArguments& arguments, bool is_config, const std::string& where) {
  ServerSetup setup;
  setup.engine = "vLLM";
  if (const auto draft = arguments.nested("speculative_config")) {
    setup.drafter = drafter_named(draft->value("method").value_or(""), draft->value("model"));
    for (const char* const key : {"num_spec_tokens", "num_speculative_tokens"})
      if (const auto drafts = draft->count(key, 1, kDraftsMax, where)) setup.drafts = drafts;
    setup.adaptive = draft->value("num_speculative_tokens_per_batch_size").has_value();
  }
  setup.model = last_part(arguments.value("model").value_or(arguments.value("model_tag").value_or("")));
  setup.tp = arguments.count("tensor_parallel_size", 1, kGpusMax, where);
  setup.dp = arguments.count("data_parallel_size", 1, kGpusMax, where).value_or(1);
  setup.pp = arguments.count("pipeline_parallel_size", 1, kGpusMax, where).value_or(1);
  setup.expert_parallel = arguments.is_true("enable_expert_parallel");
  // The engine's own configuration says what the checkpoint is, too.
  set_precision(is_config && arguments.is_none("quantization") ? kUnquantised : arguments.value("quantization"),
                arguments.value("kv_cache_dtype"), where, setup);
  return setup;
}

// Drafters that draft a block in one step count its tokens alone.
LoggedDraft draft_form_of(const PythonArguments& arguments, const std::string& where) {
  LoggedDraft form;
  const auto steps = arguments.count("speculative_num_steps", 0, kDraftsMax, where);
  const auto tokens = arguments.count("speculative_num_draft_tokens", 1, kDraftsMax, where);  // with the root
  if (arguments.count("speculative_eagle_topk", 0, kDraftsMax, where).value_or(1) > 1 && tokens && *tokens > 1) {
    form.tree_nodes = *tokens - 1;
    form.levels = steps;
  } else if (tokens && *tokens > 1 && steps.value_or(1) <= 1) {
    form.levels = *tokens - 1;
  } else if (steps && *steps > 0) {
    form.levels = steps;
  }
  return form;
}

ServerSetup of_sglang(const PythonArguments& arguments, const std::string& where) {
  ServerSetup setup;
  setup.engine = "SGLang";
  setup.model = last_part(arguments.value("model_path").value_or(""));
  setup.tp = arguments.count("tp_size", 1, kGpusMax, where);
  setup.dp = arguments.count("dp_size", 1, kGpusMax, where).value_or(1);
  setup.pp = arguments.count("pp_size", 1, kGpusMax, where).value_or(1);
  setup.expert_parallel = arguments.count("ep_size", 1, kGpusMax, where).value_or(1) > 1;
  // The groups of attention share the tp_size GPUs, over which the experts lie; else each group has as many.
  if (setup.dp > 1 && arguments.is_true("enable_dp_attention") && setup.tp && *setup.tp % setup.dp == 0) {
    setup.tp = *setup.tp / setup.dp;
    setup.expert_parallel = true;
  }
  set_precision(arguments.value("quantization"), arguments.value("kv_cache_dtype"), where, setup);
  if (const auto algorithm = arguments.value("speculative_algorithm")) {
    setup.drafter = drafter_named(*algorithm, arguments.value("speculative_draft_model_path"));
    const LoggedDraft form = draft_form_of(arguments, where);
    setup.drafts = form.levels;
    setup.tree_nodes = form.tree_nodes;
    setup.adaptive = arguments.is_true("speculative_adaptive");
  }
  return setup;
}

// The text behind a field that begins a line, "TP Size:                8".
std::optional<std::string> line_field(std::string_view line, std::string_view key) {
  if (!line.starts_with(key) || !line.substr(key.size()).starts_with(':')) return std::nullopt;
  std::string_view value = line.substr(key.size() + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  value = value.substr(0, value.find_last_not_of(" \t\r") + 1);
  return std::string(value);
}

// The heads of trtllm-bench's report, a field a line: the model before the version, all else behind it.
class TrtllmReport {
 public:
  void read_line(std::string_view line, const std::string& where, ServerSetup& found) {
    if (const auto model = line_field(line, "Model")) model_ = last_part(*model);
    if (const auto version = line_field(line, "TensorRT LLM Version")) {
      found = {};
      found.engine = "TensorRT-LLM " + *version;
      found.model = model_;
      is_report_ = true;
    }
    if (!is_report_) return;
    if (const auto type = line_field(line, "KV Cache Dtype")) kv_cache_ = said(*type);
    if (const auto method = line_field(line, "Quantization"))
      set_precision(said(*method).value_or(kUnquantised), kv_cache_, where, found);
    if (const auto gpus = line_field(line, "TP Size")) found.tp = gpus_of("TP Size", *gpus, where);
    if (const auto stages = line_field(line, "PP Size")) found.pp = gpus_of("PP Size", *stages, where);
    if (const auto experts = line_field(line, "EP Size"))
      if (const auto n = read_integer(*experts, 1, kGpusMax)) found.expert_parallel = *n > 1;
  }

 private:
  static std::optional<std::string> said(const std::string& value) {
    return value.empty() || value == "None" ? std::nullopt : std::optional(lower_case(value));
  }
  static int gpus_of(const char* key, const std::string& value, const std::string& where) {
    const auto number = read_integer(value, 1, kGpusMax);
    if (!number)
      throw input_error(where, std::string(key) + " is " + in_quotes(value) + "; expected a number from 1 to " +
                                   std::to_string(kGpusMax));
    return static_cast<int>(*number);
  }

  bool is_report_ = false;
  std::string model_;
  std::optional<std::string> kv_cache_;
};

std::optional<PythonArguments> sglang_arguments(std::string_view line) {
  for (const std::string_view opening : {"server_args=ServerArgs(", "server_args={", "server_args: ServerArgs("})
    if (auto arguments = arguments_behind(line, opening)) return arguments;
  return std::nullopt;
}

}  // namespace

std::optional<LoggedDraft> sglang_logged_draft(std::string_view line, const std::string& where) {
  if (line.find("speculative_num_") == std::string_view::npos) return std::nullopt;
  return draft_form_of(sglang_arguments(line).value_or(PythonArguments(line)), where);
}

ServerSetup read_server_setup(std::string_view text, const std::string& name) {
  ServerSetup found;
  bool experts = false;      // of the newest arguments that people gave
  bool has_weights = false;  // of the newest start
  std::optional<std::string> method, kv_cache;
  TrtllmReport report;
  LogRecords lines(text, name);
  while (lines.next()) {
    const std::string& line = lines.line();
    const std::string where = lines.where();
    report.read_line(line, where, found);
    if (const auto asked = arguments_behind(line, "non-default args: {")) {
      experts = asked->is_true("enable_expert_parallel");
      found = of_vllm(*asked, false, where);
    }
    if (line.find("Initializing a") != std::string::npos && line.find("LLM engine") != std::string::npos) {
      const auto config = arguments_behind(line, "with config: ");
      if (!config || config->empty()) continue;
      found = of_vllm(*config, true, where);
      found.expert_parallel |= experts;
      const std::size_t at = line.find("(v");
      if (at != std::string::npos && at < line.find("with config"))
        found.engine += " " + line.substr(at + 2, line.find(')', at) - at - 2);
    } else if (const auto arguments = sglang_arguments(line)) {
      found = of_sglang(*arguments, where);
      has_weights = false;
      method = arguments->value("quantization");
      kv_cache = arguments->value("kv_cache_dtype");
    } else if (!has_weights && found.engine == "SGLang" && line.find("Load weight end") != std::string::npos) {
      has_weights = true;  // the target's come first, then the draft's
      const auto weights = arguments_behind(line, "Load weight end");
      if (const auto quant = weights->value("quant"); quant && !method) set_precision(quant, kv_cache, where, found);
    }
  }
  return found;
}

}  // namespace draftproof
