#include "engine/draft/drafter_factory.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "engine/draft/grammar_drafter.hpp"
#include "engine/draft/model_drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "engine/draft/shared_vocabulary.hpp"
#include "engine/draft/suffix_drafter.hpp"
#include "engine/heads/head_drafter.hpp"
#include "engine/heads/head_files.hpp"
#include "engine/model/ngram_language_model.hpp"
#include "engine/transformer/transformer_model.hpp"

namespace draftproof {
namespace {

// Suffixes that prompt lookup looks for: of bytes below three they match anywhere.
constexpr int kLookupMin = 2;
constexpr int kByteLookupMin = 3;
constexpr int kLookupMax = 16;
constexpr int kPackedBits = 8;  // of a head's matrices

// A drafter with the model that it reads.
struct DrafterWithModel {
  DrafterWithModel(std::shared_ptr<LanguageModel> drafting_model, std::optional<float> temperature)
      : model(std::move(drafting_model)),
        drafter(temperature ? ModelDrafter(*model, parameters_of(*temperature)) : ModelDrafter(*model)) {}

  static RowParameters parameters_of(float temperature) {
    RowParameters parameters;
    parameters.temperature = temperature;
    return parameters;
  }

  std::shared_ptr<LanguageModel> model;
  ModelDrafter drafter;
};

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

// Are most of the weights that a head multiplies with numbers of 16 or 32 bits?
bool has_wide_weights(const HeadTensors& head) {
  std::int64_t more = 0;  // wide ones than others
  for (const WeightTensor* tensor : tensors_of(head))
    if (tensor != &head.embedding && tensor != &head.markov_in &&  // whose rows are looked up
        (tensor != &head.markov_out || head.description.select_top_k == 0))
      more += (info_of(tensor->kind).block_len == 1 ? 1 : -1) * tensor->rows * tensor->columns;
  return more > 0;
}

}  // namespace

std::shared_ptr<LanguageModel> make_draft_model(const DrafterChoice& choice, const TextModel& target,
                                                const TextModelOptions& options, const std::string& where) {
  switch (choice.kind) {
    case DrafterKind::none:
    case DrafterKind::prompt_lookup:
    case DrafterKind::suffix:
    case DrafterKind::grammar:
    case DrafterKind::head:
      return nullptr;
    case DrafterKind::model: {
      auto model = std::make_shared<TextModel>(open_text_model(choice.path, choice.path, options, where));
      const std::shared_ptr<LanguageModel> draft(model, model->model.get());
      if (have_same_vocabulary(target, *model)) return draft;
      return std::make_shared<SharedVocabularyModel>(draft, *model->tokenizer, *target.tokenizer,
                                                     target.model->vocab_size(), choice.path);
    }
    case DrafterKind::layer_skip: {
      const TransformerModel& model = transformer_of(target, choice, where);
      return model.with_layers(layers_without(model, choice, where));
    }
    case DrafterKind::requantised:
      return transformer_of(target, choice, where).requantised(choice.number);
    case DrafterKind::ngram:
      break;
  }
  if (!target.ngram)
    throw usage_error(where, "is " + choice.text + ", and the target " + target.name +
                                 " is no n-gram model; expected none, prompt_lookup, suffix, model:PATH, "
                                 "layer_skip:LIST or requantised:BITS");
  struct Ngram {
    explicit Ngram(NgramModel trained) : counts(std::move(trained)), model(counts) {}
    NgramModel counts;
    NgramLanguageModel model;
  };
  auto ngram = std::make_shared<Ngram>(NgramModel::train(target.corpus, choice.number));
  return {ngram, &ngram->model};
}

DrafterChoice with_packed_head(DrafterChoice choice) {
  if (choice.kind != DrafterKind::head || choice.number != 0 || choice.as_in_file) return choice;
  if (!has_wide_weights(open_head_files(choice.path))) return choice;
  choice.number = kPackedBits;
  const std::size_t at = choice.text.rfind("head:" + choice.path);
  if (at != std::string::npos) choice.text.replace(at, 4, "head@" + std::to_string(kPackedBits));
  return choice;
}

std::shared_ptr<DraftHead> open_head(const DrafterChoice& choice, const TextModel& target,
                                     const TextModelOptions& options, const std::string& where) {
  const TransformerModel& model = transformer_of(target, choice, where);
  auto weights = std::make_shared<const HeadWeights>(
      pack_head(open_head_files(choice.path), choice.number, std::max(1, options.threads)));
  return std::make_shared<DraftHead>(std::move(weights), model, choice.path);
}

std::shared_ptr<Drafter> make_drafter(const DrafterChoice& choice, const TextModel& target,
                                      std::optional<float> draft_temperature, const TextModelOptions& options,
                                      const std::string& where) {
  if (choice.kind == DrafterKind::none) return nullptr;
  if (choice.kind == DrafterKind::grammar) return std::make_shared<GrammarDrafter>(nullptr, target.tokenizer);
  if (choice.first != DrafterKind::none) {
    DrafterChoice behind = choice;
    behind.first = DrafterKind::none;
    auto other = make_drafter(behind, target, draft_temperature, options, where);
    if (choice.first == DrafterKind::suffix)
      return std::make_shared<SuffixFrontDrafter>(std::move(other), choice.sa_threshold);
    return std::make_shared<GrammarDrafter>(std::move(other), target.tokenizer);
  }
  if (choice.kind == DrafterKind::prompt_lookup)
    return std::make_shared<LookupDrafter>(PromptLookup(target.ngram ? kByteLookupMin : kLookupMin, kLookupMax),
                                           std::max(1, options.threads));
  if (choice.kind == DrafterKind::suffix) return std::make_shared<SuffixDrafter>();
  if (choice.kind == DrafterKind::head) {
    transformer_of(target, choice, where);  // before the head's files are read
    return std::make_shared<HeadDrafter>(open_head(with_packed_head(choice), target, options, where), draft_temperature,
                                         choice.guided);
  }
  if (choice.matches_strings) {
    const auto model = std::make_shared<TextModel>(open_text_model(choice.path, choice.path, options, where));
    if (have_same_vocabulary(target, *model))
      throw usage_error(where, "is " + choice.text +
                                   ", which has the target's vocabulary; expected a model of another for "
                                   "--heterogeneous-vocab slem");
    auto drafter = std::make_shared<StringMatchDrafter>(std::shared_ptr<LanguageModel>(model, model->model.get()),
                                                        model->tokenizer, target.tokenizer, target.model->vocab_size());
    if (choice.discards_kv) drafter->discard_kv();
    return drafter;
  }
  auto both = std::make_shared<DrafterWithModel>(make_draft_model(choice, target, options, where), draft_temperature);
  if (const auto* const shared = dynamic_cast<const SharedVocabularyModel*>(both->model.get()))
    both->drafter.set_shared_tokens(shared->shared_tokens());
  if (choice.discards_kv) both->drafter.discard_kv();
  return {both, &both->drafter};
}

}  // namespace draftproof
