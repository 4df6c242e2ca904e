// Draws beside lists of the likeliest tokens, as a server states them: each draw has a distribution of its own, whose
// tokens beyond the list are seen as one sum at most, and follows the tokens of its text before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exactness/audit/audit.hpp"

namespace draftproof {

// Draws whose token has probability 0 by its list stand in `outside` alone.
struct ListedSample {
  std::size_t width = 0;
  std::vector<double> probabilities;     // [n, width] of the kept tokens, by falling probability; 0 behind the last
  std::vector<std::int64_t> ids;         // [n, width] of those
  std::vector<double> rest;              // [n] mass of all tokens beyond the list, 0 where a cut leaves none
  std::vector<std::int64_t> ranks;       // [n] of the drawn token in its row; `width` where it is one beyond the list
  std::vector<std::int64_t> shell_from;  // [n] rank of the first token that a cut 3 % smaller drops; width: none
  std::vector<std::int64_t> texts;       // [n]
  std::vector<std::int64_t> positions;   // [n] in the text; no two draws have the same text and position
  std::int64_t outside = 0;

  std::size_t size() const { return ranks.size(); }
  std::span<const double> row(std::size_t i) const { return std::span(probabilities).subspan(i * width, width); }
  // The kept tokens of a row, which sum to 1 - rest.
  std::span<const double> kept(std::size_t i) const;
};

// Tests of the draws, Holm's correction over all:
//   outside                          tokens of probability 0
//   shell, edge, score               as of audit_draws; score of rows that are seen whole
//   rest                             tokens beyond the list are drawn as often as their sum says
//   transform_ks, transform_bins     as of audit_draws
//   pairs_rank_1 ... pairs_id_3      draws 1, 2, 3 apart within a text are independent: correlation of the transforms
//                                    by rank and by id, with correlation_bound
// Errors (usage) name the array whose size or content is not as above.
Audit audit_listed(const ListedSample& sample, const AuditOptions& options);

}  // namespace draftproof
