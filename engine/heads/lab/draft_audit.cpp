#include "engine/heads/lab/draft_audit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"
#include "engine/heads/lab/head_faults.hpp"
#include "engine/heads/lab/recorded_replay.hpp"
#include "engine/heads/lab/slow_head.hpp"

namespace draftproof {
namespace {

// Rounding shows in margins at ties alone, and in the probability of every draft.
constexpr double kLogProbTolerances = 2.0;
constexpr double kDistanceMax = 10.0;  // that one draft adds to FaultLook::distance
constexpr std::int64_t kBins = 8;

std::string short_text(double value) {
  return number("%.4g", value);
}

// A draft beside a row.
struct Comparison {
  double margin = std::numeric_limits<double>::infinity();
  std::optional<Token> expected;
  std::optional<double> log_prob;  // of the row, where one is recorded

  bool is_near(double tolerance, std::optional<double> recorded) const {
    return margin <= tolerance && (!recorded || std::abs(*recorded - *log_prob) <= kLogProbTolerances * tolerance);
  }
  double distance(std::optional<double> recorded) const {
    double sum = std::min(margin, kDistanceMax);
    if (recorded) sum += std::min(std::abs(*recorded - *log_prob), kDistanceMax);
    return sum;
  }
};

// Rows of a head, by the target's tokens. A faulty map may have several columns of a token.
class HeadRows {
 public:
  explicit HeadRows(const HeadDescription& head) : head_(head) {
    for (std::size_t i = 0; i < head.draft_tokens.size(); ++i)
      columns_[head.draft_tokens[i]].push_back(static_cast<std::int64_t>(i));
  }

  // The children of a node.
  std::vector<Comparison> compare(std::span<const float> logits, std::span<const Token> children, bool is_drawn,
                                  double temperature, bool wants_log_probs) const {
    const std::vector<Token> best = most_probable(logits, children.size());
    double largest = 0.0;
    double all = 0.0;
    if (wants_log_probs) {
      largest = static_cast<double>(std::ranges::max(logits));
      for (const float logit : logits) all += std::exp((static_cast<double>(logit) - largest) / temperature);
    }
    const double least = logit_of(logits, best.back());
    std::vector<Comparison> comparisons;
    for (const Token token : children) {
      Comparison& comparison = comparisons.emplace_back();
      const std::vector<std::int64_t> columns = columns_of(token, std::ssize(logits));
      if (!columns.empty()) {
        comparison.margin = is_drawn ? 0.0 : std::max(0.0, least - logit_of(logits, token));
        double mass = 0.0;
        for (const std::int64_t column : columns)
          mass += std::exp((static_cast<double>(logits[static_cast<std::size_t>(column)]) - largest) / temperature);
        if (wants_log_probs) comparison.log_prob = std::max(std::log(mass / all), -1e30);
      } else if (wants_log_probs) {
        comparison.log_prob = -1e30;
      }
      // The most probable token that was not drafted.
      for (const Token other : best)
        if (comparison.margin > 0.0 && !is_drawn && !comparison.expected &&
            std::ranges::find(children, other) == children.end())
          comparison.expected = other;
    }
    return comparisons;
  }

