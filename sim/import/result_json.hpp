// Acceptance in JSON documents, one or one a line or of a stream, wherever in them it lies:
//
//   draftproof    demo, generate, verify: acceptance_by_position
//   vLLM          answers with --per-request-spec-decode-metrics: acceptance_histogram; bench serve --save-result, and
//                 its sweeps: spec_decode_acceptance_length, spec_decode_per_position_acceptance_rates
//   SGLang        meta_info of answers, and sglext.spec_tokens_details: spec_correct_drafts_histogram
//                 (spec_accept_histogram before 0.5.10), or spec_accept_length with spec_verify_ct steps; server info:
//                 avg_spec_accept_length; bench_serving and SpecForge: accept_length; bench_one_batch: acc_length
//   TensorRT-LLM  vLLM's histogram in answers (pull request 19311); perf_metrics with first_iter and last_iter; or
//                 avg_decoded_tokens_per_iter alone; iteration statistics: specDecodingStats; trtllm-bench's report:
//                 decoding_stats
//   AIPerf        profile_export.jsonl: acceptance_histogram by number; profile_export_aiperf.json:
//                 pooled_spec_decode_acceptance_histogram
//   llama.cpp     timings with predicted_n, draft_n and draft_n_accepted, which say nothing of steps without a draft
//   LM Studio     total_draft_tokens_count and accepted_draft_tokens_count, likewise
//
// Entry j of a histogram counts the steps that accepted j drafts, the bonus token not counted. Of the parts of an
// answer in a stream the last counts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

// A text, and what to call it.
struct NamedText {
  std::string text, name;
};

// configuration: of runs of several models or numbers of drafts, the one to read, as the error names it; empty: the
// only one. Errors (input) naming the line: no JSON; a document that has none of these, or counts that contradict one
// another; several configurations and none chosen, or none of this name.
AcceptanceData read_result_json(std::string_view text, const std::string& name, const std::string& configuration = "");
// Reads several files, such as those of a sweep, at `name`; those without acceptance are counted and left out.
AcceptanceData read_result_jsons(const std::vector<NamedText>& texts, const std::string& name,
                                 const std::string& configuration = "");

}  // namespace draftproof
