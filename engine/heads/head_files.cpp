#include "engine/heads/head_files.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "engine/heads/head_config.hpp"
#include "engine/heads/head_metadata.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

// The tokens of a d2t table, which rise and stay below the target's vocabulary.
std::vector<Token> tokens_of_table(TensorCollector& tensors, const std::string& name, std::int64_t rows,
                                   const HeadConfig& head) {
  const std::string where = tensors.where(name);
  const std::int64_t vocab = head.description.target_vocab_size;
  const std::int64_t limit = vocab == 0 ? std::numeric_limits<Token>::max() : vocab;
  std::vector<Token> tokens;
  std::int64_t before = -1;
  std::int64_t row = 0;
  for (const std::int64_t entry : tensors.take_integers(name, rows)) {
    // An offset outside the vocabulary leaves it from any row.
    const bool fits = entry >= -limit && entry <= limit;
    const std::int64_t token = !fits ? -1 : head.draft_tokens_are_ids ? entry : row + entry;
    if (token <= before || token >= limit)
      throw input_error(where, "has " + std::to_string(entry) + " for row " + std::to_string(row) +
                                   (fits && !head.draft_tokens_are_ids ? ", token " + std::to_string(token) : "") +
                                   ", after token " + std::to_string(before) +
                                   "; expected tokens that rise and stay below " + std::to_string(limit));
    tokens.push_back(static_cast<Token>(token));
    before = token;
    ++row;
  }
  return tokens;
}

// Takes d2t and t2d. Nothing where row t is token t.
std::vector<Token> take_draft_tokens(TensorCollector& tensors, const std::string& table, std::int64_t rows,
                                     const HeadConfig& head) {
  const std::int64_t vocab = head.description.target_vocab_size;
  std::vector<Token> tokens;
  if (tensors.contains(table)) {
    tokens = tokens_of_table(tensors, table, rows, head);
  } else if (rows != vocab) {
    throw input_error(tensors.path(), "has no tensor " + in_quotes(table) + "; a head that drafts " +
                                          std::to_string(rows) + " of " + std::to_string(vocab) + " tokens needs it");
  } else {
    for (std::int64_t t = 0; t < vocab && tensors.contains("t2d"); ++t) tokens.push_back(static_cast<Token>(t));
  }
  if (tensors.contains("t2d")) {
    const std::string where = tensors.where("t2d");
    const std::vector<std::int64_t> marks = tensors.take_integers("t2d", vocab);
    std::vector<char> drafted(marks.size(), 0);
    for (const Token token : tokens) drafted[static_cast<std::size_t>(token)] = 1;
    for (std::size_t t = 0; t < marks.size(); ++t)
      if ((marks[t] != 0) != (drafted[t] != 0))
        throw input_error(where, std::string(marks[t] != 0 ? "marks" : "does not mark") + " token " +
                                     std::to_string(t) + ", which " + in_quotes(table) +
                                     (drafted[t] != 0 ? " has" : " has not") + "; expected the same tokens");
  }
  // They rise, so that as many as the vocabulary has are all of it.
  if (rows == vocab) tokens.clear();
  return tokens;
}

// Rows of logits: what the files say, or the head's own matrix.
std::int64_t rows_of_logits(const TensorCollector& tensors, const HeadConfig& config, const std::string& matrix) {
  if (config.draft_vocab_size != 0) return config.draft_vocab_size;
  if (!matrix.empty() && tensors.contains(matrix)) return tensors.shape_of(matrix).front();
  if (!config.names.embedding.empty() && tensors.contains(config.names.embedding))
    return tensors.shape_of(config.names.embedding).front();
  throw input_error(config.where, "does not say how many tokens the vocabulary has; expected vocab_size, or a tensor " +
                                      in_quotes(matrix));
}

void check_vocabulary(const HeadConfig& config, std::int64_t rows) {
  const std::int64_t vocab = config.description.target_vocab_size;
  if (rows < 1 || rows > vocab)
    throw input_error(config.where, "drafts " + std::to_string(rows) + " tokens of a vocabulary of " +
                                        std::to_string(vocab) + "; expected at most the whole vocabulary");
}

