#include "sim/cost/roofline.hpp"

#include <algorithm>
#include <cmath>

namespace draftproof {
namespace {

constexpr double kOverlap = 1.5;      // p of memory and compute
constexpr double kHostOverlap = 4.0;  // of the host's launches and the GPU
constexpr double kExpertLayerLaunches =
    1.5;  // a layer with experts launches more kernels: routing, permutation, two GEMMs
// A level of a Markov head gathers a row, multiplies and draws: a quarter of a layer's kernels (assumed).
constexpr double kLevelLaunches = 0.25;
constexpr double kHostLinkBandwidth = 25e9;  // bytes a second, PCIe 4.0 x16 in practice
// Matrix products reach flop_efficiency at so many rows, less with fewer, more with more: rows^0.2 fits the
// verification passes of 1 to 512 rows of an 8B model on an H100 (github:SpecDecode-Bench/simulator@2fdccbd) within 2
// %, one value for all rows within 12 %. The growth ends where products of some thousand rows do.
constexpr double kEfficiencyRows = 256.0;
constexpr double kEfficiencyGrowth = 0.2;
constexpr double kEfficiencyMost = 0.7;
// Attention of several rows a stream over a cache of 8 bits on a GPU without such units, for every layer beside all
// else: 8.7 to 10.7 ms a step of 32 layers at every batch (github:manojarulmurugan/SpecDecoding-Study-vLLM-SGLang).
constexpr double kConvertedCacheLayerMs = 0.3;
constexpr double kNanoseconds = 1e9;
constexpr double kNanosecondsOfMs = 1e6;
constexpr double kActivationBytes = 2.0;

double norm(double a, double b, double p) {
  if (a <= 0.0 || b <= 0.0) return std::max(a, b);
  const double high = std::max(a, b);
  const double ratio = std::min(a, b) / high;
  return high * std::pow(1.0 + std::pow(ratio, p), 1.0 / p);
}

double efficiency_at(double rows, double usual) {
  return std::min(std::max(kEfficiencyMost, usual),
                  usual * std::pow(std::max(1.0, rows) / kEfficiencyRows, kEfficiencyGrowth));
}

}  // namespace

struct Roofline::Pass {
  const ModelShape& shape;
  const Precision& precision;
  double rows = 0.0;
  double streams = 0.0;
  double kv_tokens = 0.0;
  double attended = 0.0;
  double logit_rows = 0.0;
  bool eager = false;
  double layer_launch_ms = 0.0;
  double layer_extra_ms = 0.0;
  double host_bytes = 0.0;  // over the host's link
};

// Bytes and operations of a pass of so many rows.
struct Roofline::Work {
  double dense_bytes = 0.0;  // weights but for experts, and the cache
  double expert_bytes = 0.0;
  double operations = 0.0;
};

Roofline::Roofline(const RooflineSetup& setup) : setup_(setup) {}

double Roofline::weight_bytes() const {
  const ModelShape& model = setup_.model;
  return setup_.precision.head_bytes * model.head_parameters +
         setup_.precision.weight_bytes *
             (model.total_parameters() - model.embedding_parameters - model.head_parameters);
}

double Roofline::kv_bytes_per_token() const {
  return setup_.precision.kv_bytes * setup_.model.kv_values_per_token();
}

double Roofline::experts_touched(double rows, double streams) const {
  const ModelShape& model = setup_.model;
  if (!model.is_moe() || rows <= 0.0) return 0.0;
  const double each = std::max(1.0, rows / std::max(1.0, streams));
  const double independent =
      std::max(1.0, streams) * std::pow(each, setup_.engine.value(EngineConstant::expert_exponent));
  return model.experts * (1.0 - std::pow(1.0 - model.experts_per_token / model.experts, independent));
}

double Roofline::gpus_of_a_layer() const {
  return setup_.engine.eager ? 1.0 : setup_.tp;
}

Roofline::Work Roofline::work_of(const Pass& pass, double rows) const {
  const ModelShape& shape = pass.shape;
  const double head = pass.logit_rows > 0.0 ? shape.head_parameters : 0.0;
  Work work;
  work.dense_bytes = shape.body_parameters * pass.precision.weight_bytes + head * pass.precision.head_bytes +
                     pass.kv_tokens * shape.kv_values_per_token() * pass.precision.kv_bytes;
  if (shape.is_moe())
    work.expert_bytes = experts_touched(pass.rows, pass.streams) * shape.expert_layers * shape.expert_parameters *
                        pass.precision.weight_bytes;
  const double routed = shape.experts_per_token * shape.expert_layers * shape.expert_parameters;
  work.operations = 2.0 * rows * (shape.body_parameters + routed) + 2.0 * pass.logit_rows * head +
                    4.0 * pass.attended * shape.kv_layers * shape.heads * shape.head_dim;
  return work;
}

double Roofline::pass_ns(const Pass& pass) const {
  const EngineProfile& engine = setup_.engine;
  const ModelShape& shape = pass.shape;
  const double share = gpus_of_a_layer();
  double rows = pass.rows;
  const bool eager = pass.eager;
  const double layer_launch_ms = pass.layer_launch_ms;
  bool past_graphs = false;
  if (!eager && !engine.graph_rows.empty()) {
    const double captured_by = engine.captured_by(rows, pass.streams);
    const auto size = std::lower_bound(engine.graph_rows.begin(), engine.graph_rows.end(), captured_by);
    if (size == engine.graph_rows.end()) {
      past_graphs = true;
    } else {
      rows *= *size / std::max(1.0, captured_by);
    }
  }

  const Work work = work_of(pass, rows);
  double memory_s =
      work.dense_bytes / (engine.value(EngineConstant::bandwidth_efficiency) * setup_.gpu.bandwidth * share);
  double layers = shape.layers;
  if (shape.is_moe()) {
    memory_s +=
        work.expert_bytes / (engine.value(EngineConstant::expert_bandwidth_efficiency) * setup_.gpu.bandwidth * share);
    layers += (kExpertLayerLaunches - 1.0) * shape.expert_layers;
  }
  const double compute_s = work.operations / (efficiency_at(rows, engine.value(EngineConstant::flop_efficiency)) *
                                              pass.precision.flops(setup_.gpu) * share);

  double seconds = norm(memory_s, compute_s, kOverlap);
  if (pass.host_bytes > 0.0) seconds = norm(seconds, pass.host_bytes / kHostLinkBandwidth, kHostOverlap);
  double ns = seconds * kNanoseconds;
  const double launches_ns = layers * layer_launch_ms * kNanosecondsOfMs;
  if (eager)
    ns = norm(ns, launches_ns, kHostOverlap);
  else
    ns += launches_ns;
  // Past the largest graph the host launches, and what is between kernels stays.
  if (past_graphs) ns = norm(ns, layers * engine.eager_layer_launch_ms * kNanosecondsOfMs, kHostOverlap);
  ns += shape.layers * pass.layer_extra_ms * kNanosecondsOfMs;
  if (share > 1.0) {
    // A ring sends each value twice, but for the part that is already there.
    const double bytes = 2.0 * (share - 1.0) / share * rows * shape.width * kActivationBytes;
    ns += 2.0 * shape.layers *
          (engine.value(EngineConstant::collective_ms) * kNanosecondsOfMs +
           bytes / setup_.gpu.link_bandwidth * kNanoseconds);
  }
  return ns;
}

Roofline::Pass Roofline::target_pass(const PassLoad& load) const {
  const EngineProfile& engine = setup_.engine;
  Pass pass{setup_.model, setup_.precision};
  pass.rows = static_cast<double>(load.rows);
  pass.streams = static_cast<double>(load.streams);
  pass.kv_tokens = static_cast<double>(load.kv_tokens);
  pass.attended = static_cast<double>(load.attended);
  pass.logit_rows = static_cast<double>(load.logit_rows);
  pass.eager = engine.eager;
  pass.layer_launch_ms = engine.value(EngineConstant::layer_launch_ms);
  if (!engine.eager && load.rows > load.streams && setup_.precision.kv_bytes < 2.0 && !setup_.gpu.has_fp8)
    pass.layer_extra_ms = kConvertedCacheLayerMs;
  if (setup_.offloaded) pass.host_bytes = weight_bytes();
  return pass;
}

double Roofline::target_ns(const PassLoad& load) const {
  return pass_ns(target_pass(load));
}

PassFloor Roofline::target_floor(const PassLoad& load) const {
  const Pass pass = target_pass(load);
  const Work work = work_of(pass, pass.rows);
  PassFloor floor;
  floor.bytes = work.dense_bytes + work.expert_bytes;
  floor.operations = work.operations;
  floor.memory_ns = floor.bytes / (setup_.gpu.bandwidth * gpus_of_a_layer()) * kNanoseconds;
  floor.compute_ns = floor.operations / (setup_.precision.flops(setup_.gpu) * gpus_of_a_layer()) * kNanoseconds;
  return floor;
}

double Roofline::ridge_intensity() const {
  return setup_.precision.flops(setup_.gpu) / setup_.gpu.bandwidth;
}

double Roofline::draft_ns(const DraftLoad& load) const {
  if (load.passes <= 0 || !setup_.drafter || setup_.drafter->kind == DraftingKind::ngram) return 0.0;
  const EngineProfile& engine = setup_.engine;
  Pass pass{setup_.drafter->shape, setup_.draft_precision};
  pass.rows = static_cast<double>(load.rows) / load.passes;
  pass.streams = static_cast<double>(load.requests);
  pass.kv_tokens = static_cast<double>(load.kv_tokens);
  pass.logit_rows = pass.rows;
  pass.attended = pass.kv_tokens;
  pass.eager = engine.eager_drafts;
  pass.layer_launch_ms = engine.value(EngineConstant::draft_layer_launch_ms);
  const double pass_ns_each =
      pass_ns(pass) + kNanosecondsOfMs * (engine.value(EngineConstant::pass_floor_ms) +
                                          (engine.captures_drafts ? 0.0 : engine.eager_draft_pass_ms) +
                                          (load.tree ? engine.value(EngineConstant::tree_pass_ms) : 0.0));
  const double first_ns =
      setup_.drafter->first_pass_parameters * setup_.draft_precision.weight_bytes /
      (engine.value(EngineConstant::bandwidth_efficiency) * setup_.gpu.bandwidth * (engine.eager ? 1.0 : setup_.tp)) *
      kNanoseconds;
  return setup_.draft_cost_factor * (load.passes * pass_ns_each + first_ns + levels_ns(load));
}

// The sequential part of a draft that one pass proposes.
double Roofline::levels_ns(const DraftLoad& load) const {
  const double parameters = setup_.drafter->level_parameters;
  if (parameters <= 0.0) return 0.0;
  const EngineProfile& engine = setup_.engine;
  const Precision& precision = setup_.draft_precision;
  const double share = gpus_of_a_layer();
  const double memory_s = parameters * precision.weight_bytes /
                          (engine.value(EngineConstant::bandwidth_efficiency) * setup_.gpu.bandwidth * share);
  const double compute_s = 2.0 * parameters * static_cast<double>(load.requests) /
                           (engine.value(EngineConstant::flop_efficiency) * precision.flops(setup_.gpu) * share);
  return load.depth * (norm(memory_s, compute_s, kOverlap) * kNanoseconds +
                       kLevelLaunches * engine.value(EngineConstant::draft_layer_launch_ms) * kNanosecondsOfMs);
}

double Roofline::overhead_ns(std::int64_t, const DraftLoad& load) const {
  const EngineProfile& engine = setup_.engine;
  const bool drafts = load.passes > 0 && load.requests > 0;
  return kNanosecondsOfMs *
         (engine.value(EngineConstant::step_floor_ms) + (drafts ? engine.value(EngineConstant::speculation_ms) : 0.0));
}

double least_tp(const ModelShape& model, const Gpu& gpu, const Precision& precision) {
  constexpr double kRest = 2e9;  // bytes of a device: activations, graphs, the first of the cache
  const double bytes = 1.03 * model.total_parameters() * precision.weight_bytes + kRest;
  const auto fits = [&](double gpus) { return bytes <= 0.95 * gpus * gpu.memory_bytes; };
  for (const double gpus : {1.0, 2.0, 4.0, 8.0})
    if (fits(gpus)) return gpus;
  double gpus = 16.0;
  while (!fits(gpus) && gpus < 4096.0) gpus += 8.0;
  return gpus;
}

Precision precision_of(const std::string& text, const ModelShape& model) {
  Precision precision = precision_of(text);
  if (precision.weight_bytes != 2.0 || model.native_bits >= 16.0) return precision;
  const Precision native = precision_of(model.native_bits <= 4.0 ? "int4" : "fp8");  // of 4 bits, unpacked to multiply
  precision.weight_bytes = native.weight_bytes;
  precision.compute_bits = native.compute_bits;
  return precision;
}

}  // namespace draftproof
