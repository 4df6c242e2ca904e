#include "gpu/bench/gpu_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <tuple>

#include "base/dtype.hpp"
#include "base/files/atomic_file.hpp"
#include "gpu/bench/model_rows.hpp"
#include "gpu/regress/inputs.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof::bench {
namespace {

constexpr std::int64_t kDistinctRows = 32;

constexpr float kLogitSpread = 3.0f;
constexpr double kHeadRanks = 1024.0;

// seed 1 of index i and another seed of index i: the same row, and a little noise of their own.
std::vector<float> normal_row(std::uint64_t seed, std::int64_t index, std::int64_t vocab_size) {
  std::vector<float> row =
      regress::normal_logits(1000 + static_cast<std::uint64_t>(index), 1, vocab_size, vocab_size, kLogitSpread);
  const std::vector<float> own =
      regress::normal_logits(2000 + seed * 100 + static_cast<std::uint64_t>(index), 1, vocab_size, vocab_size, 0.5f);
  std::transform(row.begin(), row.end(), own.begin(), row.begin(), std::plus<>());
  return row;
}

void append(std::vector<std::byte>& out, float x, std::int32_t dtype) {
  const auto put = [&](auto value) {
    const std::size_t at = out.size();
    out.resize(at + sizeof(value));
    std::memcpy(out.data() + at, &value, sizeof(value));
  };
  if (dtype == DRAFTPROOF_F32) return put(x);
  put(dtype == DRAFTPROOF_F16 ? f32_to_f16(x) : f32_to_bf16(x));
}

float element(const HostRows& rows, std::int64_t at) {
  if (rows.dtype == DRAFTPROOF_F32) {
    float x = 0.0f;
    std::memcpy(&x, rows.bytes.data() + at * 4, 4);
    return x;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, rows.bytes.data() + at * 2, 2);
  return rows.dtype == DRAFTPROOF_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

// The logit of a rank: between knots linear in log(rank + 1).
float logit_of_rank(const ModelRow& row, double rank) {
  const int* const ranks = std::begin(kModelRanks);
  const auto next =
      std::clamp<std::ptrdiff_t>(std::upper_bound(ranks, std::end(kModelRanks), rank) - ranks, 1, kModelKnots - 1);
  const double begin = std::log1p(ranks[next - 1]);
  const double share = (std::log1p(rank) - begin) / (std::log1p(ranks[next]) - begin);
  return std::lerp(row.logits[next - 1], row.logits[next], static_cast<float>(share));
}

}  // namespace

std::vector<float> model_row(std::int64_t index, std::int64_t vocab_size) {
  const ModelRow& row = kModelRows[static_cast<std::size_t>(index) % std::size(kModelRows)];
  const std::vector<float> order =
      regress::normal_logits(3000 + static_cast<std::uint64_t>(index), 1, vocab_size, vocab_size, 1.0f);
  std::vector<std::size_t> tokens(order.size());
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  std::sort(tokens.begin(), tokens.end(), [&](std::size_t a, std::size_t b) { return order[a] < order[b]; });
  const double last = static_cast<double>(vocab_size - 1);
  const double stretch =
      last > kHeadRanks ? std::log(last / kHeadRanks) / std::log((kModelVocabSize - 1) / kHeadRanks) : 1.0;
  std::vector<float> logits(order.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    double rank = static_cast<double>(i);
    double tokens_of_rank = 1.0;
    if (rank > kHeadRanks && stretch != 1.0) {
      rank = kHeadRanks * std::pow(rank / kHeadRanks, 1.0 / stretch);
      tokens_of_rank = stretch * static_cast<double>(i) / rank;
    }
    logits[tokens[i]] = logit_of_rank(row, rank) - static_cast<float>(std::log(tokens_of_rank));
  }
  return logits;
}

HostRows bench_rows(std::uint64_t seed, const std::vector<std::int64_t>& positions, std::int64_t vocab_size,
                    std::int32_t kind, std::int32_t dtype, RowShape shape) {
  HostRows out{{}, static_cast<std::int64_t>(positions.size()), vocab_size, dtype};
  // Those of the call before: cases of many sizes and filters ask for the same.
  static std::vector<std::vector<std::byte>> distinct;
  static std::tuple<std::uint64_t, std::int64_t, RowShape, std::int32_t, std::int32_t> made;
  const auto wanted = std::make_tuple(seed, vocab_size, shape, kind, dtype);
  if (made != wanted) distinct.clear();
  made = wanted;
  for (std::int64_t i = static_cast<std::int64_t>(distinct.size()); i < kDistinctRows; ++i) {
    std::vector<float> row = shape == RowShape::model ? model_row(i, vocab_size) : normal_row(seed, i, vocab_size);
    if (kind == DRAFTPROOF_PROBABILITIES) {
      LogitsDistribution distribution;
      const std::vector<float> logits = row;
      distribution.assign(logits, i);
      for (std::int64_t t = 0; t < vocab_size; ++t)
        row[static_cast<std::size_t>(t)] = distribution.probability(static_cast<Token>(t));
    }
    std::vector<std::byte>& bytes = distinct.emplace_back();
    for (const float x : row) append(bytes, x, dtype);
  }
  for (const std::int64_t position : positions) {
    const std::vector<std::byte>& row = distinct[static_cast<std::size_t>(position % kDistinctRows)];
    out.bytes.insert(out.bytes.end(), row.begin(), row.end());
  }
  return out;
}

std::int64_t likely_token(const HostRows& rows, std::int64_t row, std::int64_t rank) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(rows.vocab_size));
  std::iota(tokens.begin(), tokens.end(), std::int64_t{0});
  const std::int64_t begin = row * rows.vocab_size;
  std::partial_sort(tokens.begin(), tokens.begin() + 32, tokens.end(), [&](std::int64_t a, std::int64_t b) {
    return element(rows, begin + a) > element(rows, begin + b);
  });
  return tokens[static_cast<std::size_t>(rank)];
}

void write_file(const std::filesystem::path& file, const std::vector<std::byte>& bytes) {
  AtomicFile out(file.string());
  out.stream().write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.commit();
}

}  // namespace draftproof::bench