void take_medusa(TensorCollector& tensors, HeadConfig& config, HeadTensors& out) {
  const MedusaNames& names = config.medusa;
  HeadDescription& d = out.description;
  const std::int64_t width = d.target_width;
  const auto matrix = [&](std::int64_t i) {
    const std::string index = std::to_string(names.shares_head ? 0 : i);
    return names.is_plain  ? names.prefix + index + ".2.weight"
           : names.is_vllm ? names.prefix + "lm_heads." + index + ".weight"
                           : index + "." + std::to_string(names.blocks) + ".weight";
  };
  const std::int64_t rows = rows_of_logits(tensors, config, matrix(0));
  if (d.target_vocab_size == 0) d.target_vocab_size = config.description.target_vocab_size = rows;
  check_vocabulary(config, rows);
  d.shape.vocab_size = rows;
  d.draft_tokens = take_draft_tokens(tensors, "token_map", rows, config);
  // A full vocabulary may come without matrices: then they are the target's.
  const bool has_matrices = tensors.contains(matrix(0)) || !d.draft_tokens.empty();
  if (has_matrices && names.shares_head) out.head = tensors.take(matrix(0), rows, width);
  for (std::int64_t i = 0; i < names.heads; ++i) {
    MedusaTensors& head = out.medusa.emplace_back();
    for (std::int64_t j = 0; j < names.blocks; ++j) {
      const std::string block = names.is_plain ? names.prefix + std::to_string(i) + ".0"
                                : names.is_vllm
                                    ? names.prefix + "blocks." + std::to_string(i) + ".layers." + std::to_string(j)
                                    : std::to_string(i) + "." + std::to_string(j) + ".linear";
      MedusaTensors::Block& of = head.blocks.emplace_back();
      of.weight = tensors.take(block + ".weight", width, width);
      if (names.has_bias) of.bias = tensors.take(block + ".bias", width);
    }
    if (has_matrices && !names.shares_head) head.head = tensors.take(matrix(i), rows, width);
    head.is_plain = names.is_plain;
    if (const std::string bias = names.prefix + std::to_string(i) + ".2.bias";
        names.is_plain && tensors.contains(names.prefix + "0.2.bias"))
      head.head_bias = tensors.take(bias, rows);
  }
}

void take_head(TensorCollector& tensors, HeadConfig& config, HeadTensors& out) {
  const HeadNames& names = config.names;
  HeadDescription& d = out.description;
  const std::int64_t width = d.shape.width;
  const auto named = [](const std::string& name) { return !name.empty(); };
  const auto there = [&](const std::string& name) { return named(name) && tensors.contains(name); };

  const std::int64_t rows = rows_of_logits(tensors, config, names.head);
  if (d.target_vocab_size == 0)
    d.target_vocab_size = config.description.target_vocab_size = there(names.embedding)
                                                                     ? tensors.shape_of(names.embedding).front()
                                                                 : tensors.contains("d2t") ? 0
                                                                                           : rows;
  if (d.target_vocab_size != 0) check_vocabulary(config, rows);
  d.shape.vocab_size = rows;
  d.draft_tokens = take_draft_tokens(tensors, "d2t", rows, config);
  if (there(names.embedding)) out.embedding = tensors.take(names.embedding, d.target_vocab_size, width);
  // Rows of a reduced vocabulary are not the target's.
  if (there(names.head) || !d.draft_tokens.empty())
    out.head = tensors.take(names.head, rows, width);
  else if (out.embedding.is_there() && d.shape.tied)
    out.head = out.embedding;

  const std::int64_t features = config.num_features * d.target_width;
  const std::int64_t fused = fuses_features(d.family) ? features : width + d.target_width;
  out.fuse = tensors.take(names.fuse, width, fused);
  if (config.has_fuse_bias.value_or(there(names.fuse_bias))) out.fuse_bias = tensors.take(names.fuse_bias, width);
  if (named(names.mask_hidden)) out.mask_hidden = tensors.take_shape(names.mask_hidden, {1, 1, features});
  if (named(names.fuse_norm)) out.fuse_norm = tensors.take(names.fuse_norm, features);
  for (std::int64_t i = 0; i < config.num_features && named(names.feature_norms); ++i)
    out.feature_norms.push_back(tensors.take(names.feature_norms + std::to_string(i) + ".weight", d.target_width));
  if (named(names.embed_norm)) out.embed_norm = tensors.take(names.embed_norm, width);
  if (named(names.hidden_norm))
    out.hidden_norm = tensors.take(names.hidden_norm, fuses_features(d.family) ? width : d.target_width);
  if (named(names.out_norm)) out.out_norm = tensors.take(names.out_norm, width);
  if (named(names.markov_in)) {
    out.markov_in = tensors.take(names.markov_in, d.target_vocab_size, config.markov_rank);
    out.markov_out = tensors.take(names.markov_out, rows, config.markov_rank);
    if (named(names.markov_gate)) out.markov_gate = tensors.take(names.markov_gate, config.markov_rank, width);
  }
  if (named(names.confidence)) {
    out.confidence =
        tensors.take(names.confidence, 1, width + (config.confidence_reads_markov ? config.markov_rank : 0));
    out.confidence_bias = tensors.take(names.confidence_bias, 1);
  }
  const std::int64_t first_width = joins_pairs(d.family) ? 2 * width : width;
  out.layers.push_back(
      take_layer(tensors, names.first_layer, *names.of_layer, d.shape, first_width, config.has_first_norm));
  if (d.shape.num_layers > 1 && names.later_layers.empty())
    throw input_error(config.where, "says that the head has " + std::to_string(d.shape.num_layers) +
                                        " layers; expected 1 in this format");
  for (std::int64_t i = 1; i < d.shape.num_layers; ++i)
    out.layers.push_back(take_layer(tensors, names.later_layers + std::to_string(i), *names.of_layer, d.shape, width));
  for (std::size_t i = 0; i < out.layers.size() && config.conv_taps != 0; ++i) {
    const auto take_conv = [&](const std::string& name) -> HeadTensors::Convolution {
      const std::string prefix = names.later_layers + std::to_string(i) + name;
      return {tensors.take_shape(prefix + ".base_kernel", {2, config.conv_taps, width}),
              tensors.take(prefix + ".kernel_projection.weight", 2 * config.conv_taps * (width / config.conv_group),
                           width)};
    };
    out.convolutions.push_back({take_conv(".attention_conv"), take_conv(".mlp_conv")});
  }
}

