// The time of a pass from what it must read and compute, and what an engine adds.
//
//   memory    (weights once + KV of every sequence) / (efficiency x bandwidth x tp) + experts touched, likewise; of a
//             latent cache, or of fewer KV heads than tp, every GPU reads its copy
//   compute   2 x parameters x rows + attention over the context, / (efficiency x rate x tp)
//   pass      (memory^p + compute^p)^(1/p), p = 1.5: they overlap, but not fully
//             + layers x launch + two all-reduces a layer where tp > 1
//   eager     (pass^4 + (layers x launch)^4)^(1/4) instead: the host launches while the GPU computes
//   experts   E (1 - (1 - k/E)^m) of each layer are touched by m = streams x (rows of a stream)^exponent: rows of one
//             sequence choose alike
//
// Where captured graphs are used, rows are padded to the next size; past the largest size a pass runs eagerly (the
// cliff). Verification of several rows over a cache of 8 bits falls back to eager mode on GPUs without FP8 tensor
// cores. More GPUs of an eager engine hold the layers one after the other and add no bandwidth.
//
// Data parallelism (dp): groups of tp GPUs that share the requests evenly. Pipeline parallelism (pp): stages of tp GPUs
// with a share of the layers each; the requests are as many groups, which follow one another through the stages, so a
// step of all takes what one group takes through all layers, and each group's draft passes at the last stage, one after
// the other, on top. Expert parallelism: the experts lie over the GPUs of all dp groups, each of which reads its share
// of those that the rows of all groups touch (evenly: hot experts are not modelled), and a layer with experts sends its
// rows there and back at the bandwidths of DeepEP's low-latency kernels (github:deepseek-ai/DeepEP@0297fc8,
// docs/legacy.md; H800, 400 Gb/s InfiniBand), over links of the machine up to 8 GPUs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "engine/scheduler/step_cost.hpp"
#include "sim/cost/drafter.hpp"
#include "sim/cost/engine_profile.hpp"
#include "sim/cost/gpu.hpp"
#include "sim/cost/model_shape.hpp"

namespace draftproof {

struct RooflineSetup {
  ModelShape model;
  Gpu gpu;
  double tp = 1.0;  // GPUs that share every layer
  double dp = 1.0, pp = 1.0;
  bool expert_parallel = false;
  EngineProfile engine;
  Precision precision;
  std::optional<DrafterShape> drafter;  // nothing: no step drafts
  Precision draft_precision;
  // GPUs that share the drafter's layers (vLLM's draft_tensor_parallel_size); 0: tp, or one of draft_gpu.
  double draft_tp = 0.0;
  // Devices of its own for the drafter. It drafts before the target verifies, so that each waits for the other.
  std::optional<Gpu> draft_gpu;
  bool offloaded = false;          // the target's weights come from the host's memory in every pass
  double draft_cost_factor = 1.0;  // on the time of all draft passes: what if they were cheaper?

  double gpus() const { return tp * dp * pp; }
  double draft_gpus() const { return draft_tp > 0.0 ? draft_tp : draft_gpu ? 1.0 : tp; }
  // Over which a layer's experts lie.
  double expert_gpus() const { return expert_parallel ? tp * dp : tp; }
  double weight_bytes_of_all() const;
};

// Lower bound of a pass of one group of requests: what it must read and compute, on all GPUs of a layer together, and
// how long that takes at their peak rates.
struct PassFloor {
  double bytes = 0.0;
  double operations = 0.0;
  double memory_ns = 0.0;
  double compute_ns = 0.0;

  double ns() const { return memory_ns > compute_ns ? memory_ns : compute_ns; }
  double intensity() const { return operations / bytes; }  // operations a byte
  bool memory_bound() const { return memory_ns >= compute_ns; }
};

class Roofline final : public StepCost {
 public:
  explicit Roofline(const RooflineSetup& setup);

  double target_ns(const PassLoad& load) const override;
  double draft_ns(const DraftLoad& load) const override;
  double overhead_ns(std::int64_t requests, const DraftLoad& load) const override;

  // The part of draft_ns in which nothing is computed: a message with the drafts to GPUs that did not draft, and, to
  // devices of the drafter's own, one with the emitted tokens, of a head with a feature (two bytes a number of the
  // target's width) of every row that was verified. Rows of q are not sent: drafts are greedy, or drawn again.
  double draft_transfer_ns(const DraftLoad& load) const;

  PassFloor target_floor(const PassLoad& load) const;
  // Operations a byte from which on a pass is bound by the multiplications rather than by the memory.
  double ridge_intensity() const;

  // Other constants of the same engine; a fit tries many.
  void set_constants(const std::array<UncertainConstant, kEngineConstants>& constants) {
    setup_.engine.constants = constants;
  }

  // Bytes of the weights that one pass over many rows reads, of what a request of so many tokens caches, and of its
  // recurrent state.
  double weight_bytes() const;
  double state_bytes() const;
  double kv_bytes(double context) const;
  // Experts of a layer that the rows of a pass touch; 0 for a dense model.
  double experts_touched(double rows, double streams) const;
  // Groups of requests that are under way at the same time, each with its own pass (data and pipeline parallelism).
  double groups_of(double streams) const;

 private:
  struct Pass;
  struct Work;
  Pass target_pass(const PassLoad& load) const;
  double read_values(const Pass& pass) const;
  Work work_of(const Pass& pass, double rows) const;
  double gpus_of_a_layer() const;
  double gpus_of_a_draft_layer() const;
  const Gpu& draft_gpu() const { return setup_.draft_gpu ? *setup_.draft_gpu : setup_.gpu; }
  double expert_exchange_ns(double rows, double share) const;
  double pass_ns(const Pass& pass) const;
  double levels_ns(double depth, double streams) const;

  RooflineSetup setup_;
};

// The least tp (1, 2, 4, 8, 16, 24, ...) with which the GPUs' memory holds the weights, with a twentieth left for the
// rest. Of `setup` its tp does not count.
double least_tp(const RooflineSetup& setup);

// Requests of so many tokens and streams that the memory holds beside the weights, a tenth of it left to activations;
// infinity where they cache nothing.
double requests_held(const RooflineSetup& setup, double context, double streams);

// The precision in a text of a measured table (gpu.hpp), else that of the model's checkpoint.
Precision precision_of(const std::string& text, const ModelShape& model);

}  // namespace draftproof
