// The target's hidden features, as the passes that decode hand them out: a drafter that asks for layers, drafts nothing,
// and keeps what it is given. No token is computed a second time for its features.
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
  void propose(const DraftContext& context, const DraftPlan&, DraftChance&, Draft& out) override {
    out = {};
    keep(context.request, context.hidden, context.hidden_end);
  }
  // After each pass: the last one of a request is followed by no proposal.
  void after_pass(const ActiveRequest& request) {
    const std::size_t start_len = request.streams[0].size() - request.sequence.tokens().size();
    const auto end = static_cast<std::size_t>(request.hidden_end);
    keep(request.id, request.hidden, end > start_len ? end - start_len : 0);
  }

  // Features of a request's tokens, [rows, layers, width] in binary16: of all but the last one, which no pass computed.
  // Taken once.
  std::vector<std::uint16_t> take(std::uint64_t request) { return std::move(features_[request]); }
  std::size_t row_len() const { return layers_.size() * static_cast<std::size_t>(width_); }

 private:
  // Rows of the tokens before `end`, which are written to their own places: a row that comes twice has the same bits.
  void keep(std::uint64_t request, std::span<const float> rows, std::size_t end) {
    const std::size_t count = std::min(rows.size() / row_len(), end);
    std::vector<std::uint16_t>& kept = features_[request];
    if (kept.size() < end * row_len()) kept.resize(end * row_len());
    const std::span<const float> last = rows.last(count * row_len());
    std::ranges::transform(last, kept.begin() + static_cast<std::ptrdiff_t>((end - count) * row_len()), f32_to_f16);
  }

  std::vector<std::int32_t> layers_;
  std::int64_t width_;
  std::map<std::uint64_t, std::vector<std::uint16_t>> features_;
};

}  // namespace draftproof
