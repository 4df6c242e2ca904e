#include "sim/cost/roofline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

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
constexpr double kStateBytes = 2.0;       // of a number of a recurrent state (assumed: engines keep some as float32)
constexpr double kDispatchedBytes = 1.0;  // of a value sent to experts, as FP8; back it is kActivationBytes
constexpr double kGpusOfAMachine = 8.0;

double norm(double a, double b, double p) {
  if (a <= 0.0 || b <= 0.0) return std::max(a, b);
  const double high = std::max(a, b);
  const double ratio = std::min(a, b) / high;
  return high * std::pow(1.0 + std::pow(ratio, p), 1.0 / p);
}

struct ExchangeBandwidth {
  double gpus;
  double dispatch, combine;  // bytes a second
};
constexpr std::array kExchangeBandwidths{ExchangeBandwidth{8, 98e9, 127e9},  ExchangeBandwidth{16, 63e9, 74e9},
                                         ExchangeBandwidth{32, 48e9, 53e9},  ExchangeBandwidth{64, 43e9, 46e9},
                                         ExchangeBandwidth{128, 39e9, 39e9}, ExchangeBandwidth{256, 39e9, 40e9}};

double efficiency_at(double rows, double usual) {
  return std::min(std::max(kEfficiencyMost, usual),
                  usual * std::pow(std::max(1.0, rows) / kEfficiencyRows, kEfficiencyGrowth));
}

}  // namespace

struct Roofline::Pass {
  const ModelShape& shape;
  const Precision& precision;
  const Gpu& gpu;
  double share = 1.0;  // GPUs of a layer
  double rows = 0.0;
  double streams = 0.0;
  double kv_tokens = 0.0;
  double attended = 0.0;
  double logit_rows = 0.0;
  double expert_groups = 1.0;  // whose rows the same experts compute
  double expert_share = 1.0;   // so many times as many GPUs as the layer's have them
  bool eager = false;
  double layer_launch_ms = 0.0;
  double layer_extra_ms = 0.0;
  double host_bytes = 0.0;  // over the host's link
  double stages = 1.0;
};

// Bytes and operations of a pass of so many rows.
struct Roofline::Work {
  double dense_bytes = 0.0;  // weights but for experts, and the cache
  double expert_bytes = 0.0;
  double dense_operations = 0.0;
  double expert_operations = 0.0;

  double operations() const { return dense_operations + expert_operations; }
  // At the units' peak rates, on one GPU.
  double compute_s(const Precision& precision, const Gpu& gpu) const {
    return dense_operations / precision.flops(gpu) + expert_operations / precision.expert_flops(gpu);
  }
};

Roofline::Roofline(const RooflineSetup& setup) : setup_(setup) {}

double RooflineSetup::weight_bytes_of_all() const {
  const double experts = model.experts * model.expert_layers * model.expert_parameters;
  const double copies = expert_parallel ? 1.0 : dp;
  return dp * (precision.weight_bytes * (model.body_parameters - model.again_parameters) +
               precision.head_bytes * (model.head_parameters + model.embedding_parameters)) +
         copies * precision.bytes_of_expert() * experts;
}

double Roofline::groups_of(double streams) const {
  return std::clamp(setup_.dp * setup_.pp, 1.0, std::max(1.0, streams));
}

// Time for a layer to send the rows of a group, spread over its GPUs, to the experts and back.
double Roofline::expert_exchange_ns(double rows, double share) const {
  const double gpus = setup_.expert_gpus();
  ExchangeBandwidth bandwidth{gpus, setup_.gpu.link_bandwidth, setup_.gpu.link_bandwidth};
  if (gpus > kGpusOfAMachine) {
    const auto at = std::ranges::find_if(kExchangeBandwidths, [&](const auto& known) { return known.gpus >= gpus; });
    bandwidth = at == kExchangeBandwidths.end() ? kExchangeBandwidths.back() : *at;
  }
  const double values = rows / share * setup_.model.experts_per_token * setup_.model.width;
  return 2.0 * setup_.engine.value(EngineConstant::collective_ms) * kNanosecondsOfMs +
         values * (kDispatchedBytes / bandwidth.dispatch + kActivationBytes / bandwidth.combine) * kNanoseconds;
}

double Roofline::weight_bytes() const {
  const ModelShape& model = setup_.model;
  return setup_.precision.head_bytes * model.head_parameters + setup_.precision.weight_bytes * model.body_parameters +
         setup_.precision.bytes_of_expert() * model.experts * model.expert_layers * model.expert_parameters;
}

double Roofline::state_bytes() const {
  return kStateBytes * setup_.model.state_values;
}

