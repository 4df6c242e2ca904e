// Random rows and random splits of them over devices, each part in memory of its own.
#pragma once

#include "base/dtype.hpp"
#include "base/strict_number.hpp"
#include "reference/shard/sharded_masses.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

// DRAFTPROOF_SHARD_ROWS=100000 runs as many rows instead.
inline std::int64_t num_rows(std::int64_t standard) {
  const char* text = std::getenv("DRAFTPROOF_SHARD_ROWS");
  return text == nullptr ? fewer_if_sanitized(standard) : read_integer(text, 1, 1'000'000'000).value();
}

// Up to 64 ranges, some of them empty. Cuts fall anywhere, at multiples of a tile, or around the row's equal values.
inline std::vector<TokenRange> random_split(TestRandom& random, std::int64_t vocab_size) {
  const std::int64_t devices = random.chance(0.2) ? 1 + random.below(64) : 1 + random.below(6);
  if (random.chance(0.2)) return even_split(vocab_size, static_cast<std::size_t>(devices));
  const std::int64_t grid = random.chance(0.3) ? kTileTokens : 1;
  const std::int64_t first = random.below(vocab_size + 1);
  const std::int64_t width = random.chance(0.3) ? std::min<std::int64_t>(vocab_size - first, 8) : vocab_size - first;
  std::vector<std::int64_t> cuts{0, vocab_size};
  for (std::int64_t d = 1; d < devices; ++d) cuts.push_back((first + random.below(width + 1)) / grid * grid);
  std::sort(cuts.begin(), cuts.end());
  std::vector<TokenRange> ranges;
  for (std::size_t d = 0; d + 1 < cuts.size(); ++d)
    ranges.push_back({static_cast<Token>(cuts[d]), static_cast<Token>(cuts[d + 1])});
  return ranges;
}

// A row of any type, whole and in parts.
class SplitRow {
 public:
  SplitRow(const std::vector<float>& row, DType dtype, const Devices& devices) : dtype_(dtype) {
    whole_ = bytes_of(row);
    const std::size_t element = dtype_size_bytes(dtype);
    for (std::size_t d = 0; d < devices.count(); ++d) {
      const auto begin =
          whole_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(devices.range(d).begin) * element);
      parts_.emplace_back(
          begin, begin + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(devices.range(d).size()) * element));
      views_.push_back({dtype, parts_.back().data(), devices.range(d).size()});
    }
  }

  RowView whole() const {
    return {dtype_, whole_.data(), static_cast<std::int64_t>(whole_.size() / dtype_size_bytes(dtype_))};
  }
  const std::vector<RowView>& parts() const { return views_; }

 private:
  std::vector<std::byte> bytes_of(const std::vector<float>& row) const {
    std::vector<std::byte> bytes(row.size() * dtype_size_bytes(dtype_));
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::uint16_t half = dtype_ == DType::f16 ? f32_to_f16(row[i]) : f32_to_bf16(row[i]);
      if (dtype_ == DType::f32)
        std::memcpy(bytes.data() + 4 * i, &row[i], 4);
      else
        std::memcpy(bytes.data() + 2 * i, &half, 2);
    }
    return bytes;
  }

  DType dtype_;
  std::vector<std::byte> whole_;
  std::vector<std::vector<std::byte>> parts_;
  std::vector<RowView> views_;
};

inline DType random_dtype(TestRandom& random) {
  return std::vector<DType>{DType::f32, DType::f16, DType::bf16}[static_cast<std::size_t>(random.below(3))];
}

inline std::int64_t random_vocab(TestRandom& random) {
  if (random.chance(0.5)) return 1 + random.below(60);
  return 1 + random.below(random.chance(0.8) ? 6'000 : 20'000);
}

// Storage that a row's parameters point to, and the input without logits.
struct OwnedInput {
  std::vector<Token> allowed, stop;
  std::vector<std::uint32_t> mask;
  std::vector<LogitBias> bias;
  std::unique_ptr<BadWords> words;
  std::unique_ptr<History> history;
  RowInput input;
};

inline FilterParameters random_filters(TestRandom& random, std::int64_t vocab_size) {
  FilterParameters filters;
  if (random.chance(0.4))
    filters.top_k = static_cast<std::int32_t>(
        1 + random.below(random.chance(0.5) ? std::min<std::int64_t>(vocab_size, 60) : vocab_size + 2));
  if (random.chance(0.4)) filters.top_p = 0.01f + 0.98f * static_cast<float>(random.uniform());
  if (random.chance(0.3)) filters.min_p = 0.5f * static_cast<float>(random.uniform() * random.uniform());
  if (random.chance(0.5)) filters.order = FilterOrder::top_k_first;
  if (random.chance(0.3)) filters.ties = Ties::keep_all;
  return filters;
}

inline OwnedInput random_input(TestRandom& random, std::int64_t vocab_size, bool greedy = true) {
  OwnedInput o;
  RowInput& in = o.input;
  in.row = {random.below(9), "target_logits", random.below(4)};
  RowParameters& p = in.parameters;
  if (greedy && random.chance(0.1))
    p.temperature = 0.0f;
  else if (random.chance(0.6))
    p.temperature = 0.3f + 1.4f * static_cast<float>(random.uniform());
  if (random.chance(0.7)) p.filters = random_filters(random, vocab_size);
  if (random.chance(0.3)) p.nan_policy = NanPolicy::as_minus_inf;
  if (random.chance(0.5)) return o;
  const Token safe = random.token(vocab_size);
  o.history = std::make_unique<History>(random.tokens(random.below(20), vocab_size),
                                        random.tokens(random.below(20), vocab_size), vocab_size);
  in.history = o.history.get();
  if (random.chance(0.4)) p.repetition_penalty = 0.6f + static_cast<float>(random.uniform());
  if (random.chance(0.4)) p.frequency_penalty = random.normal() * 0.4f;
  if (random.chance(0.4)) p.presence_penalty = random.normal() * 0.4f;
  if (random.chance(0.2)) p.samplers.dry_multiplier = 0.8f;
  if (random.chance(0.3)) {
    o.words = std::make_unique<BadWords>(std::vector<std::vector<Token>>{{random.token(vocab_size)}},
                                         static_cast<std::size_t>(vocab_size));
    in.constraints.bad_words = o.words.get();
  }
  if (random.chance(0.3)) {
    o.stop = random.tokens(2, vocab_size);
    in.constraints.stop_ids = o.stop;
    in.constraints.min_tokens = random.below(30);
  }
  if (random.chance(0.3)) {
    for (std::int64_t i = 0; i < (vocab_size + 31) / 32; ++i) o.mask.push_back(random.word() | random.word());
    o.mask[static_cast<std::size_t>(safe / 32)] |= 1u << (safe % 32);
    in.constraints.allowed_mask = o.mask;
  }
  if (random.chance(0.2)) {
    o.allowed = random.tokens(1 + random.below(vocab_size), vocab_size);
    o.allowed.push_back(safe);
    in.constraints.allowed_ids = o.allowed;
  }
  if (random.chance(0.4)) {
    for (const Token t : random.tokens(3, vocab_size)) o.bias.push_back({t, random.normal()});
    in.constraints.logit_bias = o.bias;
  }
  return o;
}

}  // namespace draftproof::testing
