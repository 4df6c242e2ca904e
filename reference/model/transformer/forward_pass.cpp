#include "reference/model/transformer/forward_pass.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "reference/numerics/dtype.hpp"

namespace draftproof {
namespace {

// A thread's share of `items`, cut at multiples of `unit`.
struct Share {
  std::int64_t begin;
  std::int64_t end;
};
Share share_of(std::int64_t items, std::int64_t unit, int thread, int threads) {
  const std::int64_t units = (items + unit - 1) / unit;
  return {std::min(items, units * thread / threads * unit), std::min(items, units * (thread + 1) / threads * unit)};
}

constexpr std::int64_t kProductUnit = kBlockColumns / kGroupRows;  // groups whose rows make a block of activations

std::size_t padded_rows(const PackedMatrix& matrix) {
  return static_cast<std::size_t>(matrix.groups() * kGroupRows);
}

}  // namespace

void ActivationRows::resize(std::size_t n, std::int64_t columns, bool as_int8) {
  width = columns;
  values.resize(n * static_cast<std::size_t>(columns));
  if (as_int8) int8.resize(static_cast<int>(n), columns);
}

// The phases of one pass as one thread goes through them.
struct ForwardPass::Phases {
  ForwardPass& pass;
  const ForwardContext& context;
  const ForwardBatch& batch;
  TransformerKvCache& kv;
  ForwardOutput& out;
  int thread;

  const ModelDescription& shape = context.weights.shape;
  const TransformerKernels& kernels = context.kernels;
  std::size_t n = batch.tokens.size();
  std::size_t products_done = 0;  // of pass.order_

  void barrier() { context.team.barrier(); }
  Share share(std::int64_t items, std::int64_t unit = 1) const {
    return share_of(items, unit, thread, context.team.threads());
  }
  bool as_int8(const PackedMatrix& matrix) const {
    return context.arithmetic == Arithmetic::int8 && layout_of(matrix.format()).quantised();
  }

  // This thread's rows of a matrix: to [n][stride].
  void multiply(const PackedMatrix& matrix, ActivationRows& rows, float* to, std::size_t stride) {
    const Share groups = share(matrix.groups(), kProductUnit);
    const PackedMatrix* const following = pass.order_[(products_done + 1) % pass.order_.size()];
    ++products_done;
    const ProductPart part{&matrix, groups.begin, groups.end,
                           to,      stride,       following->group(share(following->groups(), kProductUnit).begin)};
    if (as_int8(matrix))
      kernels.int8_product(part, rows.int8.tiles());
    else
      kernels.float_product(part, rows.values.data(), static_cast<std::size_t>(rows.width),
                            static_cast<int>(rows.values.size() / static_cast<std::size_t>(rows.width)));
  }

  void quantise(ActivationRows& rows, std::size_t row, std::int64_t block_begin, std::int64_t block_end) {
    const Int8Tile& tile = rows.int8.tile_of(static_cast<int>(row));
    kernels.quantise(rows.row(row), block_begin, block_end, tile, static_cast<int>(row) - tile.first_row);
  }

  // residual += product (unless this is the first), normed = norm(residual), for this thread's tokens.
  void add_and_norm(bool add, const std::vector<float>& weight, const PackedMatrix& consumer, const PackedMatrix& other,
                    const PackedMatrix& third, std::int64_t hidden_behind) {
    const Share tokens = share(static_cast<std::int64_t>(n));
    const auto width = static_cast<std::size_t>(shape.width);
    for (auto i = static_cast<std::size_t>(tokens.begin); i < static_cast<std::size_t>(tokens.end); ++i) {
      float* const residual = pass.residual_.data() + i * width;
      if (add) kernels.add(residual, pass.product_.data() + i * width, width);
      hand_out_hidden(i, residual, hidden_behind);
      kernels.rms_norm(residual, weight.data(), width, static_cast<float>(shape.rms_epsilon), pass.normed_.row(i));
      if (as_int8(consumer) || as_int8(other) || as_int8(third))
        quantise(pass.normed_, i, 0, shape.width / kBlockColumns);
    }
  }

  // The residual stream behind layer `layer`, counted from 1, where it is asked for.
  void hand_out_hidden(std::size_t token, const float* residual, std::int64_t layer) {
    const auto width = static_cast<std::size_t>(shape.width);
    for (std::size_t h = 0; h < batch.hidden_layers.size(); ++h)
      if (batch.hidden_layers[h] == layer)
        std::copy_n(residual, width, out.hidden.data() + (token * batch.hidden_layers.size() + h) * width);
  }

  void embed() {
    const Share tokens = share(static_cast<std::int64_t>(n));
    const auto width = static_cast<std::size_t>(shape.width);
    for (auto i = static_cast<std::size_t>(tokens.begin); i < static_cast<std::size_t>(tokens.end); ++i)
      context.weights.embedding->decode_row(batch.tokens[i], std::span(pass.residual_).subspan(i * width, width));
  }

