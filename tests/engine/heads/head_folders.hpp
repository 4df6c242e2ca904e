// Small heads in every format, with the names and the shapes of real ones scaled down: width 32, two heads of 16 over
// one KV head, 40 tokens of which 10 are drafted, three layers of features, a target of 12 layers. Names and keys:
// vllm-project/speculators c05b95b, SafeAILab/EAGLE cb7e084, sgl-project/SpecForge a6b6b02, z-lab/dflash 44947fb,
// deepseek-ai/DeepSpec afdfa7c, FasterDecoding/Medusa e2a5d20, vLLM and llama.cpp.
#pragma once

#include "base/archives/safetensors.hpp"
#include "engine/heads/head_files.hpp"
#include "tests/engine/weights/gguf_builder.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

// Tensors by name, to be written as safetensors or as GGUF.
struct HeadFiles {
  struct Tensor {
    std::vector<std::uint64_t> shape;
    DType dtype = DType::f32;
    std::string data;
  };
  std::string label;  // of the format
  nlohmann::json config;
  std::map<std::string, Tensor> tensors;
  std::vector<std::string> optional;  // tensors that the head can do without

  HeadFiles& weights(const std::string& name, std::vector<std::uint64_t> shape) {
    std::uint64_t seed = 1;
    for (const char c : name) seed = seed * 31 + static_cast<unsigned char>(c);
    TestRandom random(seed);
    std::uint64_t count = 1;
    for (const std::uint64_t length : shape) count *= length;
    std::vector<float> values(count);
    for (float& value : values) value = shape.size() == 1 ? 1 + 0.1F * random.normal() : 0.2F * random.normal();
    return add(name, std::move(shape), DType::f32, values);
  }
  HeadFiles& integers(const std::string& name, const std::vector<std::int64_t>& values) {
    return add(name, {values.size()}, DType::i64, values);
  }
  HeadFiles& marks(const std::string& name, const std::vector<std::uint8_t>& values) {
    return add(name, {values.size()}, DType::boolean, values);
  }
  template <class T>
  HeadFiles& add(const std::string& name, std::vector<std::uint64_t> shape, DType dtype, const std::vector<T>& values) {
    Tensor& tensor = tensors[name];
    tensor = {std::move(shape), dtype, std::string(values.size() * sizeof(T), '\0')};
    std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    return *this;
  }
  std::vector<float> values(const std::string& name) const {
    const Tensor& tensor = tensors.at(name);
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return values;
  }
  // Q, K, V, O, norms and feed-forward of a layer whose attention reads rows of `input_width`.
  HeadFiles& layer(const std::string& prefix, std::uint64_t input_width, bool norm, bool qk_norm = false) {
    if (norm) weights(prefix + ".input_layernorm.weight", {32});
    weights(prefix + ".self_attn.q_proj.weight", {32, input_width});
    weights(prefix + ".self_attn.k_proj.weight", {16, input_width});
    weights(prefix + ".self_attn.v_proj.weight", {16, input_width});
    weights(prefix + ".self_attn.o_proj.weight", {32, 32});
    if (qk_norm) weights(prefix + ".self_attn.q_norm.weight", {16}).weights(prefix + ".self_attn.k_norm.weight", {16});
    weights(prefix + ".post_attention_layernorm.weight", {32});
    weights(prefix + ".mlp.gate_proj.weight", {64, 32}).weights(prefix + ".mlp.up_proj.weight", {64, 32});
    return weights(prefix + ".mlp.down_proj.weight", {32, 64});
  }
  // Ten of 40 tokens: 1, 5, 9, ... as offsets from their rows, and as marks.
  HeadFiles& reduced_vocabulary() {
    std::vector<std::int64_t> offsets;
    std::vector<std::uint8_t> drafted(40, 0);
    for (std::int64_t i = 0; i < 10; ++i) {
      offsets.push_back(1 + 4 * i - i);
      drafted[static_cast<std::size_t>(1 + 4 * i)] = 1;
    }
    optional.emplace_back("t2d");
    return integers("d2t", offsets).marks("t2d", drafted);
  }

