#include "engine/heads/lab/slow_head.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "engine/model/gathered_batch.hpp"
#include "reference/numerics/exp_parts.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/numerics/natural_sin_cos.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kSoftmaxLanes = 16;

// The exponential of transformer_kernels.hpp.
float limited_exp_of(float x) {
  if (std::isnan(x)) return x;
  const ExpParts parts = exp_parts(std::clamp(x, -kExpLimit, kExpLimit));
  return scale_by_power_of_two(parts.f, parts.n);
}

bool finite_half(std::uint16_t half) {
  return (half & 0x7c00u) != 0x7c00u;
}

std::vector<std::uint16_t> halves_of(const std::vector<float>& x) {
  std::vector<std::uint16_t> halves;
  for (const float v : x) halves.push_back(f32_to_f16(v));
  return halves;
}

void add_to(std::vector<float>& x, const std::vector<float>& y) {
  for (std::size_t i = 0; i < y.size(); ++i) x[i] += y[i];
}

// A row in which a value is not finite is NaN throughout.
void spread_nan(std::vector<float>& row) {
  if (!std::ranges::all_of(row, [](float v) { return std::isfinite(v); }))
    std::ranges::fill(row, std::numeric_limits<float>::quiet_NaN());
}

std::vector<const SlowHead::Entry*> pointers_to(std::span<const SlowHead::Entry> entries) {
  std::vector<const SlowHead::Entry*> pointers;
  for (const SlowHead::Entry& entry : entries) pointers.push_back(&entry);
  return pointers;
}

}  // namespace

std::int64_t SlowHead::Text::size_bytes() const {
  std::size_t bytes = 0;
  for (const std::vector<float>& state : states) bytes += state.size() * sizeof(float);
  for (const Entry& entry : entries)
    for (const std::vector<std::uint16_t>& keys : entry.keys) bytes += 2 * keys.size() * sizeof(std::uint16_t);
  return static_cast<std::int64_t>(bytes);
}

SlowHead::SlowHead(std::shared_ptr<const HeadWeights> head, const TransformerModel& target,
                   const TransformerKernels& kernels)
    : head_(std::move(head)),
      weights_(target.shared_weights()),
      target_(weights_, target.arithmetic(), 1),
      kernels_(kernels),
      feature_layers_(feature_layers_of(description(), target.num_layers(), "acceptance oracle")) {
  const ModelDescription& shape = description().shape;
  for (std::int64_t i = 0; i < shape.head_size / 2; ++i)
    frequencies_.push_back(natural_exp(-2.0 * static_cast<double>(i) / static_cast<double>(shape.head_size) *
                                       natural_log(shape.rope_base)) /
                           static_cast<double>(shape.rope_divisors[static_cast<std::size_t>(i)]));
}

std::vector<float> SlowHead::product(const PackedMatrix& matrix, const std::vector<float>& x) {
  multiply_row(kernels_, target_.arithmetic(), matrix, x.data(), product_);
  return {product_.begin(), product_.begin() + static_cast<std::ptrdiff_t>(matrix.rows())};
}

// Without a weight the row stays as it is.
std::vector<float> SlowHead::normed(const std::vector<float>& x, const std::vector<float>& weight) const {
  if (weight.empty()) return x;
  std::vector<float> out(x.size());
  kernels_.rms_norm(x.data(), weight.data(), x.size(), static_cast<float>(description().shape.rms_epsilon), out.data());
  return out;
}

std::vector<float> SlowHead::embedding_of(Token token) const {
  const PackedMatrix& matrix = head_->embedding ? *head_->embedding : *weights_->embedding;
  std::vector<float> row(static_cast<std::size_t>(matrix.columns()));
  matrix.decode_row(token, row);
  return row;
}

// features [layers, target width] of one token.
std::vector<float> SlowHead::state_of(std::span<const float> features) {
  std::vector<float> x(features.begin(), features.end());
  if (!fuses_features(description().family)) return x;
  const auto width = static_cast<std::ptrdiff_t>(description().target_width);
  for (std::size_t i = 0; i < head_->feature_norms.size(); ++i) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(i) * width;
    std::ranges::copy(normed({begin, begin + width}, head_->feature_norms[i]), begin);
  }
  std::vector<float> state = product(*head_->fuse, normed(x, head_->fuse_norm));
  spread_nan(state);
  add_to(state, head_->fuse_bias);
  return description().family == HeadFamily::dflash ? normed(state, head_->hidden_norm) : state;
}

