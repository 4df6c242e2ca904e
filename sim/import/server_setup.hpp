// Setup of a server from its log: model, precision, GPUs, draft. The lines that are read:
//
//   vLLM:   "Initializing a V1 LLM engine (v0.11.0) with config: model='meta-llama/Llama-3.1-8B-Instruct',
//           speculative_config=SpeculativeConfig(method='eagle3', model='yuhuili/...', num_spec_tokens=3), ...,
//           dtype=torch.bfloat16, max_seq_len=8192, ..., tensor_parallel_size=1, ..., quantization=None, ...,
//           kv_cache_dtype=auto, ..."
//           and before it "non-default args: {..., 'enable_expert_parallel': True, ...}"
//   SGLang: "server_args=ServerArgs(model_path='...', dtype='auto', quantization='fp8', kv_cache_dtype='auto',
//           tp_size=4, speculative_algorithm='EAGLE3', speculative_draft_model_path='...', speculative_num_steps=3,
//           speculative_eagle_topk=1, speculative_num_draft_tokens=4, ...)"; from 0.5.20 on a dictionary,
//           "server_args={'model_path': '...', ...}"; and, of weights that a checkpoint itself says to be quantised,
//           "Load weight end. ..., type=..., quant=fp8, ..."
//   TensorRT-LLM: the report of trtllm-bench, a line each of "Model:", "TensorRT LLM Version:", "Quantization:",
//           "TP Size:", ...
//
// The last start holds: a log may be of several.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace draftproof {

struct ServerSetup {
  std::string engine;     // "vLLM 0.11.0", "SGLang"; empty: no such line
  std::string model;      // as the server names it, a path's last part
  std::string precision;  // as --precision takes it; empty, or of the cache alone: the model's own, or not known
  // Why it is not known, naming the line: an unknown method of quantisation, or one that leaves the bits of weights to
  // the model's config.json (quantization.hpp); an unknown type of the cache.
  std::optional<Error> precision_error;
  std::optional<int> tp;  // GPUs of a group of data parallelism
  int dp = 1, pp = 1;
  bool expert_parallel = false;  // experts, if there are any, lie over the GPUs of all groups
  std::string drafter;  // EAGLE-3, MTP, n-gram, ..., or the draft model's name; empty: no speculation, or not said
  std::optional<int> drafts;  // K, levels of a tree
  int tree_nodes = 0;         // without the root; 0: chains
  bool adaptive = false;      // K changes while the server runs

  bool found() const { return !engine.empty(); }
};

// Errors (input) naming the line: a number of GPUs or drafts that is none.
ServerSetup read_server_setup(std::string_view text, const std::string& name);
// Drafts in a line of SGLang's; empty where it has none.
struct LoggedDraft {
  std::optional<int> levels;
  int tree_nodes = 0;
};
std::optional<LoggedDraft> sglang_logged_draft(std::string_view line, const std::string& where);

}  // namespace draftproof
