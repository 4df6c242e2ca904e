#include "sim/predict/engine_config.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

// The name of a way to draft in each engine; empty: it has none.
struct Method {
  const char* drafter;  // its name begins so; empty: any of the kind
  DraftingKind kind;
  const char *vllm, *sglang, *trtllm, *llama;
};
constexpr Method kMethods[] = {
    {"EAGLE-3", DraftingKind::head, "eagle3", "EAGLE3", "Eagle3", "draft-eagle3"},
    {"EAGLE", DraftingKind::head, "eagle", "EAGLE", "", ""},
    {"MTP", DraftingKind::head, "mtp", "NEXTN", "MTP", "draft-mtp"},
    {"DFlash", DraftingKind::parallel, "dflash", "DFLASH", "DFlash", "draft-dflash"},
    {"DSpark", DraftingKind::parallel, "dspark", "DSPARK", "", "draft-dspark"},
    {"", DraftingKind::ngram, "ngram", "NGRAM", "NGram", "ngram-mod"},
    {"", DraftingKind::model, "draft_model", "STANDALONE", "Draft_Target", "draft-simple"},
};

const char* name_in(const Method& method, const std::string& engine) {
  return engine == "vllm"     ? method.vllm
         : engine == "sglang" ? method.sglang
         : engine == "trtllm" ? method.trtllm
                              : method.llama;
}

std::string method_of(const DrafterShape& drafter, const std::string& engine) {
  for (const Method& method : kMethods)
    if (method.kind == drafter.kind && drafter.name.starts_with(method.drafter) && *name_in(method, engine) != '\0')
      return name_in(method, engine);
  throw usage_error("--write-config", "is " + engine + ", which has no drafter " + printable_line(drafter.name) +
                                          "; expected EAGLE-3, MTP, n-gram, or a draft model");
}

std::vector<std::int64_t> loads_up_to(std::int64_t most) {
  std::vector<std::int64_t> loads;
  for (std::int64_t load = 1; load < most; load += std::max<std::int64_t>(1, load / 16)) loads.push_back(load);
  loads.push_back(most);
  return loads;
}

const PredictionRow* chain_of(const BatchPrediction& batch, std::int32_t drafts) {
  const auto found = std::ranges::find_if(
      batch.rows, [&](const PredictionRow& row) { return !row.form.is_tree() && row.form.depth == drafts; });
  return found == batch.rows.end() ? nullptr : &*found;
}

bool is_safe(const PredictionRow& row, double loss_max) {
  return row.band().pays() && row.band().loss_probability() <= loss_max;
}

// With what the load below has, or nothing below.
const PredictionRow* choice_at(const BatchPrediction& batch, std::int32_t below, double loss_max) {
  const PredictionRow& best = batch.rows[batch.best_chain];
  if (!is_safe(best, loss_max)) return nullptr;
  const PredictionRow* same = chain_of(batch, below);
  const bool stay =
      same != nullptr && is_safe(*same, loss_max) && best.speedup < same->speedup * (1.0 + kGainWorthAChange);
  return stay ? same : &best;
}

std::string loads_text(const LoadInterval& loads) {
  return loads.from == loads.to ? std::to_string(loads.from)
                                : std::to_string(loads.from) + " to " + std::to_string(loads.to);
}

// "1.89 to 1.62 times as fast, 80 % band from 1.41, P(loss) 0.02".
std::string gain_text(const DraftsByLoad& range) {
  const PredictionRow& worst = range.worst;
  std::string text = range.drafts == 0 ? "off: " + name_of(range.first.form) + " would be " : "";
  text += number("%.2f", range.first.speedup);
  if (worst.batch != range.first.batch) text += " to " + number("%.2f", worst.speedup);
  return text + " times as fast, 80 % band " + number("%.2f", worst.low) + " to " + number("%.2f", worst.high) +
         number(", P(loss) %.2f", worst.band().loss_probability()) +
         (worst.extrapolated ? ", acceptance by extrapolation" : "");
}

struct Script {
  const PredictionInputs& inputs;
  std::string engine, method;
  std::vector<DraftsByLoad> ranges;
  std::int32_t most = 0;   // drafts at any load
  std::int32_t fixed = 0;  // drafts of an engine that has one number for all loads: those at the load that was asked

  int tp() const { return static_cast<int>(inputs.preset.tp); }
  bool by_load() const { return ranges.size() > 1; }
  std::string model() const { return shell_command({inputs.request.model}); }
};