void SlowHead::rotate(float* head, std::int64_t position) const {
  const std::size_t half = frequencies_.size();
  const bool adjacent = description().shape.rope_pairing == RopePairing::adjacent;
  for (std::size_t i = 0; i < half; ++i) {
    const SinCos at = natural_sin_cos(static_cast<double>(position) * frequencies_[i]);
    const auto cosine = static_cast<float>(at.cos);
    const auto sine = static_cast<float>(at.sin);
    float& first = head[adjacent ? 2 * i : i];
    float& second = head[adjacent ? 2 * i + 1 : i + half];
    const float a = first;
    const float b = second;
    first = a * cosine - b * sine;
    second = b * cosine + a * sine;
  }
}

// Bias, norm and rotation of every head of a row.
void SlowHead::finish(std::vector<float>& heads, const std::vector<float>& bias, const std::vector<float>& norm,
                      std::int64_t position) const {
  const auto head_len = static_cast<std::ptrdiff_t>(description().shape.head_size);
  add_to(heads, bias);
  for (auto head = heads.begin(); head != heads.end(); head += head_len) {
    std::ranges::copy(normed({head, head + head_len}, norm), head);
    rotate(&*head, position);
  }
}

// Adds a layer's keys and values of a row to its entry.
void SlowHead::store(const PackedLayer& layer, const std::vector<float>& in, std::int64_t position, Entry& entry) {
  std::vector<float> keys = product(*layer.key, in);
  std::vector<float> values = product(*layer.value, in);
  finish(keys, layer.key_bias, layer.key_norm, position);
  add_to(values, layer.value_bias);
  std::vector<std::uint16_t> key_halves = halves_of(keys);
  std::vector<std::uint16_t> value_halves = halves_of(values);
  // A head with a number that binary16 does not hold is NaN throughout.
  const auto head_len = static_cast<std::size_t>(description().shape.head_size);
  for (std::size_t head = 0; head < key_halves.size(); head += head_len) {
    const auto of_keys = std::span(key_halves).subspan(head, head_len);
    const auto of_values = std::span(value_halves).subspan(head, head_len);
    if (std::ranges::all_of(of_keys, finite_half) && std::ranges::all_of(of_values, finite_half)) continue;
    std::ranges::fill(of_keys, std::uint16_t{0x7e00});
    std::ranges::fill(of_values, std::uint16_t{0x7e00});
  }
  entry.keys.push_back(std::move(key_halves));
  entry.values.push_back(std::move(value_halves));
}

// query: rotated and scaled. seen: entries of positions from first_position on.
std::vector<float> SlowHead::attention(const std::vector<float>& query, std::span<const Entry* const> seen,
                                       std::size_t layer, std::int64_t first_position) const {
  const ModelDescription& shape = description().shape;
  const auto head_len = static_cast<std::size_t>(shape.head_size);
  const auto sharing = static_cast<std::size_t>(shape.num_heads / shape.num_kv_heads);
  std::vector<float> out(query.size(), 0.0f);
  std::vector<float> weights(seen.size());
  for (std::size_t head = 0; head * head_len < query.size(); ++head) {
    const float* const q = query.data() + head * head_len;
    const std::size_t kv = head / sharing * head_len;
    for (std::size_t p = 0; p < seen.size(); ++p) {
      float score = 0.0f;
      for (std::size_t i = 0; i < head_len; ++i)
        score = std::fma(q[i], f16_to_f32(seen[p]->keys[layer][kv + i]), score);
      weights[p] = score;
    }
    const float largest = std::ranges::max(weights);
    float lanes[kSoftmaxLanes] = {};
    for (std::size_t p = 0; p < seen.size(); ++p) {
      weights[p] = limited_exp_of(weights[p] - largest);
      lanes[(static_cast<std::size_t>(first_position) + p) % kSoftmaxLanes] += weights[p];
    }
    for (std::size_t half = kSoftmaxLanes / 2; half >= 1; half /= 2)
      for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    const float factor = 1.0f / lanes[0];
    float* const to = out.data() + head * head_len;
    for (std::size_t i = 0; i < head_len; ++i) {
      for (std::size_t p = 0; p < seen.size(); ++p)
        to[i] = std::fma(weights[p], f16_to_f32(seen[p]->values[layer][kv + i]), to[i]);
      to[i] *= factor;
    }
  }
  return out;
}