  // Bias, norm of the heads, rotation.
  void finish_heads(float* row, std::int64_t heads, const std::vector<float>& bias, const std::vector<float>& norm,
                    std::int64_t position) const {
    const auto head_len = static_cast<std::size_t>(shape.head_size);
    if (!bias.empty()) kernels.add(row, bias.data(), bias.size());
    for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
      float* const head = row + h * head_len;
      if (!norm.empty()) kernels.rms_norm(head, norm.data(), head_len, static_cast<float>(shape.rms_epsilon), head);
      context.rope.rotate(head, position);
    }
  }

  void store_kv(std::int64_t layer, std::size_t token) {
    const auto width = static_cast<std::size_t>(kv_width_of(shape));
    const std::int64_t slot = batch.slots[token];
    const std::int64_t in = slot % kKvBlockSlots;
    thread_local std::vector<std::uint16_t> halves;
    halves.resize(2 * width);
    const bool keys_finite = kernels.to_f16(pass.keys_.data() + token * width, width, halves.data());
    const bool values_finite = kernels.to_f16(pass.values_.data() + token * width, width, halves.data() + width);
    // What binary16 does not hold must not be lost in a maximum: whoever attends to this slot gets NaN.
    if (!keys_finite || !values_finite) std::ranges::fill(halves, std::uint16_t{0x7e00});
    for (std::int64_t head = 0; head < shape.num_kv_heads; ++head) {
      const std::uint16_t* const from = halves.data() + head * shape.head_size;
      std::uint16_t* const keys = kv.keys(layer, slot / kKvBlockSlots, head);
      for (std::int64_t i = 0; i < shape.head_size; ++i) keys[i * kKvBlockSlots + in] = from[i];
      std::copy_n(from + width, shape.head_size, kv.values(layer, slot / kKvBlockSlots, head) + in * shape.head_size);
    }
  }

  void rotate_and_store(const PackedLayer& weights, std::int64_t layer) {
    const Share tokens = share(static_cast<std::int64_t>(n));
    const auto query_width = static_cast<std::size_t>(query_width_of(shape));
    const auto kv_width = static_cast<std::size_t>(kv_width_of(shape));
    const float factor = 1.0f / std::sqrt(static_cast<float>(shape.head_size));
    for (auto i = static_cast<std::size_t>(tokens.begin); i < static_cast<std::size_t>(tokens.end); ++i) {
      float* const queries = pass.queries_.data() + i * query_width;
      float* const keys = pass.keys_.data() + i * kv_width;
      finish_heads(queries, shape.num_heads, weights.query_bias, weights.query_norm, batch.positions[i]);
      finish_heads(keys, shape.num_kv_heads, weights.key_bias, weights.key_norm, batch.positions[i]);
      if (!weights.value_bias.empty())
        kernels.add(pass.values_.data() + i * kv_width, weights.value_bias.data(), kv_width);
      kernels.scale(queries, query_width, factor);
      store_kv(layer, i);
    }
  }

  void attend(std::int64_t layer) {
    AttentionWorker& worker = pass.workers_[static_cast<std::size_t>(thread)];
    for (;;) {
      const std::size_t task = pass.next_task_.fetch_add(1, std::memory_order_relaxed);
      if (task >= pass.tasks_.size()) return;
      worker.run(pass.tasks_[task], batch, pass.paths_, kernels, kv, layer, shape.num_heads, pass.queries_.data(),
                 pass.attended_.values.data());
    }
  }

  void run_layer(const PackedLayer& weights, std::int64_t layer, std::int64_t index) {
    const auto width = static_cast<std::size_t>(shape.width);
    add_and_norm(index > 0, weights.attention_norm, *weights.query, *weights.key, *weights.value, index);
    barrier();
    multiply(*weights.query, pass.normed_, pass.queries_.data(), static_cast<std::size_t>(query_width_of(shape)));
    multiply(*weights.key, pass.normed_, pass.keys_.data(), static_cast<std::size_t>(kv_width_of(shape)));
    multiply(*weights.value, pass.normed_, pass.values_.data(), static_cast<std::size_t>(kv_width_of(shape)));
    barrier();
    rotate_and_store(weights, layer);
    if (thread == 0) pass.next_task_.store(0, std::memory_order_relaxed);
    barrier();
    attend(layer);
    barrier();
    if (as_int8(*weights.attention_out)) {
      const Share tokens = share(static_cast<std::int64_t>(n));
      for (std::int64_t i = tokens.begin; i < tokens.end; ++i)
        quantise(pass.attended_, static_cast<std::size_t>(i), 0, query_width_of(shape) / kBlockColumns);
      barrier();
    }
    multiply(*weights.attention_out, pass.attended_, pass.product_.data(), width);
    barrier();
    add_and_norm(true, weights.feed_forward_norm, *weights.gate, *weights.up, *weights.up, 0);
    barrier();
    feed_forward(weights);
    barrier();
    multiply(*weights.down, pass.activated_, pass.product_.data(), width);
    barrier();
  }

