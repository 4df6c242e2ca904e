#include "gpu/bench/gpu_tensors.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>

#include "base/dtype.hpp"
#include "base/files/atomic_file.hpp"
#include "gpu/regress/inputs.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof::bench {
namespace {

constexpr std::int64_t kDistinctRows = 32;

// seed 1 of index i and another seed of index i: the same row, and a little noise of their own.
std::vector<float> row_of(std::uint64_t seed, std::int64_t index, std::int64_t vocab_size, float spread) {
  std::vector<float> row =
      regress::normal_logits(1000 + static_cast<std::uint64_t>(index), 1, vocab_size, vocab_size, spread);
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

}  // namespace

HostRows bench_rows(std::uint64_t seed, const std::vector<std::int64_t>& positions, std::int64_t vocab_size,
                    float spread, std::int32_t kind, std::int32_t dtype) {
  HostRows out{{}, static_cast<std::int64_t>(positions.size()), vocab_size, dtype};
  // Those of the call before: cases of many sizes and filters ask for the same.
  static std::vector<std::vector<std::byte>> distinct;
  static std::tuple<std::uint64_t, std::int64_t, float, std::int32_t, std::int32_t> made;
  const auto wanted = std::make_tuple(seed, vocab_size, spread, kind, dtype);
  if (made != wanted) distinct.clear();
  made = wanted;
  for (std::int64_t i = static_cast<std::int64_t>(distinct.size()); i < kDistinctRows; ++i) {
    std::vector<float> row = row_of(seed, i, vocab_size, spread);
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
