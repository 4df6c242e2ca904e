// Quantisation of checkpoints and servers. Right values: bits of the public config.json files, and
// bits / 8 plus a group's scale by hand.
#include "sim/cost/quantization.hpp"
#include "sim/cost/gpu.hpp"
#include "sim/cost/model_shape.hpp"
#include "tests/support/test.hpp"

using Json = nlohmann::json;

namespace {

Quantization quantization_of(const std::string& config, const std::string& beside = "null") {
  return Quantization::of_config(Json::parse(config), Json::parse(beside), "config.json");
}

constexpr const char* kAttention = "layers.5.self_attn.q_proj";
constexpr const char* kExpert = "layers.5.mlp.experts.3.up_proj";

}  // namespace

TEST_CASE("quantization_config says the bits of a checkpoint's matrices, by every method's own keys") {
  struct Said {
    const char* quantization;
    double bytes, compute_bits;
  };
  for (const Said& s : {
           Said{R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})", 1.0, 8},
           Said{R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})", 1.0, 8},
           Said{R"({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": true})",
                0.5 + 2.5 / 128, 16},
           Said{R"({"quant_method": "gptq", "bits": 8, "group_size": 32, "desc_act": true})", 1.0 + 3.0 / 32, 16},
           Said{R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})",
                0.5 + 2.5 / 64, 16},
           Said{R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", 1.0, 8},
           Said{R"({"quant_method": "auto-round", "bits": 2, "group_size": 64, "data_type": "int"})", 0.25 + 2.25 / 64,
                16},
           Said{R"({"quant_method": "ascend", "model_quant_type": "W4A8_DYNAMIC"})", 0.55, 8},
           Said{R"({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})", 0.5 + 1.0 / 32, 16},
           Said{R"({"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16})", 0.5 + 1.0 / 16, 4},
           Said{R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}}})", 0.55,
                16},
           Said{R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"},
                    "input_tensors": {"dtype": "fp8_e4m3"}}})",
                1.0, 8},
           Said{R"({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}})",
                0.5, 16},
           Said{R"({"quant_method": "aqlm", "nbits_per_codebook": 16, "num_codebooks": 1, "in_group_size": 8})", 0.25,
                16},
           Said{R"({"group_size": 64, "bits": 4})", 0.5 + 2.5 / 64, 16},  // MLX
           Said{R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"targets": ["Linear"],
                    "weights": {"num_bits": 8, "type": "int"}, "input_activations": {"num_bits": 8, "type": "int"}}}})",
                1.0, 8},
       }) {
    INFO(s.quantization);
    // Whatever the folder and the dtype of the rest are.
    const Quantization q =
        quantization_of(R"({"torch_dtype": "bfloat16", "quantization_config": )" + std::string(s.quantization) + "}");
    CHECK(q.of(kAttention).bytes == Approx(s.bytes));
    CHECK(q.of(kAttention).compute_bits == s.compute_bits);
  }
}

TEST_CASE("Modules that a checkpoint leaves as they are, or gives a group of their own, have bits of their own") {
  // Kimi-K2.5: experts of 4 bits, all else of 16.
  const Quantization kimi = quantization_of(R"({"text_config": {"quantization_config": {
      "quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"],
      "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null,
                                    "weights": {"num_bits": 4, "type": "int", "group_size": 32}}}}}})");
  CHECK(kimi.of(kAttention).bytes == 2.0);
  CHECK(kimi.of("layers.5.mlp.shared_experts.up_proj").bytes == 2.0);
  CHECK(kimi.of(kExpert).bytes == Approx(0.5 + 2.5 / 32));
  CHECK(kimi.of("lm_head").bytes == 2.0);
  // gpt-oss: a '*' for the layer. ModelOpt: layers one by one, behind "model.language_model".
  const Quantization oss = quantization_of(
      R"({"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}})");
  CHECK(oss.of(kAttention).bytes == 2.0);
  CHECK(oss.of(kExpert).name == "mxfp4");
  const Quantization listed = quantization_of(R"({"quantization_config": {"quant_algo": "NVFP4", "group_size": 16,
      "kv_cache_quant_algo": "FP8", "exclude_modules": ["model.language_model.layers.5.self_attn*"]}})");
  CHECK(listed.of(kAttention).bytes == 2.0);
  CHECK(listed.of("layers.6.self_attn.q_proj").name == "fp4");
  CHECK(listed.kv_bytes() == 1.0);
  // Several precisions in one file: DeepSeek-V4-Flash-NVFP4 is fp8 but for experts.
  const Quantization mixed = quantization_of(R"({"quantization_config": {"quant_method": "fp8",
      "quant_algo": "MIXED_PRECISION", "ignore": ["*.attn.*"],
      "quantized_layers": {"layers.5.ffn.experts": {"quant_algo": "NVFP4", "group_size": 16}}}})");
  CHECK(mixed.of("layers.5.attn.wq_b").name == "fp8");
  CHECK(mixed.of("layers.5.ffn.experts.7.w1").name == "fp4");
  // Ascend's description beside the config names every matrix.
  const Quantization ascend = quantization_of(R"({"quantization_config": {"quant_method": "ascend"}})",
                                              R"({"model_quant_type": "W8A8_DYNAMIC",
      "model.layers.5.self_attn.q_proj.weight": "FLOAT", "model.layers.5.mlp.experts.3.up_proj.weight": "W8A8_DYNAMIC"})");
  CHECK(ascend.of(kAttention).bytes == 2.0);
  CHECK(ascend.of(kExpert).bytes == 1.0);
  // "gate" is no "gate_proj".
  const Quantization gate = quantization_of(
      R"({"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": ["gate", "model.layers.1"]}})");
  CHECK(gate.of("layers.5.mlp.gate").bytes == 2.0);
  CHECK(gate.of("layers.5.mlp.gate_proj").bytes == 1.0);
  CHECK(gate.of("layers.1.mlp.gate_proj").bytes == 2.0);
  CHECK(gate.of("layers.11.mlp.gate_proj").bytes == 1.0);
}

