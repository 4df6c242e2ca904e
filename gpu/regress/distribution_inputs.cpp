#include "gpu/regress/distribution_inputs.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "gpu/regress/inputs.hpp"
#include "gpu/regress/invalid_offsets.hpp"

namespace draftproof::regress {
namespace {

template <class T>
std::int64_t count_of(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.size());
}

// Random stream of each list.
enum Stream : std::uint64_t { kHistory, kDrafts, kBias, kWords, kStops, kAllowed, kMask };

class Maker {
 public:
  Maker(std::uint64_t seed, DistributionInputs& out) : seed_(seed), out_(out), vocab_size_(out.vocab_size) {}

  // Several values of each parameter, so that a row that takes another request's is another row.
  void parameters() {
    constexpr float kTemperatures[] = {0.7f, 1.0f, 0.0f, 1.7f, 0.25f};
    constexpr std::int32_t kTopK[] = {0, 5, 40, 1, 1000};
    constexpr float kTopP[] = {0.9f, 1.0f, 0.5f, 0.99f};
    constexpr float kMinP[] = {0.0f, 0.05f, 0.0f};
    constexpr float kRepetition[] = {1.0f, 1.3f, 0.8f};
    constexpr float kFrequency[] = {0.0f, 0.4f, -0.3f, 0.0f};
    constexpr float kPresence[] = {0.0f, 0.6f, 0.0f, -0.2f, 0.0f};
    constexpr float kGuidance[] = {1.0f, 1.5f, 0.0f, -0.5f};
    for (std::size_t r = 0; r < static_cast<std::size_t>(out_.requests); ++r) {
      out_.temperature.push_back(kTemperatures[r % 5]);
      out_.top_k.push_back(kTopK[(r / 2) % 5]);
      out_.top_p.push_back(kTopP[(r / 3) % 4]);
      out_.min_p.push_back(kMinP[r % 3]);
      out_.filter_order.push_back(static_cast<std::uint8_t>(r / 2 % 2));
      out_.ties.push_back(static_cast<std::uint8_t>(r / 4 % 2));
      out_.repetition_penalty.push_back(kRepetition[(r + 1) % 3]);
      out_.frequency_penalty.push_back(kFrequency[(r + 1) % 4]);
      out_.presence_penalty.push_back(kPresence[(r + 1) % 5]);
      out_.guidance_scale.push_back(kGuidance[r % 4]);
      out_.nan_policy.push_back(static_cast<std::uint8_t>(r % 2));
    }
  }

  // Tokens repeat, and draft tokens repeat those of the history.
  void histories() {
    out_.history_offsets = {0};
    for (std::int64_t r = 0; r < out_.requests; ++r) {
      const std::int64_t count = r % 4 == 3 ? 0 : 3 + 7 * r;
      for (std::int64_t i = 0; i < count; ++i) out_.history_tokens.push_back(token(kHistory, r * 1000 + i / 2));
      out_.history_offsets.push_back(static_cast<std::int64_t>(out_.history_tokens.size()));
      out_.prompt_len.push_back(count / 3);
      out_.history_len_max = std::max(out_.history_len_max, count + 3);
      out_.min_tokens.push_back(r % 3 == 0 ? 0 : count / 2 + 3);
    }
    for (std::int64_t row = 0; row < out_.rows; ++row) {
      out_.row_draft_begin.push_back(static_cast<std::int64_t>(out_.row_draft_tokens.size()));
      out_.row_draft_len.push_back(static_cast<std::int32_t>(row % 4));
      for (std::int64_t i = 0; i < row % 4; ++i)
        out_.row_draft_tokens.push_back(i % 2 == 0 ? token(kDrafts, row * 10 + i)
                                                   : token(kHistory, out_.row_request[row_at(row)] * 1000));
    }
  }

  // Sequences that match the end of a history, sequences that almost do, and single tokens.
  void bad_words() {
    out_.bad_word_offsets = {0};
    out_.bad_word_sequences = {0};
    for (std::int64_t r = 0; r < out_.requests; ++r) {
      const std::int64_t end = out_.history_offsets[row_at(r + 1)];
      const std::int64_t count = end - out_.history_offsets[row_at(r)];
      for (std::int64_t s = 0; s < r % 4; ++s) {
        const std::int64_t before = s % 3;
        for (std::int64_t i = 0; i < before; ++i) {
          const bool matches = count >= before && s != 2;
          out_.bad_word_tokens.push_back(matches ? out_.history_tokens[row_at(end - before + i)]
                                                 : token(kWords, r * 100 + s * 10 + i));
        }
        out_.bad_word_tokens.push_back(token(kWords, r * 100 + s * 10 + 9));
        out_.bad_word_offsets.push_back(static_cast<std::int64_t>(out_.bad_word_tokens.size()));
      }
      out_.bad_word_sequences.push_back(static_cast<std::int64_t>(out_.bad_word_offsets.size()) - 1);
    }
  }

