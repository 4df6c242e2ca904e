#include "engine/transformer/forward_pass.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/dtype.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kTokensOfHead = 16;  // at a time

}  // namespace

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

  template <class Body>
  void for_items(std::int64_t count, const Body& body) {
    draftproof::for_items(context.team, thread, count, body);
  }
  bool as_int8(const PackedMatrix& matrix) const { return takes_int8(context.arithmetic, matrix); }

  // Groups of the units [begin, end) of a matrix, the `index`-th of the pass.
  void multiply_units(std::size_t index, std::int64_t begin, std::int64_t end, ActivationRows& rows, float* to,
                      std::size_t stride) {
    const PackedMatrix& matrix = *pass.order_[index];
    // A thread reads on where it stops, or at its share of the next matrix.
    const PackedMatrix& following = *pass.order_[(index + 1) % pass.order_.size()];
    const std::int64_t following_unit = units_of(following) * thread / context.team.threads();
    const bool ends_share = end >= units_of(matrix) * (thread + 1) / context.team.threads();
    draftproof::multiply_units(kernels, context.arithmetic, matrix, begin, end, rows, to, stride,
                               ends_share ? following.group(following_unit * kUnitGroups) : nullptr);
  }

  // The next matrix of the pass: to [n][stride].
  void multiply(ActivationRows& rows, float* to, std::size_t stride) {
    const std::size_t index = products_done++;
    const PackedMatrix& matrix = *pass.order_[index];
    context.team.for_ranges(thread, units_of(matrix), grain_of(matrix), [&](std::int64_t begin, std::int64_t end) {
      multiply_units(index, begin, end, rows, to, stride);
    });
  }

  // Queries, keys and values, the next three, as one row of units.
  void multiply_attention_inputs(ActivationRows& rows) {
    const std::size_t index = products_done;
    products_done += 3;
    float* const to[3] = {pass.queries_.data(), pass.keys_.data(), pass.values_.data()};
    std::int64_t first[4] = {0, 0, 0, 0};  // unit of each
    for (std::size_t i = 0; i < 3; ++i) first[i + 1] = first[i] + units_of(*pass.order_[index + i]);
    context.team.for_ranges(thread, first[3], grain_of(*pass.order_[index]), [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t i = 0; i < 3; ++i) {
        const std::int64_t from = std::max(begin, first[i]);
        const std::int64_t until = std::min(end, first[i + 1]);
        if (from >= until) continue;
        const auto stride = static_cast<std::size_t>(i == 0 ? query_width_of(shape) : kv_width_of(shape));
        multiply_units(index + i, from - first[i], until - first[i], rows, to[i], stride);
      }
    });
  }

  // Without a weight the row stays as it is.
  void norm_or_copy(const float* row, const std::vector<float>& weight, float* to) const {
    const auto width = static_cast<std::size_t>(shape.width);
    if (weight.empty())
      std::copy_n(row, width, to);
    else
      kernels.rms_norm(row, weight.data(), width, static_cast<float>(shape.rms_epsilon), to);
  }

  // residual += product (unless this is the first), normed = norm(residual).
  void add_and_norm(bool add, const std::vector<float>& weight, const PackedMatrix& consumer, const PackedMatrix& other,
                    const PackedMatrix& third, std::int64_t hidden_behind) {
    const auto width = static_cast<std::size_t>(shape.width);
    for_items(static_cast<std::int64_t>(n), [&](std::size_t i) {
      float* const residual = pass.residual_.data() + i * width;
      if (add) kernels.add(residual, pass.product_.data() + i * width, width);
      hand_out_hidden(i, residual, hidden_behind);
      norm_or_copy(residual, weight, pass.normed_.row(i));
      if (as_int8(consumer) || as_int8(other) || as_int8(third))
        pass.normed_.quantise(kernels, i, 0, shape.width / kBlockColumns);
    });
  }

  // The layer behind the last stands for the last norm.
  bool hands_out_last_norm() const {
    return !batch.hidden_layers.empty() &&
           batch.hidden_layers.back() > static_cast<std::int64_t>(context.layers.size());
  }
  void hand_out_last_norm(std::size_t token, const float* residual) {
    const auto width = static_cast<std::size_t>(shape.width);
    norm_or_copy(residual, context.weights.out_norm,
                 out.hidden.data() + ((token + 1) * batch.hidden_layers.size() - 1) * width);
  }

  // The residual stream behind layer `layer`, counted from 1, where it is asked for.
  void hand_out_hidden(std::size_t token, const float* residual, std::int64_t layer) {
    const auto width = static_cast<std::size_t>(shape.width);
    for (std::size_t h = 0; h < batch.hidden_layers.size(); ++h)
      if (batch.hidden_layers[h] == layer)
        std::copy_n(residual, width, out.hidden.data() + (token * batch.hidden_layers.size() + h) * width);
  }

  void embed() {
    const auto width = static_cast<std::size_t>(shape.width);
    for_items(static_cast<std::int64_t>(n), [&](std::size_t i) {
      if (!context.input.residual.empty()) {
        std::ranges::copy(context.input.residual.subspan(i * width, width),
                          pass.residual_.begin() + static_cast<std::ptrdiff_t>(i * width));
      } else {
        context.weights.embedding->decode_row(batch.tokens[i],
                                              std::span<float>(pass.residual_).subspan(i * width, width));
      }
    });
  }

  // A token's row [width] through the taps of a convolution, `side` 0 of inputs and 1 of outputs, over rows [n, width].
  void convolve(const PackedConvolution& conv, std::size_t side, std::size_t token, const float* rows,
                float* to) const {
    const auto width = static_cast<std::size_t>(shape.width);
    const std::size_t taps = conv.base.size() / (2 * width);
    const std::size_t groups = static_cast<std::size_t>(conv.kernel->rows()) / (2 * taps);
    const std::size_t columns = width / groups;
    const float* added = pass.taps_.data() + token * padded_rows(*conv.kernel) + side * taps * groups;
    const float* base = conv.base.data() + side * taps * width;
    std::fill_n(to, width, 0.0f);
    auto at = static_cast<std::int32_t>(token);
    for (std::size_t tap = 0; tap < taps && at != kContextParent; ++tap) {
      const float* const row = rows + static_cast<std::size_t>(at) * width;
      for (std::size_t d = 0; d < width; ++d) to[d] += row[d] * (base[d] + added[d / columns]);
      at = batch.parents[static_cast<std::size_t>(at)];
      added += groups;
      base += width;
    }
  }

  // The rows that matrices behind a norm read.
  ActivationRows& inputs_behind(const PackedConvolution& conv, bool quantised) {
    if (!conv.kernel) return pass.normed_;
    multiply(pass.normed_, pass.taps_.data(), padded_rows(*conv.kernel));
    for_items(static_cast<std::int64_t>(n), [&](std::size_t i) {
      convolve(conv, 0, i, pass.normed_.values.data(), pass.convolved_.row(i));
      if (quantised) pass.convolved_.quantise(kernels, i, 0, shape.width / kBlockColumns);
    });
    return pass.convolved_;
  }

  // The next matrix, whose product is added to the residual stream.
  void multiply_out(const PackedConvolution& conv, ActivationRows& rows) {
    const auto width = static_cast<std::size_t>(shape.width);
    multiply(rows, conv.kernel ? pass.unconvolved_.data() : pass.product_.data(), width);
    if (!conv.kernel) return;
    for_items(static_cast<std::int64_t>(n),
              [&](std::size_t i) { convolve(conv, 1, i, pass.unconvolved_.data(), pass.product_.data() + i * width); });
  }

  // Takes the rows that the attention of the first layer reads, where they are given.
  void take_first_rows(const PackedLayer& weights) {
    const auto columns = static_cast<std::size_t>(weights.query->columns());
    for_items(static_cast<std::int64_t>(n), [&](std::size_t i) {
      std::copy_n(context.input.first_rows.data() + i * columns, columns, pass.first_.row(i));
      if (as_int8(*weights.query) || as_int8(*weights.key) || as_int8(*weights.value))
        pass.first_.quantise(kernels, i, 0, weights.query->blocks());
    });
  }

  // Bias, norm and rotation of one head.
  void finish_head(float* head, std::int64_t index, const std::vector<float>& bias, const std::vector<float>& norm,
                   std::int64_t position) const {
    const auto head_len = static_cast<std::size_t>(shape.head_size);
    if (!bias.empty()) kernels.add(head, bias.data() + index * shape.head_size, head_len);
    if (!norm.empty()) kernels.rms_norm(head, norm.data(), head_len, static_cast<float>(shape.rms_epsilon), head);
    context.rope.rotate(head, position);
  }

  std::int64_t rope_position(std::size_t token) const { return batch.positions[token] - context.input.first_position; }

  void store_kv(std::int64_t layer, std::size_t token, std::int64_t head, const float* keys, const float* values) {
    const std::int64_t slot = batch.slots[token];
    const std::int64_t in = slot % kKvBlockSlots;
    const auto head_len = static_cast<std::size_t>(shape.head_size);
    thread_local std::vector<std::uint16_t> halves;
    halves.resize(2 * head_len);
    const bool keys_finite = kernels.to_f16(keys, head_len, halves.data());
    const bool values_finite = kernels.to_f16(values, head_len, halves.data() + head_len);
    // Values that binary16 does not hold must not be lost in a maximum: whoever attends to this slot gets NaN.
    if (!keys_finite || !values_finite) std::ranges::fill(halves, std::uint16_t{0x7e00});
    std::uint16_t* const to = kv.keys(layer, slot / kKvBlockSlots, head);
    for (std::size_t i = 0; i < head_len; ++i) to[i * kKvBlockSlots + static_cast<std::size_t>(in)] = halves[i];
    std::copy_n(halves.data() + head_len, head_len,
                kv.values(layer, slot / kKvBlockSlots, head) + in * shape.head_size);
  }

  // A head of some tokens at a time, queries before keys and values: each thread then finds most of what it needs where
  // it has written it, and the slots of a block, whose keys share lines, are one thread's.
  void rotate_and_store(const PackedLayer& weights, std::int64_t layer, bool with_queries = true) {
    const auto query_width = static_cast<std::size_t>(query_width_of(shape));
    const auto kv_width = static_cast<std::size_t>(kv_width_of(shape));
    const auto head_len = static_cast<std::size_t>(shape.head_size);
    const float factor = 1.0f / std::sqrt(static_cast<float>(shape.head_size));
    const auto chunks = (n + kTokensOfHead - 1) / kTokensOfHead;
    const std::int64_t first_head = with_queries ? 0 : shape.num_heads;
    const std::int64_t heads = shape.num_heads + shape.num_kv_heads - first_head;
    for_items(static_cast<std::int64_t>(chunks) * heads, [&](std::size_t item) {
      const auto index = first_head + static_cast<std::int64_t>(item / chunks);
      const std::size_t begin = item % chunks * kTokensOfHead;
      for (std::size_t i = begin; i < std::min(n, begin + kTokensOfHead); ++i) {
        if (index < shape.num_heads) {
          float* const queries = pass.queries_.data() + i * query_width + static_cast<std::size_t>(index) * head_len;
          finish_head(queries, index, weights.query_bias, weights.query_norm, rope_position(i));
          kernels.scale(queries, head_len, factor, queries);
          continue;
        }
        const std::int64_t kv_head = index - shape.num_heads;
        const std::size_t at = i * kv_width + static_cast<std::size_t>(kv_head) * head_len;
        float* const keys = pass.keys_.data() + at;
        float* const values = pass.values_.data() + at;
        finish_head(keys, kv_head, weights.key_bias, weights.key_norm, rope_position(i));
        if (!weights.value_bias.empty())
          kernels.add(values, weights.value_bias.data() + kv_head * shape.head_size, head_len);
        store_kv(layer, i, kv_head, keys, values);
      }
    });
  }

  void attend(const PackedLayer& weights, std::int64_t layer) {
    const bool quantised = as_int8(*weights.attention_out);
    // Blocks of activations are whole within a head, or their phase comes after that of the heads.
    const bool at_once = quantised && shape.head_size % kBlockColumns == 0;
    const std::int64_t blocks_of_head = shape.head_size / kBlockColumns;
    context.team.for_ranges(
        thread, static_cast<std::int64_t>(pass.tasks_.size()), 1, [&](std::int64_t index, std::int64_t) {
          const AttentionTask& task = pass.tasks_[static_cast<std::size_t>(index)];
          pass.workers_[static_cast<std::size_t>(thread)].run(task, pass.paths_, kernels, kv, layer, shape.num_heads,
                                                              pass.queries_.data(), pass.attended_.values.data());
          if (!at_once) return;
          for (std::size_t i = task.token_begin; i < task.token_end; ++i)
            pass.attended_.quantise(kernels, i, task.head_begin * blocks_of_head, task.head_end * blocks_of_head);
        });
    if (quantised && !at_once)
      for_items(static_cast<std::int64_t>(n),
                [&](std::size_t i) { pass.attended_.quantise(kernels, i, 0, query_width_of(shape) / kBlockColumns); });
  }

  void run_layer(const PackedLayer& weights, std::int64_t layer, std::int64_t index) {
    const bool int8 = context.arithmetic == Arithmetic::int8;
    static const LayerConvolutions kNone;
    const LayerConvolutions& conv =
        context.input.convolutions.empty() ? kNone : context.input.convolutions[static_cast<std::size_t>(layer)];
    add_and_norm(index > 0, weights.attention_norm, conv.attention.kernel ? *conv.attention.kernel : *weights.query,
                 *weights.key, *weights.value, index);
    const bool rows_are_given = index == 0 && !context.input.first_rows.empty();
    if (rows_are_given) take_first_rows(weights);
    multiply_attention_inputs(rows_are_given ? pass.first_ : inputs_behind(conv.attention, int8));
    rotate_and_store(weights, layer);
    attend(weights, layer);
    multiply_out(conv.attention, pass.attended_);
    const PackedMatrix& consumer = weights.gate ? *weights.gate : *weights.mixture.router;
    const PackedMatrix& other = conv.network.kernel ? *conv.network.kernel : consumer;
    add_and_norm(true, weights.feed_forward_norm, consumer, other, weights.up ? *weights.up : consumer, 0);
    if (weights.gate) {
      feed_forward(weights, inputs_behind(conv.network, int8));
      multiply_out(conv.network, pass.activated_);
    }
    if (!weights.mixture.experts.empty()) run_mixture(weights);
  }

  void run_mixture(const PackedLayer& weights) {
    const PackedMixture& mixture = weights.mixture;
    const auto width = static_cast<std::size_t>(shape.width);
    const auto chosen = static_cast<std::size_t>(shape.experts.chosen);
    const auto routes_of = [&](std::size_t i) { return std::span(pass.routes_).subspan(i * chosen, chosen); };
    for_items(static_cast<std::int64_t>(n), [&](std::size_t i) {
      route_row(kernels, context.arithmetic, mixture, shape.experts, pass.normed_.row(i), routes_of(i));
    });
    for_items(static_cast<std::int64_t>(n * chosen), [&](std::size_t item) {
      run_expert(kernels, context.arithmetic, mixture.experts[pass.routes_[item].expert],
                 pass.normed_.row(item / chosen), pass.of_experts_.data() + item * width);
    });
    for_items(static_cast<std::int64_t>(n), [&](std::size_t i) {
      const auto product = std::span<float>(pass.product_).subspan(i * width, width);
      if (!weights.gate) std::ranges::fill(product, 0.0f);
      combine_experts(kernels, context.arithmetic, mixture, pass.normed_.row(i), routes_of(i),
                      pass.of_experts_.data() + i * chosen * width, product);
    });
  }

  // The same units of gate and up one after the other, so that SwiGLU and its blocks follow at once.
  void feed_forward(const PackedLayer& weights, ActivationRows& rows) {
    const std::size_t index = products_done;
    products_done += 2;
    const auto stride = static_cast<std::size_t>(shape.feed_forward);
    context.team.for_ranges(
        thread, units_of(*weights.gate), grain_of(*weights.gate), [&](std::int64_t begin, std::int64_t end) {
          multiply_units(index, begin, end, rows, pass.gate_.data(), stride);
          multiply_units(index + 1, begin, end, rows, pass.up_.data(), stride);
          const auto first = static_cast<std::size_t>(begin * kBlockColumns);
          const auto count = static_cast<std::size_t>((end - begin) * kBlockColumns);
          for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = i * stride + first;
            kernels.swiglu(pass.gate_.data() + at, pass.up_.data() + at, count, pass.activated_.values.data() + at);
            if (as_int8(*weights.down)) pass.activated_.quantise(kernels, i, begin, end);
          }
        });
  }

  // The last norm and the head, for the tokens asked for.
  void run_head() {
    const auto width = static_cast<std::size_t>(shape.width);
    const auto last_layer = static_cast<std::int64_t>(context.layers.size());
    for_items(static_cast<std::int64_t>(n), [&](std::size_t i) {
      float* const residual = pass.residual_.data() + i * width;
      if (last_layer > 0) kernels.add(residual, pass.product_.data() + i * width, width);
      hand_out_hidden(i, residual, last_layer);
      if (hands_out_last_norm()) hand_out_last_norm(i, residual);
    });
    const auto rows = static_cast<std::int64_t>(batch.wanted.size());
    if (rows == 0) return;
    const PackedMatrix& head = *context.weights.head;
    for_items(rows, [&](std::size_t r) {
      const auto token = static_cast<std::size_t>(batch.wanted[r]);
      norm_or_copy(pass.residual_.data() + token * width, context.weights.out_norm, pass.last_.row(r));
      if (as_int8(head)) pass.last_.quantise(kernels, r, 0, shape.width / kBlockColumns);
    });
    const std::size_t padded = padded_rows(head);
    const auto vocab = static_cast<std::size_t>(shape.vocab_size);
    float* const to = padded == vocab ? out.logits.data() : pass.logits_.data();
    const std::size_t index = products_done++;
    context.team.for_ranges(thread, units_of(head), grain_of(head), [&](std::int64_t begin, std::int64_t end) {
      multiply_units(index, begin, end, pass.last_, to, padded);
      // While the thread has them in its cache.
      const auto first = static_cast<std::size_t>(begin * kBlockColumns);
      const std::size_t count = std::min(vocab, static_cast<std::size_t>(end * kBlockColumns)) - first;
      for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
        if (!kernels.all_finite(to + r * padded + first, count))
          std::atomic_ref(pass.finite_[r]).store(0, std::memory_order_relaxed);
    });
    for_items(rows, [&](std::size_t r) {
      float* const row = out.logits.data() + r * vocab;
      if (padded != vocab) std::copy_n(to + r * padded, vocab, row);
      if (pass.finite_[r] == 0) std::fill_n(row, vocab, std::numeric_limits<float>::quiet_NaN());
    });
  }

  void run() {
    embed();
    std::int64_t index = 0;
    for (const std::int64_t layer : context.layers)
      run_layer(context.weights.layers[static_cast<std::size_t>(layer)], layer, index++);
    run_head();
  }

  // Keys and values of rows that are given, in every layer.
  void store_context(std::span<const float> rows) {
    const auto width = static_cast<std::size_t>(shape.width);
    for_items(static_cast<std::int64_t>(n), [&](std::size_t i) {
      std::copy_n(rows.data() + i * width, width, pass.normed_.row(i));
      if (context.arithmetic == Arithmetic::int8) pass.normed_.quantise(kernels, i, 0, shape.width / kBlockColumns);
    });
    const auto stride = static_cast<std::size_t>(kv_width_of(shape));
    for (const std::int64_t layer : context.layers) {
      multiply(pass.normed_, pass.keys_.data(), stride);
      multiply(pass.normed_, pass.values_.data(), stride);
      rotate_and_store(context.weights.layers[static_cast<std::size_t>(layer)], layer, false);
    }
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
  routes_.resize(rows(n, shape.experts.chosen));
  of_experts_.resize(routes_.size() * static_cast<std::size_t>(shape.width));
  normed_.resize(n, shape.width, int8);
  attended_.resize(n, query_width_of(shape), int8);
  activated_.resize(n, shape.feed_forward, int8);
  last_.resize(m, shape.width, int8);
  finite_.assign(m, 1);
  const std::size_t padded = m == 0 ? 0 : padded_rows(*context.weights.head);
  if (padded != static_cast<std::size_t>(shape.vocab_size)) logits_.resize(m * padded);
  if (!context.input.first_rows.empty())
    first_.resize(n, context.weights.layers[static_cast<std::size_t>(context.layers[0])].query->columns(), int8);
  paths_.build(batch, context.input.first_position, context.input.whole_chains, context.input.tails);
  tasks_ = attention_tasks(batch, shape.num_heads, shape.num_kv_heads, context.team.threads());
  workers_.resize(static_cast<std::size_t>(context.team.threads()));
  order_.clear();
  for (const std::int64_t layer : context.layers) {
    const PackedLayer& l = context.weights.layers[static_cast<std::size_t>(layer)];
    if (!context.input.convolutions.empty()) {
      const LayerConvolutions& conv = context.input.convolutions[static_cast<std::size_t>(layer)];
      for (const auto* matrix : {&conv.attention.kernel, &l.query, &l.key, &l.value, &l.attention_out,
                                 &conv.network.kernel, &l.gate, &l.up, &l.down})
        order_.push_back(matrix->get());
      taps_.resize(n * std::max(padded_rows(*conv.attention.kernel), padded_rows(*conv.network.kernel)));
      unconvolved_.resize(product_.size());
      convolved_.resize(n, shape.width, int8);
      continue;
    }
    for (const auto* matrix : {&l.query, &l.key, &l.value, &l.attention_out, &l.gate, &l.up, &l.down})
      if (*matrix) order_.push_back(matrix->get());
  }
  if (context.weights.head) order_.push_back(context.weights.head.get());
  context.team.run([&](int thread) { Phases{*this, context, batch, kv, out, thread}.run(); });
}

void ForwardPass::store_context(const ForwardContext& context, const ForwardBatch& batch, std::span<const float> rows,
                                TransformerKvCache& kv) {
  const std::size_t n = batch.tokens.size();
  if (n == 0) return;
  const ModelDescription& shape = context.weights.shape;
  keys_.resize(n * static_cast<std::size_t>(kv_width_of(shape)));
  values_.resize(keys_.size());
  normed_.resize(n, shape.width, context.arithmetic == Arithmetic::int8);
  order_.clear();
  for (const std::int64_t layer : context.layers)
    for (const auto* matrix : {&context.weights.layers[static_cast<std::size_t>(layer)].key,
                               &context.weights.layers[static_cast<std::size_t>(layer)].value})
      order_.push_back(matrix->get());
  ForwardOutput none;
  context.team.run([&](int thread) { Phases{*this, context, batch, kv, none, thread}.store_context(rows); });
}

}  // namespace draftproof
