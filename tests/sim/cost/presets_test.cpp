// Presets of models, GPUs, engines and drafters: figures from outside, and names as people write them.
#include "sim/cost/presets.hpp"
#include "sim/cost/drafter.hpp"
#include "sim/cost/engine_profile.hpp"
#include "sim/cost/gpu.hpp"
#include "sim/cost/model_shape.hpp"
#include "sim/toml.hpp"
#include "tests/support/test.hpp"

TEST_CASE("Parameters and KV bytes of preset models are those that their authors publish") {
  struct Published {
    const char* name;
    double total_b, active_b, kv_bytes;  // billions; bytes of a token in 16 bits
  };
  for (const Published& p :
       {Published{"Llama-3.1-8B", 8.03, 7.50, 131072}, Published{"Llama-3.1-70B", 70.55, 69.5, 327680},
        Published{"Llama-2-7B", 6.74, 6.61, 524288}, Published{"Qwen3-8B", 8.19, 7.57, 147456},
        Published{"Llama-3.2-1B", 1.236, 1.236, 32768}, Published{"Qwen3-30B-A3B", 30.53, 3.04, 98304},
        Published{"Qwen3-235B-A22B", 235.09, 21.57, 192512}, Published{"Mixtral-8x7B", 46.7, 12.75, 131072},
        Published{"Llama-4-Scout", 107.8, 16.1, 196608}, Published{"gpt-oss-120b", 116.8, 5.1, 73728},
        Published{"DeepSeek-V3", 671.0, 37.0, 70272}}) {
    INFO(p.name);
    const ModelShape shape = find_model(p.name);
    CHECK(shape.total_parameters() / 1e9 == Approx(p.total_b).epsilon(0.02));
    CHECK(shape.active_parameters() / 1e9 == Approx(p.active_b).epsilon(0.12));
    CHECK(2.0 * shape.cached_values(1) == Approx(p.kv_bytes));
  }
}

TEST_CASE("Names of models are matched as people and files write them") {
  for (const auto& [written, preset] : std::vector<std::pair<std::string, std::string>>{
           {"meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"},
           {"hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", "Llama-3.1-8B"},
           {"LLaMA3.1-8B", "Llama-3.1-8B"},
           {"llama 3.3 70b instruct", "Llama-3.1-70B"},
           {"DeepSeek-R1-Distill-Llama-8B", "Llama-3.1-8B"},
           {"Vicuna-13B-v1.3", "Llama-2-13B"},
           {"Llama-2-70B-chat", "Llama-2-70B"},
           {"Qwen3-235B-A22B-Instruct-2507", "Qwen3-235B-A22B"},
           {"Qwen3-Next-80B-A3B-Instruct-FP8", "Qwen3-Next-80B-A3B"},
           {"DeepSeek-R1", "DeepSeek-V3"},
           {"mistralai/Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B"},
           {"JackFram/llama-68m", "llama-68m"},
           {"T5-XXL 11B", "T5-XXL-11B"}})
    CHECK(find_model(written).name == preset);
}

TEST_CASE("A model of another size is not taken for a preset, and an unknown one lists near names") {
  CHECK_FALSE(match_model("Llama-3.1-9B"));
  CHECK_FALSE(match_model("DeepSeek-R1-Distill-Foo-9B"));
  CHECK_THROWS_WITH(find_model("Lama-3.1-8B"), Contains("nearest: Llama-3.1-8B"));
  CHECK_THROWS_WITH(find_gpu("H100O"), Contains("GPU 'H100O': unknown") && Contains("H100 SXM 80GB"));
  CHECK_THROWS_AS(find_engine("nothing like it"), Error);
}

TEST_CASE("A model of unknown name gets a typical shape of its size, and says so") {
  const ModelShape dense = guess_model("Foo-13B-chat").value();
  CHECK(dense.active_parameters() / 1e9 == Approx(13.0).epsilon(0.1));
  CHECK_FALSE(dense.is_moe());
  CHECK_FALSE(dense.assumption.empty());
  const ModelShape moe = guess_model("Bar-30B-A3B").value();
  CHECK(moe.is_moe());
  CHECK(moe.total_parameters() / 1e9 == Approx(30.0).epsilon(0.1));
  CHECK(moe.active_parameters() / 1e9 == Approx(3.0).epsilon(0.1));
  CHECK_FALSE(guess_model("Foo"));
}

