// Rows and parameters that are fetched from the wrong place.

#include "exactness/bugs/families.hpp"
#include "exactness/bugs/filter/hunts.hpp"

namespace draftproof {
namespace {

struct RaggedRow {
  Logits logits;
  RowParameters parameters;
};

// A kernel over stored rows: block b works on the row indices[b], whose parameters are stored beside it.
std::vector<ExactDistribution> distributions_by_indices(const std::vector<RaggedRow>& stored,
                                                        std::span<const std::size_t> indices,
                                                        bool parameters_by_block) {
  std::vector<ExactDistribution> distributions;
  for (std::size_t block = 0; block < indices.size(); ++block) {
    const std::size_t row = indices[block];
    distributions.push_back(
        distribution_by_production(stored[row].logits, stored[parameters_by_block ? block : row].parameters));
  }
  return distributions;
}

Finding find_foreign_parameters(bool faulty) {
  std::vector<RaggedRow> rows;
  for (const Logits& logits : small_rows(3, 1))
    rows.push_back({logits, with_top_k(static_cast<std::int32_t>(rows.size() % 3))});
  return find_batch_dependence(rows, [&](const std::vector<RaggedRow>& batch) {
    // Stored from the last to the first.
    const std::vector<RaggedRow> stored(batch.rbegin(), batch.rend());
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < batch.size(); ++i) indices.push_back(batch.size() - 1 - i);
    return distributions_by_indices(stored, indices, faulty);
  });
}

// A tensor too large to be held: each element is a function of its offset.
struct EndlessTensor {
  std::uint64_t base = 0;

  float operator[](std::uint64_t offset) const {
    const std::uint64_t element = base + offset;
    const RandomBlock words =
        philox_block(0, static_cast<std::uint32_t>(element / 4), static_cast<std::uint32_t>(element / 4 >> 32), 0,
                     static_cast<std::uint32_t>(Purpose::simulator));
    return static_cast<float>(words.word[element % 4] >> 8) * 0x1p-20f;
  }
};

template <class Offset>
Logits row_at(const EndlessTensor& tensor, std::uint64_t row, std::uint64_t vocab_size) {
  const Offset begin = static_cast<Offset>(static_cast<Offset>(row) * static_cast<Offset>(vocab_size));
  Logits logits;
  for (std::uint64_t i = 0; i < vocab_size; ++i) logits.push_back(tensor[begin + i]);
  return logits;
}

// Each row in the tensor of all rows, against a tensor that begins with it.
Finding find_row_read_elsewhere(bool faulty) {
  constexpr std::uint64_t kVocabSize = 100'352;
  constexpr std::uint64_t kRows[] = {0, 1, 42'798, 42'800, 70'000};
  return first_evidence("rows", kRows, [faulty](std::uint64_t row) {
    const EndlessTensor tensor;
    const Token token = greedy_token(
        faulty ? row_at<std::uint32_t>(tensor, row, kVocabSize) : row_at<std::uint64_t>(tensor, row, kVocabSize), 0);
    const EndlessTensor alone{row * kVocabSize};
    const Token expected = greedy_token(row_at<std::uint64_t>(alone, 0, kVocabSize), 0);
    if (token == expected) return std::string();
    return "row " + std::to_string(row) + " of " + std::to_string(kVocabSize) + " tokens begins at element " +
           std::to_string(row * kVocabSize) + "; its greedy token is " + std::to_string(expected) + " alone and " +
           std::to_string(token) + " in the large batch";
  });
}

}  // namespace

std::vector<Bug> row_mapping_bugs() {
  return {
      {.id = "B56",
       .source = "flashinfer #5339, #5340, #5346",
       .fault = "with an array of row indices, k is read at the number of the block and not of the row",
       .hunts = {{Detector::ragged, find_foreign_parameters}}},
      {.id = "B58",
       .source = "flashinfer #2937",
       .fault = "the offset of a row is computed in 32 bits",
       .hunts = {{Detector::ragged, find_row_read_elsewhere}}},
  };
}

}  // namespace draftproof
