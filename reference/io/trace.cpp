#include "reference/io/trace.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "reference/error.hpp"
#include "reference/io/probability_rows.hpp"
#include "reference/io/safetensors.hpp"
#include "reference/io/trace_tensors.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {

struct Trace::Contents {
  explicit Contents(SafetensorsFile opened) : file(std::move(opened)) {}

  SafetensorsFile file;
  TraceSettings settings;
  std::vector<std::string> unused_metadata;
  std::int64_t vocab_size = 0;
  bool is_dense = false;
  bool has_seeds = false;
  std::int64_t draft_token_count = 0;
  std::vector<VerifyRequest> requests;

  // What the requests refer to.
  std::vector<TensorView> views;
  std::vector<TokenTensor> tokens;
  std::vector<LogitBias> logit_bias;
};

namespace {

constexpr std::array kTensorNames = {
    "target_logits",    "target_probs",      "cu_num_draft_tokens", "draft_tokens",       "draft_probs",
    "draft_logits",     "uncond_logits",     "temperature",         "top_p",              "min_p",
    "top_k",            "repetition_penalty", "frequency_penalty",  "presence_penalty",   "guidance_scale",
    "seed",             "step",              "prompt_tokens",       "cu_prompt_tokens",   "output_tokens",
    "cu_output_tokens", "bitmask",           "logit_bias_tokens",   "logit_bias_values",  "cu_logit_bias"};

void require_known_names(const SafetensorsFile& file) {
  for (const std::string& name : file.names()) {
    if (std::find(kTensorNames.begin(), kTensorNames.end(), name) != kTensorNames.end()) continue;
    std::string known;
    for (const char* const right : kTensorNames) known.append(known.empty() ? "" : ", ").append(right);
    throw input_error(file.path() + ": " + tensor_label(name), "is not one of a trace; known: " + known);
  }
}

std::size_t element(std::int64_t i) {
  return static_cast<std::size_t>(i);
}
std::uint64_t dimension(std::int64_t i) {
  return static_cast<std::uint64_t>(i);
}

}  // namespace

// Fills the contents tensor by tensor. B requests, M drafts, N = M + B rows, V vocabulary, as in the format's table.
class TraceReader {
 public:
  TraceReader(const SafetensorsFile& file, Trace::Contents& trace) : file_(file), trace_(trace) {}
  void read_requests();
  void read_proposals();
  void read_unconditional();
  void read_parameters();
  void read_seeds_and_steps();
  void read_histories();
  void read_bitmask();
  void read_logit_bias();
  void check_requests() const;
  void check_rows(int threads) const;
};

}  // namespace draftproof
