#include "cli/shared/this_machine.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/model_path.hpp"
#include "cli/shared/progress.hpp"
#include "engine/heads/head_files.hpp"
#include "engine/transformer/transformer_kernels.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "sim/machine/machine_profile.hpp"

namespace draftproof {
namespace {

constexpr std::array<std::pair<const char*, std::int64_t CountedRequest::*>, 6> kCounts{
    {{"prompt_tokens", &CountedRequest::prompt_tokens},
     {"plain_tokens", &CountedRequest::plain_tokens},
     {"tokens", &CountedRequest::tokens},
     {"steps", &CountedRequest::steps},
     {"drafts", &CountedRequest::drafts},
     {"draft_tokens", &CountedRequest::draft_tokens}}};

}  // namespace

TimedModel time_this_machine(const std::string& model, const TextModelOptions& options) {
  TextModel text = open_text_model(model, model_path(model), options, "--model");
  if (text.transformer == nullptr)
    throw usage_error("--model", "is " + model + ", which counts and computes no passes; expected a transformer");
  const MachineTiming timing;
  Progress progress("timing this machine", static_cast<std::uint64_t>(timing.repeats), "rounds");
  MachineProfile profile = time_machine(*text.model, timing, [&] { progress.advance(); });
  profile.cpu = processor_name();
  profile.simd = transformer_kernels().target;
  profile.model = text.name;
  profile.arithmetic = text.arithmetic;
  profile.threads = options.threads;
  check(profile, "timing this machine");
  return {std::move(text), std::move(profile)};
}

std::shared_ptr<const StepCost> read_step_cost(const std::string& path, double draft_share) {
  if (path.empty()) return std::make_shared<DefaultStepCost>();
  return std::make_shared<MachineCost>(read_machine_profile(path), draft_share);
}

std::string processor_name() {
  const nlohmann::ordered_json cpu = describe_machine("").at("cpu");
  return cpu.is_string() ? cpu.get<std::string>() : "unknown";
}

Json machine_profile_json(const MachineProfile& profile) {
  const Json passes = json_list(profile.passes, [](const TimedPass& pass) -> Json {
    return {{"rows", pass.rows}, {"context_len", pass.context_len}, {"ms", pass.ms}};
  });
  return {{"cpu", profile.cpu},         {"simd", profile.simd},
          {"model", profile.model},     {"arithmetic", profile.arithmetic},
          {"threads", profile.threads}, {"timed_configurations", passes},
          {"step_ms", profile.step_ms}};
}

void print_machine_profile(const MachineProfile& profile, std::ostream& out) {
  out << printable_line(profile.cpu + ", " + profile.simd + ": " + profile.model + ", " + profile.arithmetic) << ", "
      << counted_noun(profile.threads, "thread") << '\n';
  char line[120];
  for (const TimedPass& pass : profile.passes) {
    std::snprintf(line, sizeof line, "  %2lld rows behind %4lld tokens  %8.3f ms\n", static_cast<long long>(pass.rows),
                  static_cast<long long>(pass.context_len), pass.ms);
    out << line;
  }
  std::snprintf(line, sizeof line, "  a plain step beside its pass %9.3f ms\n", profile.step_ms);
  out << line;
}

double draft_share(const DrafterChoice& choice, const TextModel& target, const TextModelOptions& options,
                   const std::string& where) {
  if (target.transformer == nullptr) return 0.0;
  const TransformerModel& whole = *target.transformer;
  const auto share = [&](const TransformerModel& drafter) {
    return static_cast<double>(drafter.weights_per_pass()) / static_cast<double>(whole.weights_per_pass());
  };
  if (choice.kind == DrafterKind::layer_skip) {
    std::vector<std::int64_t> kept;
    for (std::int64_t layer = 0; layer < whole.num_layers(); ++layer)
      if (!std::ranges::binary_search(choice.left_out, layer)) kept.push_back(layer);
    if (kept.empty()) throw usage_error(where, "is " + choice.text + ", which leaves no layer; expected some of them");
    return share(*whole.with_layers(kept));
  }
  if (choice.kind == DrafterKind::requantised) return share(*whole.requantised(choice.number));
  if (choice.kind == DrafterKind::head)
    return static_cast<double>(weights_per_pass(open_head_files(choice.path))) /
           static_cast<double>(whole.weights_per_pass());
  if (choice.kind == DrafterKind::model) {
    const TextModel model = open_text_model(choice.path, model_path(choice.path), options, where);
    if (model.transformer != nullptr) return share(*model.transformer);
  }
  return 0.0;
}

Json counted_requests_json(std::span<const CountedRequest> requests) {
  return json_list(requests, [](const CountedRequest& request) {
    Json entry;
    for (const auto& [name, count] : kCounts) entry[name] = request.*count;
    return entry;
  });
}

std::vector<CountedRequest> read_counted_requests(const Json& requests, const std::string& where) {
  if (!requests.is_array()) throw input_error(where, "requests is no list; expected what speculate writes");
  std::vector<CountedRequest> read;
  for (const Json& entry : requests) {
    CountedRequest& request = read.emplace_back();
    for (const auto& [name, count] : kCounts) {
      const auto found = entry.is_object() ? entry.find(name) : entry.end();
      if (!entry.is_object() || found == entry.end() || !found->is_number_integer())
        throw input_error(where, "request " + std::to_string(read.size() - 1) + " has no count '" + name + "'");
      request.*count = found->get<std::int64_t>();
    }
  }
  return read;
}

}  // namespace draftproof