TEST_CASE("Names of GPUs are matched as people and files write them") {
  for (const auto& [written, preset] :
       std::vector<std::pair<std::string, std::string>>{{"NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"},
                                                        {"A100 80GB", "A100 SXM 80GB"},
                                                        {"A100", "A100 SXM 80GB"},
                                                        {"NVIDIA A100-SXM4-40GB", "A100 40GB"},
                                                        {"A100 40GB x4", "A100 40GB"},
                                                        {"A100-40G", "A100 40GB"},
                                                        {"H200", "H200 SXM 141GB"},
                                                        {"8x H100", "H100 SXM 80GB"},
                                                        {"8xH100-80G", "H100 SXM 80GB"},
                                                        {"NVIDIA GeForce RTX 3090 24GB", "RTX 3090"},
                                                        {"AMD Strix Halo (Ryzen AI Max)", "Strix Halo"},
                                                        {"L40 + CPU offload (PCIe4)", "L40"},
                                                        {"NVIDIA L40S", "L40S"},
                                                        {"TPU v4 (single)", "TPU v4"}})
    CHECK(find_gpu(written).name == preset);
}

TEST_CASE("Names of engines and drafters are matched as people and files write them") {
  CHECK(find_engine("vLLM 0.24.0").name == "vLLM");
  CHECK(find_engine("SGLang (SpecForge bench_eagle3.py)").name == "SGLang");
  CHECK(find_engine("EAGLE-3 HF code base").eager);
  CHECK(find_engine("HF transformers (Spec-Bench)").eager);
  CHECK(find_engine("HF + CUDA graphs (Sequoia)").eager);
  CHECK_FALSE(find_engine("HF + CUDA graphs (Sequoia)").eager_drafts);
  CHECK_FALSE(find_engine("TensorRT-LLM 1.0").eager);
  const ModelShape target = find_model("Llama-3.1-8B");
  for (const auto& [written, preset] :
       std::vector<std::pair<std::string, std::string>>{{"EAGLE-3 dynamic tree", "EAGLE-3"},
                                                        {"EAGLE3", "EAGLE-3"},
                                                        {"EAGLE2", "EAGLE-2"},
                                                        {"EAGLE static tree", "EAGLE"},
                                                        {"n-gram k=3", "n-gram"},
                                                        {"MTP chain", "MTP"},
                                                        {"DFlash", "DFlash"},
                                                        {"block parallel head", "DFlash"},
                                                        {"DSpark adaptive", "DSpark"},
                                                        {"P-EAGLE", "P-EAGLE"},
                                                        {"P-EAGLE-3", "P-EAGLE"}})
    CHECK(match_drafter(written, "", target).value().name == preset);
  CHECK(match_drafter("Sequoia optimal tree", "JackFram/llama-68m", target).value().shape.layers == 2.0);
  CHECK_FALSE(match_drafter("draft model chain", "", target));
  // The checkpoint says what the method leaves open.
  for (const auto& [checkpoint, preset] : {std::pair("amazon/GPT-OSS-20B-P-EAGLE", "P-EAGLE"),
                                           {"deepseek-ai/dspark_qwen3_8b_block7", "DSpark"},
                                           {"z-lab/Qwen3-8B-DFlash-b16", "DFlash"},
                                           {"yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "EAGLE-3"}})
    CHECK(match_drafter("speculative decoding", checkpoint, target).value().name == preset);
  // Or contradicts it: a language model costs what it costs, whatever the method is called.
  const DrafterShape as_model = match_drafter("EAGLE-3 chain", "meta-llama/Llama-3.2-1B-Instruct", target).value();
  CHECK(as_model.kind == DraftingKind::model);
  CHECK(as_model.shape.layers == 16.0);
  CHECK(match_drafter("EAGLE-3 chain", "lmsys/sglang-EAGLE3-Llama-4-Scout", target).value().name == "EAGLE-3");
  CHECK(match_drafter("MTP", target.name, target).value().name == "MTP");
  CHECK(match_drafter("n-gram", "Llama-3.2-1B", target).value().kind == DraftingKind::ngram);
}

TEST_CASE("Models add up to the parameters that their names or papers state, by their preset's counts") {
  for (const auto& [name, billions] : {std::pair("Grok-1", 314.0),
                                       {"Command R", 35.0},
                                       {"Command R+", 104.0},
                                       {"CohereForAI/c4ai-command-r-plus", 104.0},
                                       {"Command A", 111.0},
                                       {"Jamba-v0.1", 51.6},
                                       {"Nemotron-H-8B", 8.1}})
    CHECK(find_model(name).total_parameters() / 1e9 == Approx(billions).epsilon(0.015));
  // arXiv:2403.19887: 12 B active; and four layers of 32 with keys and values.
  CHECK(find_model("Jamba").active_parameters() / 1e9 == Approx(12.0).epsilon(0.06));
  CHECK(find_model("Jamba").cached_values(1) == 4 * 2 * 8 * 128.0);
  CHECK(find_gpu("Trn2").bandwidth == Approx(2.9e12));
}

TEST_CASE("An EAGLE-3 head has the parameters that its published configuration has") {
  // models.csv: 0.425 B for Llama-3.1-8B, of which 3 width^2 are read once a step.
  const DrafterShape head = find_drafter("EAGLE-3", find_model("Llama-3.1-8B"));
  CHECK((head.shape.active_parameters() + head.first_pass_parameters) / 1e9 == Approx(0.425).epsilon(0.05));
}

// Counted by hand for Qwen3-8B (width 4096, 193 M parameters a layer, 151,936 tokens).
TEST_CASE("Heads that draft a block have the shapes of their checkpoints") {
  const ModelShape target = find_model("Qwen3-8B");
  const DrafterShape dflash = find_drafter("DFlash", target);
  const DrafterShape dspark = find_drafter("DSpark", target);
  const DrafterShape parallel = find_drafter("P-EAGLE", target);
  const DrafterShape eagle = find_drafter("EAGLE-3", target);
  // models.csv: 0.965 B in five layers for both, the target's head not counted.
  for (const DrafterShape* head : {&dflash, &dspark}) {
    CHECK(head->shape.body_parameters / 1e9 == Approx(0.965).epsilon(0.01));
    CHECK(head->shape.head_parameters == 4096.0 * 151936.0);
    CHECK(head->one_pass());
  }
  CHECK(dflash.training.drafts == 15);
  CHECK(dflash.default_depth == 15);
  CHECK(dflash.level_parameters == 0.0);
  CHECK(!dflash.training.confidences);
  CHECK(dspark.training.drafts == 7);
  CHECK(dspark.default_depth == 7);
  CHECK(dspark.level_parameters == 256.0 * 151936.0);
  CHECK(dspark.training.confidences);
  CHECK(dspark.training.beyond < 1.0);
  // Four layers beside EAGLE-3's one, the same joined features and head, but one pass.
  CHECK(parallel.one_pass());
  CHECK(!eagle.one_pass());
  CHECK(parallel.shape.head_parameters == 4096.0 * 32000.0);
  CHECK(parallel.shape.head_parameters == eagle.shape.head_parameters);
  CHECK(parallel.first_pass_parameters == eagle.first_pass_parameters);
  CHECK((parallel.shape.body_parameters - eagle.shape.body_parameters) / 1e9 == Approx(3.0 * 0.193).epsilon(0.01));
  CHECK(parallel.training.published.empty());
}

TEST_CASE("A draft's training is found by the preset's name, an unknown one lists near names") {
  CHECK(find_draft_training("DSpark", "test").drafts == 7);
  CHECK(find_draft_training("EAGLE3", "test").published.size() == 3);
  CHECK(published_drafters() == "EAGLE-3, DFlash, DSpark, JetSpec");
  CHECK_THROWS_WITH(find_draft_training("nothing", "--acceptance"),
                    Catch::StartsWith("--acceptance: the drafter is 'nothing'; expected a preset (nearest: "));
}

TEST_CASE("Texts of precisions say the bytes of weights and of the cache apart") {
  CHECK(precision_of("bf16 (model default)").weight_bytes == 2.0);
  CHECK(precision_of("").kv_bytes == 2.0);
  const Precision mixed = precision_of("weights w4a16, KV fp8");
  CHECK(mixed.weight_bytes == Approx(0.55));
  CHECK(mixed.compute_bits == 16.0);
  CHECK(mixed.kv_bytes == 1.0);
  CHECK(precision_of("weights fp16, KV fp8").weight_bytes == 2.0);
  CHECK(precision_of("FP8").weight_bytes == 1.0);
  CHECK(precision_of("NVFP4").compute_bits == 4.0);
}

TEST_CASE("A precision that is asked for by a word that nobody knows is refused") {
  CHECK(stated_precision("AWQ-INT4", "--precision").weight_bytes == Approx(0.55));
  CHECK(stated_precision("bf16, KV fp8", "--precision").kv_bytes == 1.0);
  const Precision of_cache = stated_precision("KV fp8", "--precision", precision_of("fp8"));
  CHECK(of_cache.weight_bytes == 1.0);
  CHECK(of_cache.kv_bytes == 1.0);
  for (const char* text : {"", "nan", "7", "bf16, KV", "fp8, x"})
    CHECK_THROWS_WITH(stated_precision(text, "--precision"),
                      Contains("--precision") && Contains("expected a precision"));
}

TEST_CASE("A config.json gives the same parameters as the preset of the same model") {
  const ModelShape dense = model_from_config_json(
      R"({"num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,
          "intermediate_size":14336,"vocab_size":128256,"tie_word_embeddings":false})",
      "config.json");
  CHECK(dense.total_parameters() == find_model("Llama-3.1-8B").total_parameters());
  const ModelShape moe = model_from_config_json(
      R"({"num_hidden_layers":48,"hidden_size":2048,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,
          "intermediate_size":6144,"vocab_size":151936,"num_experts":128,"num_experts_per_tok":8,"moe_intermediate_size":768})",
      "config.json");
  CHECK(moe.active_parameters() == find_model("Qwen3-30B-A3B").active_parameters());
  // Latent attention: 671 B, as published.
  const ModelShape latent = model_from_config_json(
      R"({"num_hidden_layers":61,"hidden_size":7168,"num_attention_heads":128,"num_key_value_heads":128,"kv_lora_rank":512,
          "qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128,"q_lora_rank":1536,"intermediate_size":18432,
          "vocab_size":129280,"n_routed_experts":256,"num_experts_per_tok":8,"moe_intermediate_size":2048,
          "n_shared_experts":1,"first_k_dense_replace":3})",
      "config.json");
  CHECK(latent.total_parameters() / 1e9 == Approx(671.0).epsilon(0.005));
  CHECK(latent.cached_values(1) == 61.0 * 576.0);
}

