#include <algorithm>
#include <limits>

#include "gpu/executors.hpp"
#include "gpu/reference_executor/rows.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof::reference_executor {
namespace {

Token draw(const draftproof_sample_arguments& a, std::int64_t row, std::int64_t request,
           const Distribution& distribution) {
  PhiloxSource source;
  const auto sampler = a.sampler == DRAFTPROOF_RACE ? Sampler::race : Sampler::inverse;
  AddressedChance<PhiloxSource> chance(source, value_of<std::uint64_t>(a.randomness.seed, request, 0),
                                       value_of<std::uint32_t>(a.randomness.step, request, 0), sampler);
  return chance.draw(DistributionMasses(distribution), value_of<std::uint32_t>(a.row_in_step, row, 0),
                     static_cast<Purpose>(a.purpose));
}

// The outputs of a refused row.
void write_padding(const draftproof_sample_arguments& a, std::int64_t row) {
  a.tokens[row] = DRAFTPROOF_NO_TOKEN;
  if (a.logprobs != nullptr) a.logprobs[row] = -std::numeric_limits<float>::infinity();
  if (a.kept_mass != nullptr) a.kept_mass[row] = 0.0f;
  if (a.kept_count != nullptr) a.kept_count[row] = 0;
  if (a.probabilities != nullptr) std::fill_n(a.probabilities + row * a.probabilities_stride, a.vocab_size, 0.0f);
}

void write_row(const draftproof_sample_arguments& a, std::int64_t row, std::int64_t request,
               const Distribution& distribution) {
  const Token token = draw(a, row, request, distribution);
  a.tokens[row] = token;
  if (a.logprobs != nullptr) a.logprobs[row] = distribution.log_probability(token);
  if (a.kept_mass != nullptr) a.kept_mass[row] = static_cast<float>(distribution.kept_mass());
  if (a.kept_count != nullptr) a.kept_count[row] = distribution.kept_count();
  if (a.probabilities == nullptr) return;
  float* const out = a.probabilities + row * a.probabilities_stride;
  for (std::int64_t i = 0; i < a.vocab_size; ++i) out[i] = distribution.probability(static_cast<Token>(i));
}

}  // namespace

void sample(const draftproof_sample_arguments& a, const draftproof_settings&) {
  Rows rows({a.vocab_size, a.logits, a.unconditional, a.parameters, a.constraints});
  Distribution distribution;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t request = request_of_row(a.row_request, row, a.requests);
    a.status[row] =
        static_cast<std::int32_t>(rows.process(row, request, drafted_before(a.constraints, row), distribution));
    if (a.status[row] == DRAFTPROOF_ROW_OK) {
      write_row(a, row, request, distribution);
    } else {
      write_padding(a, row);
    }
  }
}

}  // namespace draftproof::reference_executor
