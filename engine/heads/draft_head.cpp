#include "engine/heads/draft_head.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "reference/numerics/natural_exp.hpp"

namespace draftproof {
namespace {

void require_equal(const std::string& where, const char* what, std::int64_t of_head, std::int64_t of_target) {
  if (of_head != of_target)
    throw input_error(where, std::string("is a head for targets with ") + what + " " + std::to_string(of_head) +
                                 ", and this target has " + std::to_string(of_target) +
                                 "; expected the target that it was trained on");
}

TransformerWeights body_of(const HeadWeights& head, const TransformerWeights& target, int threads) {
  TransformerWeights body = head.body;
  if (!body.head) body.head = drafted_rows(target.head, head.description, threads);
  return body;
}

}  // namespace

DraftHead::DraftHead(std::shared_ptr<const HeadWeights> weights, const TransformerModel& target,
                     const std::string& where)
    : weights_(std::move(weights)),
      target_(target.shared_weights()),
      team_(target.team()),
      kernels_(target.kernels()),
      arithmetic_(target.arithmetic()),
      body_(body_of(*weights_, *target_, team_->threads())),
      layers_(body_.layers.size()),
      rope_(body_.shape),
      ones_(static_cast<std::size_t>(description().target_width), 1.0f) {
  std::iota(layers_.begin(), layers_.end(), std::int64_t{0});
  const HeadDescription& head = description();
  const ModelDescription& shape = target_->shape;
  require_equal(where, "width", head.target_width, shape.width);
  if (head.target_vocab_size != 0) require_equal(where, "vocabulary size", head.target_vocab_size, shape.vocab_size);
  if (head.target_layers != 0) require_equal(where, "number of layers", head.target_layers, target.num_layers());
  if (head.draft_tokens.empty()) require_equal(where, "vocabulary size", body_.shape.vocab_size, shape.vocab_size);
  for (const Token token : head.draft_tokens)
    if (token >= shape.vocab_size)
      throw input_error(where, "drafts token " + std::to_string(token) + ", and the target has " +
                                   std::to_string(shape.vocab_size) + "; expected tokens of the target");
  if ((!weights_->embedding || !weights_->body.head) && head.family != HeadFamily::medusa)
    require_equal(where, "width of the embeddings that it shares", body_.shape.width, shape.width);
  feature_layers_ = feature_layers_of(head, target.num_layers(), where);
}

std::int64_t DraftHead::state_width() const {
  return fuses_features(description().family) ? body_.shape.width : description().target_width;
}

std::int32_t DraftHead::draft_len_max() const {
  if (description().family == HeadFamily::medusa) return static_cast<std::int32_t>(weights_->medusa.size());
  return description().family == HeadFamily::dflash ? description().block_len - (description().from_anchor ? 0 : 1) : 0;
}

std::unique_ptr<TransformerKvCache> DraftHead::make_cache(std::int64_t num_slots) const {
  if (layers_.empty()) return nullptr;
  const ModelDescription& shape = body_.shape;
  return std::make_unique<TransformerKvCache>(
      KvShape{static_cast<std::int64_t>(layers_.size()), shape.num_kv_heads, shape.head_size}, num_slots);
}

ForwardContext DraftHead::context_of(const PassInput& input) const {
  return {body_, layers_, arithmetic_, kernels_, rope_, *team_, input};
}

void DraftHead::embed(Token token, float* to) const {
  const PackedMatrix& embedding = weights_->embedding ? *weights_->embedding : *target_->embedding;
  embedding.decode_row(token, {to, static_cast<std::size_t>(embedding.columns())});
}

void DraftHead::norm(const float* x, const std::vector<float>& weight, float* to) const {
  kernels_.rms_norm(x, weight.data(), weight.size(), static_cast<float>(body_.shape.rms_epsilon), to);
}

void DraftHead::multiply(const PackedMatrix& matrix, std::span<const float> x, std::vector<float>& out) {
  product_.run(*team_, kernels_, arithmetic_, matrix, x, out);
}

void DraftHead::make_states(std::span<const float> features, std::vector<float>& states) {
  const HeadWeights& head = *weights_;
  if (!fuses_features(description().family)) {
    states.assign(features.begin(), features.end());
    return;
  }
  const auto width = static_cast<std::size_t>(description().target_width);
  rows_.assign(features.begin(), features.end());
  for (std::size_t i = 0; !head.feature_norms.empty() && i < rows_.size() / width; ++i)
    norm(rows_.data() + i * width, head.feature_norms[i % head.feature_norms.size()], rows_.data() + i * width);
  if (!head.fuse_norm.empty())
    for (std::size_t i = 0; i < rows_.size(); i += head.fuse_norm.size())
      norm(rows_.data() + i, head.fuse_norm, rows_.data() + i);
  multiply(*head.fuse, rows_, states);
  const std::size_t columns = static_cast<std::size_t>(state_width());
  for (std::size_t i = 0; i < states.size(); i += columns) {
    if (!head.fuse_bias.empty()) kernels_.add(states.data() + i, head.fuse_bias.data(), columns);
    if (description().family == HeadFamily::dflash) norm(states.data() + i, head.hidden_norm, states.data() + i);
  }
}

void DraftHead::run_layers(const HeadBatch& batch, const PassInput& input, TransformerKvCache& kv, HeadOutput& out) {
  std::int32_t positions = 0;
  for (const std::int32_t position : batch.positions) positions = std::max(positions, position + 1);
  rope_.extend(positions);
  const std::int32_t last = static_cast<std::int32_t>(layers_.size()) +
                            (description().norm_output || description().family == HeadFamily::dflash ? 1 : 0);
  ForwardBatch of_pass = batch;
  of_pass.hidden_layers = {&last, 1};
  pass_.run(context_of(input), of_pass, kv, output_);
  out.logits.swap(output_.logits);
  out.states.swap(output_.hidden);
}

void DraftHead::run_pairs(const HeadBatch& batch, std::span<const float> states, TransformerKvCache& kv,
                          HeadOutput& out) {
  const HeadWeights& head = *weights_;
  const std::size_t n = batch.tokens.size();
  const auto width = static_cast<std::size_t>(body_.shape.width);
  const auto state_len = static_cast<std::size_t>(state_width());
  const std::size_t columns = width + state_len;
  // Embedding first, in every family.
  rows_.resize(n * columns);
  for (std::size_t i = 0; i < n; ++i) {
    float* const row = rows_.data() + i * columns;
    embed(batch.tokens[i], row);
    if (description().zero_first_embedding && batch.positions[i] == 1) std::fill_n(row, width, 0.0f);
    if (!head.embed_norm.empty()) norm(row, head.embed_norm, row);
    const float* const state = states.data() + i * state_len;
    if (head.hidden_norm.empty())
      std::copy_n(state, state_len, row + width);
    else
      norm(state, head.hidden_norm, row + width);
  }
  PassInput input{.first_position = 1, .tails = batch.tails};
  if (joins_pairs(description().family)) {
    residual_.resize(n * width);
    for (std::size_t i = 0; i < n; ++i)
      std::copy_n(description().norm_before_residual ? rows_.data() + i * columns + width : states.data() + i * width,
                  width, residual_.data() + i * width);
    input.first_rows = rows_;
  } else {
    multiply(*head.fuse, rows_, residual_);
    for (std::size_t i = 0; i < n && !head.fuse_bias.empty(); ++i)
      kernels_.add(residual_.data() + i * width, head.fuse_bias.data(), width);
  }
  input.residual = residual_;
  run_layers(batch, input, kv, out);
}

void DraftHead::store_context(const HeadBatch& batch, std::span<const float> states, TransformerKvCache& kv) {
  std::int32_t positions = 0;
  for (const std::int32_t position : batch.positions) positions = std::max(positions, position + 1);
  rope_.extend(positions);
  pass_.store_context(context_of({}), batch, states, kv);
}

void DraftHead::run_blocks(const HeadBatch& batch, TransformerKvCache& kv, HeadOutput& out) {
  const auto width = static_cast<std::size_t>(body_.shape.width);
  residual_.resize(batch.tokens.size() * width);
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) embed(batch.tokens[i], residual_.data() + i * width);
  run_layers(batch, {.residual = residual_, .convolutions = weights_->convolutions, .whole_chains = true}, kv, out);
}

