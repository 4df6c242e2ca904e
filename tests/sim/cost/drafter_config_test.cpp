// A head's config.json as --drafter: the method by what it calls itself, parameters by hand.
#include "sim/cost/drafter.hpp"
#include "tests/support/test.hpp"

namespace {

DrafterShape drafter_of(const std::string& config, const ModelShape& target, const std::string& folder = "head") {
  const TemporaryFolder files;
  std::filesystem::create_directory(files.file(folder));
  write_whole_file(files.file(folder) + "/config.json", config);
  const DrafterShape by_folder = find_drafter(files.file(folder), target);
  const DrafterShape by_file = find_drafter(files.file(folder) + "/config.json", target);
  CHECK(by_folder.shape.active_parameters() == by_file.shape.active_parameters());
  CHECK(by_folder.kind == by_file.kind);
  return by_file;
}

const std::string kLlamaLayer = R"("hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "num_hidden_layers": 1, "vocab_size": 128256, "torch_dtype": "float16")";

}  // namespace

TEST_CASE("A head's config.json is the head, by its architecture, whatever its folder is called") {
  const ModelShape target = find_model("Llama-3.1-8B");
  // EAGLE3-LLaMA3.1-Instruct-8B has 0.425 B parameters (models.csv).
  const DrafterShape eagle3 =
      drafter_of(R"({"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000, )" + kLlamaLayer + "}",
                 target, "Qwen3-0.6B-medusa-fp8");
  CHECK(eagle3.kind == DraftingKind::head);
  CHECK(eagle3.name.starts_with("EAGLE-3"));
  CHECK((eagle3.shape.active_parameters() + eagle3.first_pass_parameters) / 1e9 == Approx(0.425).epsilon(0.05));
  CHECK(eagle3.shape.cached_values(1000) == 2.0 * 8 * 128 * 1000);
  CHECK(eagle3.shape.precision.weight_bytes == 2.0);
  CHECK(eagle3.shape.head_parameters == 4096.0 * 32000);
  // The same config without a reduced vocabulary, and EAGLE's, which looks like a model of one layer.
  CHECK(drafter_of(R"({"architectures": ["Eagle3LlamaForCausalLM"], )" + kLlamaLayer + "}", target)
            .shape.head_parameters == 4096.0 * 128256);
  const DrafterShape eagle =
      drafter_of(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", )" + kLlamaLayer + "}", target);
  CHECK(eagle.name.starts_with("EAGLE ("));
  CHECK(eagle.first_pass_parameters == 0.0);
}

TEST_CASE("Speculators' heads and blocks say their method, layers and drafts") {
  const ModelShape target = find_model("Qwen3-8B");
  const std::string layers = R"("transformer_layer_config": {"model_type": "qwen3", "hidden_size": 4096,
      "intermediate_size": 12288, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "num_hidden_layers": LAYERS, "vocab_size": 151936})";
  const auto with = [&](const std::string& head, const char* count) {
    std::string config = "{" + head + ", " + layers + "}";
    return config.replace(config.find("LAYERS"), 6, count);
  };
  const double layer = 2.0 * 4096 * 128 * 40 + 3.0 * 4096 * 12288;
  const DrafterShape eagle3 = drafter_of(with(R"("speculators_model_type": "eagle3", "draft_vocab_size": 64000,
          "speculators_config": {"proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 5}]})",
                                              "1"),
                                         target);
  CHECK(eagle3.default_depth == 5);
  CHECK(eagle3.shape.body_parameters == Approx(layer + 2.0 * 4096 * 4096));
  CHECK(eagle3.shape.head_parameters == 4096.0 * 64000);
  const DrafterShape block = drafter_of(
      with(R"("speculators_model_type": "dflash", "block_size": 8, "aux_hidden_state_layer_ids": [2, 18, 33])", "3"),
      target);
  CHECK(block.one_pass());
  CHECK(block.default_depth == 7);
  CHECK(block.shape.layers == 3.0);
  CHECK(block.shape.body_parameters == Approx(3 * layer));
  const DrafterShape dspark = drafter_of(
      R"({"architectures": ["DSparkDraftModel"], "hidden_size": 4096, "intermediate_size": 12288, "head_dim": 128,
          "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 5, "vocab_size": 151936,
          "dflash_config": {"projector_type": "dspark", "block_size": 7, "markov_rank": 128, "target_layer_ids": [1, 9]}})",
      target);
  CHECK(dspark.default_depth == 7);
  CHECK(dspark.level_parameters == 128.0 * 151936);
  CHECK(dspark.first_pass_parameters == 2.0 * 4096 * 4096);
  CHECK(drafter_of(with(R"("speculators_model_type": "peagle")", "4"), target).name.starts_with("P-EAGLE"));
  CHECK(drafter_of(R"({"medusa_num_heads": 3, "medusa_num_layers": 1, "hidden_size": 4096, "vocab_size": 151936})",
                   target)
            .shape.head_parameters == 3.0 * 4096 * 151936);
  CHECK(drafter_of(R"({"architectures": ["Qwen3NextMTP"], "hidden_size": 4096, "num_hidden_layers": 36})", target)
            .shape.layers == 1.0);
}