  void write(const TemporaryFolder& folder) const { write(folder.path()); }
  void write(const std::string& folder) const {
    write_whole_file(folder + "/config.json", config.dump());
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : tensors)
      writer.add(name, tensor.dtype, tensor.shape, std::as_bytes(std::span(tensor.data)));
    writer.write(folder + "/model.safetensors");
  }

  // The tensors behind metadata that `file` has already.
  GgufBuilder& write(GgufBuilder& file) const {
    for (const auto& [name, tensor] : tensors)
      file.tensor(name, {tensor.shape.rbegin(), tensor.shape.rend()}, tensor.dtype == DType::i64 ? 27U : 0U,
                  tensor.data);
    return file;
  }
};

inline nlohmann::json layer_config(const char* type = "llama") {
  return {
      {"model_type", type},       {"num_hidden_layers", 1},    {"hidden_size", 32},    {"intermediate_size", 64},
      {"num_attention_heads", 2}, {"num_key_value_heads", 1},  {"head_dim", 16},       {"max_position_embeddings", 256},
      {"rms_norm_eps", 1e-5},     {"rope_theta", 10000.0},     {"hidden_act", "silu"}, {"vocab_size", 40},
      {"attention_bias", false},  {"initializer_range", 0.02}, {"use_cache", true},    {"tie_word_embeddings", false}};
}

inline nlohmann::json speculators_config(const char* type, nlohmann::json layers, int drafts) {
  return {
      {"architectures", nlohmann::json::array({"a"})},
      {"speculators_model_type", type},
      {"speculators_version", "0.9.0"},
      {"speculators_config",
       {{"algorithm", type},
        {"default_proposal_method", "greedy"},
        {"proposal_methods", nlohmann::json::array({nlohmann::json{{"proposal_type", "greedy"},
                                                                   {"speculative_tokens", drafts},
                                                                   {"verifier_accept_k", 1},
                                                                   {"accept_tolerance", 0.0}}})},
        {"verifier", {{"name_or_path", "target"}, {"architectures", nlohmann::json::array({"LlamaForCausalLM"})}}}}},
      {"transformer_layer_config", std::move(layers)}};
}

inline HeadFiles speculators_eagle3() {
  HeadFiles head{"speculators eagle3", speculators_config("eagle3", layer_config(), 3), {}, {}};
  head.config.update({{"draft_vocab_size", 10},
                      {"norm_before_residual", true},
                      {"target_hidden_size", 32},
                      {"norm_before_fc", false},
                      {"fc_norm", false},
                      {"norm_output", false},
                      {"embed_requires_grad", false},
                      {"eagle_aux_hidden_state_layer_ids", {1, 2, 3}}});
  head.layer("layers.0", 64, true).weights("layers.0.hidden_norm.weight", {32}).weights("fc.weight", {32, 96});
  head.weights("norm.weight", {32}).weights("lm_head.weight", {10, 32}).weights("embed_tokens.weight", {40, 32});
  head.optional.emplace_back("embed_tokens.weight");
  return head.reduced_vocabulary();
}

inline HeadFiles speculators_peagle() {
  HeadFiles head = speculators_eagle3();
  head.label = "speculators peagle";
  head.config.update({{"speculators_model_type", "peagle"}, {"mask_token_id", 39}, {"embed_requires_grad", true}});
  return head.weights("mask_hidden", {1, 1, 96});
}

inline HeadFiles eagle3_of_specforge() {
  HeadFiles head{"EAGLE eagle3", layer_config(), {}, {}};
  head.config.update({{"architectures", nlohmann::json::array({"LlamaForCausalLMEagle3"})},
                      {"draft_vocab_size", 10},
                      {"fc_norm", true},
                      {"eagle_config", {{"eagle_aux_hidden_state_layer_ids", {1, 5, 8}}}}});
  head.layer("midlayer", 64, true).weights("midlayer.hidden_norm.weight", {32}).weights("fc.weight", {32, 96});
  for (const char* const norm : {"fc_norm.0.weight", "fc_norm.1.weight", "fc_norm.2.weight"}) head.weights(norm, {32});
  head.weights("norm.weight", {32}).weights("lm_head.weight", {10, 32});
  return head.reduced_vocabulary();
}