  // Different tokens, the most probable first; fewer than `count` where there are no more.
  std::vector<Token> most_probable(std::span<const float> logits, std::size_t count) const {
    const auto token_of = [&](std::int64_t column) {
      return head_.draft_tokens.empty() ? static_cast<Token>(column)
                                        : head_.draft_tokens[static_cast<std::size_t>(column)];
    };
    if (count == 1) return {token_of(std::ranges::max_element(logits) - logits.begin())};
    std::vector<std::int64_t> order(logits.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    const auto more_probable = [&](std::int64_t a, std::int64_t b) {
      const float x = logits[static_cast<std::size_t>(a)];
      const float y = logits[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    };
    std::vector<Token> best;
    for (std::size_t sorted = 0; best.size() < count && sorted < order.size();) {
      const std::size_t end = std::min(order.size(), sorted + count);
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(sorted);
      std::partial_sort(from, order.begin() + static_cast<std::ptrdiff_t>(end), order.end(), more_probable);
      for (; sorted < end && best.size() < count; ++sorted)
        if (std::ranges::find(best, token_of(order[sorted])) == best.end()) best.push_back(token_of(order[sorted]));
    }
    return best;
  }

 private:
  std::vector<std::int64_t> columns_of(Token token, std::int64_t num_columns) const {
    if (!head_.draft_tokens.empty()) {
      const auto found = columns_.find(token);
      return found == columns_.end() ? std::vector<std::int64_t>() : found->second;
    }
    return token < num_columns ? std::vector<std::int64_t>{token} : std::vector<std::int64_t>();
  }
  double logit_of(std::span<const float> logits, Token token) const {
    double largest = -std::numeric_limits<double>::infinity();
    for (const std::int64_t column : columns_of(token, std::ssize(logits)))
      largest = std::max(largest, static_cast<double>(logits[static_cast<std::size_t>(column)]));
    return largest;
  }

  const HeadDescription& head_;
  std::unordered_map<Token, std::vector<std::int64_t>> columns_;
};

std::vector<Token> tokens_of(const DraftTree& tree, const std::vector<std::int32_t>& nodes) {
  std::vector<Token> tokens;
  for (const std::int32_t node : nodes) tokens.push_back(tree.tokens[static_cast<std::size_t>(node)]);
  return tokens;
}

std::optional<double> recorded_log_prob(const DraftedStep& step, std::int32_t node) {
  if (step.log_probs.empty()) return std::nullopt;
  return std::max(step.log_probs[static_cast<std::size_t>(node)], -1e30);
}

double temperature_of(const DraftedRequest& request) {
  return request.draft_temperature > 0.0 ? request.draft_temperature : 1.0;
}

// A row that says nothing about drafts: the head has not read a feature yet.
bool can_be_compared(const DraftedRequest& request, const DraftedStep& step) {
  return !step.drafts.empty() && step.position >= 2 && step.position <= std::ssize(request.tokens);
}

// The comparison of a step's drafts with the rows that a runner reports.
struct NodeScores {
  std::vector<std::optional<Comparison>> of;  // [n]; nothing: there was no row
};

class FaultScore final {
 public:
  FaultScore(const HeadFault& fault, TransformerModel& target, std::span<const DraftedRequest> requests)
      : fault_(fault),
        requests_(requests),
        rows_(fault.weights->description),
        head_(std::make_shared<DraftHead>(fault.weights, target, fault.name), 1.0f),
        runner_(fault.plant(head_, target)) {
    scores_.resize(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i)
      for (const DraftedStep& step : requests[i].steps)
        if (!step.drafts.empty()) scores_[i][step.position].of.resize(step.drafts.tokens.size());
    runner_->on_row = [this](const HeadRow& row) { add(row); };
  }

  const HeadFault& fault() const { return fault_; }
  FaultyDrafter& runner() { return *runner_; }

  // are_different: of the drafts compared, in their order, whether they are not the head's.
  FaultLook look(const std::vector<std::vector<bool>>& are_different, double tolerance) const {
    FaultLook look{fault_.number, fault_.name, {}, 0, 0, 0, 0.0};
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      std::size_t draft = 0;
      for (const DraftedStep& step : requests_[i].steps) {
        if (!can_be_compared(requests_[i], step)) continue;
        const NodeScores& scores = scores_[i].at(step.position);
        for (std::int32_t node = 0; node < step.drafts.size(); ++node, ++draft) {
          const auto recorded = recorded_log_prob(step, node);
          const std::optional<Comparison>& comparison = scores.of[static_cast<std::size_t>(node)];
          const bool is_near = comparison && comparison->is_near(tolerance, recorded);
          const bool was_different = are_different[i][draft];
          look.different += is_near ? 0 : 1;
          look.explained += was_different && is_near ? 1 : 0;
          look.introduced += !was_different && !is_near ? 1 : 0;
          look.distance += comparison ? comparison->distance(recorded) : kDistanceMax;
        }
      }
    }
    return look;
  }

 private:
  void add(const HeadRow& row) {
    const DraftedRequest& request = requests_[row.request];
    const auto position = std::ssize(row.stream);
    const auto step = std::ranges::find(request.steps, position, &DraftedStep::position);
    std::int32_t node = kRootNode;
    for (const Token token : row.path) {
      const std::vector<std::int32_t> children = step->drafts.children(node);
      const auto child = std::ranges::find_if(
          children, [&](std::int32_t c) { return step->drafts.tokens[static_cast<std::size_t>(c)] == token; });
      if (child == children.end()) return;
      node = *child;
    }
    const std::vector<std::int32_t> children = step->drafts.children(node);
    const bool all_finite = std::ranges::all_of(row.logits, [](float logit) { return std::isfinite(logit); });
    if (children.empty() || !all_finite) return;
    const std::vector<Comparison> comparisons =
        rows_.compare(row.logits, tokens_of(step->drafts, children), request.draft_temperature > 0.0,
                      temperature_of(request), !step->log_probs.empty());
    NodeScores& scores = scores_[row.request].at(position);
    for (std::size_t i = 0; i < children.size(); ++i) scores.of[static_cast<std::size_t>(children[i])] = comparisons[i];
  }

  const HeadFault& fault_;
  std::span<const DraftedRequest> requests_;
  HeadRows rows_;
  HeadDrafter head_;
  std::unique_ptr<FaultyDrafter> runner_;
  std::vector<std::map<std::int64_t, NodeScores>> scores_;  // of requests, by position
};

// Compares requests with the slow head.
class Auditor {
 public:
  Auditor(const std::shared_ptr<const HeadWeights>& head, TransformerModel& target, const DraftAuditOptions& options)
      : options_(options),
        head_(head),
        target_(target),
        slow_(head, target, target.kernels()),
        rows_(slow_.description()),
        draft_len_max_(DraftHead(head, target, "head").draft_len_max()) {
    if (draft_len_max_ == 0) draft_len_max_ = std::numeric_limits<std::int32_t>::max();
    audit.tolerance = options.tolerance;
  }