std::string comments(const Script& script, const std::string& what) {
  std::ostringstream out;
  out << "# " << what << "\n# requests at a time: drafts\n";
  for (const DraftsByLoad& range : script.ranges)
    out << "#   " << loads_text(range.loads) << ": "
        << (range.drafts > 0 ? "K = " + std::to_string(range.drafts) + ", " : "") << gain_text(range) << "\n";
  for (const DraftsByLoad& range : script.ranges)
    if (range.tree)
      out << "# Trees are not written: at " << range.tree->batch << " the advice is " << name_of(range.tree->form)
          << number(", %.2f times as fast", range.tree->speedup) << "\n";
  if (const std::string& model = script.inputs.request.model; model.find('/') == std::string::npos)
    out << "# " << printable_line(model) << " stands for the checkpoint's path or its name at Hugging Face\n";
  return out.str();
}

std::string parallel_flags(const Script& script, const char* tp, const char* dp, const char* pp) {
  std::string flags;
  const PredictionRequest& request = script.inputs.request;
  if (script.tp() > 1) flags += std::string(" ") + tp + " " + std::to_string(script.tp());
  if (request.dp > 1 && *dp != '\0') flags += std::string(" ") + dp + " " + std::to_string(request.dp);
  if (request.pp > 1) flags += std::string(" ") + pp + " " + std::to_string(request.pp);
  return flags;
}

bool has_weights(const Script& script) {
  const DrafterShape& drafter = *script.inputs.preset.drafter;
  return drafter.kind != DraftingKind::ngram && !drafter.name.starts_with("MTP");
}

std::string vllm_script(const Script& script) {
  const PredictionRequest& request = script.inputs.request;
  const bool schedule = script.by_load() && request.dp == 1 && script.most > 0;
  std::string out =
      comments(script, schedule         ? "vLLM 0.27 or later: num_speculative_tokens_per_batch_size"
                       : request.dp > 1 ? "vLLM takes no schedule with data parallelism: one K for all loads"
                                        : "vLLM: one K for all loads");
  std::string command =
      "vllm serve " + script.model() +
      parallel_flags(script, "--tensor-parallel-size", "--data-parallel-size", "--pipeline-parallel-size") +
      (request.expert_parallel ? " --enable-expert-parallel" : "");
  if (schedule) out += "# With VLLM_USE_V2_MODEL_RUNNER=1 a schedule keeps full CUDA graphs (vLLM 0.33.0).\n";
  const std::int32_t drafts = schedule ? script.most : script.fixed;
  if (drafts > 0) {
    Json config{{"method", script.method}};
    if (has_weights(script)) config["model"] = "DRAFTER";
    config["num_speculative_tokens"] = drafts;
    if (request.draft_tp && request.draft_gpu.empty()) config["draft_tensor_parallel_size"] = *request.draft_tp;
    if (script.method == "ngram") config["prompt_lookup_max"] = 5;
    if (schedule) {
      Json lines = Json::array();
      for (const DraftsByLoad& range : script.ranges) lines.push_back({range.loads.from, range.loads.to, range.drafts});
      config["num_speculative_tokens_per_batch_size"] = lines;
    }
    command += " --speculative-config '" + config.dump() + "'";
  }
  return out + command + "\n";
}

std::string sglang_script(const Script& script) {
  const PredictionRequest& request = script.inputs.request;
  const bool adapts = script.method == "EAGLE" || script.method == "EAGLE3";
  const bool schedule = script.by_load() && adapts && request.dp == 1 && script.most > 0;
  std::string out =
      comments(script, schedule ? "SGLang 0.5.23: adaptive steps, one K a slot" : "SGLang: one K for all loads");
  std::string command = "python -m sglang.launch_server --model-path " + script.model() +
                        parallel_flags(script, "--tp-size", "--dp-size", "--pp-size") +
                        (request.expert_parallel ? " --ep-size " + std::to_string(script.tp()) : "");
  const std::int32_t drafts = schedule ? script.most : script.fixed;
  if (drafts > 0) {
    command += " --speculative-algorithm " + script.method;
    if (has_weights(script)) command += " --speculative-draft-model-path DRAFTER";
    const bool block = script.method == "DFLASH" || script.method == "DSPARK" || script.method == "NGRAM";
    if (!block) command += " --speculative-num-steps " + std::to_string(drafts) + " --speculative-eagle-topk 1";
    command += " --speculative-num-draft-tokens " + std::to_string(drafts + (script.method == "NGRAM" ? 0 : 1));
  }
  if (schedule) {
    out += "cat > adaptive_steps.json <<'END'\n{";
    for (const DraftsByLoad& range : script.ranges)
      out += std::string(range.loads.from == 1 ? "" : ",\n ") + "\"" + std::to_string(range.loads.from) +
             "\": {\"candidate_steps\": [" + std::to_string(range.drafts) + "]}";
    out += "}\nEND\n";
    command += " --speculative-adaptive --speculative-adaptive-config adaptive_steps.json";
  }
  return out + command + "\n";
}

