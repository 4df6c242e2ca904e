#include "gpu/regress/covering_inputs.hpp"

#include <algorithm>
#include <limits>

#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {
namespace {

// What a list of a request is made of.
enum Stream : std::uint64_t { kHistory, kDrafts, kBias, kWords, kStops, kAllowed, kMask };

// Values by turns, the first for the first request.
template <class T>
std::vector<T> in_turn(std::int64_t count, const std::vector<T>& values) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(values[static_cast<std::size_t>(i) % values.size()]);
  return out;
}

void filters(const Assignment& given, const std::string& prefix, std::int64_t requests, DistributionInputs& out) {
  const auto list = [&](const char* name, auto& values, const auto& from) {
    if (given.has(prefix + name)) values = in_turn(requests, from);
  };
  const bool is_draft = prefix == "draft_parameters.";
  list("temperature", out.temperature,
       is_draft ? std::vector<float>{0.8f, 1.0f, 1.4f} : std::vector<float>{0.7f, 1.0f, 0.0f, 1.6f});
  list("top_k", out.top_k, is_draft ? std::vector<std::int32_t>{60, 0, 9} : std::vector<std::int32_t>{25, 0, 40, 3});
  list("top_p", out.top_p, is_draft ? std::vector<float>{0.95f, 1.0f, 0.7f} : std::vector<float>{0.9f, 0.6f, 1.0f});
  list("min_p", out.min_p, is_draft ? std::vector<float>{0.01f, 0.0f} : std::vector<float>{0.02f, 0.0f, 0.1f});
  list("filter_order", out.filter_order, std::vector<std::uint8_t>{1, 0, 1});
  list("ties", out.ties, std::vector<std::uint8_t>{1, 0, 0, 1});
}

class Lists {
 public:
  Lists(std::uint64_t seed, const Assignment& given, DistributionInputs& out) : seed_(seed), given_(given), out_(out) {}

  void parameters() {
    filters(given_, "parameters.", out_.requests, out_);
    const auto list = [&](const char* name, auto& values, const auto& from) {
      if (given_.has(std::string("parameters.") + name)) values = in_turn(out_.requests, from);
    };
    list("repetition_penalty", out_.repetition_penalty, std::vector<float>{1.3f, 1.0f, 0.8f});
    list("frequency_penalty", out_.frequency_penalty, std::vector<float>{0.4f, -0.3f, 0.0f});
    list("presence_penalty", out_.presence_penalty, std::vector<float>{0.6f, 0.0f, -0.2f, 0.1f});
    list("guidance_scale", out_.guidance_scale, std::vector<float>{1.5f, 1.0f, 0.0f, -0.5f});
    list("nan_policy", out_.nan_policy, std::vector<std::uint8_t>{1, 0});
  }

  // Tokens repeat, and drafts repeat those of the history.
  void histories(std::int64_t drafts_max) {
    const bool has_drafts = given_.knows("constraints.row_draft_tokens") && given_.has("constraints.row_draft_tokens");
    if (has_drafts) drafts_max = 3;
    std::int64_t longest = 0;
    if (given_.has("constraints.history_tokens")) {
      out_.history_offsets = {0};
      for (std::int64_t r = 0; r < out_.requests; ++r) {
        const std::int64_t count = r % 4 == 2 ? 0 : 5 + 3 * r;
        for (std::int64_t i = 0; i < count; ++i) out_.history_tokens.push_back(token(kHistory, r * 1000 + i / 2));
        out_.history_offsets.push_back(end_of(out_.history_tokens));
        longest = std::max(longest, count);
        if (given_.has("constraints.prompt_len")) out_.prompt_len.push_back(count / 2);
      }
    }
    if (has_drafts) {
      for (std::int64_t row = 0; row < out_.rows; ++row) {
        out_.row_draft_begin.push_back(end_of(out_.row_draft_tokens));
        out_.row_draft_len.push_back(static_cast<std::int32_t>((row + 2) % 4));
        for (std::int64_t i = 0; i < (row + 2) % 4; ++i)
          out_.row_draft_tokens.push_back(i == 0 ? token(kHistory, 0) : token(kDrafts, row * 10 + i));
      }
    }
    out_.history_len_max = longest + drafts_max;
  }

