// draftproof lab: one verification step over a p and a q given by hand, sampled and tested.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "exactness/statistics/distribution_check.hpp"
#include "reference/trace/trace_settings.hpp"
#include "studies/lab/distribution_lab.hpp"

namespace draftproof {
namespace {

struct LabArguments {
  DistributionLabSettings settings;
  std::string verifier;  // empty: not given
  std::string guidance_form = "logits";
  std::optional<std::int32_t> draft_tokens;
  bool logits = false;
  Artefacts artefacts;
  bool json = false;
};

constexpr NumberRange kScaleRange{-1e6, 1e6};

// Weights of logits, the largest of them 1.
void exponentiate(std::vector<double>& row) {
  double largest = -HUGE_VAL;
  for (const double x : row) largest = std::max(largest, x);
  for (double& x : row) x = std::exp(x - largest);
}

void print_rows(const DistributionLabSnapshot& snapshot) {
  const LabLook& look = snapshot.looks.back();
  std::cout << "token         p         q  min(p,q)  residual  expected     count     share\n"
            << std::fixed << std::setprecision(5);
  for (std::size_t i = 0; i < snapshot.p.size(); ++i)
    std::cout << std::setw(5) << i << std::setw(10) << snapshot.p[i] << std::setw(10) << snapshot.q[i] << std::setw(10)
              << snapshot.overlap[i] << std::setw(10) << snapshot.residual[i] << std::setw(10) << snapshot.expected[i]
              << std::setw(10) << look.counts[i] << std::setw(10)
              << static_cast<double>(look.counts[i]) / static_cast<double>(look.samples) << "\n";
}

void print_snapshot(const DistributionLabSnapshot& snapshot) {
  print_rows(snapshot);
  std::cout << "total variation of p and q " << snapshot.total_variation << ", acceptance of one draft "
            << snapshot.acceptance << "\n";
  if (const auto& distance = snapshot.guidance_distance)
    for (const std::size_t row : {0u, 1u})
      if ((*distance)[row])
        std::cout << "guidance of probabilities is off the exact one by " << number("%.3g", *(*distance)[row]) << " in "
                  << (row == 0 ? "p" : "q") << ", before the filters\n";
  if (snapshot.mean_accepted)
    std::cout << "measured with " << snapshot.verifier << ", " << snapshot.settings.draft_tokens
              << " draft tokens: " << *snapshot.mean_accepted << " accepted a step\n";
  for (const LabBug& bug : lab_bugs())
    if (bug.id == snapshot.settings.bug)
      std::cout << "bug " << bug.id << " (" << bug.source << "): " << bug.fault << "\n";
  for (const LossyRule& rule : snapshot.lossy)
    std::cout << std::setw(32) << std::left << rule.verifier << std::right << rule.accepted
              << " accepted a step, off by " << rule.distance << "\n";
  std::cout << snapshot.sentence << "\n";
}

void run(LabArguments arguments, ProgramContext& context) {
  require_artefacts(arguments.artefacts);
  DistributionLabSettings& settings = arguments.settings;
  TraceSettings named;
  named.set("guidance_form", arguments.guidance_form, "--guidance-form");
  settings.guidance_form = named.guidance_form;
  if (!settings.bug.empty() && (!arguments.verifier.empty() || arguments.draft_tokens))
    throw usage_error("--bug", "has a verifier and a draft of its own; expected neither --verifier nor -k");
  if (!arguments.verifier.empty()) settings.verifier = arguments.verifier;
  if (arguments.draft_tokens) settings.draft_tokens = *arguments.draft_tokens;
  if (arguments.logits) {
    exponentiate(settings.target);
    exponentiate(settings.draft);
    exponentiate(settings.unconditional);
  }
  DistributionLabSnapshot last;
  {
    Job job;
    Progress progress("sampling", static_cast<std::size_t>(settings.samples), "samples");
    compute(settings, job, [&](DistributionLabSnapshot snapshot) {
      const auto samples_of = [](const DistributionLabSnapshot& s) {
        return s.looks.empty() ? 0 : s.looks.back().samples;
      };
      progress.advance(static_cast<std::uint64_t>(samples_of(snapshot) - samples_of(last)));
      last = std::move(snapshot);
    });
  }
  write_artefacts(arguments.artefacts, last.sentence.empty() ? "One step over p and q" : last.sentence, last, context);
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document.update(to_json(last));
    print_json(document);
  } else {
    print_snapshot(last);
  }
  // A lossy verifier and a bug are meant to be biased.
  if (last.verdict == LabVerdict::biased && last.lossless && settings.bug.empty())
    context.exit_code = ExitCode::finding;
}

}  // namespace

void add_lab(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<LabArguments>();
  DistributionLabSettings& settings = arguments->settings;
  options.numbers("--target", settings.target, {}, "Weights of p, a token each (0: masked)");
  options.numbers("--draft", settings.draft, {}, "Weights of q");
  options.numbers("--unconditional", settings.unconditional, {},
                  "Weights of the unconditional row of guidance (default: uniform)");
  options.flag("--logits", arguments->logits, "The rows are logits, not weights");
  options.number("--temperature", settings.temperature, kTemperatureRange, "Temperature of both rows");
  options.integer("--top-k", settings.top_k, kTopKRange, "Top-k of both rows (0: off)");
  options.number("--top-p", settings.top_p, kNucleusRange, "Top-p of both rows");
  options.number("--min-p", settings.min_p, kShareRange, "Min-p of both rows");
  options.number("--cfg-scale", settings.guidance_scale, kScaleRange, "Classifier-free guidance of both rows (1: off)");
  options.text("--verifier", arguments->verifier, "Name of a verifier, with parameters (default: chain)", "NAME");
  options.integer("-k,--num-speculative-tokens", arguments->draft_tokens, {1, kLabDraftTokensMax},
                  "Draft tokens K: of a chain, siblings, or the length of a path (default: 1)");
  options.text("--bug", settings.bug, "Id of a bug that shows on any p and q, instead of a verifier", "ID");
  options.flag("--lossy", settings.lossy, "Besides, lossy rules on these rows: drafts accepted, and the distance paid");
  options.integer("--samples", settings.samples, {1, kLabSamplesMax}, "Emitted tokens that are counted");
  options.seed(settings.seed, "Seed of the samples");
  options.choice("--guidance-form", arguments->guidance_form, values_of_setting("guidance_form"),
                 "What guidance combines: logits, or log(p + 1e-10), with its distance from the first");
  options.used_only({"--unconditional", "--guidance-form"}, "without --cfg-scale",
                    [arguments] { return arguments->settings.guidance_scale != 1.0; });
  add_artefacts(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples(
      {"--verifier block -k 2", "--target 0.5,0.3,0.2 --draft 0.2,0.3,0.5 --verifier rrs -k 2", "--bug B38"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof
