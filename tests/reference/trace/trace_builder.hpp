// Trace files for tests: tensors by name that can be changed into lies one at a time.
#pragma once

#include "base/archives/safetensors.hpp"
#include "base/token.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

class TraceBuilder {
 public:
  template <class T>
  TraceBuilder& set(const std::string& name, std::vector<std::uint64_t> shape, const std::vector<T>& values) {
    Tensor tensor{DTypeOf<T>::value, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
    if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    tensors_[name] = std::move(tensor);
    return *this;
  }
  template <class T>
  TraceBuilder& set(const std::string& name, const std::vector<T>& values) {
    return set(name, {values.size()}, values);
  }
  TraceBuilder& drop(const std::string& name) {
    tensors_.erase(name);
    return *this;
  }
  TraceBuilder& metadata(const std::string& key, const std::string& value) {
    metadata_[key] = value;
    return *this;
  }

  // Returns the path.
  std::string write(const std::string& path) const {
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : tensors_) writer.add(name, tensor.dtype, tensor.shape, tensor.bytes);
    for (const auto& [key, value] : metadata_) writer.metadata(key, value);
    writer.write(path);
    return path;
  }

 private:
  struct Tensor {
    DType dtype;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// A batch of made-up steps, as the vectors that both a file and C++ requests can be made of.
struct RandomBatch {
  std::uint64_t vocab_size;
  std::vector<std::int64_t> draft_len;
  std::vector<std::int64_t> cu_draft;  // inclusive
  std::vector<Token> drafts;           // [M]
  std::vector<float> target;           // [N, V] logits
  std::vector<float> unconditional;    // [N, V]
  std::vector<float> proposal;         // [M, V] probabilities
  std::vector<std::uint32_t> bitmask;  // [N, words]
  std::vector<float> temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, guidance_scale;
  std::vector<std::int32_t> top_k;
  std::vector<std::uint64_t> seeds;
  std::vector<std::int32_t> steps;
  std::vector<Token> prompt, output, bias_tokens, logprob_ids;
  std::vector<float> bias_values;
  std::vector<std::int32_t> cu_prompt, cu_output, cu_bias, cu_logprob_ids;

