// The two frequency tests by which popular libraries accept a sampler: cosine similarity of counts and distribution
// above 0.99, and a chi-squared statistic less than ten standard deviations above its mean, at V = 4096 with ten draws
// a token. What they say of every bug stands beside what the lab says.
#pragma once

#include <cstdint>
#include <vector>

#include "exactness/bugs/bug.hpp"

namespace draftproof {

inline constexpr std::int32_t kUsualVocabSize = 4096;
inline constexpr std::int64_t kUsualDraws = 10 * kUsualVocabSize;

// [kUsualVocabSize] A Zipf distribution, as a model's next token often has, and the distribution of a draft model that
// is right to within factors up to e^(1/2) in either direction.
const std::vector<double>& usual_target_distribution();
const std::vector<double>& usual_draft_distribution();

struct UsualTests {
  double cosine = 0.0;
  double chi_squared = 0.0;
  double chi_squared_limit = 0.0;  // df + 10 sqrt(2 df)

  bool cosine_passes() const { return cosine > 0.99; }
  bool chi_squared_passes() const { return chi_squared < chi_squared_limit; }
};

// Over kUsualDraws draws. Tokens outside the vocabulary are dropped, and cells of probability 0 with them, as those
// tests do.
UsualTests usual_tests_of(const LargeSampler& sampler);

}  // namespace draftproof
