// Measured step times of a user's machine, as people have them: a number, or a server's log.
#pragma once

#include <string>

#include "sim/predict/machine_calibration.hpp"

namespace draftproof {

// MS            a plain decoding step of `batch.batch` requests
// MS@B, MS@B:K  of B requests; with K drafts each, drafting and verification included
// FILE          vLLM's log: the step time is running requests x tokens of a step / generation throughput, at the
//               number of running requests that most windows have; windows that compute prompts are left out. With metrics of
//               speculation in the log its steps drafted, as they say, else they are plain
// Errors (usage) at `where`; (input) those of the log.
MeasuredStep read_measured_step(const std::string& text, const BatchLoad& batch, const std::string& where);
MeasuredStep measured_step_of_log(std::string_view log, const std::string& name, const BatchLoad& batch);

}  // namespace draftproof