TEST_CASE("Patterns of GPTQModel add or, behind a minus, take away, and leave open what all layers have") {
  const Quantization q = quantization_of(R"({"quantization_config": {"quant_method": "gptq", "bits": 4,
      "group_size": 128, "dynamic": {".*layers\\.5\\.mlp.*": {"bits": 8}, "-:.*layers\\.6\\..*": {},
                                     "+:.*layers\\.[7-9]\\..*": {"group_size": 32}}}})");
  CHECK(q.of(kAttention).bytes == Approx(0.5 + 2.5 / 128));
  CHECK(q.of("layers.5.mlp.up_proj").bytes == Approx(1.0 + 3.0 / 128));
  CHECK(q.of("layers.6.mlp.up_proj").bytes == 2.0);
  CHECK(q.of("layers.7.mlp.up_proj").bytes == Approx(0.5 + 2.5 / 32));
  // A pattern that a matcher with backtracking takes exponential time for.
  CHECK(quantization_of(R"({"quantization_config": {"quant_method": "fp8", "ignored_layers": ["re:(.*.*)*x"]}})")
            .of(kAttention)
            .bytes == 1.0);
}

TEST_CASE("The first of GPTQModel's patterns that fits holds, in the order of the file") {
  const auto bytes_of = [](const std::string& dynamic, bool beside = false) {
    const std::string q = R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": )" + dynamic + "}";
    const std::string shape = R"({"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 100)";
    return (beside ? model_from_config_json(shape + "}", "config.json", q)
                   : model_from_config_json(shape + R"(, "quantization_config": )" + q + "}", "config.json"))
        .precision.weight_bytes;
  };
  // Two patterns that both fit every matrix: the later one by name stands first, and last.
  CHECK(bytes_of(R"({".*z?": {"bits": 8}, ".*a?": {"bits": 2}})") == Approx(1.0 + 3.0 / 128));
  CHECK(bytes_of(R"({".*a?": {"bits": 2}, ".*z?": {"bits": 8}})") == Approx(0.25 + 2.25 / 128));
  // Taken away first, or after it has been given; in the file beside the config, too.
  CHECK(bytes_of(R"({"-:.*layers.*": {}, "+:.*": {"bits": 8}})", true) == 2.0);
  CHECK(bytes_of(R"({".*": {"bits": 8}, "-:.*layers.*": {}})", true) == Approx(1.0 + 3.0 / 128));
}

TEST_CASE("Without quantization_config the dtype decides") {
  CHECK(quantization_of("{}").of(kAttention).bytes == 2.0);
  CHECK(quantization_of(R"({"torch_dtype": "float32"})").of(kAttention).bytes == 4.0);
  CHECK(quantization_of(R"({"text_config": {"dtype": "bfloat16"}})").of(kAttention).bytes == 2.0);
  CHECK(quantization_of(R"({"dtype": "float8_e4m3fn"})").of(kAttention).bytes == 1.0);
  // AutoGPTQ and ModelOpt have written it into a file of its own.
  CHECK(quantization_of("{}", R"({"bits": 4, "group_size": 128})").of(kAttention).bytes == Approx(0.5 + 2.5 / 128));
  CHECK(quantization_of("{}", R"({"quantization": {"quant_algo": "FP8"}})").of(kAttention).name == "fp8");
}

TEST_CASE("A quantisation that nobody knows, or whose bits nothing says, is refused by its name") {
  for (const auto& [config, message] :
       {std::pair(R"({"quantization_config": {"quant_method": "squeezellm2"}})", "squeezellm2"),
        {R"({"quantization_config": {"quant_method": "quark"}})", "nothing says the bits"},
        {R"({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"a": {"weights": {}}}}})",
         "num_bits"},
        {R"({"quantization_config": {"scheme": 4}})", "without quant_method"},
        {R"({"quantization_config": ["fp8"]})", "no object"},
        {R"({"torch_dtype": "posit8"})", "posit8"},
        {R"({"quantization_config": {"quant_method": "fp8", "ignored_layers": ["re:(["]}})", "regular expression"},
        {R"({"quantization_config": {"quant_method": "fp8", "ignored_layers": ["re:((a?){1,99}){99}"]}})",
         "repeats too much"}})
    CHECK_THROWS_WITH(quantization_of(config),
                      Catch::StartsWith("config.json: ") && Contains(message) && Contains("expected"));
}

TEST_CASE("Methods of servers are precisions, those whose bits a config alone says are empty") {
  for (const auto& [method, precision] : {std::pair("modelopt_fp4", "nvfp4"),
                                          {"modelopt", "fp8"},
                                          {"AWQ_marlin", "w4a16"},
                                          {"w8a8_int8", "w8a8_int8"},
                                          {"bitsandbytes", "w4a16"},
                                          {"compressed-tensors", ""},
                                          {"compressed_tensors", ""}})
    CHECK(precision_of_method(method, "log") == precision);
  CHECK(precision_of(precision_of_method("w8a8_int8", "log")).weight_bytes == 1.0);
  CHECK_THROWS_WITH(precision_of_method("fp5", "log: line 3"),
                    Catch::StartsWith("log: line 3: the quantisation is 'fp5'; expected one of "));
}