// D (silu(G x) * (U x)).
std::vector<float> SlowHead::network(const auto& of, const std::vector<float>& x) {
  std::vector<float> gate = product(*of.gate, x);
  const std::vector<float> up = product(*of.up, x);
  kernels_.swiglu(gate.data(), up.data(), gate.size(), gate.data());
  return product(*of.down, gate);
}

// The experts with the best scores, of those in the best groups; then the sum of what they make of the row.
std::vector<float> SlowHead::mixture(const PackedLayer& layer, const std::vector<float>& x) {
  const ExpertShape& shape = description().shape.experts;
  const auto sigmoid = [](float logit) {
    return 1.0 / (1.0 + natural_exp(-static_cast<double>(std::clamp(logit, -80.0f, 80.0f))));
  };
  std::vector<float> logits = product(*layer.mixture.router, x);
  spread_nan(logits);
  const double largest = std::ranges::max(logits);
  double sum = 0.0;
  std::vector<double> scores, choosing;
  for (const float logit : logits) {
    scores.push_back(shape.by_sigmoid ? sigmoid(logit) : natural_exp(std::max(logit - largest, -80.0)));
    sum += scores.back();
  }
  for (std::size_t e = 0; e < scores.size(); ++e) {
    if (!shape.by_sigmoid) scores[e] /= sum;
    choosing.push_back(scores[e]);
    if (!layer.mixture.router_bias.empty()) choosing[e] += static_cast<double>(layer.mixture.router_bias[e]);
  }
  const std::size_t in_group = scores.size() / static_cast<std::size_t>(shape.groups);
  std::vector<std::pair<double, std::size_t>> groups, best;  // by falling score, then by number
  for (std::size_t g = 0; g < scores.size(); g += in_group) {
    std::vector<double> of_group(choosing.begin() + static_cast<std::ptrdiff_t>(g),
                                 choosing.begin() + static_cast<std::ptrdiff_t>(g + in_group));
    std::ranges::sort(of_group, std::greater<>());
    groups.emplace_back(shape.groups == 1 ? 0.0 : -(of_group[0] + of_group[1]), g);
  }
  std::ranges::sort(groups);
  groups.resize(static_cast<std::size_t>(shape.groups_chosen));
  for (const auto& [score, first] : groups)
    for (std::size_t e = first; e < first + in_group; ++e) best.emplace_back(-choosing[e], e);
  std::ranges::sort(best);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.chosen); ++i) chosen.push_back(best[i].second);
  std::ranges::sort(chosen);
  double of_chosen = 0.0;
  for (const std::size_t e : chosen) of_chosen += scores[e];
  const double factor = shape.scale / (shape.normalised ? of_chosen : 1.0);
  std::vector<float> out(x.size(), 0.0f);
  if (layer.gate) out = network(layer, x);
  if (layer.mixture.shared_gate) {
    const auto gate = static_cast<float>(sigmoid(product(*layer.mixture.shared_gate, x)[0]));
    for (float& value : out) value *= gate;
  }
  for (const std::size_t e : chosen) {
    const std::vector<float> of_expert = network(layer.mixture.experts[e], x);
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += static_cast<float>(scores[e] * factor) * of_expert[d];
  }
  return out;
}

