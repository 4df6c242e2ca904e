#include "sim/serving/scenario_server.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace draftproof {
namespace {

std::shared_ptr<const LinearCost> read_linear(const TomlValue& table) {
  table.allow_only({"target_ms", "row_us", "kv_token_ns", "draft_pass_ms", "draft_row_us", "draft_kv_token_ns",
                    "engine_ms", "speculation_ms"});
  constexpr double kMost = 1e6;
  auto cost = std::make_shared<LinearCost>();
  cost->fixed_ns = 1e6 * table.at("target_ms").number(1e-6, kMost);
  cost->row_ns = 1e3 * table.number_or("row_us", 0.0, 0.0, kMost);
  cost->kv_token_ns = table.number_or("kv_token_ns", 0.0, 0.0, kMost);
  cost->draft_pass_ns = 1e6 * table.number_or("draft_pass_ms", 0.0, 0.0, kMost);
  cost->draft_row_ns = 1e3 * table.number_or("draft_row_us", 0.0, 0.0, kMost);
  cost->draft_kv_token_ns = table.number_or("draft_kv_token_ns", 0.0, 0.0, kMost);
  cost->engine_ns = 1e6 * table.number_or("engine_ms", 0.0, 0.0, kMost);
  cost->speculation_ns = 1e6 * table.number_or("speculation_ms", 0.0, 0.0, kMost);
  return cost;
}

}  // namespace

ScenarioServer::ScenarioServer(const TomlValue& file) {
  const TomlValue* linear = file.find("linear");
  const TomlValue* server = file.find("server");
  if ((linear == nullptr) == (server == nullptr))
    throw input_error(file.where(), std::string("it has ") +
                                        (linear == nullptr ? "neither [server] nor" : "both [server] and") +
                                        " [linear]; expected one of them");
  if (linear != nullptr) {
    linear_ = read_linear(*linear);
  } else {
    read_presets(*server);
  }
}

void ScenarioServer::read_presets(const TomlValue& table) {
  table.allow_only(
      {"model", "gpu", "tp", "engine", "precision", "draft_precision", "draft_tp", "draft_gpu", "memory_share"});
  const auto preset = [&](std::string_view key, auto find) {
    const TomlValue& value = table.at(key);
    try {
      return find(value.text());
    } catch (const Error& error) {
      throw input_error(value.where(), error.what());
    }
  };
  setup_.model = preset("model", find_model);
  setup_.gpu = preset("gpu", find_gpu);
  setup_.engine = table.find("engine") == nullptr ? find_engine("vLLM") : preset("engine", find_engine);
  const auto precision = [](const std::string& text) { return stated_precision(text, ""); };
  setup_.precision = setup_.model.precision;
  const bool is_plain = setup_.precision.weight_bytes == 2.0 && setup_.precision.bytes_of_expert() == 2.0;
  precision_text_ = table.text_or("precision", is_plain ? "bf16" : name_of(setup_.precision));
  if (table.find("precision") != nullptr) setup_.precision = preset("precision", precision);
  setup_.draft_precision = setup_.precision;
  if (table.find("draft_precision") != nullptr) setup_.draft_precision = preset("draft_precision", precision);
  setup_.tp = static_cast<double>(table.integer_or("tp", static_cast<std::int64_t>(least_tp(setup_)), 1, 1024));
  if (table.find("draft_gpu") != nullptr) setup_.draft_gpu = preset("draft_gpu", find_gpu);
  if (const TomlValue* draft_tp = table.find("draft_tp"))
    setup_.draft_tp =
        static_cast<double>(draft_tp->integer(1, setup_.draft_gpu ? 1024 : static_cast<std::int64_t>(setup_.tp)));
  // vLLM's share of the memory for weights and cache.
  const double memory_bytes = table.number_or("memory_share", 0.9, 0.01, 1.0) * setup_.gpu.memory_bytes * setup_.tp;
  // A block's share of what a request caches; of layers with a window that depends on its length.
  constexpr double kContext = 4096.0;
  const double block_bytes = Roofline(setup_).kv_bytes(kContext) / kContext * static_cast<double>(kKvBlockSlots);
  const double blocks = (memory_bytes - setup_.weight_bytes_of_all()) / block_bytes;
  if (blocks < 1.0)
    throw input_error(table.where(), "the weights of " + setup_.model.name + " leave no memory for a KV cache on " +
                                         description() + "; expected more GPUs or fewer bits");
  constexpr double kMost = 1 << 24;
  kv_blocks_ = static_cast<std::int32_t>(std::min(blocks, kMost));
}

std::string ScenarioServer::description() const {
  if (linear_) return "linear cost model";
  const auto gpus = static_cast<std::int64_t>(setup_.tp);
  return setup_.model.name + " (" + precision_text_ + ") on " + (gpus > 1 ? std::to_string(gpus) + " x " : "") +
         setup_.gpu.name + ", " + setup_.engine.name;
}

std::shared_ptr<const StepCost> ScenarioServer::cost_without_drafter() const {
  if (linear_) return linear_;
  return std::make_shared<Roofline>(setup_);
}

void ScenarioServer::set_drafter(const TomlValue* drafter, const std::string& policy_where,
                                 ScenarioPolicy& policy) const {
  if (linear_) {
    if (drafter != nullptr)
      throw input_error(drafter->where(), "the constants of [linear] are those of a drafter; expected no other");
    policy.cost = linear_;
    return;
  }
  if (drafter == nullptr)
    throw input_error(policy_where, "it speculates without a drafter; expected one here or at the top of the file");
  RooflineSetup setup = setup_;
  try {
    setup.drafter = find_drafter(drafter->text(), setup.model);
  } catch (const Error& error) {
    throw input_error(drafter->where(), error.what());
  }
  policy.drafter = setup.drafter->name;
  policy.drafting.one_pass = setup.drafter->one_pass();
  policy.drafting.looked_up = setup.drafter->kind == DraftingKind::ngram;
  policy.drafting.confidences = setup.drafter->training.confidences;
  policy.cost = std::make_shared<Roofline>(setup);
}

}  // namespace draftproof