inline HeadFiles eagle1() {
  HeadFiles head{"EAGLE eagle1", layer_config(), {}, {"embed_tokens.weight"}};
  head.config.update({{"architectures", nlohmann::json::array({"LlamaForCausalLM"})}, {"bias", true}});
  head.layer("layers.0", 32, false).weights("fc.weight", {32, 64}).weights("fc.bias", {32});
  return head.weights("embed_tokens.weight", {40, 32});
}

inline HeadFiles eagle_of_speculators_01() {
  HeadFiles head{"speculators eagle1", speculators_config("eagle", layer_config(), 5), {}, {}};
  head.config.update({{"fusion_bias", true}, {"layernorms", true}});
  head.layer("transformer", 32, true).weights("fusion_fc.weight", {32, 64}).weights("fusion_fc.bias", {32});
  return head.weights("embedding_layernorm.weight", {32}).weights("pre_lm_head_layernorm.weight", {32});
}

inline void add_block_layers(HeadFiles& head) {
  head.layer("layers.0", 32, true, true).layer("layers.1", 32, true, true);
  head.weights("hidden_norm.weight", {32}).weights("norm.weight", {32});
}

inline HeadFiles speculators_dflash() {
  HeadFiles head{"speculators dflash", speculators_config("dflash", layer_config("qwen3"), 7), {}, {}};
  head.config["transformer_layer_config"].update(
      {{"num_hidden_layers", 2}, {"layer_types", {"full_attention", "full_attention"}}, {"max_window_layers", 28}});
  head.config.update({{"draft_vocab_size", 10},
                      {"block_size", 8},
                      {"mask_token_id", 39},
                      {"aux_hidden_state_layer_ids", {2, 6}},
                      {"sample_from_anchor", false},
                      {"sliding_window_non_causal", false}});
  add_block_layers(head);
  head.weights("fc.weight", {32, 64}).weights("lm_head.weight", {10, 32});
  return head.reduced_vocabulary();
}

inline void add_selector(HeadFiles& head) {
  for (const char* const conv :
       {"layers.0.attention_conv", "layers.0.mlp_conv", "layers.1.attention_conv", "layers.1.mlp_conv"})
    head.weights(conv + std::string(".base_kernel"), {2, 3, 32})
        .weights(conv + std::string(".kernel_projection.weight"), {12, 32});
  const std::string selector = "candidate_selector.";
  head.weights(selector + "predecessor_codebook", {40, 64}).weights(selector + "successor_codebook", {40, 64});
  head.weights(selector + "hidden_projection.weight", {64, 32});
}

// Of DFlash 2.
inline const nlohmann::json kSelector{
    {"conv_kernel_size", 3}, {"conv_group_size", 16}, {"selector_rank", 64}, {"selector_top_k", 7}};

inline HeadFiles speculators_dflash2() {
  HeadFiles head{"speculators dflash2", speculators_config("dflash2", layer_config("qwen3"), 7), {}, {}};
  head.config["transformer_layer_config"].update({{"num_hidden_layers", 2}});
  head.config.update(
      {{"draft_vocab_size", 40}, {"block_size", 8}, {"mask_token_id", 39}, {"aux_hidden_state_layer_ids", {2, 6}}});
  head.config.update(kSelector);
  add_block_layers(head);
  add_selector(head);
  return head.weights("fc.weight", {32, 64});
}

inline HeadFiles speculators_dspark() {
  HeadFiles head = speculators_dflash();
  head.label = "speculators dspark";
  head.config.update({{"speculators_model_type", "dspark"},
                      {"sample_from_anchor", true},
                      {"block_size", 7},
                      {"markov_rank", 32},
                      {"markov_head_type", "vanilla"},
                      {"enable_confidence_head", true},
                      {"confidence_head_with_markov", true}});
  head.weights("markov_head.markov_w1.weight", {40, 32}).weights("markov_head.markov_w2.weight", {10, 32});
  return head.weights("confidence_head.proj.weight", {1, 64}).weights("confidence_head.proj.bias", {1});
}

