// Draws of somebody else's sampler, beside the distributions that it should have drawn from. Distributions are carried
// by verify requests, so that logits, parameters, masks and penalties go through the same pipeline as in `draftproof
// verify`. Distributions that are probabilities are normalised again here: rounded to 16 bits they need not sum to 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/token.hpp"
#include "reference/step/request.hpp"

namespace draftproof {

struct TokenCount {
  Token token;
  std::int64_t count;  // > 0
};

// Where a draw was made. What is absent is 0 for all. No two draws have the same coordinates.
struct DrawCoordinates {
  std::vector<std::uint64_t> seed;     // [n] or empty
  std::vector<std::int64_t> step;      // [n] or empty
  std::vector<std::int64_t> row;       // [n] or empty: place in the batch
  std::vector<std::int64_t> position;  // [n] or empty: place in the step

  bool any() const { return !seed.empty() || !step.empty() || !row.empty() || !position.empty(); }
};

// Draws one by one, for tests of their independence.
struct OrderedDraws {
  std::vector<Token> tokens;          // [n]
  std::vector<std::uint32_t> groups;  // [n]
  DrawCoordinates at;
};

// Output that no sampler may give, whatever its distribution: a token outside the vocabulary, misplaced padding.
struct MalformedOutput {
  std::int64_t index;  // of the draw, or of the request
  std::string what;    // "token 70000 is outside of the vocabulary of 50257 tokens"
};
struct MalformedOutputs {
  std::int64_t count = 0;
  std::int64_t kept = 0;               // of these, those that the other tests have as well
  std::vector<MalformedOutput> first;  // at most kKeptMax

  static constexpr std::size_t kKeptMax = 10;
  void add(std::int64_t index, std::string what) {
    ++count;
    if (first.size() < kKeptMax) first.push_back({index, std::move(what)});
  }
};

// Single draws: counts of tokens in groups, each group with one distribution.
struct DrawSample {
  std::vector<VerifyRequest> distributions;  // [G] requests without drafts; validated
  std::vector<std::int64_t> group_ids;       // [G] as the file calls them
  std::vector<std::size_t> begins;           // [G + 1] into counts
  std::vector<TokenCount> counts;            // by group, ascending tokens in each, no token twice
  std::optional<OrderedDraws> ordered;       // where the sample says where draws were made
  MalformedOutputs malformed;                // not among the counts
  std::shared_ptr<const void> keeps;         // what the distributions refer to

  std::int64_t vocab_size() const { return distributions.empty() ? 0 : distributions.front().target.vocab_size; }
  std::span<const TokenCount> counts_of(std::size_t group) const {
    return std::span(counts).subspan(begins[group], begins[group + 1] - begins[group]);
  }
};

// Verification steps: what each request emitted.
struct StepSample {
  std::vector<VerifyRequest> requests;  // [B] validated
  std::vector<std::size_t> begins;      // [B + 1] into tokens
  std::vector<Token> tokens;            // accepted drafts (a path of the request's tree), then one more token
  // The accepted nodes as the engine reports them, one less than tokens, from the context down. Absent: the path is
  // found by its tokens.
  std::optional<std::vector<std::int32_t>> path_nodes;  // of request b from begins[b] - b on
  // Requests of one group come from one context: the same distribution of the first token, and after the same draft the
  // same distribution of the second. Absent: found by content.
  std::optional<std::vector<std::int64_t>> groups;  // [B]
  std::optional<DrawCoordinates> at;                // [B] seed, step and row (place in the batch) of the requests
  MalformedOutputs malformed;                       // requests that are not among these
  std::shared_ptr<const void> keeps;                // what the requests refer to
  Convention convention = Convention::draftproof;   // by which recorded coins fall
  std::string verifier = {};                        // as the metadata of the file call it, or empty

  std::span<const Token> emitted(std::size_t request) const {
    return std::span(tokens).subspan(begins[request], begins[request + 1] - begins[request]);
  }
  // Empty where no path is reported.
  std::span<const std::int32_t> reported_path(std::size_t request) const {
    if (!path_nodes) return {};
    return std::span(*path_nodes).subspan(begins[request] - request, emitted(request).size() - 1);
  }
};

// Kept sets that filters left of rows of logits.
struct FilterSample {
  std::vector<VerifyRequest> rows;  // [G] requests without drafts; validated
  // [G, V]: logits over the temperature, dropped tokens at -infinity; a row may be shifted by a constant, as
  // log-probabilities are. Looked at where `kept` is empty.
  RowMatrix filtered;
  std::vector<std::uint8_t> kept;     // [G V] or empty: which tokens were kept
  std::shared_ptr<const void> keeps;  // what the rows refer to
};

}  // namespace draftproof
