// A ragged batch of verification requests over random rows, as an engine holds one, and the comparison of what two ways
// of running it emit.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "exactness/bugs/bug.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "reference/step/request.hpp"

namespace draftproof {

// Request i has i % 4 drafts, drawn from its proposal rows, probabilities [., 16] on both sides and the seed seeds[i].
class RequestBatch {
 public:
  explicit RequestBatch(std::span<const std::uint64_t> seeds);
  RequestBatch(const RequestBatch&) = delete;  // requests are views of the rows
  RequestBatch& operator=(const RequestBatch&) = delete;

  const std::vector<VerifyRequest>& requests() const { return requests_; }

 private:
  std::deque<std::vector<float>> rows_;  // a deque: requests point into what stands in it
  std::deque<std::vector<Token>> drafts_;
  std::vector<VerifyRequest> requests_;
};

// Bits against the reference; `way` says how the tokens that differ were obtained. Cases are requests.
Finding first_difference_of_requests(std::span<const TokenString> reference, std::span<const TokenString> seen,
                                     const std::string& way);

}  // namespace draftproof