inline HeadFiles speculators_mtp() {
  HeadFiles head{"speculators mtp", speculators_config("mtp", layer_config("qwen3"), 3), {}, {}};
  head.config["transformer_layer_config"]["num_hidden_layers"] = 12;
  head.config["num_nextn_predict_layers"] = 1;
  const std::string layer = "mtp_layers.0";
  head.layer(layer, 32, true, true).weights(layer + ".input_proj.weight", {32, 64});
  head.weights(layer + ".hidden_layernorm.weight", {32}).weights(layer + ".token_layernorm.weight", {32});
  return head.weights(layer + ".final_layernorm.weight", {32});
}

inline HeadFiles dflash_of_z_lab() {
  HeadFiles head{"DFlash dflash", layer_config("qwen3"), {}, {}};
  head.config.update({{"architectures", nlohmann::json::array({"DFlashDraftModel"})},
                      {"num_hidden_layers", 2},
                      {"block_size", 16},
                      {"num_target_layers", 12},
                      {"dflash_config", {{"mask_token_id", 38}, {"target_layer_ids", {1, 5, 9}}}}});
  add_block_layers(head);
  return head.weights("fc.weight", {32, 96});
}

inline HeadFiles dflash2_of_z_lab() {
  HeadFiles head = dflash_of_z_lab();
  head.label = "DFlash dflash2";
  head.config["architectures"] = {"DFlash2DraftModel"};
  head.config["dflash_config"].update(kSelector);
  add_selector(head);
  return head;
}

inline HeadFiles dspark_of_specforge() {
  HeadFiles head = dflash_of_z_lab();
  head.label = "DFlash dspark";
  head.config.update({{"architectures", nlohmann::json::array({"DSparkDraftModel"})}, {"block_size", 7}});
  head.config["dflash_config"].update({{"attention_mode", "gqa"},
                                       {"projector_type", "dspark"},
                                       {"markov_rank", 32},
                                       {"markov_head_type", "vanilla"},
                                       {"confidence_head_alpha", 1.0},
                                       {"enable_confidence_head", true},
                                       {"confidence_head_with_markov", false}});
  head.weights("markov_head.markov_w1.weight", {40, 32}).weights("markov_head.markov_w2.weight", {40, 32});
  return head.weights("confidence_head.proj.weight", {1, 32}).weights("confidence_head.proj.bias", {1});
}

inline HeadFiles eagle3_of_deepspec() {
  HeadFiles head{"DeepSpec eagle3", layer_config("qwen3"), {}, {"embed_tokens.weight", "lm_head.weight"}};
  head.config.update({{"architectures", nlohmann::json::array({"Qwen3Eagle3Model"})},
                      {"num_target_layers", 12},
                      {"target_layer_ids", {1, 5, 9}},
                      {"ttt_length", 7},
                      {"step_loss_decay", 0.8},
                      {"draft_num_hidden_layers", 1}});
  head.layer("layers.0", 64, true, true).weights("layers.0.hidden_norm.weight", {32}).weights("fc.weight", {32, 96});
  return head.weights("norm.weight", {32}).weights("lm_head.weight", {40, 32}).weights("embed_tokens.weight", {40, 32});
}

inline HeadFiles dspark_of_deepspec() {
  HeadFiles head{"DeepSpec dspark", layer_config("qwen3"), {}, {"embed_tokens.weight", "lm_head.weight"}};
  head.config.update({{"architectures", nlohmann::json::array({"Qwen3DSparkModel"})},
                      {"num_hidden_layers", 2},
                      {"num_target_layers", 12},
                      {"target_layer_ids", {1, 5, 9}},
                      {"block_size", 7},
                      {"mask_token_id", 38},
                      {"num_anchors", 512},
                      {"markov_rank", 32},
                      {"markov_head_type", "vanilla"},
                      {"enable_confidence_head", true},
                      {"confidence_head_with_markov", true}});
  add_block_layers(head);
  head.weights("fc.weight", {32, 96}).weights("lm_head.weight", {40, 32}).weights("embed_tokens.weight", {40, 32});
  head.weights("markov_head.markov_w1.weight", {40, 32}).weights("markov_head.markov_w2.weight", {40, 32});
  return head.weights("confidence_head.proj.weight", {1, 64}).weights("confidence_head.proj.bias", {1});
}