// The rows of a block through the taps of one side of a convolution; kernels: by row, of both sides.
std::vector<std::vector<float>> SlowHead::convolved(const PackedConvolution& conv, std::size_t side,
                                                    const std::vector<std::vector<float>>& kernels,
                                                    std::vector<std::vector<float>> rows) const {
  if (!conv.kernel) return rows;
  const std::size_t width = rows[0].size(), taps = conv.base.size() / 2 / width;
  const std::size_t groups = kernels[0].size() / 2 / taps;
  std::vector<std::vector<float>> out(rows.size(), std::vector<float>(width, 0.0f));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t d = 0; d < width; ++d)
      for (std::size_t tap = side * taps; tap < (side + 1) * taps && tap - side * taps <= i; ++tap)
        out[i][d] += rows[i - (tap - side * taps)][d] *
                     (conv.base[tap * width + d] + kernels[i][tap * groups + d / (width / groups)]);
  return out;
}

// DFlash 2: the best tokens of a row, with what their codes say behind the token before; the others are impossible.
SlowHead::Row SlowHead::selected(const Row& row, const std::vector<float>& before) {
  std::vector<float> gate = product(*head_->markov_gate, row.state);
  spread_nan(gate);
  std::vector<std::pair<float, std::size_t>> order;
  for (std::size_t i = 0; i < row.logits.size(); ++i) order.emplace_back(-row.logits[i], i);
  Row out{std::vector<float>(order.size(), -std::numeric_limits<float>::infinity()), {}};
  if (std::isnan(row.logits[0])) return {row.logits, {}};
  std::ranges::sort(order);
  order.resize(std::min(order.size(), static_cast<std::size_t>(description().select_top_k)));
  bool is_finite = true;
  for (const auto& [negated, column] : order) {
    std::vector<float> code(before.size());
    head_->markov_out->decode_row(static_cast<std::int64_t>(column), code);
    float sum = 0.0f;
    for (std::size_t r = 0; r < code.size(); ++r) sum += before[r] * gate[r] * code[r];
    out.logits[column] = -negated + sum;
    is_finite = is_finite && std::isfinite(out.logits[column]);
  }
  if (!is_finite) std::ranges::fill(out.logits, std::numeric_limits<float>::quiet_NaN());
  return out;
}

// Tokens that see the entries before them and each other; their own entries are written. Not to the end: what lies
// behind the last layer's keys and values is left out.
void SlowHead::run_layers(Rows& rows, std::span<const Entry* const> before, std::int64_t first_position,
                          std::span<Entry> entries, bool to_the_end) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(description().shape.head_size));
  std::vector<const Entry*> seen(before.begin(), before.end());
  for (const Entry& entry : entries) seen.push_back(&entry);
  const std::vector<PackedLayer>& layers = head_->body.layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const PackedLayer& layer = layers[l];
    const LayerConvolutions conv = head_->convolutions.empty() ? LayerConvolutions{} : head_->convolutions[l];
    std::vector<std::vector<float>> in, kernels, out;
    const auto kernels_of = [&](const PackedConvolution& of) {
      kernels.clear();
      for (std::size_t i = 0; i < in.size() && of.kernel; ++i) kernels.push_back(product(*of.kernel, in[i]));
    };
    for (std::size_t i = 0; i < rows.residual.size(); ++i)
      in.push_back(l == 0 && !rows.first.empty() ? rows.first[i] : normed(rows.residual[i], layer.attention_norm));
    kernels_of(conv.attention);
    in = convolved(conv.attention, 0, kernels, std::move(in));
    for (std::size_t i = 0; i < in.size(); ++i) store(layer, in[i], rows.rotations[i], entries[i]);
    if (!to_the_end && l + 1 == layers.size()) return;
    for (std::size_t i = 0; i < in.size(); ++i) {
      std::vector<float> query = product(*layer.query, in[i]);
      finish(query, layer.query_bias, layer.query_norm, rows.rotations[i]);
      for (float& x : query) x *= scale;
      out.push_back(product(*layer.attention_out, attention(query, seen, l, first_position)));
    }
    out = convolved(conv.attention, 1, kernels, std::move(out));
    for (std::size_t i = 0; i < in.size(); ++i) {
      add_to(rows.residual[i], out[i]);
      in[i] = normed(rows.residual[i], layer.feed_forward_norm);
    }
    kernels_of(conv.network);
    in = convolved(conv.network, 0, kernels, std::move(in));
    for (std::size_t i = 0; i < in.size(); ++i)
      out[i] = layer.mixture.router ? mixture(layer, in[i]) : network(layer, in[i]);
    out = convolved(conv.network, 1, kernels, std::move(out));
    for (std::size_t i = 0; i < in.size(); ++i) add_to(rows.residual[i], out[i]);
  }
}

