#include "reference/logits/logprobs.hpp"

#include <algorithm>
#include <limits>

#include "gpu/executors.hpp"
#include "gpu/reference_executor/rows.hpp"

namespace draftproof::reference_executor {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr TokenLogprob kPadding{DRAFTPROOF_NO_TOKEN, kMinusInfinity, 0};

// The n places of the listed tokens, then that of the sampled one.
std::vector<TokenLogprob> places_of(const Distribution& distribution, std::int32_t n, Token sampled) {
  std::vector<TokenLogprob> places;
  if (const OneHot* greedy = distribution.one_hot()) {
    places = {{greedy->token, 0.0f, 1}};
    if (sampled != greedy->token) places.push_back({sampled, kMinusInfinity, 2});
  } else {
    places = top_logprobs(*distribution.logits_distribution(), n, sampled);
  }
  const TokenLogprob of_sampled =
      *std::find_if(places.begin(), places.end(), [&](const TokenLogprob& t) { return t.token == sampled; });
  std::erase_if(places, [&](const TokenLogprob& t) { return t.rank > n || t.logprob == kMinusInfinity; });
  places.resize(static_cast<std::size_t>(n), kPadding);
  places.push_back(of_sampled);
  return places;
}

}  // namespace

void logprobs(const draftproof_logprobs_arguments& a, const draftproof_settings&) {
  Rows rows({a.vocab_size, a.logits, a.unconditional, a.parameters, a.constraints});
  Distribution distribution;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t request = request_of_row(a.row_request, row, a.requests);
    const Token sampled = a.sampled[row];
    a.status[row] =
        static_cast<std::int32_t>(rows.process(row, request, drafted_before(a.constraints, row), distribution));
    if (sampled < 0 || sampled >= a.vocab_size)
      a.status[row] = std::max<std::int32_t>(a.status[row], DRAFTPROOF_ROW_BAD_ID);
    std::vector<TokenLogprob> places(static_cast<std::size_t>(a.n) + 1, kPadding);
    if (a.status[row] == DRAFTPROOF_ROW_OK) places = places_of(distribution, a.n, sampled);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(row) * places.size() + i;
      a.tokens[at] = places[i].token;
      a.logprobs[at] = places[i].logprob;
      a.ranks[at] = places[i].rank;
    }
  }
}

}  // namespace draftproof::reference_executor
