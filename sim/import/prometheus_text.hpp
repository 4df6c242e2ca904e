// Counters of speculation in metrics (prometheus_samples.hpp), as a server's /metrics answers, whatever prefix an
// engine or Ray gives their names: spec_decode_num_drafts_total and its companions (vLLM, llama.cpp since August 2026,
// LMDeploy; engine/metrics/prometheus writes them too); SGLang's gauge spec_accept_length, weighted by num_running_reqs
// where ranks have one each; TensorRT-LLM's gauge spec_decode_acceptance_length; llama.cpp's n_draft_total and
// n_draft_accepted_total, which leave the steps unknown; MAX's histograms acceptance_rate_per_position, in per cent.
//
// Engines (label engine) are added up. Several dumps behind one another count once: a counter that falls was reset, and
// what it had reached before is added. num_accepted_tokens_per_pos counts unconditionally, from position 0.
#pragma once

#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

bool is_prometheus_text(std::string_view text);
// model: the model_name whose counters to read (behind ENGINE: where the file has several engines); empty: the only
// one. Errors (input): several models and none chosen, or none of this name; no counters of speculation, or none that
// counted a draft; naming the line: a sample without a number, a position that is no whole number, counters that
// contradict one another.
AcceptanceData read_prometheus_text(std::string_view text, const std::string& name, const std::string& model = "");

// Acceptance between two dumps of one server: the difference of their counters. Errors (input): as above; a counter
// that falls or is gone, so that the server began anew between them; dumps of SGLang, whose length is a gauge.
AcceptanceData read_prometheus_difference(std::string_view before, const std::string& before_name,
                                          std::string_view after, const std::string& after_name,
                                          const std::string& model = "");

}  // namespace draftproof