std::string trtllm_script(const Script& script) {
  std::string out = comments(script, "TensorRT-LLM: draft_len_schedule, both ends of every range");
  std::string command = "trtllm-serve " + script.model() + parallel_flags(script, "--tp_size", "", "--pp_size");
  const bool schedule = script.by_load() && script.ranges.front().drafts == script.most && script.most > 0;
  const std::int32_t drafts = schedule ? script.most : script.fixed;
  if (drafts == 0) return out + command + "\n";
  std::ostringstream yaml;
  yaml << "speculative_config:\n  decoding_type: " << script.method << "\n  max_draft_len: " << drafts << "\n";
  if (has_weights(script)) yaml << "  speculative_model: DRAFTER\n";
  if (schedule) {
    yaml << "  draft_len_schedule:\n";
    for (const DraftsByLoad& range : script.ranges) {
      yaml << "    " << range.loads.from << ": " << range.drafts << "  # " << gain_text(range) << "\n";
      if (range.loads.to > range.loads.from) yaml << "    " << range.loads.to << ": " << range.drafts << "\n";
    }
  }
  out += "cat > speculation.yaml <<'END'\n" + yaml.str() + "END\n";
  return out + command + " --extra_llm_api_options speculation.yaml\n";
}

std::string llama_script(const Script& script) {
  std::string out = comments(script,
                             "llama.cpp has one number for all loads: that of the load you asked for. Builds as "
                             "old as b8210 call --spec-draft-n-max --draft-max");
  std::string command =
      "llama-server --model MODEL.gguf --parallel " + std::to_string(script.inputs.options.batches.front());
  if (script.fixed > 0) {
    const bool lookup = script.method == "ngram-mod";
    command += " --spec-type " + script.method;
    if (has_weights(script)) command += " --spec-draft-model DRAFTER.gguf";
    command += (lookup ? " --spec-ngram-mod-n-max " : " --spec-draft-n-max ") + std::to_string(script.fixed);
  }
  return out + command + "\n";
}

}  // namespace

std::vector<DraftsByLoad> draft_schedule(const PredictionInputs& inputs, double loss_max) {
  const std::int64_t groups = static_cast<std::int64_t>(inputs.preset.dp);
  const std::int64_t held = prediction_at(inputs, {1}).batch_of_memory / groups;
  if (held < 1) return {};
  std::vector<std::int64_t> batches = loads_up_to(std::min(held, inputs.options.batch_max));
  for (std::int64_t& batch : batches) batch *= groups;
  const Prediction curve = prediction_at(inputs, batches);
  std::vector<DraftsByLoad> ranges;
  for (const BatchPrediction& batch : curve.batches) {
    const std::int64_t load = batch.batch / groups;
    const std::int32_t below = ranges.empty() ? 0 : ranges.back().drafts;
    const PredictionRow* chosen = choice_at(batch, below, loss_max);
    const PredictionRow& row = chosen != nullptr ? *chosen : batch.rows[batch.best_chain];
    const std::int32_t drafts = chosen != nullptr ? row.form.depth : 0;
    if (ranges.empty() || ranges.back().drafts != drafts) {
      if (!ranges.empty()) ranges.back().loads.to = load - 1;
      ranges.push_back({{load, load}, drafts, row, row, {}});
    }
    DraftsByLoad& range = ranges.back();
    range.loads.to = load;
    if (const PredictionRow& best = batch.rows[batch.best]; !range.tree && best.form.is_tree() && batch.pays())
      range.tree = best;
    if (row.speedup < range.worst.speedup) range.worst = row;
  }
  return ranges;
}

std::string engine_config(const std::string& engine, const PredictionInputs& inputs, double loss_max) {
  Script script{inputs, engine, method_of(*inputs.preset.drafter, engine), draft_schedule(inputs, loss_max)};
  if (script.ranges.empty())
    throw usage_error("--write-config", "has nothing to write: the memory does not hold one request of this context");
  const std::int64_t asked = inputs.options.batches.front() / static_cast<std::int64_t>(inputs.preset.dp);
  for (const DraftsByLoad& range : script.ranges) {
    script.most = std::max(script.most, range.drafts);
    if (range.loads.from <= std::max<std::int64_t>(asked, 1)) script.fixed = range.drafts;
  }
  if (engine == "vllm") return vllm_script(script);
  if (engine == "sglang") return sglang_script(script);
  return engine == "trtllm" ? trtllm_script(script) : llama_script(script);
}

}  // namespace draftproof