  void add(const DraftedRequest& request) {
    ++audit.requests;
    std::vector<bool>& are_different = are_different_.emplace_back();
    if (const auto fault = accounting_fault(request)) audit.accounting.push_back(*fault);
    const bool is_drawn = request.draft_temperature > 0.0;
    any_drawn_ = any_drawn_ || is_drawn;
    SlowHead::Text text;
    slow_.read(text, request.tokens);
    for (std::size_t s = 0; s < request.steps.size(); ++s) {
      const DraftedStep& step = request.steps[s];
      if (!can_be_compared(request, step)) continue;
      ++audit.steps;
      const auto known = std::span(request.tokens).first(static_cast<std::size_t>(step.position));
      std::vector<std::optional<Comparison>> comparisons(step.drafts.tokens.size());
      for (std::int32_t node = kRootNode; node < step.drafts.size(); ++node) {
        const std::vector<std::int32_t> children = step.drafts.children(node);
        const std::vector<Token> path = step.drafts.path(node);
        if (children.empty() || std::ssize(path) >= draft_len_max_) continue;
        const std::vector<Comparison> of_children =
            rows_.compare(row_after(text, request, s, known, path), tokens_of(step.drafts, children), is_drawn,
                          temperature_of(request), !step.log_probs.empty());
        for (std::size_t i = 0; i < children.size(); ++i)
          comparisons[static_cast<std::size_t>(children[i])] = of_children[i];
      }
      for (std::int32_t node = 0; node < step.drafts.size(); ++node)
        are_different.push_back(count(request, s, node, comparisons[static_cast<std::size_t>(node)]));
      if (!is_drawn) count_acceptance(text, request, s, known);
    }
  }