std::vector<float> SlowHead::logits_of(const std::vector<float>& residual) {
  const bool is_own = head_->body.head != nullptr;
  std::vector<float> logits =
      product(is_own ? *head_->body.head : *weights_->head, normed(residual, head_->body.out_norm));
  const std::vector<Token>& drafted = description().draft_tokens;
  if (!is_own && !drafted.empty()) {
    const std::vector<float> all = std::exchange(logits, std::vector<float>(drafted.size()));
    for (std::size_t i = 0; i < drafted.size(); ++i) logits[i] = all[static_cast<std::size_t>(drafted[i])];
  }
  spread_nan(logits);
  return logits;
}

// The input of the layers for the pair of a state and the token at `position` after it.
SlowHead::Rows SlowHead::pair_rows(const std::vector<float>& state, Token token, std::int64_t position) {
  std::vector<float> embedding = embedding_of(token);
  if (description().zero_first_embedding && position == 1) std::ranges::fill(embedding, 0.0f);
  std::vector<float> both = normed(embedding, head_->embed_norm);
  const std::vector<float> hidden = normed(state, head_->hidden_norm);
  both.insert(both.end(), hidden.begin(), hidden.end());
  Rows rows;
  rows.rotations = {position - 1};
  if (joins_pairs(description().family)) {
    rows.residual = {description().norm_before_residual ? hidden : state};
    rows.first = {std::move(both)};
    return rows;
  }
  rows.residual = {product(*head_->fuse, both)};
  spread_nan(rows.residual[0]);
  add_to(rows.residual[0], head_->fuse_bias);
  return rows;
}

SlowHead::Row SlowHead::row_of_pair(Rows rows, std::span<const Entry* const> before, Entry& entry) {
  run_layers(rows, before, 1, {&entry, 1}, true);
  const std::vector<float>& residual = rows.residual[0];
  return {logits_of(residual), description().norm_output ? normed(residual, head_->body.out_norm) : residual};
}

void SlowHead::read(Text& text, std::span<const Token> tokens) {
  const std::size_t known = text.tokens.size();
  if (known > tokens.size() || !std::ranges::equal(text.tokens, tokens.first(known))) text = {};
  if (text.tokens.size() == tokens.size()) return;
  const std::size_t n = tokens.size();
  GatheredBatch batch;
  batch.add_chain(tokens, 0);
  batch.contexts.emplace_back();
  ForwardOutput out;
  target_.forward(batch.view(feature_layers_), *target_.make_kv_cache(batch.size()), out);
  const std::size_t of_token = out.hidden.size() / n;
  for (std::size_t i = text.tokens.size(); i < n; ++i)
    text.states.push_back(state_of(std::span(out.hidden).subspan(i * of_token, of_token)));
  text.tokens.assign(tokens.begin(), tokens.end());
}

const SlowHead::Row& SlowHead::row(Text& text, std::span<const Token> tokens, const std::vector<Token>& path) {
  if (text.tokens.size() < tokens.size() || !std::ranges::equal(std::span(text.tokens).first(tokens.size()), tokens))
    read(text, tokens);
  if (text.drafted_at != tokens.size()) {
    text.drafted_at = tokens.size();
    text.nodes.clear();
    text.block_rows.clear();
  }
  if (description().family == HeadFamily::peagle)
    return node_of(text, tokens, std::vector<Token>(path.size(), description().mask_token)).row;
  if (!drafts_in_parallel(description().family)) return node_of(text, tokens, path).row;
  const auto [found, is_new] = text.nodes.try_emplace(path);
  if (is_new)
    found->second.row = description().family == HeadFamily::medusa ? medusa_row(text, tokens, path.size())
                                                                   : block_row(text, tokens, path);
  return found->second.row;
}