void DraftHead::run_medusa(std::size_t index, std::span<const float> states, std::vector<float>& logits) {
  const HeadWeights::Medusa& head = weights_->medusa[index];
  const auto width = static_cast<std::size_t>(description().target_width);
  residual_.assign(states.begin(), states.end());
  for (const HeadWeights::Medusa::Block& block : head.blocks) {
    multiply(*block.weight, residual_, rows_);
    for (std::size_t i = 0; i < rows_.size(); i += width) {
      float* const row = rows_.data() + i;
      if (!block.bias.empty()) kernels_.add(row, block.bias.data(), width);
      // silu(x) is swiglu with a factor of 1.
      kernels_.swiglu(row, ones_.data(), width, row);
      if (head.is_plain)
        std::copy_n(row, width, residual_.data() + i);
      else
        kernels_.add(residual_.data() + i, row, width);
    }
  }
  multiply(head.head ? *head.head : *body_.head, residual_, logits);
  for (std::size_t i = 0; i < logits.size() && !head.head_bias.empty(); ++i)
    logits[i] += head.head_bias[i % head.head_bias.size()];
}

float DraftHead::confidence(std::span<const float> state, Token before) const {
  const std::vector<float>& weights = weights_->confidence;
  std::vector<float> inputs(weights.size());
  std::ranges::copy(state, inputs.begin());
  if (inputs.size() > state.size()) weights_->markov_in->decode_row(before, std::span(inputs).subspan(state.size()));
  float sum = weights_->confidence_bias;
  for (std::size_t i = 0; i < inputs.size(); ++i) sum = std::fma(weights[i], inputs[i], sum);
  return static_cast<float>(1.0 / (1.0 + natural_exp(-static_cast<double>(std::clamp(sum, -80.0f, 80.0f)))));
}