inline HeadFiles medusa_of_vllm() {
  HeadFiles head{"Medusa of vLLM", nlohmann::json{}, {}, {}};
  head.config = {{"architectures", nlohmann::json::array({"MedusaModel"})},
                 {"model_type", "medusa"},
                 {"hidden_size", 32},
                 {"vocab_size", 40},
                 {"num_heads", 3},
                 {"num_hidden_layers", 1},
                 {"truncated_vocab_size", 10},
                 {"medusa_fc_bias", true},
                 {"original_lm_head", false},
                 {"logit_scale", 1.0},
                 {"torch_dtype", "float16"},
                 {"max_seq_len", 0}};
  for (const char* const i : {"0", "1", "2"}) {
    const std::string block = std::string("blocks.") + i + ".layers.0.";
    head.weights(block + "weight", {32, 32}).weights(block + "bias", {32});
    head.weights(std::string("lm_heads.") + i + ".weight", {10, 32});
  }
  return head.integers("token_map", {1, 5, 9, 13, 17, 21, 25, 29, 33, 37});
}

inline HeadFiles medusa() {
  HeadFiles head{
      "Medusa", {{"medusa_num_heads", 2}, {"medusa_num_layers", 2}, {"base_model_name_or_path", "v"}}, {}, {}};
  for (const char* const i : {"0.", "1."}) {
    for (const char* const j : {"0.linear.", "1.linear."})
      head.weights(std::string(i) + j + "weight", {32, 32}).weights(std::string(i) + j + "bias", {32});
    head.weights(std::string(i) + "2.weight", {40, 32});
  }
  return head;
}

// torch.nn.Sequential(Linear, SiLU, Linear) of each head.
inline HeadFiles medusa_of_linears() {
  HeadFiles head{"Medusa of linear layers", {{"medusa_num_heads", 2}}, {}, {}};
  for (const char* const i : {"0.", "1."}) {
    head.weights(std::string(i) + "0.weight", {32, 32}).weights(std::string(i) + "0.bias", {32});
    head.weights(std::string(i) + "2.weight", {40, 32}).weights(std::string(i) + "2.bias", {40});
  }
  return head;
}

inline HeadFiles mtp_of_deepseek() {
  const std::string layer = "model.layers.12";
  HeadFiles head{
      "MTP of DeepSeek", layer_config(), {}, {layer + ".embed_tokens.weight", layer + ".shared_head.head.weight"}};
  head.config.update({{"num_hidden_layers", 12}, {"num_nextn_predict_layers", 1}});
  head.layer(layer, 32, true).weights(layer + ".eh_proj.weight", {32, 64}).weights(layer + ".enorm.weight", {32});
  head.weights(layer + ".hnorm.weight", {32}).weights(layer + ".shared_head.norm.weight", {32});
  return head.weights(layer + ".shared_head.head.weight", {40, 32}).weights(layer + ".embed_tokens.weight", {40, 32});
}

inline HeadFiles mtp_of_qwen() {
  HeadFiles head{"MTP of Qwen", layer_config("qwen3"), {}, {}};
  head.config.update({{"num_hidden_layers", 12}, {"mtp_num_hidden_layers", 1}});
  head.layer("mtp.layers.0", 32, true, true).weights("mtp.fc.weight", {32, 64}).weights("mtp.norm.weight", {32});
  return head.weights("mtp.pre_fc_norm_hidden.weight", {32}).weights("mtp.pre_fc_norm_embedding.weight", {32});
}

// Four experts of 32 in place of the feed-forward network of an MTP head.
inline HeadFiles with_experts(HeadFiles head, const std::string& label, const std::string& layer) {
  head.label = label;
  std::erase_if(head.tensors, [&](const auto& tensor) { return tensor.first.starts_with(layer + ".mlp."); });
  head.weights(layer + ".mlp.gate.weight", {4, 32});
  for (const char* const i : {"0.", "1.", "2.", "3."}) {
    const std::string expert = layer + ".mlp.experts." + i;
    head.weights(expert + "gate_proj.weight", {32, 32}).weights(expert + "up_proj.weight", {32, 32});
    head.weights(expert + "down_proj.weight", {32, 32});
  }
  head.config.update({{"moe_intermediate_size", 32}, {"num_experts_per_tok", 2}, {"norm_topk_prob", true}});
  return head;
}

