// Models from GGUF files and from Hugging Face folders: the same tensors under one set of names, and one error for each
// way in which a file can disagree with itself.
#include "engine/weights/model_weights.hpp"

#include "tests/engine/weights/tiny_llama.hpp"
#include "tests/support/test.hpp"

namespace {

ModelWeights weights_of(const GgufBuilder& builder) {
  const TemporaryFolder folder;
  write_whole_file(folder.file("m.gguf"), builder.bytes());
  return weights_of_gguf(std::make_shared<const GgufFile>(GgufFile::open(folder.file("m.gguf"))));
}

void check_same(const WeightTensor& a, const WeightTensor& b) {
  CHECK(a.is_there() == b.is_there());
  CHECK(a.rows == b.rows);
  CHECK(a.columns == b.columns);
  CHECK(ModelWeights::values_of(a) == ModelWeights::values_of(b));
}

void check_same(const ModelWeights& a, const ModelWeights& b) {
  check_same(a.token_embedding, b.token_embedding);
  check_same(a.final_norm, b.final_norm);
  check_same(a.head, b.head);
  REQUIRE(a.layers.size() == b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    for (const auto member :
         {&LayerWeights::attention_norm, &LayerWeights::query, &LayerWeights::key, &LayerWeights::value,
          &LayerWeights::query_bias, &LayerWeights::key_bias, &LayerWeights::value_bias, &LayerWeights::query_norm,
          &LayerWeights::key_norm, &LayerWeights::output, &LayerWeights::feed_forward_norm, &LayerWeights::gate,
          &LayerWeights::up, &LayerWeights::down})
      check_same(a.layers[i].*member, b.layers[i].*member);
  }
}

TEST_CASE("a GGUF file and a Hugging Face folder, whole or in shards, give the same model") {
  for (const char* const architecture : {"llama", "qwen2", "qwen3"}) {
    for (const bool tied : {true, false}) {
      TinyLlama tiny;
      tiny.architecture = architecture;
      tiny.tied = tied;
      const ModelWeights of_gguf = weights_of(tiny.gguf());
      CHECK(of_gguf.description.tied == tied);
      CHECK(of_gguf.description.has_qkv_bias == (tiny.architecture == "qwen2"));
      CHECK(of_gguf.description.has_qk_norm == (tiny.architecture == "qwen3"));
      CHECK(of_gguf.description.vocab_size == 40);
      CHECK(of_gguf.description.head_size == 8);
      CHECK(of_gguf.description.rope_divisors == std::vector<float>(4, 1.0F));
      CHECK(of_gguf.description.rope_pairing ==
            (tiny.architecture == "llama" ? RopePairing::adjacent : RopePairing::halves));
      for (const int shards : {1, 2}) {
        const TemporaryFolder folder;
        tiny.write_folder(folder, shards);
        const ModelWeights of_folder = weights_of_folder(folder.path());
        CHECK(of_folder.description.rope_pairing == RopePairing::halves);
        CHECK(of_folder.description.num_kv_heads == 2);
        CHECK(of_folder.description.rms_epsilon == Approx(of_gguf.description.rms_epsilon));
        check_same(of_gguf, of_folder);
      }
    }
  }
}

TEST_CASE("a row of a weight tensor is that row's blocks") {
  const ModelWeights model = weights_of(TinyLlama{}.gguf());
  const WeightTensor& down = model.layers[1].down;
  const std::vector<float> all = ModelWeights::values_of(down);
  std::vector<float> row(64);
  decode_blocks(down.kind, down.row(5), row);
  CHECK(row == std::vector<float>(all.begin() + 5 * 64, all.begin() + 6 * 64));
}

std::string gguf_failure(const std::function<void(GgufBuilder&)>& change, TinyLlama tiny = {}) {
  GgufBuilder builder = tiny.gguf();
  change(builder);
  return error_of(ErrorKind::input, [&] { weights_of(builder); });
}

GgufBuilder::Tensor& tensor_of(GgufBuilder& builder, const std::string& name) {
  for (GgufBuilder::Tensor& tensor : builder.tensors)
    if (tensor.name == name) return tensor;
  throw std::runtime_error(name);
}

TEST_CASE("a model whose tensors are missing, misshapen or of another architecture is refused by the tensor's name") {
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { tensor_of(b, "blk.1.attn_k.weight").name = "blk.1.other"; }),
             Contains("m.gguf: has no tensor 'blk.1.attn_k.weight'"));
  CHECK_THAT(gguf_failure([](GgufBuilder& b) {
               tensor_of(b, "blk.0.ffn_down.weight").dimensions = {32, 64};
             }),
             Contains("tensor 'blk.0.ffn_down.weight': has shape [64, 32]; expected [32, 64]"));
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { b.f32_tensor("blk.0.attn_sinks", {1}, std::vector<float>{0}); }),
             Contains("tensor 'blk.0.attn_sinks': belongs to no layer that the description has"));
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { b.tensor("d2t", {1}, 27, std::string(8, '\0')); }),
             Contains("tensor 'd2t': belongs to no layer"));
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { tensor_of(b, "blk.0.ffn_down.weight").kind = 26; }),
             Contains("tensor 'blk.0.ffn_down.weight': has dtype I32; expected weights"));
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { b.f32_tensor("blk.2.attn_norm.weight", {1}, std::vector<float>{0}); }),
             Contains("tensor 'blk.2.attn_norm.weight': belongs to no layer"));
}