// Keeps a row's best tokens, ties going to the first, each with the score of its row of markov_out.
void DraftHead::select(std::span<const float> context, std::span<float> logits) const {
  if (!std::isfinite(logits.front())) return;  // NaN throughout
  std::vector<std::size_t> best(logits.size());
  std::iota(best.begin(), best.end(), std::size_t{0});
  const auto kept = std::min(best.size(), static_cast<std::size_t>(description().select_top_k));
  std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(kept), [&](std::size_t a, std::size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  best.resize(kept);
  std::vector<float> scores, successor(context.size());
  for (const std::size_t row : best) {
    weights_->markov_out->decode_row(static_cast<std::int64_t>(row), successor);
    float sum = 0.0f;
    for (std::size_t i = 0; i < context.size(); ++i) sum += context[i] * successor[i];
    scores.push_back(logits[row] + sum);
  }
  const bool all_finite = std::ranges::all_of(scores, [](float score) { return std::isfinite(score); });
  std::ranges::fill(logits,
                    all_finite ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < kept && all_finite; ++i) logits[best[i]] = scores[i];
}

void DraftHead::add_markov(std::span<const Token> before, std::span<float> logits, std::span<const float> states) {
  const PackedMatrix& from = *weights_->markov_in;
  const auto rank = static_cast<std::size_t>(from.columns());
  rows_.resize(before.size() * rank);
  for (std::size_t i = 0; i < before.size(); ++i) from.decode_row(before[i], std::span(rows_).subspan(i * rank, rank));
  if (description().select_top_k != 0) {
    multiply(*weights_->markov_gate, states, residual_);
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] *= residual_[i];
    const std::size_t row = logits.size() / before.size();
    for (std::size_t i = 0; i < before.size(); ++i)
      select(std::span(rows_).subspan(i * rank, rank), logits.subspan(i * row, row));
    return;
  }
  multiply(*weights_->markov_out, rows_, residual_);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] += residual_[i];
}

}  // namespace draftproof
