// Heads from files: each format with the names of real heads, the two ways to say which tokens are drafted, and one
// error for each way in which files can disagree with themselves or ask for arithmetic that is not there.
#include "engine/heads/head_files.hpp"

#include "engine/heads/head_config.hpp"
#include "tests/engine/heads/models_with_heads.hpp"
#include "tests/support/test.hpp"

namespace {

HeadTensors open_folder(const HeadFiles& files) {
  const TemporaryFolder folder;
  files.write(folder);
  return open_head_files(folder.path());
}

HeadTensors open_gguf(const GgufBuilder& file) {
  const TemporaryFolder folder;
  write_whole_file(folder.file("head.gguf"), file.bytes());
  return open_head_files(folder.file("head.gguf"));
}

std::string refusal(const HeadFiles& files) {
  return error_of(ErrorKind::input, [&] { open_folder(files); });
}

std::string refusal(const GgufBuilder& file) {
  return error_of(ErrorKind::input, [&] { open_gguf(file); });
}

std::vector<std::string> weights_by_name(const HeadFiles& files) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : files.tensors)
    if (tensor.dtype == DType::f32) names.push_back(name);
  return names;
}

std::vector<std::string> names_of(const HeadTensors& head) {
  std::vector<std::string> names;
  for (const WeightTensor* const tensor : tensors_of(head)) names.push_back(tensor->name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("every tensor of a head in every format is read once, with the values of the file") {
  for (const HeadFiles& files : head_folders()) {
    INFO(files.label);
    const TemporaryFolder folder;
    files.write(folder);
    CHECK(is_head(folder.path()));
    const HeadTensors head = open_head_files(folder.path());
    CHECK(names_of(head) == weights_by_name(files));
    for (const WeightTensor* const tensor : tensors_of(head))
      CHECK(ModelWeights::values_of(*tensor) == files.values(tensor->name));
    CHECK_FALSE(head.description.is_lossy());
    CHECK(head.description.target_width == 32);
    CHECK(head.description.target_vocab_size == 40);
  }
}

TEST_CASE("what the files of a head say becomes its description") {
  struct Expected {
    const char* label;
    HeadFamily family;
    const char* format;
    std::vector<std::int32_t> feature_layers;
    std::int64_t rows, target_layers;
    std::int32_t trained_len;
  };
  const std::vector<Expected> all{{"speculators eagle3", HeadFamily::eagle3, "speculators", {1, 2, 3}, 10, 0, 3},
                                  {"speculators peagle", HeadFamily::peagle, "speculators", {1, 2, 3}, 10, 0, 3},
                                  {"EAGLE eagle3", HeadFamily::eagle3, "EAGLE", {2, 6, 9}, 10, 0, 0},
                                  {"EAGLE eagle1", HeadFamily::eagle1, "EAGLE", {}, 40, 0, 0},
                                  {"speculators eagle1", HeadFamily::eagle1, "speculators", {}, 40, 0, 5},
                                  {"speculators dflash", HeadFamily::dflash, "speculators", {2, 6}, 10, 0, 7},
                                  {"speculators dflash2", HeadFamily::dflash, "speculators", {2, 6}, 40, 0, 7},
                                  {"speculators dspark", HeadFamily::dflash, "speculators", {2, 6}, 10, 0, 7},
                                  {"speculators mtp", HeadFamily::mtp, "speculators", {}, 40, 12, 3},
                                  {"DFlash dflash", HeadFamily::dflash, "DFlash", {2, 6, 10}, 40, 12, 15},
                                  {"DFlash dflash2", HeadFamily::dflash, "DFlash", {2, 6, 10}, 40, 12, 15},
                                  {"DFlash dspark", HeadFamily::dflash, "DFlash", {2, 6, 10}, 40, 12, 7},
                                  {"DeepSpec eagle3", HeadFamily::eagle3, "DeepSpec", {2, 6, 10}, 40, 12, 7},
                                  {"DeepSpec dspark", HeadFamily::dflash, "DeepSpec", {2, 6, 10}, 40, 12, 7},
                                  {"Medusa of vLLM", HeadFamily::medusa, "Medusa", {}, 10, 0, 3},
                                  {"Medusa", HeadFamily::medusa, "Medusa", {}, 40, 0, 2},
                                  {"Medusa of linear layers", HeadFamily::medusa, "Medusa", {}, 40, 0, 2},
                                  {"MTP of DeepSeek", HeadFamily::mtp, "MTP", {}, 40, 12, 0},
                                  {"MTP of Qwen", HeadFamily::mtp, "MTP", {}, 40, 12, 0},
                                  {"MTP of DeepSeek with experts", HeadFamily::mtp, "MTP", {}, 40, 12, 0},
                                  {"MTP of Qwen with experts", HeadFamily::mtp, "MTP", {}, 40, 12, 0}};
  const std::vector<HeadFiles> folders = head_folders();
  REQUIRE(folders.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Expected& expected = all[i];
    INFO(expected.label);
    REQUIRE(folders[i].label == expected.label);
    const HeadDescription d = open_folder(folders[i]).description;
    CHECK(d.family == expected.family);
    CHECK(d.format == expected.format);
    CHECK(d.feature_layers == expected.feature_layers);
    CHECK(d.shape.vocab_size == expected.rows);
    CHECK(d.target_layers == expected.target_layers);
    CHECK(d.trained_len == expected.trained_len);
    CHECK(d.draft_tokens.size() == (expected.rows == 40 ? 0U : 10U));
    if (expected.rows == 10) CHECK(d.draft_tokens == std::vector<Token>{1, 5, 9, 13, 17, 21, 25, 29, 33, 37});
  }
  CHECK(open_folder(speculators_eagle3()).description.norm_before_residual);
  CHECK_FALSE(open_folder(eagle3_of_specforge()).description.norm_before_residual);
  CHECK(open_folder(eagle3_of_specforge()).feature_norms.size() == 3);
  const HeadDescription dflash = open_folder(speculators_dflash()).description;
  CHECK(open_folder(speculators_peagle()).description.mask_token == 39);
  CHECK(dflash.block_len == 8);
  CHECK(dflash.mask_token == 39);
  CHECK_FALSE(dflash.from_anchor);
  const HeadTensors dflash2 = open_folder(speculators_dflash2());
  CHECK(dflash2.description.select_top_k == 7);
  CHECK(dflash2.convolutions.size() == 2);
  CHECK(open_folder(speculators_dspark()).description.from_anchor);
  CHECK(open_folder(dspark_of_deepspec()).description.from_anchor);
  CHECK(open_folder(mtp_of_deepseek()).description.zero_first_embedding);
  CHECK_FALSE(open_folder(mtp_of_deepseek()).description.norm_output);
  CHECK(open_folder(mtp_of_qwen()).description.norm_output);
  CHECK_FALSE(open_folder(mtp_of_qwen()).description.zero_first_embedding);
  const HeadTensors qwen = open_folder(mtp_of_qwen_with_experts()), glm = open_folder(mtp_of_deepseek_with_experts());
  for (const HeadTensors* const head : {&qwen, &glm}) {
    const ExpertShape& experts = head->description.shape.experts;
    CHECK(experts.count == 4);
    CHECK(experts.chosen == 2);
    CHECK(experts.feed_forward == 32);
    CHECK(experts.shared == 64);
    CHECK(experts.normalised);
    CHECK(experts.by_sigmoid == (head == &glm));
    CHECK(experts.scale == (head == &glm ? 2.5 : 1.0));
    CHECK(experts.groups == (head == &glm ? 2 : 1));
    CHECK(experts.groups_chosen == 1);
    CHECK(head->layers[0].experts.size() == 4);
  }
  // Two of the four experts, and the network that every token goes through.
  CHECK(weights_per_pass(open_folder(mtp_of_qwen())) + 2 * 3 * 32 * 32 + 4 * 32 == weights_per_pass(qwen));
}

// The same with one tensor changed.
HeadFiles without(HeadFiles files, const std::string& name) {
  files.tensors.erase(name);
  return files;
}

TEST_CASE(
    "a head without one of its tensors, with one of another shape or with one more is refused by the tensor's name") {
  for (const HeadFiles& files : head_folders())
    for (const auto& [name, tensor] : files.tensors) {
      INFO(files.label << ": " << name);
      const bool is_optional = std::find(files.optional.begin(), files.optional.end(), name) != files.optional.end();
      if (is_optional)
        CHECK_NOTHROW(open_folder(without(files, name)));
      else
        CHECK_THAT(refusal(without(files, name)), Contains("'"));
      HeadFiles longer = files;
      HeadFiles::Tensor& changed = longer.tensors[name];
      changed.data += changed.data.substr(0, changed.data.size() / changed.shape[0]);
      ++changed.shape[0];
      // The first matrix of Medusa says how many tokens there are, so that what follows has another shape.
      const std::string next = files.tensors.contains("0.2.bias") ? "0.2.bias" : "1.2.weight";
      CHECK_THAT(refusal(longer), Contains("'" + (name == "0.2.weight" ? next : name) + "'"));
    }
  for (HeadFiles files : head_folders()) {
    INFO(files.label);
    CHECK_THAT(refusal(files.weights("mlp.shared_expert.weight", {32, 32})),
               Contains("tensor 'mlp.shared_expert.weight': is read by nothing of"));
  }
  CHECK_THAT(refusal(without(eagle1(), "fc.bias")), Contains("has no tensor 'fc.bias'; the head needs it"));
  CHECK_THAT(refusal(without(speculators_eagle3(), "lm_head.weight")), Contains("has no tensor 'lm_head.weight'"));
  CHECK_THAT(refusal(without(speculators_eagle3(), "d2t")),
             Contains("has no tensor 'd2t'; a head that drafts 10 of 40 tokens needs it"));
  HeadFiles wrong = speculators_eagle3();
  wrong.tensors["fc.weight"].dtype = DType::i32;
  CHECK_THAT(refusal(wrong), Contains("tensor 'fc.weight': has dtype I32; expected weights"));
  CHECK_THAT(refusal(speculators_eagle3().weights("d2t", {10})),
             Contains("tensor 'd2t': has weights; expected integers"));
}

TEST_CASE("an EAGLE head of two layers has a norm in front of the second, and may have an lm_head of its own") {
  HeadFiles two = eagle1();
  two.config["num_hidden_layers"] = 2;
  const HeadTensors head = open_folder(two.layer("layers.1", 32, true).weights("lm_head.weight", {40, 32}));
  REQUIRE(head.layers.size() == 2);
  CHECK_FALSE(head.layers[0].attention_norm.is_there());
  CHECK(ModelWeights::values_of(head.layers[1].attention_norm) == two.values("layers.1.input_layernorm.weight"));
  CHECK(ModelWeights::values_of(head.head) == two.values("lm_head.weight"));
}

TEST_CASE("a head in two spellings at once is refused") {
  HeadFiles both = eagle3_of_specforge();
  both.weights("layers.0.self_attn.q_proj.weight", {32, 64});
  CHECK_THAT(refusal(both), Contains("tensor 'layers.0.self_attn.q_proj.weight': is read by nothing of eagle3"));
}

TEST_CASE("offsets, tokens and marks of a reduced vocabulary must rise, stay inside and agree") {
  const auto offsets = [](std::vector<std::int64_t> values) { return speculators_eagle3().integers("d2t", values); };
  // Tokens taken for offsets: row 9 would be token 46.
  CHECK_THAT(refusal(offsets({1, 5, 9, 13, 17, 21, 25, 29, 33, 37})),
             Contains("tensor 'd2t': has 33 for row 8, token 41, after token 36; expected tokens that rise and stay "
                      "below 40"));
  CHECK_THAT(refusal(offsets({1, 4, 7, 10, 13, 13, 11, 22, 25, 28})),
             Contains("has 11 for row 6, token 17, after token 18"));
  CHECK_THAT(refusal(offsets({-1, 4, 7, 10, 13, 16, 19, 22, 25, 28})), Contains("has -1 for row 0, token -1, after"));
  CHECK_THAT(refusal(offsets({1, 4, 7, 10, 13, 16, 19, 22, 25, std::numeric_limits<std::int64_t>::max()})),
             Contains("has 9223372036854775807 for row 9"));
  // Rows 0 to 9 are tokens 0 to 9: a table that was never filled in.
  CHECK_THAT(refusal(offsets(std::vector<std::int64_t>(10, 0))),
             Contains("tensor 't2d': does not mark token 0, which 'd2t' has; expected the same tokens"));
  HeadFiles marks = speculators_eagle3();
  marks.tensors["t2d"].data[2] = 1;
  CHECK_THAT(refusal(marks), Contains("tensor 't2d': marks token 2, which 'd2t' has not"));

  // The whole vocabulary, with tables that say so or without.
  HeadFiles whole = speculators_eagle3();
  whole.config["draft_vocab_size"] = 40;
  whole.weights("lm_head.weight", {40, 32}).integers("d2t", std::vector<std::int64_t>(40, 0));
  whole.marks("t2d", std::vector<std::uint8_t>(40, 1));
  CHECK(open_folder(whole).description.draft_tokens.empty());
  CHECK(open_folder(without(whole, "d2t")).description.draft_tokens.empty());
  CHECK(open_folder(without(without(whole, "d2t"), "t2d")).description.draft_tokens.empty());
  // Then the matrix may be the target's.
  CHECK_FALSE(open_folder(without(whole, "lm_head.weight")).head.is_there());

  HeadFiles map = medusa_of_vllm();
  map.integers("token_map", {5, 1, 9, 13, 17, 21, 25, 29, 33, 37});
  CHECK_THAT(refusal(map), Contains("tensor 'token_map': has 1 for row 1, after token 5; expected tokens that rise"));
  CHECK_THAT(refusal(gguf_tensors(speculators_eagle3().integers("d2t", std::vector<std::int64_t>(10, -1)), true)
                         .write(head_metadata("eagle3", 1)
                                    .numbers<std::int32_t>("eagle3.extract_layers", GgufType::i32,
                                                           std::vector<std::int32_t>{1, 2, 3}))),
             Contains("tensor 'd2t': has -1 for row 0, after token -1"));
}

TEST_CASE("a token map beside a head that drafts every token leaves some, and is refused beside any other head") {
  const auto beside = [](const HeadFiles& files, const std::string& map) {
    const TemporaryFolder folder;
    files.write(folder);
    write_whole_file(folder.file("token_map.json"), map);
    return open_head_files(folder.path());
  };
  HeadFiles with_rows = speculators_mtp();
  with_rows.weights("lm_head.weight", {40, 32});
  const HeadTensors mtp = beside(with_rows, R"({"token_map": [7, 39, 0, 12]})");
  CHECK(mtp.description.draft_tokens == std::vector<Token>{0, 7, 12, 39});
  CHECK(mtp.description.shape.vocab_size == 4);
  const HeadWeights packed = pack_head(mtp, 0, 1);
  const auto all = pack_matrix(mtp.head, 1);
  std::vector<float> row(32), expected(32);
  REQUIRE(packed.body.head->rows() == 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    packed.body.head->decode_row(i, row);
    all->decode_row(mtp.description.draft_tokens[static_cast<std::size_t>(i)], expected);
    CHECK(row == expected);
  }
  CHECK(beside(eagle1(), R"({"token_map": [3, 1]})").description.draft_tokens == std::vector<Token>{1, 3});

  const auto refused = [&](const HeadFiles& files, const std::string& map) {
    return error_of(ErrorKind::input, [&] { beside(files, map); });
  };
  CHECK_THAT(refused(speculators_eagle3(), R"({"token_map": [1]})"),
             Contains("token_map.json: reduces a head of another kind; expected one of eagle1, mtp or dflash"));
  CHECK_THAT(refused(medusa_of_vllm(), R"({"token_map": [1]})"), Contains("token_map.json: reduces a head"));
  CHECK_THAT(refused(speculators_mtp(), R"({"token_map": [1, 40]})"),
             Contains("token_map.json: has token 40; expected tokens from 0 to 39"));
  CHECK_THAT(refused(speculators_mtp(), R"({"token_map": [-1, 4]})"), Contains("has token -1; expected tokens"));
  CHECK_THAT(refused(speculators_mtp(), R"({"token_map": [4, 2, 4]})"), Contains("has token 4 twice"));
  CHECK_THAT(refused(speculators_mtp(), R"({"token_map": []})"), Contains("a list of tokens"));
  CHECK_THAT(refused(speculators_mtp(), R"({"tokens": [1]})"), Contains("a list of tokens"));
  CHECK_THAT(refused(speculators_mtp(), "[1, 2]"), Contains("token_map.json"));
}

HeadFiles with(HeadFiles files, const nlohmann::json& change, const char* inside = nullptr) {
  nlohmann::json& config = inside == nullptr ? files.config : files.config[inside];
  config.update(change);
  return files;
}

TEST_CASE("Biases of Q, K and V are those of the head's class, whatever model_type says") {
  // Llama's class beside Qwen2's type, without biases: read, and as Llama.
  CHECK(!open_folder(with(eagle3_of_specforge(), {{"model_type", "qwen2"}})).description.shape.has_qkv_bias);
  CHECK_NOTHROW(open_folder(with(eagle3_of_specforge(), {{"model_type", "qwen3"}})));
  CHECK_NOTHROW(open_folder(with(eagle1(), {{"model_type", "qwen2"}})));
  // Qwen2's class has them: a head without is incomplete.
  CHECK_THAT(refusal(with(eagle3_of_specforge(), {{"architectures", {"Qwen2ForCausalLMEagle3"}}})),
             Contains("q_proj.bias"));
}

TEST_CASE("a key that no reader knows is refused where it may change the arithmetic") {
  const nlohmann::json refused[] = {{{"attention_multiplier", 0.5}},
                                    {{"use_something_new", true}},
                                    {{"quantization_config", {{"bits", 4}}}},
                                    {{"scales", {1, 2}}}};
  const nlohmann::json harmless[] = {{{"attention_multiplier", 0}},
                                     {{"use_something_new", false}},
                                     {{"quantization_config", nlohmann::json::object()}},
                                     {{"note", "a text"}},
                                     {{"initializer_range", 0.5}}};
  for (const HeadFiles& files : head_folders()) {
    INFO(files.label);
    for (const nlohmann::json& change : refused) {
      const std::string key = change.begin().key();
      CHECK_THAT(refusal(with(files, change)),
                 Contains("config.json: '" + key + "' is ") && Contains("may change the arithmetic"));
    }
    for (const nlohmann::json& change : harmless) CHECK_NOTHROW(open_folder(with(files, change)));
  }
  // Keys of experts are ignored in a head whose tensors have none.
  for (const nlohmann::json& change : {nlohmann::json{{"decoder_sparse_step", 1}},
                                       nlohmann::json{{"norm_topk_prob", true}, {"num_experts_per_tok", 8}},
                                       nlohmann::json{{"mlp_only_layers", {1}}, {"router_aux_loss_coef", 0.001}}})
    CHECK_NOTHROW(open_folder(with(eagle3_of_specforge(), change)));
  CHECK_THAT(refusal(with(speculators_eagle3(), {{"residual_multiplier", 2}}, "transformer_layer_config")),
             Contains("'transformer_layer_config': 'residual_multiplier' is 2, which may change the arithmetic"));
  CHECK_THAT(refusal(with(dflash_of_z_lab(), {{"use_swa", true}}, "dflash_config")),
             Contains("'dflash_config': 'use_swa' is true"));
  CHECK_THAT(refusal(with(eagle3_of_specforge(), {{"parallel_draft_step", 2}}, "eagle_config")),
             Contains("'eagle_config': 'parallel_draft_step' is 2"));
  GgufBuilder windowed = eagle3_gguf();
  CHECK_THAT(refusal(windowed.u32("eagle3.attention.sliding_window", 512)),
             Contains("metadata 'eagle3.attention.sliding_window' may change the arithmetic"));
}

TEST_CASE("experts that are described incompletely, or as nothing here runs them, are refused by key") {
  const HeadFiles qwen = mtp_of_qwen_with_experts(), glm = mtp_of_deepseek_with_experts();
  CHECK_THAT(refusal(with(qwen, {{"norm_topk_prob", nullptr}})), Contains("'norm_topk_prob'"));
  CHECK_THAT(refusal(with(qwen, {{"num_experts_per_tok", 5}})), Contains("chooses 5 of 4 experts from 1 of 1 groups"));
  CHECK_THAT(refusal(with(glm, {{"n_group", 3}})), Contains("expected groups of one size"));
  CHECK_THAT(refusal(with(glm, {{"num_experts_per_tok", 3}})), Contains("chooses 3 of 4 experts from 1 of 2 groups"));
  CHECK_THAT(refusal(with(glm, {{"scoring_func", "softmax"}})),
             Contains("'scoring_func' is 'softmax'; expected sigmoid"));
  CHECK_THAT(refusal(with(glm, {{"partial_rotary_factor", 0.5}})), Contains("expected 1, the rotation of whole heads"));
  CHECK_THAT(refusal(with(glm, {{"kv_lora_rank", 512}})), Contains("'kv_lora_rank' is 512, which may change"));
  CHECK_THAT(refusal(with(qwen, {{"model_type", "qwen3_next"}})), Contains("expected one of llama, qwen2, qwen3"));
}

TEST_CASE("a head whose settings are missing, contradictory or of another kind is refused by file and key") {
  const auto layers = "transformer_layer_config";
  struct Case {
    HeadFiles files;
    const char* error;
  };
  HeadFiles no_switch = speculators_eagle3();
  no_switch.config.erase("norm_before_residual");
  HeadFiles no_layers = speculators_dflash();
  no_layers.config.erase("aux_hidden_state_layer_ids");
  HeadFiles no_block = dflash_of_z_lab();
  no_block.config.erase("block_size");
  HeadFiles lossless_only = speculators_eagle3();
  lossless_only.config["speculators_config"]["default_proposal_method"] = "tree";
  HeadFiles unknown_setting = speculators_eagle3();
  unknown_setting.config["speculators_config"]["proposal_methods"][0]["temperature"] = 0.7;
  const std::vector<Case> cases{
      {with(speculators_eagle3(), {{"speculators_model_type", "peagle"}}), "'mask_token_id' is missing"},
      {with(speculators_peagle(), {{"mask_token_id", 40}}), "'mask_token_id' is 40; expected a token below 40"},
      {with(speculators_peagle(), {{"layer_types", {"sliding_attention"}}}, layers), "has 'sliding_attention'"},
      {speculators_peagle().weights("mask_hidden", {1, 96}), "'mask_hidden': has shape [1, 96]; expected [1, 1, 96]"},
      {with(speculators_eagle3(), {{"speculators_model_type", "eagle4"}}),
       "'eagle4'; expected eagle3, peagle, dflash, dflash2, dspark"},
      {no_switch, "'norm_before_residual' is missing; expected true or false"},
      {no_layers, "'aux_hidden_state_layer_ids' is missing; expected a list of layers"},
      {no_block, "'block_size' is missing; expected an integer"},
      {lossless_only, "'default_proposal_method' is 'tree', and no proposal method is of that type"},
      {unknown_setting, "'temperature' may change what is accepted"},
      {with(speculators_eagle3(), {{"norm_before_fc", true}, {"fc_norm", true}}),
       "are both true; expected one of them"},
      {with(speculators_eagle3(), {{"eagle_aux_hidden_state_layer_ids", {3, 2, 1}}}),
       "'eagle_aux_hidden_state_layer_ids' has 2 after 3; expected layers that rise, from 1 on"},
      {with(speculators_eagle3(), {{"eagle_aux_hidden_state_layer_ids", {0, 2, 3}}}),
       "has 0; expected layers that rise"},
      {with(speculators_eagle3(), {{"draft_vocab_size", 41}}), "drafts 41 tokens of a vocabulary of 40"},
      {with(speculators_eagle3(), {{"target_hidden_size", 64}}),
       "tensor 'fc.weight': has shape [32, 96]; expected [32, 192]"},
      {with(speculators_eagle3(), {{"rope_parameters", {{"rope_theta", 500000}}}}, layers),
       "'rope_theta' is 10000, and 500000 in 'rope_parameters'; expected one base"},
      {with(speculators_eagle3(), {{"rope_parameters", {{"full_attention", {{"rope_theta", 10000}}}}}}, layers),
       "has settings of their own for 'full_attention'"},
      {with(speculators_eagle3(),
            {{"rope_parameters", {{"rope_type", "default"}}}, {"rope_scaling", {{"type", "linear"}, {"factor", 2}}}},
            layers),
       "'rope_scaling' and 'rope_parameters' ask for different angles"},
      {with(speculators_eagle3(), {{"rope_scaling", {{"type", "yarn"}, {"factor", 2}}}}, layers), "the type is 'yarn'"},
      {with(speculators_eagle3(), {{"partial_rotary_factor", 0.5}}, layers),
       "'partial_rotary_factor' is 0.5; expected 1"},
      {with(speculators_eagle3(), {{"logit_scale", 0.25}}, layers), "'logit_scale' is 0.25; expected 1"},
      {with(speculators_eagle3(), {{"hidden_act", "gelu"}}, layers), "'hidden_act' is 'gelu'; expected silu"},
      {with(speculators_eagle3(), {{"model_type", "deepseek_v3"}}, layers), "is 'deepseek_v3'; expected one of llama"},
      {with(speculators_eagle3(), {{"attention_bias", true}}, layers),
       "has no tensor 'layers.0.self_attn.q_proj.bias'"},
      {with(speculators_dflash(), {{"layer_types", {"full_attention", "sliding_attention"}}}, layers),
       "'layer_types' has 'sliding_attention'; expected full_attention for every layer"},
      {with(speculators_dflash(), {{"mask_token_id", 40}}), "'mask_token_id' is 40; expected a token below 40"},
      {with(speculators_dflash(), {{"mask_token_id", nullptr}}), "'mask_token_id' is missing"},
      {with(speculators_dflash(), {{"block_size", 1}}), "'block_size' is 1; expected 2 to 1024"},
      {with(speculators_dspark(), {{"markov_head_type", "gated"}}), "'markov_head_type' is 'gated'; expected vanilla"},
      {with(speculators_dspark(), {{"markov_rank", 0}}), "'confidence_head_with_markov' is true and 'markov_rank' 0"},
      {with(speculators_mtp(), {{"num_nextn_predict_layers", 2}}), "'num_nextn_predict_layers' is 2; expected 1"},
      {with(eagle3_of_specforge(), {{"use_aux_hidden_state", false}}, "eagle_config"),
       "'use_aux_hidden_state' is false"},
      {with(eagle3_of_specforge(), {{"eagle_aux_hidden_state_layer_ids", {2, 6, 9}}}),
       "is not that in 'eagle_config'; expected one list"},
      {with(dflash_of_z_lab(), {{"projector_type", "domino"}}, "dflash_config"),
       "'projector_type' is 'domino'; expected"},
      {with(dspark_of_specforge(), {{"attention_mode", "mla"}}, "dflash_config"),
       "'attention_mode' is 'mla'; expected gqa"},
      {with(dflash_of_z_lab(), {{"block_size", 8}}, "dflash_config"), "'block_size' is 16, and 8 in 'dflash_config'"},
      {with(dflash_of_z_lab(), {{"target_layer_ids", {1, 5, 11}}}, "dflash_config"),
       "'target_layer_ids' has 11, and of the last layer some programs hand out the residual stream"},
      {with(medusa_of_vllm(), {{"logit_scale", 2.0}}), "'logit_scale' is 2; expected 1"},
      {with(medusa_of_vllm(), {{"num_heads", 4}}), "has no tensor 'blocks.3.layers.0.weight'"},
      {with(medusa(), {{"medusa_num_heads", 1}}), "tensor '1.0.linear.bias': is read by nothing of medusa"},
      {with(mtp_of_deepseek(), {{"num_hidden_layers", 11}}), "is of layer 12; expected 11"},
      {with(mtp_of_qwen(), {{"model_type", "qwen3_next"}}), "is 'qwen3_next'; expected one of llama, qwen2, qwen3"},
      {speculators_eagle3().weights("mask_hidden", {1, 1, 96}), "'mask_hidden': is read by nothing of eagle3 in"},
      {dflash_of_z_lab().weights("layers.0.attention_conv.base_kernel", {2, 3, 32}),
       "'layers.0.attention_conv.base_kernel': is read by nothing of dflash in the format DFlash"},
      {dflash_of_z_lab().weights("candidate_selector.hidden_projection.weight", {4, 32}),
       "'candidate_selector.hidden_projection.weight': is read by nothing of dflash"},
      {with(speculators_dflash2(), {{"conv_kernel_size", 9}}), "'conv_kernel_size' is 9; expected at most 8"},
      {with(speculators_dflash2(), {{"conv_group_size", 5}}), "'conv_group_size' is 5; expected a divisor of 32"},
      {with(speculators_dflash2(), {{"selector_top_k", 41}}), "'selector_top_k' is 41; expected at most 40"},
      {with(speculators_dflash2(), {{"selector_top_k", nullptr}, {"selector_rank", 32}}),
       "'candidate_selector.predecessor_codebook': has shape [40, 64]; expected [40, 32]"},
      {with(speculators_dflash2(), {{"draft_vocab_size", 10}}), "'draft_vocab_size' is 10; expected 40"},
      {with(dflash2_of_z_lab(), {{"selector_rank", nullptr}}, "dflash_config"), "'selector_rank' is missing"}};
  for (const Case& of : cases) CHECK_THAT(refusal(of.files), Contains(of.error));

  HeadFiles nothing{"", layer_config(), {}, {}};
  CHECK_THAT(refusal(nothing.weights("model.embed_tokens.weight", {40, 32})), Contains("describes no drafting head"));
  const TemporaryFolder pickled;
  write_whole_file(pickled.file("config.json"), eagle1().config.dump());
  write_whole_file(pickled.file("pytorch_model.bin"), "PK");
  CHECK(is_head(pickled.path()));
  CHECK_THAT(error_of(ErrorKind::input, [&] { open_head_files(pickled.path()); }),
             Contains("pytorch_model.bin: is pickled Python, which is not read; expected the same tensors as"));
}

TEST_CASE("RoPE's base may stand at either place, and ids of EAGLE's format in either counting") {
  HeadFiles inside = speculators_eagle3();
  inside.config["transformer_layer_config"].erase("rope_theta");
  inside.config["transformer_layer_config"]["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "default"}};
  CHECK(open_folder(inside).description.shape.rope_base == 5e5);
  const auto layers = [](const nlohmann::json& ids) {
    return open_folder(with(eagle3_of_specforge(), {{"eagle_aux_hidden_state_layer_ids", ids}}, "eagle_config"))
        .description.feature_layers;
  };
  CHECK(layers({1, 17, 33}) == std::vector<std::int32_t>{2, 18, 34});
  CHECK(layers({2, 18, 33}) == std::vector<std::int32_t>{2, 18, 33});
  // Not said: EAGLE's own rule, of a target of 36 layers.
  const HeadDescription rule =
      open_folder(with(speculators_eagle3(), {{"eagle_aux_hidden_state_layer_ids", nullptr}})).description;
  CHECK(rule.feature_layers.empty());
  CHECK(feature_layers_of(rule, 36, "") == std::vector<std::int32_t>{2, 18, 33});
}

TEST_CASE("settings that ask for a lossy verifier are read") {
  HeadFiles files = speculators_eagle3();
  nlohmann::json& method = files.config["speculators_config"]["proposal_methods"][0];
  method["verifier_accept_k"] = 3;
  method["accept_tolerance"] = 1.5;
  const HeadDescription d = open_folder(files).description;
  CHECK(d.verifier_accept_k == 3);
  CHECK(d.accept_tolerance == 1.5);
  CHECK(d.is_lossy());
  method["verifier_accept_k"] = 0;
  CHECK_THAT(refusal(files), Contains("'verifier_accept_k' is 0; expected a number from 1"));
  method["verifier_accept_k"] = 1;
  method["accept_tolerance"] = -1.0;
  CHECK_THAT(refusal(files), Contains("'accept_tolerance' is -1; expected a number from 0 on"));
}

TEST_CASE("heads in GGUF files are what the same heads in folders are") {
  const HeadTensors folder = open_folder(speculators_dspark());
  const HeadTensors gguf = open_gguf(dspark_gguf());
  const HeadDescription& d = gguf.description;
  CHECK(d.family == HeadFamily::dflash);
  CHECK(d.format == "GGUF");
  CHECK(d.feature_layers == folder.description.feature_layers);
  CHECK(d.draft_tokens == folder.description.draft_tokens);
  CHECK(d.shape.rope_pairing == RopePairing::halves);
  CHECK(d.shape.has_qk_norm);
  CHECK(d.mask_token == 39);
  CHECK(d.block_len == 7);
  CHECK(d.from_anchor);
  const std::vector<const WeightTensor*> a = tensors_of(folder), b = tensors_of(gguf);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(ModelWeights::values_of(*a[i]) == ModelWeights::values_of(*b[i]));

  const HeadTensors nextn = open_gguf(nextn_gguf());
  CHECK(nextn.description.family == HeadFamily::mtp);
  CHECK(nextn.description.target_layers == 12);
  CHECK(tensors_of(nextn).size() == weights_by_name(mtp_of_deepseek()).size());
  CHECK(nextn.embedding.name == "blk.12.nextn.embed_tokens.weight");
  CHECK(nextn.out_norm.name == "blk.12.nextn.shared_head_norm.weight");

  const TemporaryFolder files;
  for (const auto& [name, file] : {std::pair{"e.gguf", eagle3_gguf()}, {"n.gguf", nextn_gguf()}}) {
    write_whole_file(files.file(name), file.bytes());
    CHECK(is_head(files.file(name)));
  }
  write_whole_file(files.file("m.gguf"), TinyLlama{}.gguf().bytes());
  CHECK_FALSE(is_head(files.file("m.gguf")));
  CHECK_THAT(error_of(ErrorKind::input, [&] { open_head_files(files.file("m.gguf")); }),
             Contains("'general.architecture' is 'llama'; expected a head's: eagle3, dflash"));
}

TEST_CASE("a GGUF file of a head that lacks or contradicts something is refused by key or tensor") {
  GgufBuilder twice = eagle3_gguf();
  twice.numbers<std::int32_t>("eagle3.target_layers", GgufType::i32, std::vector<std::int32_t>{1, 2, 4});
  CHECK_THAT(refusal(twice), Contains("'eagle3.extract_layers' is not 'eagle3.target_layers'; expected one list"));
  CHECK_THAT(refusal(head_metadata("eagle3", 1)), Contains("metadata 'eagle3.extract_layers' is missing"));
  GgufBuilder conv = dspark_gguf();
  conv.f32_tensor("blk.0.attn_conv_base.weight", {2}, std::vector<float>{0, 0});
  CHECK_THAT(refusal(conv), Contains("'blk.0.attn_conv_base.weight': belongs to DFlash 2's convolutions"));
  GgufBuilder extra = eagle3_gguf();
  extra.f32_tensor("blk.0.attn_sinks.weight", {2}, std::vector<float>{0, 0});
  CHECK_THAT(refusal(extra), Contains("'blk.0.attn_sinks.weight': is read by nothing of eagle3 in the format GGUF"));
  GgufBuilder lost = eagle3_gguf();
  std::erase_if(lost.tensors, [](const GgufBuilder::Tensor& tensor) { return tensor.name == "output.weight"; });
  CHECK_THAT(refusal(lost), Contains("has no tensor 'output.weight'; the head needs it"));
  GgufBuilder many = head_metadata("llama", 3);
  CHECK_THAT(refusal(many.u32("llama.nextn_predict_layers", 2)),
             Contains("'llama.nextn_predict_layers' is 2; expected 1"));
  GgufBuilder mask = head_metadata("dflash", 2);
  mask.numbers<std::int32_t>("dflash.target_layers", GgufType::i32, std::vector<std::int32_t>{2, 6});
  CHECK_THAT(refusal(mask), Contains("metadata 'tokenizer.ggml.mask_token_id' is missing"));
}

TEST_CASE("an MTP layer in the target's own files is a head, and the model is what it is without the layer") {
  const auto check = [](const std::string& path, const ModelWeights& model, const ModelWeights& without,
                        std::size_t own_tensors) {
    CHECK_FALSE(is_head(path));
    CHECK(mtp_layers_inside(path) == 1);
    CHECK(model.description.num_layers == 2);
    REQUIRE(model.tensors().size() == without.tensors().size());
    for (std::size_t i = 0; i < model.tensors().size(); ++i) {
      CHECK(model.tensors()[i]->name == without.tensors()[i]->name);
      CHECK(ModelWeights::values_of(*model.tensors()[i]) == ModelWeights::values_of(*without.tensors()[i]));
    }
    const HeadTensors head = open_head_files(path);
    CHECK(head.description.family == HeadFamily::mtp);
    CHECK(head.description.target_layers == 2);
    CHECK(head.description.target_vocab_size == 40);
    CHECK(head.layers.size() == 1);
    CHECK(tensors_of(head).size() == own_tensors);
  };
  // Nine of the layer, fc, two norms in front of it and one behind; of DeepSeek's names embeddings and logits too.
  for (const bool is_qwen : {false, true}) {
    INFO((is_qwen ? "Qwen" : "DeepSeek"));
    const TemporaryFolder folder, alone;
    write_folder_with_mtp(folder, is_qwen);
    target_of_mtp(is_qwen).write_folder(alone);
    check(folder.path(), weights_of_folder(folder.path()), weights_of_folder(alone.path()), 15);
    CHECK_FALSE(open_head_files(folder.path()).embedding.name == "model.embed_tokens.weight");
  }
  const TemporaryFolder folder;
  const std::string path = folder.file("m.gguf");
  write_whole_file(path, gguf_with_mtp().bytes());
  write_whole_file(folder.file("n.gguf"), target_of_mtp(false).gguf().bytes());
  const auto open = [](const std::string& file) {
    return weights_of_gguf(std::make_shared<const GgufFile>(GgufFile::open(file)));
  };
  CHECK(open(path).layers[0].query.name == "blk.0.attn_q.weight");
  CHECK(mtp_layers_inside(folder.file("n.gguf")) == 0);
  const HeadTensors head = open_head_files(path);
  CHECK(head.fuse.name == "blk.2.nextn.eh_proj.weight");
  CHECK_FALSE(head.embedding.is_there());
  CHECK_FALSE(head.head.is_there());
  CHECK(open(path).tensors().size() == open(folder.file("n.gguf")).tensors().size());

  // Tensors that belong to neither are refused as before; so are two such layers, by the head alone.
  GgufBuilder more = gguf_with_mtp();
  more.f32_tensor("blk.2.nextn.extra.weight", {2}, std::vector<float>{0, 0});
  write_whole_file(path, more.bytes());
  CHECK_THAT(error_of(ErrorKind::input, [&] { open_head_files(path); }),
             Contains("'blk.2.nextn.extra.weight': is read by nothing of mtp"));
  GgufBuilder none = TinyLlama{}.gguf();
  write_whole_file(path, none.u32("llama.nextn_predict_layers", 2).bytes());
  CHECK_THAT(error_of(ErrorKind::input, [&] { open(path); }),
             Contains("'llama.nextn_predict_layers' is 2; expected fewer than the 2 blocks"));
  const TemporaryFolder two;
  write_folder_with_mtp(two, false, 2);
  CHECK(weights_of_folder(two.path()).description.num_layers == 2);
  CHECK(mtp_layers_inside(two.path()) == 2);
  CHECK_THAT(error_of(ErrorKind::input, [&] { open_head_files(two.path()); }),
             Contains("has MTP layers 'model.layers.2.' and 'model.layers.3.'; expected one"));
}

}  // namespace