  void lists() {
    out_.stop_offsets = out_.bias_offsets = out_.allowed_offsets = {0};
    for (std::int64_t r = 0; r < out_.requests; ++r) {
      for (std::int64_t i = 0; i < r % 3 + 1; ++i) out_.stop_ids.push_back(token(kStops, r * 10 + i));
      out_.stop_offsets.push_back(static_cast<std::int64_t>(out_.stop_ids.size()));
      // Some twice, where the order of the additions shows in the rounding.
      for (std::int64_t i = 0; i < (r % 4) * 6; ++i) {
        out_.bias_tokens.push_back(token(kBias, r * 100 + i % 5));
        out_.bias_values.push_back(3.0f * static_cast<float>(Noise(seed_).normal(row_at(r * 100 + i))));
      }
      out_.bias_offsets.push_back(static_cast<std::int64_t>(out_.bias_tokens.size()));
      for (std::int64_t i = 0; i < (r % 5 == 4 ? vocab_size_ / 3 + 1 : 0); ++i)
        out_.allowed_ids.push_back(token(kAllowed, r * 100000 + i));
      out_.allowed_offsets.push_back(static_cast<std::int64_t>(out_.allowed_ids.size()));
    }
  }

  // About one token in sixteen is masked; the bits beyond the vocabulary are set at random.
  void bitmask() {
    out_.allowed_mask_stride = (vocab_size_ + 31) / 32 + 1;
    const Noise noise(seed_ + kMask);
    for (std::int64_t i = 0; i < out_.rows * out_.allowed_mask_stride; ++i) {
      const std::uint64_t at = static_cast<std::uint64_t>(i) * 4;
      out_.allowed_mask.push_back(noise.word(at) | noise.word(at + 1) | noise.word(at + 2) | noise.word(at + 3));
    }
  }

 private:
  static std::size_t row_at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int32_t token(Stream stream, std::int64_t i) const {
    return static_cast<std::int32_t>(Noise(seed_ * 16 + stream).below(static_cast<std::uint64_t>(i), vocab_size_));
  }

  std::uint64_t seed_;
  DistributionInputs& out_;
  std::int64_t vocab_size_;
};

}  // namespace

draftproof_rows DistributionInputs::logits_in(CaseRun& run) const {
  return run.rows(logits, row_stride, dtype);
}

draftproof_rows DistributionInputs::unconditional_in(CaseRun& run) const {
  if (unconditional.empty()) return {};
  return unconditional_stride == 0 ? run.rows(unconditional, row_stride, dtype)
                                   : run.rows(unconditional, unconditional_stride, unconditional_dtype);
}

draftproof_constraints DistributionInputs::constraints_in(CaseRun& run) const {
  draftproof_constraints c{};
  c.allowed_mask = run.optional(allowed_mask);
  c.allowed_mask_stride = allowed_mask_stride;
  c.allowed_ids = run.optional(allowed_ids);
  c.allowed_ids_count = count_of(allowed_ids);
  c.allowed_offsets = run.optional(allowed_offsets);
  c.history_tokens = run.optional(history_tokens);
  c.history_tokens_count = count_of(history_tokens);
  c.history_offsets = run.optional(history_offsets);
  c.prompt_len = run.optional(prompt_len);
  c.history_len_max = history_len_max;
  c.row_draft_tokens = run.optional(row_draft_tokens);
  c.row_draft_tokens_count = count_of(row_draft_tokens);
  c.row_draft_begin = run.optional(row_draft_begin);
  c.row_draft_len = run.optional(row_draft_len);
  c.bad_word_tokens = run.optional(bad_word_tokens);
  c.bad_word_tokens_count = count_of(bad_word_tokens);
  c.bad_word_offsets = run.optional(bad_word_offsets);
  c.bad_word_sequences_count = std::max<std::int64_t>(count_of(bad_word_offsets) - 1, 0);
  c.bad_word_sequences = run.optional(bad_word_sequences);
  c.min_tokens = run.optional(min_tokens);
  c.stop_ids = run.optional(stop_ids);
  c.stop_ids_count = count_of(stop_ids);
  c.stop_offsets = run.optional(stop_offsets);
  c.bias_tokens = run.optional(bias_tokens);
  c.bias_values = run.optional(bias_values);
  c.bias_count = count_of(bias_tokens);
  c.bias_offsets = run.optional(bias_offsets);
  return c;
}