inline HeadFiles mtp_of_qwen_with_experts() {
  HeadFiles head = with_experts(mtp_of_qwen(), "MTP of Qwen with experts", "mtp.layers.0");
  head.config.update({{"model_type", "qwen3_moe"}, {"num_experts", 4}, {"shared_expert_intermediate_size", 64}});
  const std::string shared = "mtp.layers.0.mlp.shared_expert";
  head.weights(shared + ".gate_proj.weight", {64, 32}).weights(shared + ".up_proj.weight", {64, 32});
  return head.weights(shared + ".down_proj.weight", {32, 64}).weights(shared + "_gate.weight", {1, 32});
}

inline HeadFiles mtp_of_deepseek_with_experts() {
  HeadFiles head = with_experts(mtp_of_deepseek(), "MTP of DeepSeek with experts", "model.layers.12");
  head.config.update({{"model_type", "glm4_moe"},
                      {"n_routed_experts", 4},
                      {"n_shared_experts", 2},
                      {"n_group", 2},
                      {"topk_group", 1},
                      {"routed_scaling_factor", 2.5},
                      {"first_k_dense_replace", 3}});
  const std::string shared = "model.layers.12.mlp.shared_experts.";
  head.weights(shared + "gate_proj.weight", {64, 32}).weights(shared + "up_proj.weight", {64, 32});
  head.weights("model.layers.12.mlp.gate.e_score_correction_bias", {4});
  return head.weights(shared + "down_proj.weight", {32, 64});
}

inline std::vector<HeadFiles> head_folders() {
  return {speculators_eagle3(),      speculators_peagle(), eagle3_of_specforge(), eagle1(),
          eagle_of_speculators_01(), speculators_dflash(), speculators_dflash2(), speculators_dspark(),
          speculators_mtp(),         dflash_of_z_lab(),    dflash2_of_z_lab(),    dspark_of_specforge(),
          eagle3_of_deepspec(),      dspark_of_deepspec(), medusa_of_vllm(),      medusa(),
          medusa_of_linears(),       mtp_of_deepseek(),    mtp_of_qwen(),         mtp_of_deepseek_with_experts(),
          mtp_of_qwen_with_experts()};
}

// Metadata of a head in a GGUF file.
inline GgufBuilder head_metadata(const std::string& architecture, std::uint32_t layers) {
  GgufBuilder file;
  const auto key = [&](const char* name) { return architecture + "." + name; };
  file.string("general.architecture", architecture).u32(key("block_count"), layers);
  file.u32(key("context_length"), 256).u32(key("embedding_length"), 32).u32(key("feed_forward_length"), 64);
  file.u32(key("attention.head_count"), 2).u32(key("attention.head_count_kv"), 1);
  file.u32(key("attention.key_length"), 16).f32(key("attention.layer_norm_rms_epsilon"), 1e-5F);
  return file.f32(key("rope.freq_base"), 10000).u32(key("vocab_size"), 40);
}

// The rows of Q or K as llama.cpp's converter orders them for llama: pair i of a head in rows 2i and 2i + 1.
inline std::vector<float> adjacent_rows(const std::vector<float>& halves, std::size_t heads, std::size_t columns) {
  const std::size_t size = halves.size() / heads / columns;
  std::vector<float> rows(halves.size());
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t r = 0; r < size; ++r)
      std::copy_n(
          halves.begin() + static_cast<std::ptrdiff_t>((h * size + r) * columns), columns,
          rows.begin() + static_cast<std::ptrdiff_t>((h * size + 2 * (r % (size / 2)) + r / (size / 2)) * columns));
  return rows;
}