TEST_CASE("a description that is incomplete or contradicts itself is refused by its key") {
  TinyLlama tiny;
  tiny.architecture = "gemma3";
  CHECK_THAT(gguf_failure([](GgufBuilder&) {}, tiny),
             Contains("metadata 'general.architecture': is 'gemma3'; expected one of llama, qwen2, qwen3"));
  tiny = {};
  tiny.heads = 3;
  CHECK_THAT(gguf_failure([](GgufBuilder&) {}, tiny), Contains("3 heads cannot share 2 KV heads"));
  tiny = {};
  tiny.heads = 0;
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { b.tensors.clear(); }, tiny), Contains("number of heads is 0; expected"));
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { b.u32("llama.rope.dimension_count", 4); }),
             Contains("metadata 'llama.rope.dimension_count' is 4; expected the head size 8"));
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { b.string("llama.rope.scaling.type", "yarn"); }),
             Contains("metadata 'llama.rope.scaling.type' is 'yarn'; expected none or linear"));
  CHECK_THAT(gguf_failure([](GgufBuilder& b) { b.u32("llama.expert_count", 8); }), Contains("mixture of 8 experts"));
  tiny.heads = 4;
  GgufBuilder other = tiny.gguf();
  tensor_of(other, "token_embd.weight").dimensions = {32, 20};
  CHECK_THAT(error_of(ErrorKind::input, [&] { weights_of(other); }),
             Contains("says that its vocabulary has 40 tokens, but 'token_embd.weight' has 20"));
  GgufBuilder empty;
  CHECK_THAT(error_of(ErrorKind::input, [&] { weights_of(empty); }), Contains("'general.architecture' is missing"));
  CHECK_THAT(error_of(ErrorKind::input, [&] { weights_of(empty.string("general.architecture", "llama")); }),
             Contains("metadata 'llama.block_count' is missing"));
}

TEST_CASE("scaled RoPE becomes a divisor for each pair") {
  GgufBuilder linear = TinyLlama{}.gguf();
  linear.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4);
  CHECK(weights_of(linear).description.rope_divisors == std::vector<float>(4, 4.0F));
  GgufBuilder given = TinyLlama{}.gguf();
  given.f32_tensor("rope_freqs.weight", {4}, std::vector<float>{1, 1, 2, 8});
  CHECK(weights_of(given).description.rope_divisors == std::vector<float>{1, 1, 2, 8});
  CHECK_THAT(gguf_failure([](GgufBuilder& b) {
               b.f32_tensor("rope_freqs.weight", {2}, std::vector<float>{1, 1});
             }),
             Contains("tensor 'rope_freqs.weight': expected shape [4]"));

  // The settings of Llama 3.2 1B; expected values from the branches on wavelengths by which the scaling was published.
  const std::vector<float> divisors = llama3_divisors(500000, 64, 32, 1, 4, 8192);
  for (std::size_t i = 0; i < 15; ++i) CHECK(divisors[i] == 1);
  CHECK(divisors[15] == Approx(1.65133).epsilon(1e-5));
  CHECK(divisors[16] == Approx(3.29226).epsilon(1e-5));
  CHECK(divisors[17] == Approx(9.66673).epsilon(1e-5));
  for (std::size_t i = 18; i < 32; ++i) CHECK(divisors[i] == 32);
}

