#include "cli/shared/draft_share.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "cli/shared/model_path.hpp"
#include "engine/transformer/transformer_model.hpp"

namespace draftproof {

double draft_share(const DrafterChoice& choice, const TextModel& target, const TextModelOptions& options,
                   const std::string& where) {
  if (target.transformer == nullptr) return 0.0;
  const TransformerModel& whole = *target.transformer;
  const auto share = [&](const TransformerModel& drafter) {
    return static_cast<double>(drafter.weights_per_pass()) / static_cast<double>(whole.weights_per_pass());
  };
  if (choice.kind == DrafterKind::layer_skip) {
    std::vector<std::int64_t> kept;
    for (std::int64_t layer = 0; layer < whole.num_layers(); ++layer)
      if (!std::ranges::binary_search(choice.left_out, layer)) kept.push_back(layer);
    if (kept.empty()) throw usage_error(where, "is " + choice.text + ", which leaves no layer; expected some of them");
    return share(*whole.with_layers(kept));
  }
  if (choice.kind == DrafterKind::requantised) return share(*whole.requantised(choice.number));
  if (choice.kind == DrafterKind::model) {
    const TextModel model = open_text_model(choice.path, model_path(choice.path), options, where);
    if (model.transformer != nullptr) return share(*model.transformer);
  }
  return 0.0;
}

}  // namespace draftproof
