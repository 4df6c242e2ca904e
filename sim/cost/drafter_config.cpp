#include "sim/cost/drafter_config.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"
#include "sim/cost/config_keys.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

// The first word that a name holds decides.
constexpr std::array<std::pair<const char*, const char*>, 14> kHeadNames{{{"peagle", "P-EAGLE"},
                                                                          {"p-eagle", "P-EAGLE"},
                                                                          {"p_eagle", "P-EAGLE"},
                                                                          {"eagle3", "EAGLE-3"},
                                                                          {"eagle-3", "EAGLE-3"},
                                                                          {"eagle", "EAGLE"},
                                                                          {"dspark", "DSpark"},
                                                                          {"dflash", "DFlash"},
                                                                          {"medusa", "Medusa"},
                                                                          {"hydra", "Hydra"},
                                                                          {"mlpspeculator", "Hydra"},
                                                                          {"mlp_speculator", "Hydra"},
                                                                          {"mtp", "MTP"},
                                                                          {"nextn", "MTP"}}};

std::string method_in(const std::string& name) {
  for (const auto& [word, method] : kHeadNames)
    if (lower_case(name).find(word) != std::string::npos) return method;
  return "";
}

std::string method_of(const ConfigKeys& config, const ModelShape* target) {
  if (const std::string type = config.text("speculators_model_type"); !type.empty()) {
    const std::string method = method_in(type);
    if (method.empty())
      config.fail("speculators_model_type is " + in_quotes(type) +
                  "; expected eagle3, eagle, peagle, dflash, dspark, mtp "
                  "or mlp_speculator");
    return method;
  }
  if (config.find("vision_config") != nullptr) return "";  // NVIDIA's Eagle models see
  const std::vector<std::string> classes = config.texts(Names{"architectures"});
  for (const std::string& name : {classes.empty() ? std::string() : classes.front(), config.text("model_type")})
    if (const std::string method = method_in(name); !method.empty()) return method;
  if (const auto block = config.part("dflash_config"))
    return block->text("projector_type") == "dspark" || block->find("markov_rank") != nullptr ? "DSpark" : "DFlash";
  if (config.find("medusa_num_heads") != nullptr) return "Medusa";
  if (config.find("draft_vocab_size") != nullptr || config.find("eagle_config") != nullptr) return "EAGLE-3";
  const bool single = target != nullptr && config.of_layer(keys::kLayers, 0, 0.0) == 1.0;
  return single && config.number(keys::kWidth, 0.0) == target->width ? "EAGLE" : "";
}

// Heads, layers or a block, whose first token may be the newest one.
DraftCount count_of(const ConfigKeys& config, const std::string& method) {
  const auto said = [&](const ConfigKeys& of, const Names& names, bool repeats, double newest = 0.0) {
    for (const char* const name : names)
      if (const double count = name == nullptr ? 0.0 : of.number(name, 0.0); count > newest && count <= 1024.0)
        return DraftCount{static_cast<std::int32_t>(count - newest), std::string(name) + number(" is %.0f", count),
                          repeats};
    return DraftCount{};
  };
  if (method == "Medusa") return said(config, Names{"medusa_num_heads", "num_heads"}, false);
  if (method == "Hydra") return said(config, Names{"n_predict", "hydra_num_heads"}, false);
  if (method == "MTP") return said(config, keys::kDraftLayers, true);
  if (method != "DFlash" && method != "DSpark") return {};
  const auto block = config.part("dflash_config");
  return said(block && config.find("block_size") == nullptr ? *block : config, Names{"block_size"}, false,
              method == "DFlash" ? 1.0 : 0.0);
}

// Drafts of a step by speculators' first proposal method, else as many as there can be.
int drafts_of(const ConfigKeys& config, const DraftCount& count) {
  if (const auto said = config.part("speculators_config"))
    if (const Json* const methods = said->find("proposal_methods"); methods != nullptr && methods->is_array())
      for (const Json& proposal : *methods)
        if (proposal.is_object())
          if (const double drafts = ConfigKeys(proposal, config.where()).number("speculative_tokens", 0.0);
              drafts > 0.0)
            return static_cast<int>(std::min(drafts, 1024.0));
  return count.repeats ? 0 : count.drafts;
}

}  // namespace

std::string head_method_in(const std::string& text, const std::string& path) {
  const Json json = parse_json<Json>(text, printable_line(path));
  return json.is_object() ? method_of(ConfigKeys(json, printable_line(path)), nullptr) : "";
}

std::optional<HeadConfigFile> read_head_config(const std::string& text, const std::string& path,
                                               const ModelShape* target) {
  const std::string where = printable_line(path);
  const Json json = parse_json<Json>(text, where);
  if (json.is_discarded()) throw input_error(where, "it is not JSON; expected the config.json of a drafter");
  const ConfigKeys config(json, where);
  HeadConfigFile head;
  head.method = method_of(config, target);
  if (head.method.empty()) return std::nullopt;
  head.count = count_of(config, head.method);
  head.drafts = drafts_of(config, head.count);
  const auto block = config.part("dflash_config");
  head.markov_rank = config.number("markov_rank", block ? block->number("markov_rank", 0.0) : 0.0);
  head.draft_vocab = config.number(Names{"draft_vocab_size", "truncated_vocab_size"}, 0.0);
  if (head.method == "Medusa") head.output_heads = head.count.drafts;
  for (const ConfigKeys* const of : {&config, block ? &*block : nullptr}) {
    if (of == nullptr) continue;
    for (const char* const key : {"eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "target_layer_ids"})
      if (const auto ids = of->numbers(key); !ids.empty()) head.features = static_cast<double>(ids.size());
  }
  const bool wraps = json.contains("transformer_layer_config");
  Json layers = wraps ? json.at("transformer_layer_config") : json;
  if (!layers.is_object()) config.fail("transformer_layer_config is no object; expected the figures of a layer");
  const double width = ConfigKeys(layers, where).number(keys::kWidth, config.number("emb_dim", 0.0));
  head.target_width = config.number("target_hidden_size", width);
  if (target != nullptr && head.target_width > 0.0 && head.target_width != target->width)
    config.fail("it reads rows of " + number("%g", head.target_width) + " numbers, and " +
                printable_line(target->name) + " has rows of " + number("%g", target->width) +
                "; expected a head of this target");
  // MTP describes the target; Medusa and MLPs have no layers of their own.
  if (head.method == "MTP" || head.method == "Medusa" || head.method == "Hydra") return head;
  for (const char* const dtype : {"torch_dtype", "dtype", "quantization_config"})
    if (json.contains(dtype)) layers[dtype] = json.at(dtype);
  head.layers = model_from_config_json(layers.dump(), path);
  return head;
}

}  // namespace draftproof