DistributionInputs normal_rows(std::int64_t rows, std::int64_t vocab_size, std::int32_t dtype, float spread,
                               std::int64_t row_stride) {
  DistributionInputs out;
  out.rows = rows;
  out.requests = rows;
  out.vocab_size = vocab_size;
  out.row_stride = row_stride;
  out.dtype = dtype;
  out.logits = normal_logits(static_cast<std::uint64_t>(vocab_size * 8 + dtype), rows, vocab_size, row_stride, spread);
  return out;
}

DistributionInputs everything(std::uint64_t seed, std::int64_t rows, std::int64_t requests, std::int64_t vocab_size,
                              std::int32_t dtype) {
  DistributionInputs out = normal_rows(rows, vocab_size, dtype, 3.0f, padded(vocab_size));
  out.requests = requests;
  for (std::int64_t row = 0; row < rows; ++row)
    out.row_request.push_back(static_cast<std::int32_t>((row * 7 + 3) % requests));
  out.unconditional = normal_logits(seed + 100, rows, vocab_size, out.row_stride, 3.0f);
  Maker make(seed, out);
  make.parameters();
  make.histories();
  make.bad_words();
  make.lists();
  make.bitmask();
  return out;
}

std::vector<InvalidRows> invalid_rows() {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  const DistributionInputs valid = everything(71, 24, 12, 200, DRAFTPROOF_F32);
  std::vector<InvalidRows> found;
  const auto name_no_request = [](DistributionInputs in) {
    in.row_request[0] = -1;
    in.row_request[5] = static_cast<std::int32_t>(in.requests);
    in.row_request[8] = kMost;
    in.row_request[13] = kLeast;
    return in;
  };
  found.push_back({"row_request", name_no_request(valid)});
  // Without a constraint, and without a filter either; request 0 is refused for its own sake.
  DistributionInputs plain = normal_rows(24, 200, DRAFTPROOF_BF16, 3.0f, 256);
  plain.requests = 12;
  plain.row_request = valid.row_request;
  plain.temperature = valid.temperature;
  found.push_back({"row_request_of_plain_rows", name_no_request(plain)});
  plain.temperature[0] = -1.0f;
  found.push_back({"row_request_beside_a_bad_parameter", name_no_request(plain)});
  plain.top_k = valid.top_k;
  found.push_back({"row_request_of_filtered_rows", name_no_request(plain)});

  DistributionInputs drafts = valid;
  drafts.row_draft_begin[1] = -1;
  drafts.row_draft_begin[2] = std::int64_t{1} << 40;
  drafts.row_draft_begin[3] = std::numeric_limits<std::int64_t>::max();
  drafts.row_draft_begin[5] = count_of(valid.row_draft_tokens);
  drafts.row_draft_len[6] = -1;
  drafts.row_draft_len[7] = kMost;
  drafts.row_draft_len[9] = kLeast;
  drafts.row_draft_len[10] = static_cast<std::int32_t>(count_of(valid.row_draft_tokens));
  found.push_back({"row_drafts", drafts});
  drafts = normal_rows(24, 200, DRAFTPROOF_F32, 3.0f, 200);
  drafts.row_draft_tokens = {1};
  drafts.row_draft_begin.assign(24, std::int64_t{1} << 40);
  drafts.row_draft_len.assign(24, 3);
  drafts.min_p.assign(24, 0.125f);
  found.push_back({"row_drafts_that_nobody_looks_at", drafts});

  const auto add_lists = [&](const std::string& what, std::vector<std::int64_t> DistributionInputs::*offsets,
                             std::int64_t count) {
    for (InvalidOffsets& lie : invalid_list_offsets(valid.*offsets, count)) {
      found.push_back({what + "_" + lie.what, valid});
      found.back().inputs.*offsets = std::move(lie.offsets);
    }
  };
  using Inputs = DistributionInputs;
  add_lists("allowed_offsets", &Inputs::allowed_offsets, count_of(valid.allowed_ids));
  add_lists("history_offsets", &Inputs::history_offsets, count_of(valid.history_tokens));
  add_lists("bad_word_sequences", &Inputs::bad_word_sequences, count_of(valid.bad_word_offsets) - 1);
  add_lists("bad_word_offsets", &Inputs::bad_word_offsets, count_of(valid.bad_word_tokens));
  add_lists("stop_offsets", &Inputs::stop_offsets, count_of(valid.stop_ids));
  add_lists("bias_offsets", &Inputs::bias_offsets, count_of(valid.bias_tokens));
  return found;
}

}  // namespace draftproof::regress