  void explain(std::span<const DraftedRequest> requests) {
    // Consecutive requests, the first with a difference among them.
    const auto first = static_cast<std::size_t>(
        std::ranges::find_if(are_different_,
                             [](const std::vector<bool>& of) { return std::ranges::find(of, true) != of.end(); }) -
        are_different_.begin());
    const auto end_from = [&](std::size_t begin) {
      std::int64_t tokens = 0;
      std::size_t end = begin;
      for (; end < requests.size(); ++end) {
        tokens += std::ssize(requests[end].tokens);
        if (end > begin && tokens > options_.replay_tokens_max) break;
      }
      return end;
    };
    const std::size_t begin = end_from(0) > first ? 0 : first;
    std::vector<DraftedRequest> replayed;
    std::vector<std::vector<bool>> are_different;
    for (std::size_t i = begin; i < end_from(begin); ++i) {
      if (accounting_fault(requests[i])) continue;
      replayed.push_back(requests[i]);
      are_different.push_back(are_different_[i]);
      audit.replayed_drafts += std::ssize(are_different_[i]);
      audit.replayed_different += std::ranges::count(are_different_[i], true);
    }
    audit.replayed_requests = std::ssize(replayed);
    if (audit.replayed_different == 0) return;
    const std::vector<HeadFault> faults = head_faults(head_, target_);
    RecordedReplay replay(target_, replayed);
    std::vector<std::unique_ptr<FaultScore>> scores;
    std::vector<FaultLook> not_tried;
    for (const HeadFault& fault : faults) {
      if (std::string reason = reason_not_to_try(fault.needs, replayed); !reason.empty()) {
        not_tried.push_back({fault.number, fault.name, std::move(reason), 0, 0, 0, 0.0});
        continue;
      }
      scores.push_back(std::make_unique<FaultScore>(fault, target_, replayed));
      replay.add(scores.back()->runner(), fault.needs == FaultNeeds::shared_prefixes);
    }
    for (const int number : kHeadFaultNumbers)
      if (std::ranges::find(faults, number, &HeadFault::number) == faults.end())
        not_tried.push_back({number, "", "a runner of this head has no such fault", 0, 0, 0, 0.0});
    for (std::size_t i = 0; i < replayed.size(); ++i) replay.run(i);
    for (const auto& score : scores) audit.faults.push_back(score->look(are_different, options_.tolerance));
    std::ranges::stable_sort(audit.faults, [](const FaultLook& a, const FaultLook& b) {
      return std::pair(a.different, a.distance) < std::pair(b.different, b.distance);
    });
    std::ranges::stable_sort(not_tried, {}, &FaultLook::number);
    audit.faults.insert(audit.faults.end(), not_tried.begin(), not_tried.end());
  }

  void finish(std::span<const DraftedRequest> requests) {
    fill_bins();
    if (!any_drawn_ && audit.steps > 0) {
      const auto steps = static_cast<double>(audit.steps);
      audit.recorded_length = 1.0 + static_cast<double>(recorded_accepted_) / steps;
      audit.head_length = 1.0 + static_cast<double>(head_accepted_) / steps;
    }
    const DraftAgreement& all = audit.all;
    if (all.different > 0) explain(requests);
    if (all.different > 0 || !audit.accounting.empty()) {
      audit.verdict = DraftVerdict::different;
    } else {
      audit.verdict = all.drafts() < options_.drafts_min ? DraftVerdict::inconclusive : DraftVerdict::consistent;
    }
    audit.sentence = sentence();
  }

  DraftAudit audit;

