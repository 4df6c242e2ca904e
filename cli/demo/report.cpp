#include "cli/demo/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "base/printable.hpp"
#include "cli/shared/painted_text.hpp"

namespace draftproof {
namespace {

constexpr int kBarColumns = 24;

std::string plus_minus(const std::optional<double>& standard_error, const char* format = " +-%.3f") {
  return standard_error ? number(format, *standard_error) : "";
}

std::string bar(double rate, Colour colour, const Palette& palette) {
  const int filled = static_cast<int>(std::lround(rate * kBarColumns));
  std::string block;
  for (int i = 0; i < filled; ++i) block += palette.enabled() ? "\u2588" : "#";
  return palette.paint(colour, block) + std::string(static_cast<std::size_t>(kBarColumns - filled), ' ');
}

std::string rate_cell(const std::optional<RateEstimate>& estimate, Colour colour, const Palette& palette) {
  if (!estimate) return "never reached" + std::string(kBarColumns + 2, ' ');
  return number("%.3f", estimate->rate) +
         (estimate->standard_error ? plus_minus(estimate->standard_error) : "       ") + " " +
         bar(estimate->rate, colour, palette);
}

std::string drafter_name(const DemoOptions& options) {
  if (options.draft_kind() == DemoDraft::ngram_lookup) return "prompt lookup";
  return "n-gram of order " + std::to_string(options.draft_order_or_default());
}

void print_texts(std::ostream& out, const DemoOptions& options, const DemoRun& run, const Palette& palette) {
  // Text of n-grams is worth reading to who asked for it.
  const bool shows_text = options.prompt != DemoOptions{}.prompt;
  const std::string prompt = printable(options.prompt);
  out << palette.paint(Colour::bold, "With speculation") << "  (target: n-gram of order " << options.order
      << "; drafter: " << drafter_name(options) << ", K = " << options.num_speculative_tokens
      << "; verifier: " << text_of(run.decoding.verify.verifier)
      << (tree_of(options) ? ", tree " + *tree_of(options) : "") << ")\n";
  if (shows_text) out << prompt << painted_text(run.speculative, palette) << "\n\n";
  out << origin_legend(run.speculative, palette) << ": " << run.speculative.tokens.size() << " tokens in "
      << run.speculative.target_steps << " target steps, " << number("%.1f ms", run.speculative_ms) << "\n"
      << (shows_text ? "\n" : "") << palette.paint(Colour::bold, "Without speculation") << "\n";
  if (shows_text) out << prompt << printable(bytes_of(run.plain.tokens)) << "\n\n";
  out << run.plain.tokens.size() << " tokens in " << run.plain.target_steps << " target steps, "
      << number("%.1f ms", run.plain_ms) << " (a small target is as cheap as its drafter: steps are saved, not time)\n";
  if (options.temperature == 0.0)
    out << "greedy: the two texts are " << (run.plain.tokens == run.speculative.tokens ? "the same" : "DIFFERENT")
        << '\n';
  if (run.decoding.parameters.guidance_scale != 1.0f)
    out << "guidance acts while the prompts are in sight of the model: on the first " << options.order - 1
        << " tokens\n";
  out << '\n';
}

void print_acceptance(std::ostream& out, const DemoOptions& options, const AcceptanceMetrics& metrics,
                      const Palette& palette) {
  out << palette.paint(Colour::bold, "Acceptance") << "  over " << metrics.counts.steps << " steps of "
      << options.continuations << " continuations of the corpus\n";
  if (!metrics.conditional.empty()) {
    const auto gap = static_cast<std::size_t>(kBarColumns);
    out << "draft  given those before it" << std::string(gap - 6, ' ') << "of all steps\n";
  }
  for (std::size_t j = 0; j < metrics.conditional.size(); ++j)
    out << number("%5.0f  ", static_cast<double>(j + 1)) << rate_cell(metrics.conditional[j], Colour::green, palette)
        << "  " << rate_cell(metrics.unconditional[j], Colour::blue, palette) << '\n';
  out << "acceptance length " << number("%.3f", metrics.acceptance_length) << "; tokens per step "
      << number("%.3f", metrics.tokens_per_step) << plus_minus(metrics.tokens_per_step_standard_error)
      << "; 1 + sum prod a_j = "
      << (metrics.tokens_per_step_formula ? number("%.3f", *metrics.tokens_per_step_formula)
                                          : "unknown, no step had a draft")
      << "\n\n";
}

void print_verdict(std::ostream& out, const DistributionCheck& check, const Palette& palette) {
  out << palette.paint(Colour::bold, "Verdict") << "  "
      << palette.paint(check.is_finding() ? Colour::red : Colour::green, check.verdict()) << " (" << check.scope()
      << ")\n";
  for (const std::string& line : check.evidence()) out << "  " << line << '\n';
}

}  // namespace

std::string origin_legend(const Generation& generation, const Palette& palette) {
  std::string legend;
  for (const auto& [name, origin] : kDraftedOrigins)
    legend += (legend.empty() ? "" : ", ") + palette.paint(colour_of(origin), name) + " " +
              std::to_string(generation.count(origin));
  return legend;
}

void print_demo(std::ostream& out, const DemoOptions& options, const DemoRun& run, const Palette& palette) {
  print_texts(out, options, run, palette);
  print_acceptance(out, options, run.acceptance, palette);
  print_verdict(out, run.distribution, palette);
}

}  // namespace draftproof