// A head's tensors under llama.cpp's names: eagle3 with absolute tokens and permuted rows, else dflash.
inline HeadFiles gguf_tensors(const HeadFiles& folder, bool is_eagle3) {
  HeadFiles out;
  const std::vector<std::pair<std::string, std::string>> names{{"layers.", "blk."},
                                                               {".input_layernorm", ".attn_norm"},
                                                               {".hidden_norm", ".attn_norm_2"},
                                                               {".self_attn.q_proj", ".attn_q"},
                                                               {".self_attn.k_proj", ".attn_k"},
                                                               {".self_attn.v_proj", ".attn_v"},
                                                               {".self_attn.q_norm", ".attn_q_norm"},
                                                               {".self_attn.k_norm", ".attn_k_norm"},
                                                               {".self_attn.o_proj", ".attn_output"},
                                                               {".post_attention_layernorm", ".ffn_norm"},
                                                               {".mlp.gate_proj", ".ffn_gate"},
                                                               {".mlp.up_proj", ".ffn_up"},
                                                               {".mlp.down_proj", ".ffn_down"},
                                                               {"lm_head", "output"},
                                                               {"embed_tokens", "token_embd"},
                                                               {"markov_head.markov", "markov"},
                                                               {"confidence_head.proj", "conf_proj"}};
  for (const auto& [name, tensor] : folder.tensors) {
    if (name == "t2d") continue;
    std::string to = name == "norm.weight" ? "output_norm.weight" : name;
    if (name == "hidden_norm.weight") to = "enc.output_norm.weight";
    for (const auto& [from, with] : names)
      if (const std::size_t at = to.find(from); at != std::string::npos) to.replace(at, from.size(), with);
    HeadFiles::Tensor& added = out.tensors[to];
    added = tensor;
    if (name == "d2t") {
      std::vector<std::int64_t> tokens(tensor.shape[0]);
      std::memcpy(tokens.data(), tensor.data.data(), tensor.data.size());
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] += static_cast<std::int64_t>(i);
      out.integers("d2t", tokens);
    }
    const bool is_query = name.ends_with("q_proj.weight");
    if (is_eagle3 && (is_query || name.ends_with("k_proj.weight")))
      out.add(to, tensor.shape, DType::f32,
              adjacent_rows(folder.values(name), is_query ? 2 : 1, static_cast<std::size_t>(tensor.shape[1])));
  }
  return out;
}

inline GgufBuilder eagle3_gguf() {
  GgufBuilder file = head_metadata("eagle3", 1);
  file.numbers<std::int32_t>("eagle3.extract_layers", GgufType::i32, std::vector<std::int32_t>{1, 2, 3});
  file.u32("eagle3.target_hidden_size", 32).boolean("eagle3.norm_before_residual", true);
  return gguf_tensors(speculators_eagle3(), true).write(file);
}

inline GgufBuilder dspark_gguf() {
  GgufBuilder file = head_metadata("dflash", 2);
  file.numbers<std::int32_t>("dflash.target_layers", GgufType::i32, std::vector<std::int32_t>{2, 6});
  file.u32("dflash.block_size", 7).u32("tokenizer.ggml.mask_token_id", 39);
  return gguf_tensors(speculators_dspark(), false).write(file);
}

// A companion of a target of 12 layers.
inline GgufBuilder nextn_gguf() {
  GgufBuilder file = head_metadata("llama", 13);
  file.u32("llama.nextn_predict_layers", 1);
  HeadFiles head;
  for (const auto& [name, tensor] : gguf_tensors(mtp_of_deepseek(), false).tensors) {
    std::string to = name;
    for (const auto& [from, with] :
         std::vector<std::pair<std::string, std::string>>{{"model.", ""},
                                                          {".eh_proj", ".nextn.eh_proj"},
                                                          {".enorm", ".nextn.enorm"},
                                                          {".hnorm", ".nextn.hnorm"},
                                                          {".shared_head.norm", ".nextn.shared_head_norm"},
                                                          {".shared_head.head", ".nextn.shared_head_head"},
                                                          {".token_embd", ".nextn.embed_tokens"}})
      if (const std::size_t at = to.find(from); at != std::string::npos) to.replace(at, from.size(), with);
    head.tensors[to] = tensor;
  }
  return head.write(file);
}

}  // namespace draftproof::testing