// The draft vocabulary of a head that has rows for all tokens: token_map.json beside its files, as FR-Spec's
// (arXiv:2502.14856) in engines, in any order. Nothing where there is no such file.
void take_token_map(const std::string& folder, HeadTensors& head) {
  const std::string path = (fs::path(folder) / "token_map.json").string();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  HeadDescription& d = head.description;
  if (d.family == HeadFamily::medusa || !d.draft_tokens.empty() || d.target_vocab_size == 0)
    throw input_error(path,
                      "reduces a head of another kind; expected one of eagle1, mtp or dflash that drafts from all "
                      "rows of an lm_head");
  const JsonFields fields = JsonFields::read(path);
  const auto listed = fields.integers("token_map");
  if (!listed || listed->empty()) fields.fail("token_map", "a list of tokens");
  std::vector<std::int64_t> tokens = *listed;
  std::ranges::sort(tokens);
  const auto twice = std::ranges::adjacent_find(tokens);
  if (twice != tokens.end())
    throw input_error(path, "has token " + std::to_string(*twice) + " twice; expected each once");
  for (const std::int64_t token : {tokens.front(), tokens.back()})
    if (token < 0 || token >= d.target_vocab_size)
      throw input_error(path, "has token " + std::to_string(token) + "; expected tokens from 0 to " +
                                  std::to_string(d.target_vocab_size - 1));
  if (std::ssize(tokens) == d.target_vocab_size) return;
  d.draft_tokens.assign(tokens.begin(), tokens.end());
  d.shape.vocab_size = std::ssize(tokens);
}

HeadTensors take_all(TensorCollector& tensors, HeadConfig config, const std::string& path) {
  HeadTensors out;
  out.path = path;
  out.description = config.description;
  if (out.description.family == HeadFamily::medusa)
    take_medusa(tensors, config, out);
  else
    take_head(tensors, config, out);
  for (const std::string& name : tensors.names())
    if (!config.inside.empty() && !name.starts_with(config.inside)) tensors.ignore(name);
  tensors.refuse_unused("is read by nothing of " + std::string(name_of(out.description.family)) + " in the format " +
                        out.description.format + "; expected a head without it");
  out.owner = tensors.owner();
  return out;
}

std::string config_path(const std::string& folder) {
  return (fs::path(folder) / "config.json").string();
}

bool is_folder(const std::string& path) {
  std::error_code ignored;  // what is no folder is opened as a file, which says what is wrong
  return fs::is_directory(path, ignored);
}

bool is_in(const std::string& folder, const char* name) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / name, ignored);
}

bool has_weights(const std::string& folder) {
  return is_in(folder, "model.safetensors") || is_in(folder, "model.safetensors.index.json");
}