  std::uint64_t requests() const { return draft_len.size(); }
  std::uint64_t draft_count() const { return drafts.size(); }
  std::uint64_t rows() const { return draft_count() + requests(); }
  std::uint64_t words() const { return (vocab_size + 31) / 32; }
};

inline RandomBatch make_batch(std::uint64_t requests, std::uint64_t vocab_size, unsigned draft_len_max,
                              std::uint32_t seed = 1) {
  std::mt19937 bits(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int32_t>(bits() % n); };
  const auto uniform = [&] { return static_cast<float>(bits() >> 8) * 0x1p-24f; };
  const auto token = [&] { return below(vocab_size); };
  RandomBatch batch;
  batch.vocab_size = vocab_size;
  for (std::uint64_t b = 0; b < requests; ++b) {
    const auto k = static_cast<std::uint64_t>(below(draft_len_max + 1));
    batch.draft_len.push_back(static_cast<std::int64_t>(k));
    for (std::uint64_t i = 0; i < k; ++i) {
      std::vector<float> row;
      float sum = 0.0f;
      for (std::uint64_t j = 0; j < vocab_size; ++j) sum += row.emplace_back(uniform() + 0.01f);
      for (const float p : row) batch.proposal.push_back(p / sum);
      batch.drafts.push_back(token());
    }
    batch.cu_draft.push_back(static_cast<std::int64_t>(batch.drafts.size()));
    for (std::uint64_t j = 0; j < (k + 1) * vocab_size; ++j) {
      batch.target.push_back(4.0f * uniform() - 2.0f);
      batch.unconditional.push_back(4.0f * uniform() - 2.0f);
    }
    // Three bits of four, and the first of each word, so that no row is empty.
    for (std::uint64_t w = 0; w < (k + 1) * batch.words(); ++w) {
      const auto first = static_cast<std::uint32_t>(bits());
      const auto second = static_cast<std::uint32_t>(bits());
      batch.bitmask.push_back(first | second | 1u);
    }
    const auto pick = [&](float usual, float other) { return bits() % 2 == 0 ? usual : other; };
    batch.temperature.push_back(b % 5 == 4 ? 0.0f : pick(1.0f, 0.7f));
    batch.top_p.push_back(pick(1.0f, 0.9f));
    batch.min_p.push_back(pick(0.0f, 0.05f));
    batch.top_k.push_back(bits() % 2 == 0 ? 0 : 4);
    batch.repetition_penalty.push_back(pick(1.0f, 1.25f));
    batch.frequency_penalty.push_back(pick(0.0f, 0.5f));
    batch.presence_penalty.push_back(pick(0.0f, -0.25f));
    batch.guidance_scale.push_back(pick(1.0f, 1.5f));
    batch.seeds.push_back((static_cast<std::uint64_t>(bits()) << 32) | bits());
    batch.steps.push_back(below(100));
    for (int n = below(4); n > 0; --n) batch.prompt.push_back(token());
    for (int n = below(4); n > 0; --n) batch.output.push_back(token());
    if (bits() % 3 == 0) {
      batch.bias_tokens.push_back(token());
      batch.bias_values.push_back(2.0f * uniform());
    }
    batch.cu_prompt.push_back(static_cast<std::int32_t>(batch.prompt.size()));
    batch.cu_output.push_back(static_cast<std::int32_t>(batch.output.size()));
    batch.cu_bias.push_back(static_cast<std::int32_t>(batch.bias_tokens.size()));
    for (std::uint64_t i = 0; i < b % 3; ++i)
      batch.logprob_ids.push_back(static_cast<Token>((5 * b + 3 * i) % vocab_size));
    batch.cu_logprob_ids.push_back(static_cast<std::int32_t>(batch.logprob_ids.size()));
  }
  return batch;
}

// Every tensor but target and draft rows, drafts and bitmask, which the two layouts hold differently.
inline TraceBuilder per_request_tensors(const RandomBatch& batch) {
  TraceBuilder trace;
  trace.set("temperature", batch.temperature).set("top_p", batch.top_p).set("min_p", batch.min_p);
  trace.set("top_k", batch.top_k).set("repetition_penalty", batch.repetition_penalty);
  trace.set("frequency_penalty", batch.frequency_penalty).set("presence_penalty", batch.presence_penalty);
  trace.set("guidance_scale", batch.guidance_scale).set("seed", batch.seeds).set("step", batch.steps);
  trace.set("prompt_tokens", batch.prompt).set("cu_prompt_tokens", batch.cu_prompt);
  trace.set("output_tokens", batch.output).set("cu_output_tokens", batch.cu_output);
  trace.set("logit_bias_tokens", batch.bias_tokens).set("logit_bias_values", batch.bias_values);
  trace.set("cu_logit_bias", batch.cu_bias);
  trace.set("logprob_token_ids", batch.logprob_ids).set("cu_logprob_token_ids", batch.cu_logprob_ids);
  return trace;
}

inline TraceBuilder ragged_trace(const RandomBatch& batch) {
  TraceBuilder trace = per_request_tensors(batch);
  trace.set("target_logits", {batch.rows(), batch.vocab_size}, batch.target);
  trace.set("uncond_logits", {batch.rows(), batch.vocab_size}, batch.unconditional);
  trace.set("draft_probs", {batch.draft_count(), batch.vocab_size}, batch.proposal);
  trace.set("draft_tokens", batch.drafts).set("cu_num_draft_tokens", batch.cu_draft);
  trace.set("bitmask", {batch.rows(), batch.words()}, batch.bitmask);
  return trace;
}

// Two requests, two drafts and none, of four tokens.
inline TraceBuilder tiny_trace() {
  TraceBuilder trace;
  trace.set("target_logits", {4, 4}, std::vector<float>(16, 0.5f));
  trace.set("draft_probs", {2, 4}, std::vector<float>(8, 0.25f));
  trace.set("draft_tokens", std::vector<std::int32_t>{3, 1});
  trace.set("cu_num_draft_tokens", std::vector<std::int32_t>{2, 2});
  return trace;
}

}  // namespace draftproof::testing
