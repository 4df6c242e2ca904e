#include "reference/logits/logprobs.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "gpu/executors.hpp"
#include "gpu/reference_executor/rows.hpp"

namespace draftproof::reference_executor {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr TokenLogprob kPadding{DRAFTPROOF_NO_TOKEN, kMinusInfinity, 0};

// The n places of the listed tokens, then those of the tokens asked for, the sampled one first.
std::vector<TokenLogprob> places_of(const Distribution& distribution, std::int32_t n, std::span<const Token> asked) {
  std::vector<TokenLogprob> listed;
  if (const OneHot* greedy = distribution.one_hot()) {
    listed = {{greedy->token, 0.0f, 1}};
    for (const Token token : asked)
      if (token != greedy->token) listed.push_back({token, kMinusInfinity, 2});
  } else {
    listed = top_logprobs(*distribution.logits_distribution(), n, asked.front(), asked.subspan(1));
  }
  std::vector<TokenLogprob> places = listed;
  std::erase_if(places, [&](const TokenLogprob& t) { return t.rank > n || t.logprob == kMinusInfinity; });
  places.resize(static_cast<std::size_t>(n), kPadding);
  for (const Token token : asked)
    places.push_back(
        *std::find_if(listed.begin(), listed.end(), [&](const TokenLogprob& t) { return t.token == token; }));
  return places;
}

}  // namespace

void logprobs(const draftproof_logprobs_arguments& a, const draftproof_settings&) {
  Rows rows({a.vocab_size, a.logits, a.unconditional, a.parameters, a.constraints});
  Distribution distribution;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t request = request_of_row(a.row_request, row, a.requests);
    std::vector<Token> asked{a.sampled[row]};
    bool valid = true;
    if (request >= 0 && a.ids_offsets != nullptr) {
      const auto given =
          guarded_list(a.ids, list_range(a.ids_offsets[request], a.ids_offsets[request + 1], a.ids_count));
      valid = given.valid && std::ssize(given.elements) <= a.ids_max;
      if (valid) asked.insert(asked.end(), given.elements.begin(), given.elements.end());
    }
    a.status[row] =
        static_cast<std::int32_t>(rows.process(row, request, drafted_before(a.constraints, row), distribution));
    if (!valid || !std::all_of(asked.begin(), asked.end(), [&](Token id) { return is_index(id, a.vocab_size); }))
      a.status[row] = std::max<std::int32_t>(a.status[row], DRAFTPROOF_ROW_BAD_ID);
    std::vector<TokenLogprob> places;
    if (a.status[row] == DRAFTPROOF_ROW_OK) places = places_of(distribution, a.n, asked);
    places.resize(static_cast<std::size_t>(a.n + 1 + a.ids_max), kPadding);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(row) * places.size() + i;
      a.tokens[at] = places[i].token;
      a.logprobs[at] = places[i].logprob;
      a.ranks[at] = places[i].rank;
    }
  }
}

}  // namespace draftproof::reference_executor