double Roofline::kv_bytes(double context) const {
  return setup_.precision.kv_bytes * setup_.model.cached_values(context, gpus_of_a_layer());
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

double Roofline::gpus_of_a_draft_layer() const {
  return setup_.engine.eager ? 1.0 : setup_.draft_gpus();
}

// Cached numbers that a pass reads, on all GPUs of a layer: a request's, of the mean context.
double Roofline::read_values(const Pass& pass) const {
  if (pass.streams <= 0.0 || pass.kv_tokens <= 0.0) return 0.0;
  return pass.streams * pass.shape.read_values(pass.kv_tokens / pass.streams, pass.share);
}

Roofline::Work Roofline::work_of(const Pass& pass, double rows) const {
  const ModelShape& shape = pass.shape;
  const double head = pass.logit_rows > 0.0 ? shape.head_parameters : 0.0;
  Work work;
  work.dense_bytes = shape.body_parameters * pass.precision.weight_bytes + head * pass.precision.head_bytes +
                     read_values(pass) * pass.precision.kv_bytes;
  // A recurrent state is read once, and written behind every row that may be the last one.
  if (shape.state_values > 0.0)
    work.dense_bytes += (pass.streams + std::max(pass.streams, pass.logit_rows)) * shape.state_values * kStateBytes;
  if (shape.is_moe())
    work.expert_bytes = experts_touched(pass.rows * pass.expert_groups, pass.streams * pass.expert_groups) *
                        shape.expert_layers * shape.expert_parameters * pass.precision.bytes_of_expert();
  const double routed = shape.experts_per_token * shape.expert_layers * shape.expert_parameters;
  // The mean context, which a window cuts, decides the rows' attention.
  const double products = pass.rows > 0.0 ? pass.rows * shape.attention_products(pass.attended / pass.rows) : 0.0;
  work.dense_operations = 2.0 * rows * shape.body_parameters + 2.0 * pass.logit_rows * head + 2.0 * products;
  work.expert_operations = 2.0 * rows * routed;
  return work;
}

double Roofline::pass_ns(const Pass& pass) const {
  const EngineProfile& engine = setup_.engine;
  const ModelShape& shape = pass.shape;
  const double share = pass.share;
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
      work.dense_bytes / (engine.value(EngineConstant::bandwidth_efficiency) * pass.gpu.bandwidth * share);
  double layers = shape.layers;
  if (shape.is_moe()) {
    memory_s += work.expert_bytes / (engine.value(EngineConstant::expert_bandwidth_efficiency) * pass.gpu.bandwidth *
                                     share * pass.expert_share);
    layers += (kExpertLayerLaunches - 1.0) * shape.expert_layers;
  }
  const double compute_s = work.compute_s(pass.precision, pass.gpu) /
                           (efficiency_at(rows, engine.value(EngineConstant::flop_efficiency)) * share);

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
    const double reduced = 2.0 * shape.layers - (pass.expert_share > 1.0 ? shape.expert_layers : 0.0);
    ns += reduced * (engine.value(EngineConstant::collective_ms) * kNanosecondsOfMs +
                     bytes / pass.gpu.link_bandwidth * kNanoseconds);
  }
  if (pass.expert_share > 1.0) ns += shape.expert_layers * expert_exchange_ns(rows, share);
  ns += (pass.stages - 1.0) * (engine.value(EngineConstant::collective_ms) * kNanosecondsOfMs +
                               rows * shape.width * kActivationBytes / pass.gpu.link_bandwidth * kNanoseconds);
  return ns;
}

Roofline::Pass Roofline::target_pass(const PassLoad& load) const {
  const EngineProfile& engine = setup_.engine;
  Pass pass{setup_.model, setup_.precision, setup_.gpu, gpus_of_a_layer()};
  const double groups = groups_of(static_cast<double>(load.streams));
  pass.rows = static_cast<double>(load.rows) / groups;
  pass.streams = static_cast<double>(load.streams) / groups;
  pass.kv_tokens = static_cast<double>(load.kv_tokens) / groups;
  pass.attended = static_cast<double>(load.attended) / groups;
  pass.logit_rows = static_cast<double>(load.logit_rows) / groups;
  pass.stages = setup_.pp;
  if (setup_.expert_parallel) {
    pass.expert_groups = std::min(setup_.dp, std::max(1.0, static_cast<double>(load.streams)));
    pass.expert_share = setup_.dp;
  }
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
  floor.bytes = work.dense_bytes + work.expert_bytes / pass.expert_share;
  floor.operations = work.operations();
  floor.memory_ns = floor.bytes / (setup_.gpu.bandwidth * gpus_of_a_layer()) * kNanoseconds;
  floor.compute_ns = work.compute_s(setup_.precision, setup_.gpu) / gpus_of_a_layer() * kNanoseconds;
  return floor;
}

double Roofline::ridge_intensity() const {
  return setup_.precision.flops(setup_.gpu) / setup_.gpu.bandwidth;
}