TEST_CASE("A head drafts no more than its own count of heads, or than its block holds") {
  const ModelShape target = find_model("Qwen3-8B");
  const auto count_of = [&](const std::string& keys) {
    return drafter_of(R"({"hidden_size": 4096, "vocab_size": 151936, "intermediate_size": 12288, "head_dim": 128,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 2, )" +
                          keys + "}",
                      target)
        .count;
  };
  const auto is = [&](const std::string& keys, std::int32_t drafts, const std::string& said, bool repeats) {
    INFO(keys);
    const DraftCount count = count_of(keys);
    CHECK(count.drafts == drafts);
    CHECK(count.said == said);
    CHECK(count.repeats == repeats);
  };
  is(R"("medusa_num_heads": 3)", 3, "medusa_num_heads is 3", false);
  is(R"("architectures": ["MedusaModel"], "num_heads": 5)", 5, "num_heads is 5", false);
  is(R"("model_type": "mlp_speculator", "n_predict": 4)", 4, "n_predict is 4", false);
  is(R"("dflash_config": {"block_size": 16})", 15, "block_size is 16", false);  // its first is the newest token
  is(R"("architectures": ["DSparkDraftModel"], "block_size": 7)", 7, "block_size is 7", false);
  is(R"("architectures": ["DeepSeekMTPModel"], "num_nextn_predict_layers": 1)", 1, "num_nextn_predict_layers is 1",
     true);
  is(R"("architectures": ["LlamaForCausalLMEagle3"], "num_heads": 2)", 0, "", false);
  // An MLP speculator reads one of its heads for each draft, Medusa all.
  const auto head_of = [&](const std::string& keys) {
    return drafter_of(R"({"hidden_size": 4096, "vocab_size": 151936, )" + keys + "}", target).shape.head_parameters;
  };
  CHECK(head_of(R"("model_type": "mlp_speculator", "n_predict": 4)") == 4096.0 * 151936);
  CHECK(head_of(R"("medusa_num_heads": 4)") == 4 * 4096.0 * 151936);
  // The target's own layers of multi-token prediction, by the keys of two families.
  for (const char* const key : {"num_nextn_predict_layers", "mtp_num_hidden_layers"}) {
    const ModelShape with_mtp = model_from_config_json(
        R"({"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
            "vocab_size": 100, ")" +
            std::string(key) + R"(": 1})",
        "config.json");
    CHECK(find_drafter("MTP", with_mtp).count.drafts == 1);
    CHECK(find_drafter("EAGLE-3", with_mtp).count.drafts == 0);
  }
  // NVIDIA's Eagle models are no heads.
  CHECK(drafter_of(R"({"architectures": ["Eagle2_5_VLForConditionalGeneration"], "vision_config": {},
      "text_config": {"hidden_size": 896, "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
      "intermediate_size": 4864, "vocab_size": 151674}})",
                   target)
            .kind == DraftingKind::model);
}

TEST_CASE(
    "A language model's config.json drafts as a model, a head of another target or of an unknown kind is refused") {
  const ModelShape target = find_model("Llama-3.1-8B");
  const DrafterShape model = drafter_of(
      R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 8192, "head_dim": 64,
          "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 16, "vocab_size": 128256,
          "tie_word_embeddings": true, "quantization_config": {"quant_method": "fp8"}})",
      target, "EAGLE-3");
  CHECK(model.kind == DraftingKind::model);
  CHECK(model.shape.total_parameters() == find_model("Llama-3.2-1B").total_parameters());
  CHECK(model.shape.precision.weight_bytes == 1.0);
  CHECK_THROWS_WITH(drafter_of(R"({"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 5120})", target),
                    Contains("it reads rows of 5120 numbers") && Contains("has rows of 4096"));
  CHECK_THROWS_WITH(drafter_of(R"({"speculators_model_type": "oracle"})", target),
                    Contains("speculators_model_type is 'oracle'; expected eagle3"));
}