TEST_CASE("A config.json of a hybrid gives the state of its layers without attention") {
  const ModelShape jamba = model_from_config_json(
      R"({"model_type":"jamba","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,
          "intermediate_size":14336,"vocab_size":65536,"num_experts":16,"num_experts_per_tok":2,"expert_layer_period":2,
          "attn_layer_period":8,"mamba_d_state":16,"mamba_d_conv":4,"mamba_expand":2})",
      "config.json");
  CHECK(jamba.cached_values(1) == 4 * 2 * 8 * 128.0);
  CHECK(jamba.expert_layers == 16.0);
  CHECK(jamba.state_values == find_model("Jamba").state_values);
  const ModelShape next = model_from_config_json(
      R"({"num_hidden_layers":48,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":2,"head_dim":256,
          "vocab_size":151936,"num_experts":512,"num_experts_per_tok":10,"moe_intermediate_size":512,
          "full_attention_interval":4,"linear_num_value_heads":32,"linear_num_key_heads":16,"linear_key_head_dim":128,
          "linear_value_head_dim":128,"linear_conv_kernel_dim":4})",
      "config.json");
  CHECK(next.state_values == find_model("Qwen3-Next-80B-A3B").state_values);
}

TEST_CASE("A config.json that is none, or lacks a figure, is one clear error") {
  CHECK_THROWS_WITH(model_from_config_json("not json", "c.json"), Catch::StartsWith("c.json: it is not JSON"));
  CHECK_THROWS_WITH(model_from_config_json("[]", "c.json"), Catch::StartsWith("c.json: it is not a JSON object"));
  CHECK_THROWS_WITH(model_from_config_json(R"({"hidden_size":8})", "c.json"), Contains("it has no num_hidden_layers"));
  CHECK_THROWS_WITH(model_from_config_json(R"({"hidden_size":8,"num_hidden_layers":"many"})", "c.json"),
                    Contains("num_hidden_layers is \"many\""));
  CHECK_THROWS_WITH(
      model_from_config_json(
          R"({"num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,"num_key_value_heads":4,"intermediate_size":8,"vocab_size":9})",
          "c.json"),
      Contains("kv_heads is 4; expected at most the number of heads, 2"));
  // Lists and counts of layers that no model has.
  std::string pruned = R"("block_configs":[{})";
  for (int i = 0; i < 2000; ++i) pruned += ",{}";
  for (const std::string& layers : {pruned + "]", std::string(R"("num_hidden_layers":1e9)")})
    CHECK_THROWS_WITH(
        model_from_config_json(
            R"({"hidden_size":8,"num_attention_heads":2,"intermediate_size":8,"vocab_size":9,)" + layers + "}",
            "c.json"),
        Contains("expected at most 2,000"));
  for (const std::string key : {"cross_attention_layers", "layer_types"}) {
    std::string list = key == "layer_types" ? "\"full_attention\"" : "1";
    const std::string one = "," + list;
    for (int i = 0; i < 10'000; ++i) list += one;
    CHECK_THROWS_WITH(model_from_config_json(R"({"hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,
                                                 "intermediate_size":8,"vocab_size":9,")" +
                                                 key + "\":[" + list + "]}",
                                             "c.json"),
                      Contains("expected at most 10,000"));
  }
}
