#include "sim/cost/model_layers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/printable.hpp"
#include "sim/cost/layer_kinds.hpp"

namespace draftproof {
namespace {

std::string text_of(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

struct Heads {
  double query, kv;
  double key_dim, value_dim;
};

// JetMoE: experts have query heads of their own, as many as there are KV heads.
bool chooses_heads(const ConfigKeys& config) {
  return config.text("model_type") == "jetmoe";
}

// Some families have other heads in layers of full attention than in layers with a window.
Heads heads_of(const ConfigKeys& config, std::size_t layer, Mixer mixer, double width) {
  Heads h;
  h.query = config.of_layer(keys::kHeads, layer, chooses_heads(config) ? 1.0 : 0.0);
  if (h.query < 1.0) config.fail("it has no num_attention_heads; expected a config.json of a language model");
  h.kv = config.of_layer(keys::kKvHeads, layer, h.query);
  if (chooses_heads(config)) h.query = h.kv * config.number(keys::kExpertsPerToken, 1.0);
  if (config.flag("multi_query", false) && !config.flag("new_decoder_architecture", false)) h.kv = 1.0;
  h.key_dim = config.of_layer(keys::kHeadDim, layer, width / h.query);
  h.value_dim = config.number("v_head_dim", h.key_dim);
  if (mixer == Mixer::sliding) {
    h.query = config.number("swa_num_attention_heads", h.query);
    h.kv = config.number("swa_num_key_value_heads", h.kv);
    h.key_dim = config.number("swa_head_dim", h.key_dim);
    h.value_dim = config.number("swa_v_head_dim", h.value_dim);
    if (const auto other = config.part("attention_other_setting")) {  // Step-3.5
      h.query = other->number("num_attention_heads", h.query);
      h.kv = other->number("num_attention_groups", h.kv);
    }
  } else if (mixer == Mixer::full && config.find("global_head_dim") != nullptr) {  // Gemma 4
    h.key_dim = h.value_dim = config.number("global_head_dim", h.key_dim);
    h.kv = config.number("num_global_key_value_heads", h.kv);
  }
  if (h.kv > h.query)
    config.fail("kv_heads is " + text_of(h.kv) + "; expected at most the number of heads, " + text_of(h.query));
  return h;
}

// Scores of a row with each cached token by small heads, which choose the few that it attends to.
struct Indexer {
  double heads, dim;
};

void add_index(Block& block, const Indexer& index, double query_width, double key_width, double stride) {
  block.mixer_parameters += index.heads * index.dim * query_width + index.dim * key_width + key_width * index.heads;
  block.cache.push_back({1, index.dim, 0, stride, 0, index.heads * index.dim});
}

void add_attention(const ConfigKeys& config, std::size_t i, double width, Block& block) {
  const Heads h = heads_of(config, i, block.mixer, width);
  const std::string type = config.text("model_type");
  const bool gated = config.flag("attn_output_gate", type.starts_with("qwen3_next") || type.starts_with("qwen3_5"));
  const bool value_is_key = block.mixer == Mixer::full && config.flag("attention_k_eq_v", false);
  block.mixer_parameters += width * h.kv * h.key_dim + (value_is_key ? 0.0 : width * h.kv * h.value_dim);
  if (!chooses_heads(config))
    block.mixer_parameters += width * h.query * h.key_dim * (gated ? 2.0 : 1.0) + h.query * h.value_dim * width;
  CacheLayers cache{
      1, h.kv * (h.key_dim + h.value_dim), 0, 1, 0, h.query * (h.key_dim + h.value_dim), std::max(1.0, h.kv)};
  if (block.mixer == Mixer::sliding) {
    cache.window = config.of_layer(keys::kWindow, i, 0.0);
    if (cache.window < 1.0) config.fail("it has sliding layers and no sliding_window, the tokens that they keep");
  }
  if (block.mixer == Mixer::chunked) cache.window = config.number("attention_chunk_size", 0.0);
  // MiniMax-M3: blocks of the context that an indexer chooses.
  if (const auto sparse = config.part("sparse_attention_config")) {
    const std::vector<double> layers = sparse->numbers("sparse_attention_freq");
    if (i < layers.size() && layers[i] != 0.0 && sparse->flag("use_sparse_attention", true)) {
      cache.read_most = sparse->number("sparse_block_size", 128.0) *
                        (sparse->number("sparse_topk_blocks", 16.0) + sparse->number("sparse_local_block", 0.0) +
                         sparse->number("sparse_init_block", 0.0));
      add_index(block, {sparse->number("sparse_num_index_heads", 1.0), sparse->number("sparse_index_dim", 128.0)},
                width, width, 1.0);
    }
  }
  // The last layers read the keys and values of earlier ones.
  const double shared = config.number("num_kv_shared_layers", 0.0), layers = config.number(keys::kLayers, 0.0);
  const auto across = static_cast<std::size_t>(
      config.flag("use_cla", false) ? std::max(1.0, config.number("cla_share_factor", 1.0)) : 1.0);
  // Layers that attend to an image cache its tokens alone.
  const std::vector<double> crossed = config.numbers("cross_attention_layers");
  const bool caches = (shared == 0.0 || static_cast<double>(i) < layers - shared) && i % across == 0;
  if (caches && std::ranges::find(crossed, static_cast<double>(i)) == crossed.end()) block.cache.push_back(cache);
}

// Latent attention caches one vector for all heads.
void add_latent(const ConfigKeys& config, std::size_t i, double width, Block& block) {
  const double heads = config.of_layer(keys::kHeads, i, 0.0), latent = config.number("kv_lora_rank", 0.0);
  const double rope = config.number("qk_rope_head_dim", 64.0), nope = config.number("qk_nope_head_dim", 128.0);
  const double value = config.number("v_head_dim", nope), rank = config.number("q_lora_rank", 0.0);
  block.mixer_parameters += (rank > 0.0 ? rank * (width + heads * (nope + rope)) : width * heads * (nope + rope)) +
                            width * (latent + rope) + latent * heads * (nope + value) + heads * value * width;
  CacheLayers cache{1, latent + rope, 0, 1, 0, heads * (nope + rope + value)};
  cache.read_most = config.number("index_topk", 0.0);
  if (cache.read_most > 0.0) {
    // GLM-5.2: layers share the choice of one before them.
    const std::vector<std::string> types = config.texts(Names{"indexer_types"});
    const double every = config.number("index_topk_freq", 1.0);
    const double behind = std::max(0.0, static_cast<double>(i) - config.number("index_skip_topk_offset", 0.0) + 1.0);
    if (i < types.size() ? types[i] != "shared" : every <= 1.0 || std::fmod(behind, every) == 0.0)
      add_index(block, {config.number("index_n_heads", 64.0), config.number("index_head_dim", 128.0)},
                rank > 0.0 ? rank : width, width, 1.0);
  }
  block.cache.push_back(cache);
}

// DeepSeek-V4: the last tokens, and entries of 4 or 128 tokens each; of those of 4 an indexer chooses.
void add_compressed(const ConfigKeys& config, std::size_t i, double width, Block& block) {
  const double heads = config.required(keys::kHeads), dim = config.required(keys::kHeadDim);
  const double rank = config.required(Names{"q_lora_rank"}), out = config.required(Names{"o_lora_rank"});
  block.mixer_parameters +=
      rank * (width + heads * dim) + width * dim + heads * dim * out + config.number("o_groups", 1.0) * out * width;
  const CacheLayers window{1, dim, config.required(keys::kWindow), 1, 0, 2.0 * heads * dim};
  block.cache.push_back(window);
  const double ratio = compression_of(config, i);
  if (ratio <= 0.0) return;
  const bool overlaps = ratio <= 4.0;  // an entry sees the group before its own
  CacheLayers entries{1, dim, 0, ratio, 0, 2.0 * heads * dim};
  block.mixer_parameters += (overlaps ? 4.0 : 2.0) * width * dim;
  if (overlaps) {
    const Indexer index{config.number("index_n_heads", 64.0), config.number("index_head_dim", 128.0)};
    entries.read_most = config.number("index_topk", 0.0);
    add_index(block, index, rank, width, ratio);
    block.mixer_parameters += 4.0 * width * index.dim;
  }
  block.cache.push_back(entries);
}

// Layers without a cache: parameters, and numbers of a request's state.

void add_delta(const ConfigKeys& config, double width, Block& block) {
  const double heads = config.required(Names{"linear_num_value_heads"});
  const double key = config.number("linear_key_head_dim", 128.0), value = config.number("linear_value_head_dim", key);
  const double channels = 2.0 * config.number("linear_num_key_heads", heads) * key + heads * value;
  const double kernel = config.number("linear_conv_kernel_dim", 4.0);
  block.mixer_parameters +=
      width * (channels + heads * value + 2.0 * heads) + channels * kernel + heads * value * width;
  block.state_values += heads * key * value + channels * (kernel - 1.0);
}

void add_kimi(const ConfigKeys& config, double width, Block& block) {
  const auto linear = config.part("linear_attn_config");
  const ConfigKeys& of = linear ? *linear : config;
  const double heads = of.number(Names{"linear_num_heads", "num_heads", "num_attention_heads"}, 0.0);
  const double dim = linear ? of.number("head_dim", 128.0) : of.number("linear_head_dim", 128.0);
  const double kernel = of.number(Names{"short_conv_kernel_size", "linear_conv_kernel_dim"}, 4.0), inner = heads * dim;
  const double gate = of.flag("use_full_rank_gate", false) ? width * inner : width * dim + dim * inner;
  block.mixer_parameters +=
      4.0 * width * inner + width * dim + dim * inner + width * heads + gate + 3.0 * inner * kernel;
  block.state_values += heads * dim * dim + 3.0 * inner * (kernel - 1.0);
}

void add_lightning(const ConfigKeys& config, std::size_t i, double width, Block& block) {
  const Heads h = heads_of(config, i, Mixer::lightning, width);
  const double inner = h.query * h.key_dim;
  block.mixer_parameters += 5.0 * width * inner;  // queries, keys, values, gate, output
  block.state_values += h.query * h.key_dim * h.key_dim;
}

// Mamba's own models have no feed-forward.
bool is_mamba_alone(const ConfigKeys& config) {
  const std::string type = config.text("model_type");
  return type == "mamba" || type == "mamba2" || type == "falcon_mamba" ||
         (config.find(keys::kFfn) == nullptr && type.find("mamba") != std::string::npos);
}

void add_mamba(const ConfigKeys& config, double width, Block& block) {
  const double kernel = config.number(keys::kMambaConv, 4.0), state = config.number(keys::kMambaState, 16.0);
  // Mamba's own models write its inner width as intermediate_size, and beside it an expand that may be another.
  const double expanded = config.number(keys::kMambaExpand, 2.0) * width;
  const double inner = config.number(Names{"mamba_intermediate_size"},
                                     is_mamba_alone(config) ? config.number("intermediate_size", expanded) : expanded);
  const nlohmann::json* const said = config.find(Names{"mamba_dt_rank", "time_step_rank"});
  const double rank = said != nullptr && said->is_number() ? said->get<double>() : std::ceil(width / 16.0);
  block.mixer_parameters += 2.0 * width * inner + inner * kernel + inner * (rank + 2.0 * state) + rank * inner +
                            inner * state + inner * width;
  block.state_values += inner * (state + kernel - 1.0);
}

void add_mamba2(const ConfigKeys& config, double width, Block& block) {
  const double kernel = config.number(keys::kMambaConv, 4.0), state = config.number(keys::kMambaState, 128.0);
  const double expanded = config.number("mamba_d_ssm", config.number(keys::kMambaExpand, 2.0) * width);
  const double said = config.number(keys::kMambaHeads, 0.0);
  const double dim = config.number(keys::kMambaHeadDim, shares_blocks(config) && said > 0.0 ? expanded / said : 64.0);
  const double heads = said > 0.0 ? said : expanded / std::max(1.0, dim);
  const double inner = heads * dim, channels = inner + 2.0 * config.number(keys::kMambaGroups, 1.0) * state;
  block.mixer_parameters += width * (inner + channels + heads) + channels * kernel + inner * width;
  block.state_values += inner * state + channels * (kernel - 1.0);
}

// Zamba: attention over the layer's input beside the embedding, then a feed-forward (add_ffn), of blocks in turns,
// and what each layer has of its own: a projection, in Zamba2 adapters.
void add_shared(const ConfigKeys& config, double width, Block& block) {
  const double heads = config.required(keys::kHeads), kv = config.of_layer(keys::kKvHeads, 0, heads);
  const double dim = config.number("attention_head_dim", 2.0 * width / heads);
  block.again = 2.0 * width * dim * (heads + 2.0 * kv) + heads * dim * width;
  block.mixer_parameters += block.again + width * width;
  block.cache.push_back({1, 2.0 * kv * dim, 0, 1, 0, 2.0 * heads * dim, std::max(1.0, kv)});
  if (config.text("model_type") == "zamba") return;
  const double rank = config.number(Names{"adapter_rank", "lora_rank"}, 128.0), ffn = config.required(keys::kFfn);
  block.mixer_parameters += rank * (width + 2.0 * ffn);
  if (config.flag(Names{"use_shared_attention_adapter", "use_shared_attention_lora"}, false))
    block.mixer_parameters += rank * (3.0 * 2.0 * width + dim * (heads + 2.0 * kv));
}

void add_recurrent(const ConfigKeys& config, double width, Block& block) {
  const double inner = config.number("lru_width", width), kernel = config.number("conv1d_width", 4.0);
  block.mixer_parameters +=
      3.0 * width * inner + inner * kernel + 2.0 * inner * inner / std::max(1.0, config.number(keys::kHeads, 1.0));
  block.state_values += inner * kernel;
}

void add_mixer(const ConfigKeys& config, std::size_t i, double width, Block& block) {
  switch (block.mixer) {
    case Mixer::none:
      return;
    case Mixer::full:
    case Mixer::sliding:
    case Mixer::chunked:
      if (is_compressed(config)) return add_compressed(config, i, width, block);
      if (config.number("kv_lora_rank", 0.0) > 0.0 && block.mixer == Mixer::full)
        return add_latent(config, i, width, block);
      return add_attention(config, i, width, block);
    case Mixer::parallel:
      add_mamba2(config, width, block);
      return add_attention(config, i, width, block);
    case Mixer::shared:
      add_shared(config, width, block);
      return config.text("model_type") == "zamba" ? add_mamba(config, width, block) : add_mamba2(config, width, block);
    case Mixer::linear:
      return add_delta(config, width, block);
    case Mixer::kimi:
      return add_kimi(config, width, block);
    case Mixer::lightning:
      return add_lightning(config, i, width, block);
    case Mixer::mamba:
      return add_mamba(config, width, block);
    case Mixer::mamba2:
      return add_mamba2(config, width, block);
    case Mixer::conv: {
      const double kernel = config.number(keys::kMambaConv, 3.0);
      block.mixer_parameters += 4.0 * width * width + width * kernel;
      block.state_values += width * kernel;
      return;
    }
    case Mixer::recurrent:
      return add_recurrent(config, width, block);
  }
}

// --- feed-forward ---------------------------------------------------------------------------------------------------

// Three matrices, or two where a class has no gate.
double matrices_of(const ConfigKeys& config) {
  constexpr std::array<std::string_view, 15> kWithoutGate{"gpt2",        "opt",        "gpt_neox", "gptj",    "gpt_neo",
                                                          "gpt_bigcode", "starcoder2", "bloom",    "mpt",     "codegen",
                                                          "persimmon",   "nemotron",   "arcee",    "apertus", "phi"};
  const std::string type = config.text("model_type"), activation = config.text(keys::kActivation);
  const bool plain = std::ranges::find(kWithoutGate, type) != kWithoutGate.end() || type == "falcon" ||
                     (activation == "relu2" && type != "bitnet") || activation == "relu";
  return config.flag("gated", !plain) ? 3.0 : 2.0;
}

// LongCat-Flash: a layer is two attentions and two dense feed-forwards, with experts beside the first.
bool is_twofold(const ConfigKeys& config) {
  return config.text("model_type").starts_with("longcat_flash");
}

double dense_width(const ConfigKeys& config, std::size_t i, double width) {
  double ffn = config.of_layer(keys::kFfn, i, matrices_of(config) == 2.0 ? 4.0 * width : 0.0);
  if (config.of_layer(keys::kExperts, 0, 0.0) > 1.0) ffn = config.number(keys::kDenseFfn, ffn);
  if (config.flag("block_auto_adjust_ff_dim", false)) {  // LFM2
    const double multiple = config.number("block_multiple_of", 256.0);
    ffn = std::ceil(std::floor(2.0 * ffn / 3.0) * config.number("block_ffn_dim_multiplier", 1.0) / multiple) * multiple;
  }
  if (config.text("model_type") == "recurrent_gemma") ffn /= 2.0;
  const double layers = config.number(keys::kLayers, 0.0), shared = config.number("num_kv_shared_layers", 0.0);
  if (config.flag("use_double_wide_mlp", false) && static_cast<double>(i) >= layers - shared) ffn *= 2.0;
  if (ffn < 1.0) config.fail("it has no intermediate_size, the width of the feed-forward layers; its ffn is not known");
  return ffn;
}

double expert_width(const ConfigKeys& config) {
  return config.of_layer(keys::kExpertFfn, 0, config.of_layer(keys::kFfn, 0, 0.0));
}

double shared_width(const ConfigKeys& config, double width) {
  if (config.find(keys::kSharedFfn) != nullptr) return config.number(keys::kSharedFfn, 0.0);
  const std::string type = config.text("model_type");
  const double count = config.of_layer(keys::kSharedExperts, 0, type.starts_with("llama4") ? 1.0 : 0.0);
  const double beside = type.starts_with("gemma4") ? dense_width(config, 0, width) : 0.0;  // a dense one and experts
  return beside + count * config.number(keys::kSharedExpertFfn, expert_width(config));
}

void add_ffn(const ConfigKeys& config, std::size_t i, double width, Block& block) {
  const double matrices = matrices_of(config);
  if (!block.has_experts) {
    block.ffn_parameters += matrices * width * dense_width(config, i, width);
    return;
  }
  const double latent = config.number(keys::kExpertWidth, 0.0);  // experts of a narrower vector
  block.ffn_parameters += matrices * width * shared_width(config, width) +
                          width * config.of_layer(keys::kExperts, 0, 0.0) + 2.0 * width * latent;
}

// Blocks that a search has pruned one by one (Nemotron's): heads in a group, the feed-forward's width, or neither.
std::vector<Block> read_pruned(const ConfigKeys& config, const nlohmann::json& list, double width) {
  if (list.size() > kLayersMost)
    config.fail("block_configs has " + std::to_string(list.size()) + " blocks; expected at most 2,000");
  std::vector<Block> blocks;
  for (const nlohmann::json& entry : list) {
    const ConfigKeys layer(entry, config.where() + ": block_configs " + std::to_string(blocks.size()));
    Block& block = blocks.emplace_back();
    const double heads = config.required(keys::kHeads), dim = config.number(keys::kHeadDim, width / heads);
    if (const auto attention = layer.part("attention")) {
      if (attention->flag("replace_with_linear", false)) {
        block.mixer = Mixer::conv;
        block.mixer_parameters = width * width;
      } else if (!attention->flag("no_op", false)) {
        const double group = attention->number("n_heads_in_group", 0.0);
        const double kv = attention->number("num_key_value_heads", group > 0.0 ? heads / group : heads);
        const double window = attention->number(Names{"window_length", "sliding_window"}, 0.0);
        block.mixer = window > 0.0 ? Mixer::sliding : Mixer::full;
        block.mixer_parameters = 2.0 * width * dim * (heads + kv);
        block.cache.push_back({1, 2.0 * kv * dim, window, 1, 0, 2.0 * heads * dim});
      }
    }
    const auto ffn = layer.part("ffn");
    block.has_ffn = ffn && !ffn->flag("no_op", false);
    if (!block.has_ffn) continue;
    const double multiplier = ffn->number("ffn_mult", 0.0);
    const double inner =
        ffn->number("intermediate_size", 256.0 * std::ceil(std::floor(2.0 * multiplier * width / 3.0) / 256.0));
    block.ffn_parameters = ffn->flag("replace_with_linear", false) ? width * width : 3.0 * width * inner;
  }
  return blocks;
}

// Classes that read a whole text at once, by a word of their model_type; wrappers have that of their text_config.
constexpr std::array<std::string_view, 27> kEncoders{
    "bert",     "electra",  "clip",     "siglip", "clap",    "mpnet",  "xlm",     "longformer", "big_bird",
    "funnel",   "nystrom",  "roformer", "fnet",   "canine",  "esm",    "flava",   "owlv",       "groupvit",
    "layoutlm", "data2vec", "t5",       "bart",   "pegasus", "marian", "m2m_100", "whisper",    "seamless"};

void require_decoder(const ConfigKeys& config) {
  const std::string type = config.text("model_type");
  const bool encodes =
      std::ranges::any_of(kEncoders, [&](std::string_view word) { return type.find(word) != std::string::npos; }) &&
      type.find("decoder") == std::string::npos;
  if ((encodes && !config.flag("is_decoder", false)) || config.flag("is_encoder_decoder", false))
    config.fail("its model_type '" + type + "' has an encoder; expected a model of a decoder alone");
  for (const std::string& name : config.texts(Names{"architectures"}))
    if (name.ends_with("ForMaskedLM"))
      config.fail("its architecture " + in_quotes(name) + " fills gaps; expected a model that writes token by token");
  const auto is = [&](const char* flag, bool value) {
    const nlohmann::json* const said = config.find(flag);
    return said != nullptr && said->is_boolean() && said->get<bool>() == value;
  };
  if (is("is_causal", false) || is("use_bidirectional_attention", true))
    config.fail("its attention looks ahead (is_causal, use_bidirectional_attention): it encodes; expected a decoder");
}

}  // namespace

Experts read_experts(const ConfigKeys& config) {
  Experts experts;
  experts.count = experts_of(config);
  if (experts.count <= 1.0) return {};  // one is a dense layer
  const std::string type = config.text("model_type");
  if (type == "doge") config.fail("its experts are single neurons (is_moe); expected a model without them");
  experts.per_token = config.of_layer(keys::kExpertsPerToken, 0, 0.0);
  if (experts.per_token < 1.0 || experts.per_token > experts.count)
    config.fail("experts_per_token (num_experts_per_tok) is " + text_of(experts.per_token) + "; expected 1 .. " +
                text_of(experts.count) + ", the experts");
  // Experts that return what they are given are chosen like the others, and are nothing to read.
  const double zero = config.number("zero_expert_num", 0.0);
  experts.per_token *= experts.count / (experts.count + zero);
  const double width = config.required(keys::kWidth), inner = expert_width(config);
  if (inner < 1.0) config.fail("it has experts but no moe_intermediate_size (expert_ffn), the width of one");
  experts.parameters = matrices_of(config) * config.number(keys::kExpertWidth, width) * inner;
  if (chooses_heads(config)) {  // queries and output of the heads that an expert has
    const Heads h = heads_of(config, 0, Mixer::full, width);
    experts.parameters += 2.0 * width * h.kv * h.key_dim;
  }
  return experts;
}

std::vector<Block> read_blocks(const ConfigKeys& config) {
  require_decoder(config);
  const double width = config.required(keys::kWidth);
  if (const nlohmann::json* const list = config.find("block_configs"); list != nullptr && list->is_array())
    return read_pruned(config, *list, width);
  std::vector<Block> blocks;
  double shared = 0.0;  // blocks until here
  for (const BlockKind& kind : read_layer_kinds(config)) {
    Block& block = blocks.emplace_back();
    block.mixer = kind.mixer;
    block.has_ffn = kind.has_ffn;
    block.has_experts = kind.has_experts;
    add_mixer(config, blocks.size() - 1, width, block);
    if (block.has_ffn && !is_mamba_alone(config)) add_ffn(config, blocks.size() - 1, width, block);
    if (block.mixer == Mixer::shared) {
      block.again += block.ffn_parameters;
      if (shared++ < config.number("num_mem_blocks", 1.0)) block.again = 0.0;
    }
    if (is_twofold(config)) {
      block.mixer_parameters *= 2.0;
      block.ffn_parameters += 2.0 * matrices_of(config) * width * dense_width(config, blocks.size() - 1, width);
      const std::vector<CacheLayers> first = block.cache;
      block.cache.insert(block.cache.end(), first.begin(), first.end());
    }
  }
  return blocks;
}

}  // namespace draftproof
