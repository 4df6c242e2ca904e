// Acceptance in JSON documents, one or one a line, wherever in them it lies:
//
//   draftproof    demo, generate, verify: acceptance_by_position
//   vLLM          answers with --per-request-spec-decode-metrics: acceptance_histogram
//   TensorRT-LLM  the same histogram in answers (pull request 19311); perf_metrics with first_iter and last_iter; or
//                 avg_decoded_tokens_per_iter alone
//   SGLang        meta_info of answers: spec_correct_drafts_histogram (spec_accept_histogram before 0.5.10), or
//                 spec_accept_length with spec_verify_ct steps; server info: avg_spec_accept_length
//   AIPerf        profile_export.jsonl: acceptance_histogram by number; profile_export_aiperf.json:
//                 pooled_spec_decode_acceptance_histogram
//   llama.cpp     timings with predicted_n, draft_n and draft_n_accepted, which say nothing of steps without a draft
//
// Entry j of a histogram counts the steps that accepted j drafts, the bonus token not counted.
#pragma once

#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

// Errors (input) naming the line: no JSON; a document that has none of these, or counts that contradict one another.
AcceptanceData read_result_json(std::string_view text, const std::string& name);

}  // namespace draftproof
