#include "reference/draft/drafter_factory.hpp"

#include <algorithm>

#include "reference/draft/lookup_drafter.hpp"
#include "reference/draft/model_drafter.hpp"
#include "reference/draft/suffix_drafter.hpp"
#include "reference/error.hpp"
#include "reference/model/ngram_language_model.hpp"
#include "reference/model/transformer/transformer_model.hpp"

namespace draftproof {
namespace {

// Suffixes that prompt lookup looks for: of bytes below three they match anywhere.
constexpr int kLookupMin = 2;
constexpr int kByteLookupMin = 3;
constexpr int kLookupMax = 16;

// A drafter with the model that it reads.
template <class Model>
struct DrafterWithModel {
  DrafterWithModel(Model drafting_model, LanguageModel& language_model, std::optional<float> temperature)
      : model(std::move(drafting_model)),
        drafter(temperature ? ModelDrafter(language_model, parameters_of(*temperature))
                            : ModelDrafter(language_model)) {}

  static RowParameters parameters_of(float temperature) {
    RowParameters parameters;
    parameters.temperature = temperature;
    return parameters;
  }

  Model model;
  ModelDrafter drafter;
};

template <class Model>
std::shared_ptr<Drafter> drafter_with(Model model, LanguageModel& language_model, std::optional<float> temperature) {
  auto both = std::make_shared<DrafterWithModel<Model>>(std::move(model), language_model, temperature);
  return {both, &both->drafter};
}

TransformerModel& transformer_of(const TextModel& target, const DrafterChoice& choice, const std::string& where) {
  if (target.transformer == nullptr)
    throw usage_error(where, "is " + choice.text + ", and the target " + target.name +
                                 " has no layers and no weights; expected none, prompt_lookup, suffix or ngram:ORDER");
  return *target.transformer;
}

std::vector<std::int64_t> layers_without(const TransformerModel& model, const DrafterChoice& choice,
                                         const std::string& where) {
  const std::int64_t count = model.num_layers();
  if (choice.left_out.back() >= count || static_cast<std::int64_t>(choice.left_out.size()) == count)
    throw usage_error(where, "is " + choice.text + ", and the target has layers 0 to " + std::to_string(count - 1) +
                                 "; expected some of them, but not all");
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < count; ++layer)
    if (!std::ranges::binary_search(choice.left_out, layer)) layers.push_back(layer);
  return layers;
}

}  // namespace

std::shared_ptr<Drafter> make_drafter(const DrafterChoice& choice, const TextModel& target,
                                      std::optional<float> draft_temperature, const TextModelOptions& options,
                                      const std::string& where) {
  switch (choice.kind) {
    case DrafterKind::none:
      return nullptr;
    case DrafterKind::prompt_lookup:
      return std::make_shared<LookupDrafter>(PromptLookup(target.ngram ? kByteLookupMin : kLookupMin, kLookupMax));
    case DrafterKind::suffix:
      return std::make_shared<SuffixDrafter>();
    case DrafterKind::model: {
      TextModel model = open_text_model(choice.path, choice.path, options, where);
      if (const std::string difference = vocabulary_difference(target, model); !difference.empty())
        throw input_error(choice.path, "cannot draft for " + target.name + ": " + difference +
                                           "; expected a model with the target's vocabulary");
      LanguageModel& language_model = *model.model;
      return drafter_with(std::move(model), language_model, draft_temperature);
    }
    case DrafterKind::layer_skip: {
      const TransformerModel& model = transformer_of(target, choice, where);
      auto fewer = model.with_layers(layers_without(model, choice, where));
      LanguageModel& language_model = *fewer;
      return drafter_with(std::move(fewer), language_model, draft_temperature);
    }
    case DrafterKind::requantised: {
      auto coarser = transformer_of(target, choice, where).requantised(choice.number);
      LanguageModel& language_model = *coarser;
      return drafter_with(std::move(coarser), language_model, draft_temperature);
    }
    case DrafterKind::ngram:
      break;
  }
  if (!target.ngram)
    throw usage_error(where, "is " + choice.text + ", and the target " + target.name +
                                 " is no n-gram model; expected none, prompt_lookup, suffix, model:PATH, "
                                 "layer_skip:LIST or requantised:BITS");
  struct Ngram {
    std::unique_ptr<NgramModel> counts;
    std::unique_ptr<NgramLanguageModel> model;
  };
  Ngram ngram;
  ngram.counts = std::make_unique<NgramModel>(NgramModel::train(target.corpus, choice.number));
  ngram.model = std::make_unique<NgramLanguageModel>(*ngram.counts);
  LanguageModel& language_model = *ngram.model;
  return drafter_with(std::move(ngram), language_model, draft_temperature);
}

}  // namespace draftproof
