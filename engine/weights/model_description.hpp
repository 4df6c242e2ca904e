// Description of a model in its file: a decoder of the Llama family.
//
// A layer is x += O attention(RoPE(Q n), RoPE(K n), V n) with n = norm(x), then x += D (silu(G m) * (U m)) with
// m = norm(x); norm is RMSNorm. Qwen2 adds biases to Q, K and V; Qwen3 normalises the heads of Q and K.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/weights/gguf.hpp"
#include "engine/weights/json_fields.hpp"

namespace draftproof {

// Which two of a head's values RoPE rotates together by the i-th angle: 2i and 2i + 1, or i and i + head_size / 2.
enum class RopePairing : std::uint8_t { adjacent, halves };

// A mixture in place of a layer's feed-forward network: of `count` networks (experts) those that a router chooses for a
// token, weighted, and beside them one that every token goes through.
struct ExpertShape {
  std::int64_t count = 0;         // 0: one feed-forward network
  std::int64_t chosen = 0;        // of a token
  std::int64_t feed_forward = 0;  // an expert's
  std::int64_t shared = 0;        // of the network that all go through; 0: none
  bool by_sigmoid = false;        // scores: sigmoids of the router's logits (DeepSeek-V3), else their softmax
  bool normalised = false;        // the weights of the chosen sum to 1
  double scale = 1;               // of the weights
  std::int64_t groups = 1, groups_chosen = 1;  // the chosen are of the groups whose two best scores sum highest
};

struct ModelDescription {
  std::string architecture;  // "llama", "qwen2", "qwen3"
  std::string name;          // what the file calls itself; may be empty
  std::int64_t num_layers = 0;
  std::int64_t width = 0;
  std::int64_t feed_forward = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;  // divides num_heads
  std::int64_t head_size = 0;     // even
  std::int64_t vocab_size = 0;
  std::int64_t context_len_max = 0;
  double rms_epsilon = 0;
  double rope_base = 0;
  RopePairing rope_pairing = RopePairing::adjacent;
  // The angle of pair i at position p is p rope_base^(-2i / head_size) / rope_divisors[i]; [head_size / 2], all 1 where
  // the file asks for no scaling.
  std::vector<float> rope_divisors;
  ExpertShape experts;
  bool has_qkv_bias = false;
  bool has_qk_norm = false;
  bool tied = false;  // the head is the embedding
};

// Input errors naming the file and the key: an architecture that is not of this family, a number that is missing, out
// of range or does not fit the others. vocab_size, and what depends on which tensors there are, is
// model_weights.hpp's to fill in.
ModelDescription describe_gguf(const GgufFile& file);
// The same whatever the architecture is called: the keys stand behind its name.
ModelDescription describe_gguf_layers(const GgufFile& file, RopePairing pairing);
// Reads the config.json of a Hugging Face folder, or an object of one that describes layers. Experts as Qwen3-MoE,
// Qwen3-Next (num_experts), DeepSeek-V3 and GLM-4.5 (n_routed_experts) describe them; whether a layer has them its
// tensors say.
ModelDescription describe_config(const JsonFields& config);

// The divisors of Llama 3's scaling: wavelengths beyond original_context / low_factor are stretched by `factor`, those
// below original_context / high_factor stay, and between the two the frequency is interpolated.
std::vector<float> llama3_divisors(double rope_base, std::int64_t head_size, double factor, double low_factor,
                                   double high_factor, double original_context);

}  // namespace draftproof