std::string folder_failure(const std::function<void(const TemporaryFolder&)>& change, int shards = 1) {
  const TemporaryFolder folder;
  TinyLlama{}.write_folder(folder, shards);
  change(folder);
  return error_of(ErrorKind::input, [&] { weights_of_folder(folder.path()); });
}

std::string config_failure(const std::string& from, const std::string& to) {
  return folder_failure([&](const TemporaryFolder& folder) {
    std::string config = read_whole_file(folder.file("config.json"));
    config.replace(config.find(from), from.size(), to);
    write_whole_file(folder.file("config.json"), config);
  });
}

TEST_CASE("a Hugging Face folder that lacks or contradicts something is refused by file and field") {
  for (const auto& [from, to, error] :
       {std::tuple(R"("llama")", R"("gpt_neox")", "config.json: 'model_type': is 'gpt_neox'"),
        {R"("hidden_size": 32)", R"("hidden_size": "32")", "'hidden_size' is '32'; expected an integer"},
        {R"("hidden_size": 32)", R"("width": 32)", "'hidden_size' is missing"},
        {"silu", "gelu", "'hidden_act' is 'gelu'; expected silu"},
        {R"("vocab_size": 40)", R"("vocab_size": 41)", "'vocab_size' is 41, but the embedding has 40 rows"},
        {R"("rope_theta")", R"("rope_scaling": {"type": "yarn"}, "rope_theta")",
         "the type is 'yarn'; expected default, linear or llama3"},
        {R"("rope_theta")", R"("rope_parameters": {"rope_theta": 5}, "rope_theta")",
         "config.json: 'rope_theta' is 10000, and 5 in 'rope_parameters'; expected one base"},
        {R"("rope_theta")", R"("rope_parameters": {"full_attention": {}}, "rope_theta")",
         "'rope_parameters': has settings of their own for 'full_attention'; expected one base for all layers"},
        {R"("rope_theta")", R"("rope_parameters": {}, "rope_scaling": {"type": "linear", "factor": 2}, "rope_theta")",
         "'rope_scaling' and 'rope_parameters' ask for different angles"},
        {R"("rope_theta")", R"("partial_rotary_factor": 0.25, "rope_theta")",
         "'partial_rotary_factor' is 0.25; expected 1, the rotation of whole heads"},
        {R"("rope_theta")", R"("sliding_window": 16, "rope_theta")",
         "'sliding_window' is 16; expected attention to the whole context"},
        {"{", "[", "config.json: is not JSON"}})
    CHECK_THAT(config_failure(from, to), Contains(error));
  CHECK_THAT(folder_failure([](const TemporaryFolder& f) { std::filesystem::remove(f.file("config.json")); }),
             Contains("config.json: cannot be opened"));
  CHECK_THAT(folder_failure([](const TemporaryFolder& f) { std::filesystem::remove(f.file("part-1.safetensors")); }, 2),
             Contains("part-1.safetensors: cannot be opened"));
  CHECK_THAT(folder_failure(
                 [](const TemporaryFolder& f) {
                   write_whole_file(f.file("model.safetensors.index.json"), R"({"weight_map": {"a": "../x"}})");
                 },
                 2),
             Contains("'a' is in '../x'; expected a file's name"));
}

TEST_CASE("the shipped model is what its publisher says") {
  const auto path = shipped_model_path();
  if (!path) return;
  const ModelWeights model = weights_of_gguf(std::make_shared<const GgufFile>(GgufFile::open(*path)));
  const ModelDescription& d = model.description;
  CHECK(d.architecture == "llama");
  CHECK(d.num_layers == 30);
  CHECK(d.width == 576);
  CHECK(d.feed_forward == 1536);
  CHECK(d.num_heads == 9);
  CHECK(d.num_kv_heads == 3);
  CHECK(d.head_size == 64);
  CHECK(d.vocab_size == 49152);
  CHECK(d.context_len_max == 8192);
  CHECK(d.rope_base == 1e5);
  CHECK(d.rms_epsilon == Approx(1e-5));
  CHECK(d.tied);
  CHECK(model.head.kind == TensorKind::q8_0);
  CHECK(model.layers[29].down.kind == TensorKind::q4_1);
  CHECK(model.layers[0].attention_norm.kind == TensorKind::f32);
}

}  // namespace
