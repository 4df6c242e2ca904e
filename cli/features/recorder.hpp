// The target's hidden features, as the passes that decode hand them out: a drafter that asks for layers, drafts
// nothing, and keeps what it is given. No token is computed a second time for its features.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/dtype.hpp"
#include "engine/decode/model_backend.hpp"
#include "engine/draft/drafter.hpp"

namespace draftproof {

class FeatureRecorder final : public Drafter {
 public:
  // `layers` are counted from 1, ascending.
  FeatureRecorder(std::vector<std::int32_t> layers, std::int64_t width) : layers_(std::move(layers)), width_(width) {}

  std::span<const std::int32_t> hidden_layers() const override { return layers_; }
  void propose(const DraftContext&, const DraftPlan&, DraftChance&, Draft& out) override { out = {}; }
  // Rows are written to the places of their tokens: a row that comes twice has the same bits.
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache*) override {
    for (const ComputedTokens& of : computed) {
      std::vector<std::uint16_t>& kept = features_[of.request];
      const std::size_t first = static_cast<std::size_t>(of.first) * row_len();
      if (kept.size() < first + of.rows.size() * row_len()) kept.resize(first + of.rows.size() * row_len());
      for (std::size_t i = 0; i < of.rows.size(); ++i)
        std::ranges::transform(features.subspan(static_cast<std::size_t>(of.rows[i]) * row_len(), row_len()),
                               kept.begin() + static_cast<std::ptrdiff_t>(first + i * row_len()), f32_to_f16);
    }
  }

  // Features of a request's tokens as the target reads them, [rows, layers, width] in binary16: of all but the last
  // one, which no pass computed. Taken once.
  std::vector<std::uint16_t> take(std::uint64_t request) { return std::move(features_[request]); }
  std::size_t row_len() const { return layers_.size() * static_cast<std::size_t>(width_); }

 private:
  std::vector<std::int32_t> layers_;
  std::int64_t width_;
  std::map<std::uint64_t, std::vector<std::uint16_t>> features_;
};

}  // namespace draftproof
