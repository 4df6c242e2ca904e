// A toy language model over processed logits, decoded by races: what coupled verification must reproduce bit for bit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/logits/pipeline.hpp"
#include "reference/verify/chance.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof {

enum class ToyDrafter : std::uint8_t { target_itself, similar_model, other_model, argmax, random_tokens };
inline constexpr std::array<ToyDrafter, 5> kToyDrafters{ToyDrafter::target_itself, ToyDrafter::similar_model,
                                                        ToyDrafter::other_model, ToyDrafter::argmax,
                                                        ToyDrafter::random_tokens};

inline std::vector<RowParameters> race_decoding_parameters() {
  std::vector<RowParameters> all(6);
  all[1].temperature = 0.0f;
  all[2].temperature = 0.6f;
  all[3].temperature = 1.5f;
  all[3].filters.top_k = 5;
  all[4].filters.top_p = 0.8f;
  all[5].filters.min_p = 0.1f;
  all[5].temperature = 0.8f;
  return all;
}

class ToyDecoder {
 public:
  ToyDecoder(std::int64_t vocab_size, std::uint64_t seed, const RowParameters& parameters)
      : vocab_size_(vocab_size), seed_(seed), parameters_(parameters) {}

  // The distribution after `text` of model 0 (the target) or of a drafter's model, into `distribution`; `pipeline`
  // holds its buffers.
  void process(std::span<const Token> text, std::uint64_t model, Pipeline& pipeline, Distribution& distribution,
               std::vector<float>& row) const {
    std::uint64_t context = seed_;
    for (const Token t : text.last(text.size() < 2 ? text.size() : 2))
      context = context * 64 + 1 + static_cast<std::uint64_t>(t);
    TestRandom random(context);
    row = normal_row(random, vocab_size_);
    if (model > 0) {
      TestRandom other(context + 1'000'003 * model);
      for (float& l : row) l += other.normal() * (model == 1 ? 0.4f : 3.0f);
    }
    pipeline.run({{DType::f32, row.data(), vocab_size_}, {}, parameters_, {}, nullptr, 0}, distribution);
  }

  template <class Source>
  std::vector<Token> decode_plainly(Source& source, std::size_t length, std::uint32_t num_lists = 1) const {
    std::vector<Token> text;
    Pipeline pipeline;
    Distribution distribution;
    std::vector<float> row;
    while (text.size() < length) {
      process(text, 0, pipeline, distribution, row);
      AddressedChance<Source> chance(source, seed_, 0);
      text.push_back(chance.coupled_list_race(DistributionMasses(distribution), static_cast<std::uint32_t>(text.size()),
                                              num_lists));
    }
    return text;
  }

  template <class Chance>
  std::vector<Token> draft(ToyDrafter drafter, const std::vector<Token>& context, std::uint32_t draft_len,
                           std::uint32_t list, Chance& chance) const {
    std::vector<Token> text = context;
    Pipeline pipeline;
    Distribution distribution;
    std::vector<float> row;
    TestRandom random(seed_ * 1000 + context.size() + list);
    for (std::uint32_t i = 0; i < draft_len; ++i) {
      if (drafter == ToyDrafter::random_tokens) {
        text.push_back(random.token(vocab_size_));
        continue;
      }
      const std::uint64_t model = drafter == ToyDrafter::target_itself ? 0 : drafter == ToyDrafter::other_model ? 2 : 1;
      process(text, model, pipeline, distribution, row);
      Token argmax = 0;
      for (Token t = 1; t < vocab_size_; ++t)
        if (distribution.probability(t) > distribution.probability(argmax)) argmax = t;
      const auto position = static_cast<std::uint32_t>(text.size());
      text.push_back(drafter == ToyDrafter::argmax
                         ? argmax
                         : chance.coupled_race(DistributionMasses(distribution), position, list));
    }
    return {text.begin() + static_cast<std::ptrdiff_t>(context.size()), text.end()};
  }

 private:
  std::int64_t vocab_size_;
  std::uint64_t seed_;
  RowParameters parameters_;
};

// The target's rows after `text` and the first `row` tokens of a draft.
class ToyRows {
 public:
  ToyRows(const ToyDecoder& decoder, const std::vector<Token>& text, const std::vector<Token>& draft)
      : decoder_(decoder), text_(text), draft_(draft) {}

  DistributionMasses masses(std::uint32_t row) {
    std::vector<Token> prefix = text_;
    prefix.insert(prefix.end(), draft_.begin(), draft_.begin() + row);
    decoder_.process(prefix, 0, pipeline_, distribution_, row_);
    return DistributionMasses(distribution_);
  }

 private:
  const ToyDecoder& decoder_;
  const std::vector<Token>& text_;
  const std::vector<Token>& draft_;
  Pipeline pipeline_;
  Distribution distribution_;
  std::vector<float> row_;
};

}  // namespace draftproof
