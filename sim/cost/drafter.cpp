#include "sim/cost/drafter.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "sim/cost/drafter_config.hpp"
#include "sim/cost/presets.hpp"

namespace draftproof {
namespace {

// A drafter before it is known whose it is.
struct DrafterPreset {
  std::string name;
  DraftingKind kind = DraftingKind::head;
  double layers = 0.0;           // of the target's form
  bool dense = true;             // its layers have no experts even where the target's have
  double input_squares = 0.0;    // width x width matrices that join features and embeddings in every pass
  double feature_squares = 0.0;  // the same, once a step
  double heads = 1.0;            // output heads that a pass reads, each over `vocab` tokens
  double head_squares = 0.0;     // width x width matrices in front of each of them
  double vocab = 0.0;            // 0: the target's
  double level_rank = 0.0;       // of a Markov head: rank x vocab parameters for every level
  double target_share = 0.0;     // of the target's layers, where it drafts for itself
  int default_nodes = 0;
  int default_depth = 0;
  DraftTraining training;
};

DraftingKind kind_of(const TomlValue& value) {
  for (const DraftingKind kind : {DraftingKind::head, DraftingKind::parallel, DraftingKind::model, DraftingKind::ngram})
    if (value.text() == name_of(kind)) return kind;
  throw input_error(value.where(), "it is " + in_quotes(value.text()) + "; expected head, parallel, model or ngram");
}

DraftTraining training_of(const TomlValue& entry) {
  DraftTraining training;
  training.drafts = static_cast<std::int32_t>(entry.integer_or("trained_drafts", 0, 0, 64));
  training.beyond = entry.number_or("beyond", 1.0, 0, 1);
  training.confidences = entry.flag_or("confidences", false);
  const TomlValue* acceptance = entry.find("acceptance");
  if (acceptance == nullptr) return training;
  for (const std::string& domain : acceptance->keys()) {
    const TomlValue& rates = acceptance->at(domain);
    SlotRates& slots = training.published.emplace_back();
    slots.domain = domain;
    for (const TomlValue& rate : rates.items()) slots.conditional.push_back(rate.number(0.0, 1.0));
    const auto drafts = static_cast<std::size_t>(training.drafts);
    if (slots.conditional.empty() || slots.conditional.size() > drafts)
      throw input_error(rates.where(), "it has " + std::to_string(slots.conditional.size()) +
                                           " rates; expected one or more, and at most trained_drafts (" +
                                           std::to_string(drafts) + ")");
  }
  return training;
}

DrafterPreset drafter_of(const TomlValue& entry) {
  entry.allow_only({"name", "aliases", "source", "kind", "layers", "dense", "input_squares", "feature_squares", "heads",
                    "head_squares", "vocab", "level_rank", "target_share", "default_nodes", "default_depth",
                    "trained_drafts", "beyond", "confidences", "acceptance"});
  DrafterPreset preset;
  preset.name = entry.at("name").text();
  preset.kind = kind_of(entry.at("kind"));
  preset.layers = entry.number_or("layers", 0.0, 0, 1000);
  preset.dense = entry.flag_or("dense", true);
  preset.input_squares = entry.number_or("input_squares", 0.0, 0, 1000);
  preset.feature_squares = entry.number_or("feature_squares", 0.0, 0, 1000);
  preset.heads = entry.number_or("heads", 1.0, 0, 1000);
  preset.head_squares = entry.number_or("head_squares", 0.0, 0, 1000);
  preset.vocab = entry.number_or("vocab", 0.0, 0, 1e8);
  preset.level_rank = entry.number_or("level_rank", 0.0, 0, 1e5);
  preset.target_share = entry.number_or("target_share", 0.0, 0, 1);
  preset.default_nodes = static_cast<int>(entry.integer_or("default_nodes", 0, 0, 100'000));
  preset.default_depth = static_cast<int>(entry.integer_or("default_depth", 0, 0, 10'000));
  preset.training = training_of(entry);
  return preset;
}

const PresetFolder<DrafterPreset>& drafter_folder() {
  static const PresetFolder<DrafterPreset> read = read_presets<DrafterPreset>("drafters", "drafter", drafter_of);
  return read;
}

// A dense layer of a mixture's drafter is as wide as what a token passes through in a layer of the target.
double dense_layer_parameters(const ModelShape& target) {
  const double body = target.active_parameters() - target.head_parameters;
  return body / target.layers;
}

DrafterShape drafter_for(const DrafterPreset& preset, const ModelShape& target) {
  DrafterShape drafter;
  drafter.name = preset.name;
  drafter.kind = preset.kind;
  drafter.default_nodes = preset.default_nodes;
  drafter.default_depth = preset.default_depth;
  drafter.training = preset.training;
  if (preset.name == "MTP" && target.draft_layers > 0.0)
    drafter.count = {static_cast<std::int32_t>(std::min(target.draft_layers, 1024.0)),
                     number("the model has %.0f of them (num_nextn_predict_layers)", target.draft_layers), true};
  if (preset.target_share > 0.0) {
    drafter.shape = target;
    drafter.shape.layers *= preset.target_share;
    drafter.shape.expert_layers *= preset.target_share;
    for (CacheLayers& cache : drafter.shape.cache) cache.layers *= preset.target_share;
    drafter.shape.body_parameters *= preset.target_share;
    return drafter;
  }
  const double square = target.width * target.width;
  drafter.first_pass_parameters = preset.feature_squares * square;
  ModelShape& shape = drafter.shape;
  shape.name = preset.name;
  shape.layers = preset.layers;
  shape.width = target.width;
  shape.heads = target.heads;
  shape.kv_heads = target.kv_heads;
  shape.head_dim = target.head_dim;
  shape.vocab = preset.vocab > 0.0 ? std::min(preset.vocab, target.vocab) : target.vocab;
  shape.tied = true;  // the embedding is the target's
  if (preset.layers > 0.0) {
    shape.cache = {target.full_layer()};
    shape.cache.front().layers = preset.layers;
  }
  drafter.level_parameters = preset.level_rank * shape.vocab;
  shape.head_parameters = preset.heads * target.width * shape.vocab;
  shape.body_parameters = (preset.input_squares + preset.heads * preset.head_squares) * square;
  if (target.is_moe() && !preset.dense) {
    shape.experts = target.experts;
    shape.experts_per_token = target.experts_per_token;
    shape.expert_layers = preset.layers;
    shape.expert_parameters = target.expert_parameters;
    shape.body_parameters += preset.layers * target.body_parameters / target.layers;
  } else {
    shape.body_parameters += preset.layers * dense_layer_parameters(target);
  }
  return drafter;
}

// A head whose config.json says its own figures.
DrafterShape head_of_file(const HeadConfigFile& file, const ModelShape& target, const std::string& name) {
  const DrafterPreset* const preset = drafter_folder().match(file.method);
  DrafterPreset own = *preset;
  if (file.output_heads > 0.0) own.heads = file.output_heads;
  if (file.features > 0.0) own.feature_squares = file.features;
  if (file.markov_rank > 0.0) own.level_rank = file.markov_rank;
  own.vocab = file.draft_vocab > 0.0 ? file.draft_vocab : target.vocab;
  if (file.drafts > 0) {
    own.default_depth = file.drafts;
    if (own.kind == DraftingKind::parallel || own.default_nodes < file.drafts) own.default_nodes = file.drafts;
    own.training.drafts = file.drafts;
  }
  DrafterShape drafter = drafter_for(own, target);
  drafter.count = file.count;
  drafter.name = preset->name + " (" + name + ")";
  if (!file.layers) return drafter;
  const ModelShape& layers = *file.layers;
  ModelShape& shape = drafter.shape;
  shape.body_parameters += layers.body_parameters - own.layers * (own.dense ? dense_layer_parameters(target) : 0.0);
  shape.layers = layers.layers;
  shape.width = layers.width;
  shape.heads = layers.heads;
  shape.kv_heads = layers.kv_heads;
  shape.head_dim = layers.head_dim;
  shape.cache = layers.cache;
  shape.precision = layers.precision;
  shape.head_parameters = own.heads * layers.width * shape.vocab;
  drafter.first_pass_parameters = own.feature_squares * target.width * layers.width;
  return drafter;
}

DrafterShape model_drafter(const ModelShape& shape, const std::string& name) {
  DrafterShape drafter;
  drafter.name = name;
  drafter.kind = DraftingKind::model;
  drafter.shape = shape;
  return drafter;
}

}  // namespace

const char* name_of(DraftingKind kind) {
  switch (kind) {
    case DraftingKind::head:
      return "head";
    case DraftingKind::parallel:
      return "parallel";
    case DraftingKind::model:
      return "model";
    case DraftingKind::ngram:
      return "ngram";
  }
  return "";
}

std::optional<DrafterShape> match_drafter(const std::string& method, const std::string& draft_model,
                                          const ModelShape& target) {
  const DrafterPreset* preset = drafter_folder().match(method);
  // The checkpoint may say what the method leaves open: "speculative decoding", yuhuili/EAGLE3-LLaMA3.1-Instruct-8B.
  const DrafterPreset* checkpoint = nullptr;
  const std::vector<std::string> words = name_words(draft_model);
  for (const char* head : {"P-EAGLE", "EAGLE-3", "EAGLE", "Medusa", "Hydra", "MTP", "DSpark", "DFlash"}) {
    const std::vector<std::string> name = name_words(head);
    if (!checkpoint && std::search(words.begin(), words.end(), name.begin(), name.end()) != words.end())
      checkpoint = drafter_folder().match(head);
  }
  if (preset && (preset->kind != DraftingKind::model || preset->target_share > 0.0)) {
    // Or contradict it: a head's method with a language model as drafter costs what the language model costs.
    const bool reads_weights = preset->kind != DraftingKind::ngram && preset->target_share == 0.0;
    const auto shape = reads_weights && !checkpoint ? match_model(draft_model) : std::nullopt;
    if (!shape || shape->name == target.name) return drafter_for(*preset, target);
    DrafterShape drafter = model_drafter(*shape, draft_model);
    drafter.default_nodes = preset->default_nodes;
    drafter.default_depth = preset->default_depth;
    return drafter;
  }
  if (checkpoint) return drafter_for(*checkpoint, target);
  const std::string model = draft_model.empty() && preset ? method : draft_model;
  auto shape = match_model(model);
  if (!shape) shape = guess_model(model);
  if (!shape) return std::nullopt;
  DrafterShape drafter = model_drafter(*shape, model);
  if (preset) {
    drafter.default_nodes = preset->default_nodes;
    drafter.default_depth = preset->default_depth;
  }
  return drafter;
}

std::vector<std::string> drafter_preset_names() {
  return drafter_folder().preset_names();
}

const DraftTraining& find_draft_training(const std::string& name, const std::string& where) {
  const DrafterPreset* preset = drafter_folder().match(name);
  if (preset == nullptr)
    throw usage_error(where, "the drafter is " + in_quotes(name) +
                                 "; expected a preset (nearest: " + near_names(name, drafter_folder().names) + ")");
  return preset->training;
}

std::string published_drafters() {
  std::string names;
  for (const DrafterPreset& preset : drafter_folder().presets)
    if (!preset.training.published.empty()) names.append(names.empty() ? "" : ", ").append(preset.name);
  return names;
}

DrafterShape find_drafter(const std::string& name, const ModelShape& target) {
  std::filesystem::path path = name;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
  if (path.extension() == ".toml") return model_drafter(find_model(name), name);
  if (path.extension() == ".json") {
    constexpr std::size_t kBytesMost = 64u << 20;
    const std::string text(InputFile(path.string(), kBytesMost).text());
    if (const auto head = read_head_config(text, path.string(), &target))
      return head_of_file(*head, target, printable_line(name));
    return model_drafter(find_model(path.string()), printable_line(name));
  }
  const DrafterPreset* preset = drafter_folder().match(name);
  if (preset && (preset->kind != DraftingKind::model || preset->target_share > 0.0))
    return drafter_for(*preset, target);
  if (const auto shape = match_model(name)) return model_drafter(*shape, shape->name);
  throw input_error("drafter " + in_quotes(name),
                    "unknown; expected a method (nearest: " + near_names(name, drafter_folder().names) +
                        "), a head's or a model's config.json or its folder, or a model's preset");
}

}  // namespace draftproof
