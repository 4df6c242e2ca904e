#include "reference/step/dense_step_rows.hpp"

#include "tests/support/test.hpp"

TEST_CASE("a dense row holds the probabilities of its distribution tile by tile") {
  for (const std::size_t vocab_size : {std::size_t{1}, std::size_t{5}, std::size_t{4096}, std::size_t{9001}}) {
    std::vector<float> probabilities(vocab_size);
    for (std::size_t i = 0; i < vocab_size; ++i)
      probabilities[i] = static_cast<float>(i % 7) / (4.0f * static_cast<float>(vocab_size));
    Distribution distribution;
    distribution.make_probabilities({DType::f32, probabilities.data(), static_cast<std::int64_t>(vocab_size)}, 0);
    const DenseMasses<double> row = dense_row(distribution);
    REQUIRE(row.size() == vocab_size);
    for (std::size_t i = 0; i < vocab_size; ++i) REQUIRE(row[i] == static_cast<double>(probabilities[i]));
  }
}

TEST_CASE("a dense row of a one-hot distribution is one-hot") {
  Distribution distribution;
  distribution.make_one_hot(4097, 5000);
  const DenseMasses<double> row = dense_row(distribution);
  REQUIRE(row.size() == 5000);
  for (std::size_t i = 0; i < row.size(); ++i) REQUIRE(row[i] == (i == 4097 ? 1.0 : 0.0));
}