// The file of Python's that the folder has, or null.
const char* has_pickled(const std::string& folder) {
  for (const char* const name : {"pytorch_model.bin", "medusa_lm_head.pt"})
    if (is_in(folder, name)) return name;
  return nullptr;
}

}  // namespace

bool is_head(const std::string& path) {
  if (!is_folder(path)) return describes_head(GgufFile::open(path));
  if (describes_head(JsonFields::read(config_path(path)))) return true;
  if (is_in(path, "tokenizer.json")) return false;
  return has_weights(path) ? describes_head(TensorCollector::of_folder(path, "head")) : has_pickled(path) != nullptr;
}

std::size_t mtp_layers_inside(const std::string& path) {
  if (is_head(path)) return 0;
  if (!is_folder(path))
    return mtp_prefixes(TensorCollector::of_gguf(std::make_shared<const GgufFile>(GgufFile::open(path)), "head"))
        .size();
  return has_weights(path) ? mtp_prefixes(TensorCollector::of_folder(path, "head")).size() : 0;
}

HeadTensors open_head_files(const std::string& path) {
  if (!is_folder(path)) {
    const auto file = std::make_shared<const GgufFile>(GgufFile::open(path));
    TensorCollector tensors = TensorCollector::of_gguf(file, "head");
    return take_all(tensors, read_head_metadata(*file, tensors), path);
  }
  const JsonFields config = JsonFields::read(config_path(path));
  if (const char* const pickled = has_pickled(path); pickled != nullptr && !has_weights(path))
    throw input_error((fs::path(path) / pickled).string(),
                      "is pickled Python, which is not read; expected the same tensors as model.safetensors");
  TensorCollector tensors = TensorCollector::of_folder(path, "head");
  HeadTensors head = take_all(tensors, read_head_config(config, tensors), path);
  take_token_map(path, head);
  return head;
}

std::vector<const WeightTensor*> tensors_of(const HeadTensors& head) {
  std::vector<const WeightTensor*> all;
  const auto add = [&](const WeightTensor& tensor) {
    if (tensor.is_there()) all.push_back(&tensor);
  };
  for (const WeightTensor* const tensor : {&head.embedding, &head.embed_norm, &head.hidden_norm, &head.fuse_norm,
                                           &head.fuse, &head.fuse_bias, &head.mask_hidden})
    add(*tensor);
  for (const WeightTensor& norm : head.feature_norms) add(norm);
  for (const LayerWeights& layer : head.layers)
    for (const WeightTensor* const tensor : layer.tensors()) add(*tensor);
  for (const auto& of_layer : head.convolutions)
    for (const HeadTensors::Convolution& conv : of_layer) {
      add(conv.base);
      add(conv.kernel);
    }
  for (const WeightTensor* const tensor :
       {&head.out_norm, &head.markov_in, &head.markov_gate, &head.markov_out, &head.confidence, &head.confidence_bias})
    add(*tensor);
  if (head.head.name != head.embedding.name) add(head.head);
  for (const MedusaTensors& of : head.medusa) {
    for (const MedusaTensors::Block& block : of.blocks) {
      add(block.weight);
      add(block.bias);
    }
    add(of.head);
    add(of.head_bias);
  }
  return all;
}

std::int64_t weights_per_pass(const HeadTensors& head) {
  const HeadDescription& d = head.description;
  const std::int64_t logits = d.shape.vocab_size * (d.family == HeadFamily::medusa ? d.target_width : d.shape.width);
  std::int64_t weights = 0;
  const auto add = [&](const WeightTensor& matrix) { weights += matrix.rows * matrix.columns; };
  for (const MedusaTensors& of : head.medusa) {
    for (const MedusaTensors::Block& block : of.blocks) add(block.weight);
    weights += logits;
  }
  if (d.family == HeadFamily::medusa) return weights;
  for (const LayerWeights& layer : head.layers) {
    for (const WeightTensor* const tensor : layer.tensors())
      if (tensor->rows > 1) add(*tensor);
    const std::int64_t unused = std::ssize(layer.experts) - (layer.experts.empty() ? 0 : d.shape.experts.chosen);
    weights -= unused * 3 * d.shape.experts.feed_forward * d.shape.width;
  }
  for (const auto& of_layer : head.convolutions)
    for (const HeadTensors::Convolution& conv : of_layer) add(conv.kernel);
  if (!fuses_features(d.family)) add(head.fuse);
  if (d.select_top_k == 0) add(head.markov_out);
  add(head.markov_gate);
  return weights + logits;
}

}  // namespace draftproof
