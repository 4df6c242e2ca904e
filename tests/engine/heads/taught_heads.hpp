// Random heads whose last matrix is fitted to texts by ridge regression, so that their drafts are worth something.
#pragma once

#include <deque>

#include "engine/heads/lab/slow_head.hpp"
#include "tests/engine/heads/random_heads.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

struct TaughtHead {
  RandomHead head;
  std::deque<std::vector<std::byte>> readouts;

  // Rows of the last matrix for the tokens of `texts`, fitted to the tokens from `first` on, up to depth_max drafts
  // deep.
  TaughtHead(RandomHead random, const TransformerModel& target, const std::vector<std::vector<Token>>& texts,
             std::size_t first, std::size_t depth_max)
      : head(std::move(random)) {
    const auto width = static_cast<std::size_t>(head.tensors.description.target_width);
    // With an identity for its last matrix, a head's logits are what the matrix reads.
    HeadTensors probe = head.tensors;
    std::vector<float> identity(width * width, 0.0f);
    probe.description.draft_tokens.clear();
    for (std::size_t i = 0; i < width; ++i) {
      identity[i * width + i] = 1.0f;
      probe.description.draft_tokens.push_back(static_cast<Token>(i));
    }
    probe.description.shape.vocab_size = static_cast<std::int64_t>(width);
    probe.head = tensor(identity, width);
    SlowHead slow(std::make_shared<const HeadWeights>(pack_head(probe, 0, 1)), target, transformer_kernels());

    std::set<Token> used;
    for (const std::vector<Token>& text : texts)
      used.insert(text.begin() + static_cast<std::ptrdiff_t>(first), text.end());
    const std::vector<Token> tokens(used.begin(), used.end());
    std::vector<std::vector<double>> normal(width, std::vector<double>(width, 0.0));
    std::vector<std::vector<double>> right(tokens.size(), std::vector<double>(width, 0.0));
    for (const std::vector<Token>& text : texts) {
      SlowHead::Text memory;
      slow.read(memory, text);
      for (std::size_t n = first; n < text.size(); ++n)
        for (std::size_t d = 0; d < depth_max && n + d < text.size(); ++d) {
          const auto after = text.begin() + static_cast<std::ptrdiff_t>(n);
          const std::vector<float>& x =
              slow.row(memory, std::span(text).first(n), {after, after + static_cast<std::ptrdiff_t>(d)}).logits;
          const auto column = std::ranges::lower_bound(tokens, text[n + d]) - tokens.begin();
          std::vector<double>& to = right[static_cast<std::size_t>(column)];
          for (std::size_t i = 0; i < width; ++i) {
            to[i] += static_cast<double>(x[i]);
            double* const row = normal[i].data();
            const auto xi = static_cast<double>(x[i]);
            for (std::size_t j = 0; j <= i; ++j) row[j] += xi * static_cast<double>(x[j]);
          }
        }
    }
    // Cholesky's decomposition of the normal matrix and a ridge.
    for (std::size_t i = 0; i < width; ++i) {
      normal[i][i] += 0.1;
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = normal[i][j];
        for (std::size_t k = 0; k < j; ++k) sum -= normal[i][k] * normal[j][k];
        normal[i][j] = i == j ? std::sqrt(sum) : sum / normal[j][j];
      }
    }
    std::vector<float> readout;
    for (std::vector<double>& x : right) {
      for (std::size_t i = 0; i < width; ++i) {
        for (std::size_t k = 0; k < i; ++k) x[i] -= normal[i][k] * x[k];
        x[i] /= normal[i][i];
      }
      for (std::size_t i = width; i-- > 0;) {
        for (std::size_t k = i + 1; k < width; ++k) x[i] -= normal[k][i] * x[k];
        x[i] /= normal[i][i];
      }
      for (const double v : x) readout.push_back(static_cast<float>(10.0 * v));
    }
    head.tensors.description.draft_tokens = tokens;
    head.tensors.description.shape.vocab_size = static_cast<std::int64_t>(tokens.size());
    head.tensors.head = tensor(readout, width);
  }

 private:
  WeightTensor tensor(const std::vector<float>& values, std::size_t columns) {
    std::vector<std::byte>& bytes = readouts.emplace_back(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return {"readout", TensorKind::f32, static_cast<std::int64_t>(values.size() / columns),
            static_cast<std::int64_t>(columns), bytes};
  }
};

}  // namespace draftproof::testing