  void constraints() {
    const std::string& mask = given_["constraints.allowed_mask_stride"];
    if (mask != "absent") {
      out_.allowed_mask_stride = (out_.vocab_size + 31) / 32 + (mask == "wider" ? 3 : 0);
      const Noise noise(seed_ + kMask);
      for (std::int64_t i = 0; i < out_.rows * out_.allowed_mask_stride; ++i) {
        const auto at = static_cast<std::uint64_t>(i) * 3;
        out_.allowed_mask.push_back(noise.word(at) | noise.word(at + 1) | noise.word(at + 2));
      }
    }
    // Half of the vocabulary in turns with no list at all.
    if (given_.has("constraints.allowed_ids"))
      out_.allowed_offsets = lists(
          out_.allowed_ids, [&](std::int64_t r) { return r % 2 == 0 ? out_.vocab_size / 2 : 0; },
          [&](std::int64_t r, std::int64_t i) { return token(kAllowed, r * 100000 + i); });
    if (given_.has("constraints.stop_ids"))
      out_.stop_offsets = lists(
          out_.stop_ids, [](std::int64_t r) { return 3 - r % 3; },
          [&](std::int64_t r, std::int64_t i) { return token(kStops, r * 10 + i); });
    if (given_.has("constraints.min_tokens")) out_.min_tokens = in_turn<std::int64_t>(out_.requests, {6, 2, 0, 40});
    if (given_.has("constraints.bias_tokens")) {
      out_.bias_offsets = lists(
          out_.bias_tokens, [](std::int64_t r) { return r % 3 == 1 ? 0 : 8; },
          [&](std::int64_t r, std::int64_t i) { return token(kBias, r * 100 + i % 5); });
      for (std::size_t i = 0; i < out_.bias_tokens.size(); ++i)
        out_.bias_values.push_back(3.0f * static_cast<float>(Noise(seed_).normal(i)));
    }
    if (given_.has("constraints.bad_word_tokens")) bad_words();
  }

 private:
  static std::int64_t end_of(const std::vector<std::int32_t>& list) { return static_cast<std::int64_t>(list.size()); }
  std::int32_t token(Stream stream, std::int64_t i) const {
    return static_cast<std::int32_t>(Noise(seed_ * 16 + stream).below(static_cast<std::uint64_t>(i), out_.vocab_size));
  }

  // The offsets of a list a request.
  template <class Length, class Element>
  std::vector<std::int64_t> lists(std::vector<std::int32_t>& elements, Length length, Element element) const {
    std::vector<std::int64_t> offsets = {0};
    for (std::int64_t r = 0; r < out_.requests; ++r) {
      for (std::int64_t i = 0; i < length(r); ++i) elements.push_back(element(r, i));
      offsets.push_back(end_of(elements));
    }
    return offsets;
  }

  // Single tokens, ends of histories, and what almost is one.
  void bad_words() {
    out_.bad_word_offsets = {0};
    out_.bad_word_sequences = {0};
    for (std::int64_t r = 0; r < out_.requests; ++r) {
      const std::int64_t end = out_.history_offsets.empty() ? 0 : out_.history_offsets[static_cast<std::size_t>(r) + 1];
      for (std::int64_t s = 0; s < 3 - r % 3; ++s) {
        if (s > 0) {
          const bool ends = s == 1 && end > 0;
          out_.bad_word_tokens.push_back(ends ? out_.history_tokens[static_cast<std::size_t>(end) - 1]
                                              : token(kWords, r * 100 + s));
        }
        for (std::int64_t i = 0; i < (s == 0 ? 1 : s); ++i)
          out_.bad_word_tokens.push_back(token(kWords, r * 100 + s * 10 + i));
        out_.bad_word_offsets.push_back(end_of(out_.bad_word_tokens));
      }
      out_.bad_word_sequences.push_back(static_cast<std::int64_t>(out_.bad_word_offsets.size()) - 1);
    }
  }

  std::uint64_t seed_;
  const Assignment& given_;
  DistributionInputs& out_;
};

}  // namespace

Assignment::Assignment(const std::vector<ArgumentValues>& arguments, const std::vector<std::size_t>& values) {
  for (std::size_t i = 0; i < arguments.size(); ++i) values_[arguments[i].name] = arguments[i].values[values[i]];
}

std::int64_t Assignment::vocab_size() const {
  const std::string& value = values_.at("vocab_size");
  return value == "part of a tile" ? 77 : value == "whole words" ? 96 : value == "tiles and a rest" ? 4106 : 4096;
}

int Assignment::block_threads() const {
  return std::stoi(values_.at("settings.block_threads"));
}

std::int32_t Assignment::dtype(const std::string& matrix) const {
  const std::string& value = values_.at(matrix + ".dtype");
  return value == "f16" ? DRAFTPROOF_F16 : value == "bf16" ? DRAFTPROOF_BF16 : DRAFTPROOF_F32;
}

std::int64_t Assignment::row_stride(const std::string& matrix) const {
  const std::string& value = values_.at(matrix + ".row_stride");
  // No two matrices of a call share a stride that is not exact.
  const std::int64_t own = static_cast<std::int64_t>(matrix.size()) * 8;
  return value == "padded" ? vocab_size() / 8 * 8 + own + 8
         : value == "odd"  ? vocab_size() / 2 * 2 + own + 1
                           : vocab_size();
}

DistributionInputs covering_lists(std::uint64_t seed, const Assignment& given, std::int64_t rows, std::int64_t requests,
                                  std::int64_t drafts_max) {
  DistributionInputs out;
  out.rows = rows;
  out.requests = requests;
  out.vocab_size = given.vocab_size();
  Lists make(seed, given, out);
  make.parameters();
  make.histories(drafts_max);
  make.constraints();
  return out;
}

DistributionInputs covering_draft_parameters(const Assignment& given, std::int64_t requests) {
  DistributionInputs out;
  out.requests = requests;
  filters(given, "draft_parameters.", requests, out);
  return out;
}

void put_nan(DistributionInputs& in, std::int64_t row) {
  in.logit(row, in.vocab_size / 2) = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace draftproof::regress