  // Gate and up have the same rows in the same thread, so that nobody need wait before SwiGLU.
  void feed_forward(const PackedLayer& weights) {
    const auto stride = static_cast<std::size_t>(shape.feed_forward);
    multiply(*weights.gate, pass.normed_, pass.gate_.data(), stride);
    multiply(*weights.up, pass.normed_, pass.up_.data(), stride);
    const Share groups = share(weights.gate->groups(), kProductUnit);
    const std::int64_t begin = groups.begin * kGroupRows;
    const auto count = static_cast<std::size_t>(groups.end * kGroupRows - begin);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = i * stride + static_cast<std::size_t>(begin);
      kernels.swiglu(pass.gate_.data() + at, pass.up_.data() + at, count, pass.activated_.values.data() + at);
      if (as_int8(*weights.down))
        quantise(pass.activated_, i, begin / kBlockColumns, groups.end * kGroupRows / kBlockColumns);
    }
  }

  // The last norm and the head, for the tokens asked for.
  void run_head() {
    const auto width = static_cast<std::size_t>(shape.width);
    const PackedMatrix& head = *context.weights.head;
    const auto last_layer = static_cast<std::int64_t>(context.layers.size());
    const Share tokens = share(static_cast<std::int64_t>(n));
    for (auto i = static_cast<std::size_t>(tokens.begin); i < static_cast<std::size_t>(tokens.end); ++i) {
      float* const residual = pass.residual_.data() + i * width;
      if (last_layer > 0) kernels.add(residual, pass.product_.data() + i * width, width);
      hand_out_hidden(i, residual, last_layer);
    }
    if (batch.wanted.empty()) return;
    barrier();
    const Share rows = share(static_cast<std::int64_t>(batch.wanted.size()));
    for (auto r = static_cast<std::size_t>(rows.begin); r < static_cast<std::size_t>(rows.end); ++r) {
      const auto token = static_cast<std::size_t>(batch.wanted[r]);
      kernels.rms_norm(pass.residual_.data() + token * width, context.weights.out_norm.data(), width,
                       static_cast<float>(shape.rms_epsilon), pass.last_.row(r));
      if (as_int8(head)) quantise(pass.last_, r, 0, shape.width / kBlockColumns);
    }
    barrier();
    const std::size_t padded = padded_rows(head);
    const auto vocab = static_cast<std::size_t>(shape.vocab_size);
    float* const to = padded == vocab ? out.logits.data() : pass.logits_.data();
    multiply(head, pass.last_, to, padded);
    barrier();
    for (auto r = static_cast<std::size_t>(rows.begin); r < static_cast<std::size_t>(rows.end); ++r) {
      float* const row = out.logits.data() + r * vocab;
      if (padded != vocab) std::copy_n(to + r * padded, vocab, row);
      if (!kernels.all_finite(row, vocab)) std::fill_n(row, vocab, std::numeric_limits<float>::quiet_NaN());
    }
  }

  void run() {
    embed();
    std::int64_t index = 0;
    for (const std::int64_t layer : context.layers)
      run_layer(context.weights.layers[static_cast<std::size_t>(layer)], layer, index++);
    run_head();
  }
};

void ForwardPass::run(const ForwardContext& context, const ForwardBatch& batch, TransformerKvCache& kv,
                      ForwardOutput& out) {
  const ModelDescription& shape = context.weights.shape;
  const std::size_t n = batch.tokens.size();
  const std::size_t m = batch.wanted.size();
  const bool int8 = context.arithmetic == Arithmetic::int8;
  const auto rows = [](std::size_t count, std::int64_t width) { return count * static_cast<std::size_t>(width); };
  out.logits.resize(rows(m, shape.vocab_size));
  out.hidden.resize(rows(n * batch.hidden_layers.size(), shape.width));
  if (n == 0) return;
  residual_.resize(rows(n, shape.width));
  product_.resize(rows(n, shape.width));
  queries_.resize(rows(n, query_width_of(shape)));
  keys_.resize(rows(n, kv_width_of(shape)));
  values_.resize(rows(n, kv_width_of(shape)));
  gate_.resize(rows(n, shape.feed_forward));
  up_.resize(rows(n, shape.feed_forward));
  normed_.resize(n, shape.width, int8);
  attended_.resize(n, query_width_of(shape), int8);
  activated_.resize(n, shape.feed_forward, int8);
  last_.resize(m, shape.width, int8);
  const std::size_t padded = padded_rows(*context.weights.head);
  if (padded != static_cast<std::size_t>(shape.vocab_size)) logits_.resize(m * padded);
  paths_.build(batch);
  tasks_ = attention_tasks(batch, shape.num_heads, shape.num_kv_heads, context.team.threads());
  workers_.resize(static_cast<std::size_t>(context.team.threads()));
  order_.clear();
  for (const std::int64_t layer : context.layers) {
    const PackedLayer& l = context.weights.layers[static_cast<std::size_t>(layer)];
    for (const auto* matrix : {&l.query, &l.key, &l.value, &l.attention_out, &l.gate, &l.up, &l.down})
      order_.push_back(matrix->get());
  }
  order_.push_back(context.weights.head.get());
  context.team.run([&](int thread) { Phases{*this, context, batch, kv, out, thread}.run(); });
}

}  // namespace draftproof
