#include "cli/acceptance/heads.hpp"

#include <array>
#include <cstdio>

#include "base/printable.hpp"
#include "cli/shared/command.hpp"

namespace draftproof {
namespace {

template <class... Values>
std::string line_of(const char* format, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

void print_works(std::ostream& out, const HeadsSnapshot& snapshot) {
  out << "Acceptance at a slot, given that it was reached (95 % intervals)\n"
      << "  work        prompts  steps  acceptance  tokens\n"
      << "                              length      /step    slots\n";
  for (const HeadsWork& work : snapshot.works) {
    const AcceptanceCounts& counts = work.metrics.counts;
    out << "  " << padded(printable_line(work.name), 12)
        << line_of("%7lld%7lld  ", static_cast<long long>(work.prompts), static_cast<long long>(counts.steps))
        << padded(counts.drafts > 0 ? line_of("%.2f", work.metrics.acceptance_length) : "-", 12)
        << padded(counts.steps > 0 ? line_of("%.2f", work.metrics.tokens_per_step) : "-", 7);
    for (const SlotRate& slot : work.slots)
      out << (slot.reached > 0 ? line_of("  %.3f [%.3f, %.3f]", slot.rate, slot.interval.low, slot.interval.high)
                               : "  -");
    out << '\n';
  }
  out << "  Acceptance length counts steps with a draft only, as vLLM's does; tokens per step counts all target "
         "steps.\n";
}

void print_drift(std::ostream& out, const HeadsSnapshot& snapshot) {
  if (snapshot.drafts_in_parallel) {
    out << "\nDrift: none; " << snapshot.family << " drafts in parallel, and no slot is made from another's state\n";
    return;
  }
  if (snapshot.drift.empty()) {
    out << "\nDrift: unknown; no second slot was reached\n";
    return;
  }
  out << "\nDrift of the state that a slot is drafted from, where the slots before it were accepted (means)\n"
      << "  slot  count  to the target's       to its own            cosine to the target's\n"
      << "               cosine  relative L2   cosine  relative L2   accepted  rejected\n";
  const auto or_dash = [](const std::optional<double>& value) { return value ? line_of("%.3f", *value) : "-"; };
  for (const SlotDrift& drift : snapshot.drift)
    out << line_of("  %4d%7lld  %6.3f  %-12.3f  %6.3f  %-12.3f  ", drift.slot, static_cast<long long>(drift.count),
                   drift.target_cosine.mean, drift.target_relative_l2.mean, drift.own_cosine.mean,
                   drift.own_relative_l2.mean)
        << padded(or_dash(drift.target_cosine_accepted), 10) << or_dash(drift.target_cosine_rejected) << '\n';
  out << "  The target's state is made of its features; its own is what the head puts out behind the target's "
         "states.\n";
}

void print_reliability(std::ostream& out, const HeadsSnapshot& snapshot) {
  const Reliability& all = snapshot.reliability.front();
  out << "\nConfidence ("
      << (snapshot.has_confidence_head ? "of the confidence head" : "the largest probability of the head's row")
      << ") against acceptance\n";
  if (all.count == 0) {
    out << "  no slot was drafted\n";
    return;
  }
  out << "  confidence   count  mean   accepted  95 %\n";
  for (std::size_t i = 0; i < kReliabilityBins; ++i) {
    const ReliabilityBin& bin = all.bins[i];
    if (bin.count == 0) continue;
    const auto edge = [](std::size_t at) { return static_cast<double>(at) / kReliabilityBins; };
    out << line_of("  %.1f to %.1f %7lld  %.3f  %-8.3f  [%.3f, %.3f]\n", edge(i), edge(i + 1),
                   static_cast<long long>(bin.count), bin.mean_confidence, bin.rate, bin.interval.low,
                   bin.interval.high);
  }
  out << line_of("  all %15lld  %.3f  %-8.3f  expected calibration error %.3f", static_cast<long long>(all.count),
                 all.mean_confidence, all.rate, all.ece);
  for (std::size_t slot = 1; slot < snapshot.reliability.size(); ++slot)
    out << line_of("%s slot %zu: %.3f", slot == 1 ? ";" : ",", slot, snapshot.reliability[slot].ece);
  out << '\n';
}

void print_shown(std::ostream& out, const HeadsSnapshot& snapshot) {
  const HeadsPrompt& prompt = *snapshot.shown_prompt();
  const HeadStep* const step = snapshot.shown_step();
  out << "\nPrompt " << snapshot.settings.shown_prompt << " (" << printable_line(prompt.work) << "): " << prompt.text
      << '\n';
  if (step == nullptr) {
    out << "  no step had a draft\n";
    return;
  }
  out << "  step " << snapshot.settings.shown_step << " of " << prompt.steps.size() << " with a draft, behind "
      << step->output_len << " tokens\n";
  for (std::size_t i = 0; i < step->slots.size(); ++i) {
    const HeadSlot& slot = step->slots[i];
    const std::string emitted = slot.reached && !slot.accepted ? "rejected: " + slot.emitted->text : "";
    out << line_of("  slot %-3zu", i + 1) << padded(slot.draft.text, 14)
        << line_of("q %.3f  confidence %.3f  ", static_cast<double>(slot.draft.probability),
                   static_cast<double>(slot.confidence))
        << padded(!slot.reached   ? "not reached"
                  : slot.accepted ? "accepted"
                                  : emitted,
                  22)
        << "candidates:";
    for (const HeadCandidate& candidate : slot.candidates)
      out << ' ' << candidate.text << line_of(" %.3f", static_cast<double>(candidate.probability));
    out << '\n';
  }
  out << "  then " << step->next.text << '\n';
}

}  // namespace

void print_heads(std::ostream& out, const HeadsSnapshot& snapshot) {
  out << printable_line(snapshot.settings.head) << " (" << snapshot.family << ") on " << printable_line(snapshot.model)
      << " (" << snapshot.arithmetic << "), K = " << snapshot.num_speculative_tokens << ", temperature "
      << snapshot.settings.temperature << "\n\n";
  print_works(out, snapshot);
  print_drift(out, snapshot);
  print_reliability(out, snapshot);
  print_shown(out, snapshot);
}

}  // namespace draftproof
