// A Llama in double precision, written from the formulas alone: no kernels, no cache, no layout of ours. What rounds in
// the model under test (int8 activations, keys and values as binary16) does not round here.
#pragma once

#include "base/token.hpp"
#include "engine/weights/model_weights.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

class PlainLlama {
 public:
  explicit PlainLlama(const ModelWeights& model) : model_(model), shape_(model.description) {}

  // Logits after the last of these tokens.
  std::vector<double> logits(const std::vector<Token>& tokens) const {
    std::vector<Row> x;
    for (const Token token : tokens) x.push_back(row_of(model_.token_embedding, token));
    for (const LayerWeights& layer : model_.layers) {
      attention(layer, x);
      for (Row& row : x) {
        const Row in = norm(row, layer.feed_forward_norm);
        const Row gate = times(layer.gate, in);
        Row up = times(layer.up, in);
        for (std::size_t i = 0; i < up.size(); ++i) up[i] *= gate[i] / (1.0 + std::exp(-gate[i]));
        add(row, times(layer.down, up));
      }
    }
    return times(model_.head, norm(x.back(), model_.final_norm));
  }

 private:
  using Row = std::vector<double>;

  static Row row_of(const WeightTensor& tensor, std::int64_t row) {
    std::vector<float> values(static_cast<std::size_t>(tensor.columns));
    const auto bytes = static_cast<std::size_t>(encoded_bytes(tensor.kind, tensor.columns));
    decode_blocks(tensor.kind, tensor.bytes.subspan(static_cast<std::size_t>(row) * bytes, bytes), values);
    return {values.begin(), values.end()};
  }
  static Row times(const WeightTensor& matrix, const Row& x) {
    Row out;
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      const Row weights = row_of(matrix, r);
      double sum = 0.0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += weights[i] * x[i];
      out.push_back(sum);
    }
    return out;
  }
  static void add(Row& x, const Row& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  Row norm(const Row& x, const WeightTensor& weight) const {
    const Row w = row_of(weight, 0);
    double squares = 0.0;
    for (const double v : x) squares += v * v;
    const double r = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + shape_.rms_epsilon);
    Row out(x);
    for (std::size_t i = 0; i < x.size(); ++i) out[i] *= r * w[i];
    return out;
  }
  // Bias, norm and rotation of the heads of a row.
  void finish(Row& row, const WeightTensor& bias, const WeightTensor& weight, std::size_t position) const {
    if (bias.is_there()) add(row, row_of(bias, 0));
    const auto length = static_cast<std::size_t>(shape_.head_size);
    const auto half = static_cast<std::size_t>(shape_.head_size / 2);
    for (std::size_t head = 0; head < row.size(); head += length) {
      if (weight.is_there()) {
        const Row normed = norm(Row(row.begin() + static_cast<std::ptrdiff_t>(head),
                                    row.begin() + static_cast<std::ptrdiff_t>(head + length)),
                                weight);
        std::copy(normed.begin(), normed.end(), row.begin() + static_cast<std::ptrdiff_t>(head));
      }
      for (std::size_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) *
                             std::pow(shape_.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(2 * half)) /
                             static_cast<double>(shape_.rope_divisors[i]);
        double& a = row[head + (shape_.rope_pairing == RopePairing::adjacent ? 2 * i : i)];
        double& b = row[head + (shape_.rope_pairing == RopePairing::adjacent ? 2 * i + 1 : i + half)];
        const double was = a;
        a = was * std::cos(angle) - b * std::sin(angle);
        b = was * std::sin(angle) + b * std::cos(angle);
      }
    }
  }
  void attention(const LayerWeights& layer, std::vector<Row>& x) const {
    const auto length = static_cast<std::size_t>(shape_.head_size);
    const auto heads = static_cast<std::size_t>(shape_.num_heads);
    const auto shared = static_cast<std::size_t>(shape_.num_heads / shape_.num_kv_heads);
    std::vector<Row> keys;
    std::vector<Row> values;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row in = norm(x[t], layer.attention_norm);
      Row query = times(layer.query, in);
      keys.push_back(times(layer.key, in));
      values.push_back(times(layer.value, in));
      finish(query, layer.query_bias, layer.query_norm, t);
      finish(keys.back(), layer.key_bias, layer.key_norm, t);
      if (layer.value_bias.is_there()) add(values.back(), row_of(layer.value_bias, 0));
      Row out(heads * length);
      for (std::size_t h = 0; h < heads; ++h) {
        Row weights;
        double sum = 0.0;
        for (std::size_t p = 0; p <= t; ++p) {
          double score = 0.0;
          for (std::size_t i = 0; i < length; ++i) score += query[h * length + i] * keys[p][h / shared * length + i];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(length))));
          sum += weights.back();
        }
        for (std::size_t p = 0; p <= t; ++p)
          for (std::size_t i = 0; i < length; ++i)
            out[h * length + i] += weights[p] / sum * values[p][h / shared * length + i];
      }
      add(x[t], times(layer.output, out));
    }
  }

  const ModelWeights& model_;
  const ModelDescription& shape_;
};

}  // namespace draftproof::testing
