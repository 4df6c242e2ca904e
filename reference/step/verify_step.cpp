#include "reference/step/verify_step.hpp"

#include <string>

#include "reference/random/audit.hpp"
#include "reference/random/injected.hpp"
#include "reference/step/verify_step_of.hpp"

namespace draftproof {

Emission step_detail::emission_of(const TreeOutcome& outcome, const VerifyOptions& options, StepRows& rows) {
  const VerifyRequest& request = rows.request();
  Emission emission;
  emission.num_accepted = static_cast<std::uint32_t>(outcome.path.size());
  emission.path = outcome.path;
  emission.tokens = emitted_tokens(request.draft, outcome);
  std::vector<std::uint32_t> path_rows{0};
  for (const std::int32_t node : outcome.path) path_rows.push_back(DraftTree::row_after(node));
  if (options.logprobs) {
    // The last row first: it is the one that is held, most of the time.
    emission.logprobs.resize(emission.tokens.size());
    if (options.raw_logprobs) emission.raw_logprobs.resize(emission.tokens.size());
    for (std::size_t i = emission.tokens.size(); i-- > 0;) {
      const StepRows::Logprobs logprobs = rows.logprobs(path_rows[i], emission.tokens[i]);
      emission.logprobs[i] = logprobs.processed;
      if (options.raw_logprobs) emission.raw_logprobs[i] = logprobs.raw;
    }
    for (const std::uint32_t row : path_rows)
      for (const Token id : request.logprob_token_ids) {
        const StepRows::Logprobs logprobs = rows.logprobs(row, id);
        emission.token_id_logprobs.push_back(logprobs.processed);
        if (options.raw_logprobs) emission.raw_token_id_logprobs.push_back(logprobs.raw);
      }
  }
  if (options.all_rows) {
    path_rows.clear();
    for (std::uint32_t row = 0; row < request.rows(); ++row) path_rows.push_back(row);
  } else if (request.target_is_probabilities) {
    path_rows.clear();
  }
  for (const std::uint32_t row : path_rows) {
    const StepRows::Kept kept = rows.kept(row);
    emission.kept_mass.push_back(kept.mass);
    emission.kept_count.push_back(kept.count);
  }
  return emission;
}

Emission emission_along(const VerifyRequest& request, std::span<const std::int32_t> path, Token last_token,
                        const VerifyOptions& options, StepWorkspace& workspace) {
  StepRows rows(request, options, workspace);
  return step_detail::emission_of({{path.begin(), path.end()}, last_token}, options, rows);
}

Error error_in_request(const VerifyRequest& request, std::int64_t request_index, const RowError& error) {
  const RowName& row = error.row();
  std::string where = "request " + std::to_string(request_index);
  if (row.place >= 0) {
    const bool is_last = row.place == request.draft.size();
    if (!request.draft.is_chain()) {
      where += row.place == 0 ? ", root of the draft tree" : ", draft node " + std::to_string(row.place - 1);
    } else {
      where += is_last ? ", bonus position" : ", draft position " + std::to_string(row.place);
    }
  }
  return {error.kind(), where + ", " + error.where(), error.what_is_wrong()};
}

template Emission verify_step(const VerifyRequest&, const VerifyOptions&, PhiloxSource&, StepWorkspace&);
template Emission verify_step(const VerifyRequest&, const VerifyOptions&, AuditedSource<>&, StepWorkspace&);
template Emission verify_step(const VerifyRequest&, const VerifyOptions&, InjectedSource&, StepWorkspace&);

}  // namespace draftproof
