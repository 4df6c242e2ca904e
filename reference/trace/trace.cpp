#include "reference/trace/trace.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "reference/trace/probability_rows.hpp"
#include "reference/trace/trace_reader.hpp"

namespace draftproof {
namespace {

bool is_setting(const std::string& name) {
  const std::vector<TraceSettingInfo>& all = trace_settings();
  return std::any_of(all.begin(), all.end(), [&](const TraceSettingInfo& info) { return info.name == name; });
}

void read_settings(const std::vector<TraceSetting>& overrides, TraceContents& trace) {
  for (const auto& [key, value] : trace.file.metadata()) {
    if (is_setting(key)) {
      trace.settings.set(key, value, trace.file.path() + ": metadata " + in_quotes(key));
    } else {
      trace.unused_metadata.push_back(key);
    }
  }
  for (const TraceSetting& setting : overrides) trace.settings.set(setting.name, setting.value, setting.where);
}

}  // namespace

Trace Trace::open(const std::string& path, const TraceOptions& options) {
  const auto contents = std::make_shared<TraceContents>(SafetensorsFile::open(path));
  contents->kind = options.kind;
  require_known_tensors(contents->file, options.kind);
  read_settings(options.overrides, *contents);
  TraceReader(*contents).read();
  if (options.check_rows) check_probability_rows(path, contents->requests, options.threads);
  return Trace(contents);
}

VerifyOptions Trace::verify_options() const {
  return {.verifier = settings().verifier,
          .sampler = settings().sampler,
          .convention = settings().convention,
          .all_rows = true};
}

}  // namespace draftproof