const SlowHead::Text::Node& SlowHead::node_of(Text& text, std::span<const Token> tokens,
                                              const std::vector<Token>& path) {
  const auto [found, is_new] = text.nodes.try_emplace(path);
  Text::Node& node = found->second;
  if (!is_new) return node;
  const auto newest = static_cast<std::int64_t>(tokens.size()) - 1;
  // Pairs of true tokens before the newest.
  for (auto p = static_cast<std::int64_t>(text.entries.size()) + 1; p < newest; ++p) {
    Rows rows = pair_rows(text.states[static_cast<std::size_t>(p) - 1], tokens[static_cast<std::size_t>(p)], p);
    Entry entry;
    run_layers(rows, pointers_to(text.entries), 1, {&entry, 1}, false);
    text.entries.push_back(std::move(entry));
  }
  std::vector<const Entry*> before = pointers_to(std::span(text.entries).first(static_cast<std::size_t>(newest) - 1));
  const std::vector<float>* state = &text.states[static_cast<std::size_t>(newest) - 1];
  std::vector<float> masked;
  Token token = tokens.back();
  if (!path.empty()) {
    const Text::Node& parent = node_of(text, tokens, {path.begin(), path.end() - 1});
    node.entries = parent.entries;
    state = &parent.row.state;
    if (description().family == HeadFamily::peagle) state = &(masked = state_of(head_->mask_hidden));
    token = path.back();
  }
  for (const Entry& entry : node.entries) before.push_back(&entry);
  Entry entry;
  node.row = row_of_pair(pair_rows(*state, token, newest + std::ssize(path)), before, entry);
  node.entries.push_back(std::move(entry));
  return node;
}

SlowHead::Row SlowHead::block_row(Text& text, std::span<const Token> tokens, const std::vector<Token>& path) {
  const auto newest = static_cast<std::int64_t>(tokens.size()) - 1;
  for (auto p = static_cast<std::int64_t>(text.entries.size()); p < newest; ++p) {
    Entry entry;
    for (const PackedLayer& layer : head_->body.layers)
      store(layer, text.states[static_cast<std::size_t>(p)], p, entry);
    text.entries.push_back(std::move(entry));
  }
  if (text.block_rows.empty()) {
    Rows rows;
    for (std::int32_t i = 0; i < description().block_len; ++i) {
      rows.residual.push_back(embedding_of(i == 0 ? tokens.back() : description().mask_token));
      rows.rotations.push_back(newest + i);
    }
    std::vector<Entry> entries(rows.residual.size());
    run_layers(rows, pointers_to(std::span(text.entries).first(static_cast<std::size_t>(newest))), 0, entries, true);
    for (const std::vector<float>& residual : rows.residual)
      text.block_rows.push_back({logits_of(residual), normed(residual, head_->body.out_norm)});
  }
  const Row& of_slot = text.block_rows[path.size() + (description().from_anchor ? 0 : 1)];
  Row row{of_slot.logits, {}};
  if (!head_->markov_in) return row;
  std::vector<float> before(static_cast<std::size_t>(head_->markov_in->columns()));
  head_->markov_in->decode_row(path.empty() ? tokens.back() : path.back(), before);
  if (head_->markov_gate) return selected(of_slot, before);
  std::vector<float> bias = product(*head_->markov_out, before);
  spread_nan(bias);
  add_to(row.logits, bias);
  return row;
}

SlowHead::Row SlowHead::medusa_row(const Text& text, std::span<const Token> tokens, std::size_t depth) {
  const HeadWeights::Medusa& head = head_->medusa[depth];
  std::vector<float> x = text.states[tokens.size() - 2];
  const std::vector<float> ones(x.size(), 1.0f);
  for (const HeadWeights::Medusa::Block& block : head.blocks) {
    std::vector<float> y = product(*block.weight, x);
    spread_nan(y);
    add_to(y, block.bias);
    kernels_.swiglu(y.data(), ones.data(), y.size(), y.data());  // silu(y) = swiglu(y, 1)
    if (!head.is_plain) add_to(y, x);
    x = std::move(y);
  }
  const PackedMatrix* matrix = head.head.get();
  if (matrix == nullptr) matrix = head_->body.head ? head_->body.head.get() : weights_->head.get();
  std::vector<float> logits = product(*matrix, x);
  spread_nan(logits);
  add_to(logits, head.head_bias);
  return {std::move(logits), {}};
}

}  // namespace draftproof
