// Settings that hold for a whole trace file: texts in its `__metadata__`, or flags of the command line, which win.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/logits/parameters.hpp"
#include "reference/step/request.hpp"

namespace draftproof {

struct TraceSettings {
  VerifierChoice verifier = Verifier::chain;
  Sampler sampler = Sampler::inverse;
  FilterOrder filter_order = FilterOrder::joint;
  Ties ties = Ties::exact_k;
  PenaltyWindow penalty_window = PenaltyWindow::whole_prompt;
  GuidanceForm guidance_form = GuidanceForm::logits;
  Convention convention = Convention::draftproof;
  bool draft_processed =
      true;  // draft_logits are final: their softmax is the distribution that the drafts were drawn from
  NanPolicy nan_policy = NanPolicy::error;
  std::uint64_t seed = 0;  // of the run; request seeds are derived from it where the trace has none

  // Sets one of trace_setting_names() from its text. Usage error at `where` naming the texts that would be right.
  void set(std::string_view name, std::string_view value, const std::string& where);
};

// One setting as text, with the place it came from ("--sampler") for error messages.
struct TraceSetting {
  std::string name;
  std::string value;
  std::string where;
};

struct TraceSettingInfo {
  std::string name;
  std::vector<std::string> values;  // empty: as `meaning` says
  std::string meaning;              // for help texts
};

// Every setting, in the order of the documentation.
const std::vector<TraceSettingInfo>& trace_settings();
// The texts that a setting has.
const std::vector<std::string>& values_of_setting(std::string_view name);

// The settings as texts that set() reads back, by name.
std::map<std::string, std::string> texts_of(const TraceSettings& settings);

}  // namespace draftproof