 private:
  std::span<const float> row_after(SlowHead::Text& text, const DraftedRequest& request, std::size_t step,
                                   std::span<const Token> known, const std::vector<Token>& path) {
    const std::vector<float>& logits = slow_.row(text, known, path).logits;
    if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); }))
      throw input_error(request.where, "steps[" + std::to_string(step) +
                                           "]: the head's row is not finite after these tokens; expected a head and "
                                           "a target whose numbers stay so");
    return logits;
  }

  // Returns whether the draft is different.
  bool count(const DraftedRequest& request, std::size_t s, std::int32_t node,
             const std::optional<Comparison>& compared) {
    const DraftedStep& step = request.steps[s];
    const std::optional<double> recorded = recorded_log_prob(step, node);
    const Comparison comparison = compared.value_or(Comparison());
    bool is_different = !compared || comparison.margin > options_.tolerance;
    std::optional<double> difference;
    if (compared && recorded) {
      difference = *recorded - *comparison.log_prob;
      is_different = is_different || std::abs(*difference) > kLogProbTolerances * options_.tolerance;
      ++audit.probabilities;
      audit.largest_log_prob_difference = std::max(audit.largest_log_prob_difference, std::abs(*difference));
      audit.largest_prob_difference =
          std::max(audit.largest_prob_difference, std::abs(std::exp(*recorded) - std::exp(*comparison.log_prob)));
    }
    if (std::isfinite(comparison.margin)) audit.largest_margin = std::max(audit.largest_margin, comparison.margin);
    const auto depth = step.drafts.depth(node);
    const std::int64_t position = step.position + depth - 1;
    const auto add = [&](DraftAgreement& to) {
      ++(is_different ? to.different : comparison.margin == 0.0 ? to.exact : to.near_ties);
    };
    add(audit.all);
    if (audit.by_depth.size() < static_cast<std::size_t>(depth)) audit.by_depth.resize(static_cast<std::size_t>(depth));
    add(audit.by_depth[static_cast<std::size_t>(depth) - 1]);
    add(by_position_[position]);
    if (is_different && !audit.first)
      audit.first = DraftDifference{request.where,
                                    s,
                                    position,
                                    depth,
                                    step.drafts.tokens[static_cast<std::size_t>(node)],
                                    comparison.expected,
                                    std::isfinite(comparison.margin) ? std::optional(comparison.margin) : std::nullopt,
                                    difference};
    return is_different;
  }

  // Counts the head's tokens, in the shape of the draft, that would have been accepted: those that the output has.
  void count_acceptance(SlowHead::Text& text, const DraftedRequest& request, std::size_t s,
                        std::span<const Token> known) {
    const DraftedStep& step = request.steps[s];
    const std::int64_t left = std::ssize(request.tokens) - step.position;
    recorded_accepted_ += std::min(step.num_accepted, left);
    std::vector<Token> path;
    std::int32_t node = kRootNode;
    while (std::ssize(path) < left && std::ssize(path) < draft_len_max_) {
      const std::vector<std::int32_t> children = step.drafts.children(node);
      if (children.empty()) return;
      const std::vector<Token> best = rows_.most_probable(row_after(text, request, s, known, path), children.size());
      const Token emitted = request.tokens[known.size() + path.size()];
      const auto found = std::ranges::find(best, emitted);
      if (found == best.end()) return;
      ++head_accepted_;
      path.push_back(emitted);
      node = children[static_cast<std::size_t>(found - best.begin())];
    }
  }

  static std::string reason_not_to_try(FaultNeeds needs, const std::vector<DraftedRequest>& requests) {
    const auto any = [&](auto holds) { return std::ranges::any_of(requests, holds); };
    switch (needs) {
      case FaultNeeds::nothing:
        return "";
      case FaultNeeds::chunks:
        if (any([](const DraftedRequest& r) { return r.prefill_chunks.size() > 1; })) return "";
        return "no request records prefill_chunks of several chunks";
      case FaultNeeds::shared_prefixes: {
        if (any([](const DraftedRequest& r) { return r.cached_tokens.value_or(0) >= kKvBlockSlots; })) return "";
        const bool shares = any([&](const DraftedRequest& r) {
          return !r.cached_tokens && any([&](const DraftedRequest& other) {
            return &r != &other && r.tokens.size() > kKvBlockSlots && other.tokens.size() > kKvBlockSlots &&
                   std::equal(r.tokens.begin(), r.tokens.begin() + kKvBlockSlots, other.tokens.begin());
          });
        });
        return shares ? "" : "no prompts share a block, or no cached_tokens are recorded";
      }
      case FaultNeeds::chains:
        break;
    }
    const bool chains = any([](const DraftedRequest& r) {
      return std::ranges::any_of(r.steps,
                                 [](const DraftedStep& s) { return !s.drafts.empty() && s.drafts.is_chain(); });
    });
    return chains ? "" : "it is known of chains, and these drafts are trees";
  }

  void fill_bins() {
    if (by_position_.empty()) return;
    const std::int64_t end = by_position_.rbegin()->first + 1;
    audit.bin_len = (end + kBins - 1) / kBins;
    audit.by_position.resize(static_cast<std::size_t>((end + audit.bin_len - 1) / audit.bin_len));
    for (const auto& [position, agreement] : by_position_) {
      DraftAgreement& bin = audit.by_position[static_cast<std::size_t>(position / audit.bin_len)];
      bin.exact += agreement.exact;
      bin.near_ties += agreement.near_ties;
      bin.different += agreement.different;
    }
  }

  std::string sentence() const {
    const DraftAgreement& all = audit.all;
    const std::string drafts = counted_noun(all.drafts(), "draft");
    std::string text(name_of(audit.verdict));
    if (audit.verdict == DraftVerdict::inconclusive)
      return text + ": " + drafts + " and no difference; expected " + std::to_string(options_.drafts_min) +
             " or more to say something";
    if (audit.verdict == DraftVerdict::consistent)
      return text + ": all " + drafts + " are what the head proposes, " + std::to_string(all.near_ties) +
             " of them near ties (at most " + short_text(audit.largest_margin) + " of " + short_text(audit.tolerance) +
             " below)";
    text += ": ";
    if (all.different > 0)
      text += std::to_string(all.different) + " of " + drafts + " are not what the head proposes, from position " +
              std::to_string(audit.first->position) + " of " + audit.first->where + " on";
    if (!audit.accounting.empty())
      text += (all.different > 0 ? "; " : "") + std::string("the accounts of ") +
              counted_noun(std::ssize(audit.accounting), "request") + " do not add up";
    if (all.different == 0) return text;
    const std::vector<const FaultLook*> explanations = audit.explanations();
    if (audit.replayed_different == 0)
      return text + "; faults are planted in requests whose accounts add up, and these are not different";
    if (explanations.empty()) {
      const bool some = audit.faults.front().not_tried.empty() && audit.faults.front().explained > 0;
      return text + "; none of the known faults explains it" +
             (some ? " (the nearest, " + std::to_string(audit.faults.front().number) + ", " +
                         audit.faults.front().name + ", leaves " + std::to_string(audit.faults.front().different) +
                         " of " + std::to_string(audit.replayed_drafts) + " drafts different)"
                   : "");
    }
    text += "; ";
    for (std::size_t i = 0; i < explanations.size(); ++i)
      text += (i == 0                         ? "fault "
               : i + 1 == explanations.size() ? " or fault "
                                              : ", fault ") +
              std::to_string(explanations[i]->number) + " (" + explanations[i]->name + ")";
    return text + " would look like that";
  }

  const DraftAuditOptions& options_;
  std::shared_ptr<const HeadWeights> head_;
  TransformerModel& target_;
  SlowHead slow_;
  HeadRows rows_;
  std::int32_t draft_len_max_;
  std::vector<std::vector<bool>> are_different_;  // of requests, the drafts compared
  std::map<std::int64_t, DraftAgreement> by_position_;
  bool any_drawn_ = false;
  std::int64_t recorded_accepted_ = 0, head_accepted_ = 0;
};

}  // namespace