double Roofline::draft_ns(const DraftLoad& load) const {
  if (load.passes <= 0 || !setup_.drafter || setup_.drafter->kind == DraftingKind::ngram) return 0.0;
  const EngineProfile& engine = setup_.engine;
  Pass pass{setup_.drafter->shape, setup_.draft_precision, draft_gpu(), gpus_of_a_draft_layer()};
  const double groups = groups_of(static_cast<double>(load.requests));
  pass.rows = static_cast<double>(load.rows) / load.passes / groups;
  pass.streams = static_cast<double>(load.requests) / groups;
  pass.kv_tokens = static_cast<double>(load.kv_tokens) / groups;
  pass.logit_rows = pass.rows;
  pass.attended = pass.kv_tokens;
  pass.eager = engine.eager_drafts;
  pass.layer_launch_ms = engine.value(EngineConstant::draft_layer_launch_ms);
  const double pass_ns_each =
      pass_ns(pass) + kNanosecondsOfMs * (engine.value(EngineConstant::pass_floor_ms) +
                                          (engine.captures_drafts ? 0.0 : engine.eager_draft_pass_ms) +
                                          (load.tree ? engine.value(EngineConstant::tree_pass_ms) : 0.0));
  const double first_ns = setup_.drafter->first_pass_parameters * setup_.draft_precision.weight_bytes /
                          (engine.value(EngineConstant::bandwidth_efficiency) * pass.gpu.bandwidth * pass.share) *
                          kNanoseconds;
  // The groups of a pipeline draft one after the other where its last stage is.
  const double in_turn = std::clamp(groups / setup_.dp, 1.0, setup_.pp);
  return setup_.draft_cost_factor * in_turn *
         (load.passes * pass_ns_each + first_ns + levels_ns(load.depth, pass.streams) + draft_transfer_ns(load));
}

double Roofline::draft_transfer_ns(const DraftLoad& load) const {
  if (load.passes <= 0 || !setup_.drafter || setup_.drafter->kind == DraftingKind::ngram) return 0.0;
  const double message_ns = setup_.engine.value(EngineConstant::collective_ms) * kNanosecondsOfMs;
  if (!setup_.draft_gpu) return gpus_of_a_draft_layer() < gpus_of_a_layer() ? message_ns : 0.0;
  const double rows = static_cast<double>(load.requests) * (load.depth + 1);
  const double values = setup_.drafter->kind == DraftingKind::model ? 0.0 : rows * setup_.model.width;
  const double bandwidth = std::min(setup_.gpu.link_bandwidth, setup_.draft_gpu->link_bandwidth);
  return 2.0 * message_ns + values * kActivationBytes / bandwidth * kNanoseconds;
}

// The sequential part of a draft that one pass proposes.
double Roofline::levels_ns(double depth, double streams) const {
  const double parameters = setup_.drafter->level_parameters;
  if (parameters <= 0.0) return 0.0;
  const EngineProfile& engine = setup_.engine;
  const Precision& precision = setup_.draft_precision;
  const double share = gpus_of_a_draft_layer();
  const double memory_s = parameters * precision.weight_bytes /
                          (engine.value(EngineConstant::bandwidth_efficiency) * draft_gpu().bandwidth * share);
  const double compute_s = 2.0 * parameters * streams /
                           (engine.value(EngineConstant::flop_efficiency) * precision.flops(draft_gpu()) * share);
  return depth * (norm(memory_s, compute_s, kOverlap) * kNanoseconds +
                  kLevelLaunches * engine.value(EngineConstant::draft_layer_launch_ms) * kNanosecondsOfMs);
}

double Roofline::overhead_ns(std::int64_t, const DraftLoad& load) const {
  const EngineProfile& engine = setup_.engine;
  const bool drafts = load.passes > 0 && load.requests > 0;
  return kNanosecondsOfMs *
         (engine.value(EngineConstant::step_floor_ms) + (drafts ? engine.value(EngineConstant::speculation_ms) : 0.0));
}

double least_tp(const RooflineSetup& setup) {
  constexpr double kRest = 2e9;  // bytes of a device: activations, graphs, the first of the cache
  const double bytes = 1.03 * setup.weight_bytes_of_all() / (setup.dp * setup.pp) + kRest;  // of a stage of a group
  const auto fits = [&](double gpus) { return bytes <= 0.95 * gpus * setup.gpu.memory_bytes; };
  for (const double gpus : {1.0, 2.0, 4.0, 8.0})
    if (fits(gpus)) return gpus;
  double gpus = 16.0;
  while (!fits(gpus) && gpus < 4096.0) gpus += 8.0;
  return gpus;
}

double requests_held(const RooflineSetup& setup, double context, double streams) {
  constexpr double kShareForKv = 0.9;
  const Roofline cost(setup);
  const double free = kShareForKv * setup.gpu.memory_bytes * setup.gpus() - setup.weight_bytes_of_all();
  const double of_request = streams * (cost.kv_bytes(context) + cost.state_bytes());
  return of_request > 0.0 ? std::max(0.0, std::floor(free / of_request)) : std::numeric_limits<double>::infinity();
}

Precision precision_of(const std::string& text, const ModelShape& model) {
  const Precision said = precision_of(text);
  if (said.weight_bytes != 2.0) return said;
  Precision own = model.precision;
  own.kv_bytes = std::min(own.kv_bytes, said.kv_bytes);
  return own;
}

}  // namespace draftproof