std::string_view name_of(DraftVerdict verdict) {
  constexpr std::array<std::string_view, 3> kNames{"consistent", "different", "inconclusive"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string DraftDifference::text() const {
  std::string text = where + ", steps[" + std::to_string(step) + "], position " + std::to_string(position) +
                     ", depth " + std::to_string(depth) + ": the draft is token " + std::to_string(drafted);
  if (expected) text += ", expected token " + std::to_string(*expected);
  if (margin && *margin > 0.0) text += ", whose logit is " + short_text(*margin) + " larger";
  if (!margin) text += ", which the head does not draft there";
  if (log_prob_difference && margin)
    text += "; its log-probability is recorded " + short_text(std::abs(*log_prob_difference)) +
            (*log_prob_difference > 0.0 ? " above" : " below") + " the head's";
  return text;
}

std::vector<const FaultLook*> DraftAudit::explanations() const {
  std::vector<const FaultLook*> explanations;
  for (const FaultLook& look : faults)
    if (look.not_tried.empty() && replayed_different > 0 && 10 * look.different <= replayed_different)
      explanations.push_back(&look);
  return explanations;
}

std::optional<AccountingFault> accounting_fault(const DraftedRequest& request) {
  const auto end = std::ssize(request.tokens);
  std::int64_t next = 0;  // 0: the first step's
  for (std::size_t s = 0; s < request.steps.size(); ++s) {
    const DraftedStep& step = request.steps[s];
    const auto fault = [&](const std::string& field, const std::string& what) {
      const std::string text = request.where + ": steps[" + std::to_string(s) + "]." + field + " " + what;
      return AccountingFault{request.where, s, text};
    };
    const auto is = [](std::int64_t value) { return "is " + std::to_string(value) + "; expected "; };
    if (next == 0 && (step.position < request.prompt_len || step.position > request.prompt_len + 1))
      return fault("position", is(step.position) + std::to_string(request.prompt_len) + " or " +
                                   std::to_string(request.prompt_len + 1) + ", the prompt, maybe with a first token");
    if (next != 0 && step.position != next)
      return fault("position", is(step.position) + std::to_string(next) +
                                   ", the position before with its accepted drafts and one token more (a step "
                                   "without drafts has an empty list)");
    if (step.position >= end)
      return fault("position", is(step.position) + "less than " + std::to_string(end) + ", the tokens of the text");
    next = step.position + step.num_accepted + 1;
    // Drafts that the output has.
    std::int32_t node = kRootNode;
    std::int64_t agreeing = 0;
    for (; step.position + agreeing < end; ++agreeing) {
      const Token emitted = request.tokens[static_cast<std::size_t>(step.position + agreeing)];
      const std::vector<std::int32_t> children = step.drafts.children(node);
      const auto child = std::ranges::find_if(
          children, [&](std::int32_t c) { return step.drafts.tokens[static_cast<std::size_t>(c)] == emitted; });
      if (child == children.end()) break;
      node = *child;
    }
    const bool reaches_end = step.position + agreeing == end;
    if (agreeing < step.num_accepted && !reaches_end)
      return fault("accepted",
                   is(step.num_accepted) + "at most " + std::to_string(agreeing) + ", the drafts that the output has");
    if (agreeing > step.num_accepted && s + 1 < request.steps.size())
      return fault("accepted",
                   is(step.num_accepted) + std::to_string(agreeing) + ", since the output has that many of the drafts");
  }
  return std::nullopt;
}

DraftAudit audit_drafts(std::span<const DraftedRequest> requests, const std::shared_ptr<const HeadWeights>& head,
                        TransformerModel& target, const DraftAuditOptions& options) {
  Auditor auditor(head, target, options);
  for (const DraftedRequest& request : requests) {
    if (std::ssize(request.tokens) > target.context_len_max())
      throw input_error(request.where, "has " + std::to_string(request.tokens.size()) + " tokens; expected at most " +
                                           std::to_string(target.context_len_max()) + ", the target's context");
    auditor.add(request);
    if (options.on_request) options.on_request(static_cast<std::size_t>(auditor.audit.requests));
  }
  auditor.finish(requests);
  return std::move(auditor.audit);
}

}  // namespace draftproof
