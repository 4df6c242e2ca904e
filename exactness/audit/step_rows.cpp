#include "exactness/audit/step_rows.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/archives/sha256.hpp"
#include "exactness/audit/tests.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/verify/emitted_path.hpp"

namespace draftproof {
namespace {

const VerifyOptions kRowsOnly{.logprobs = false};

DistributionDigest digest_of(std::span<const double> distribution) {
  const std::string hex = sha256_hex(std::as_bytes(distribution));
  return {std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16, 16), nullptr, 16)};
}

// Probabilities of 16 bits are rounded to 2^-9 (bf16) or better, and by as much again as their sum is off.
double ratio_tolerance(const VerifyRequest& request) {
  const bool rounded_target = request.target_is_probabilities && request.target.dtype != DType::f32;
  const bool rounded_draft =
      request.proposal_kind == ProposalKind::probabilities && request.proposal.dtype != DType::f32;
  return rounded_target || rounded_draft ? 0x1p-7 : 1e-5;
}

double probability(std::span<const double> distribution, Token token) {
  return distribution[static_cast<std::size_t>(token)];
}

double transform(std::span<const double> distribution, Token token, double v) {
  return mass_ranked_before(distribution, token) + v * probability(distribution, token);
}

// norm(max(p - q, 0)), or p where that is zero everywhere.
std::vector<double> residual_of(const std::vector<double>& p, const std::vector<double>& q) {
  std::vector<double> residual(p.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += residual[i] = std::max(0.0, p[i] - q[i]);
  if (!(sum > 0.0)) return p;
  for (double& x : residual) x /= sum;
  return residual;
}

DraftRecord draft_record(const std::vector<double>& p, const std::vector<double>& q, Token token) {
  DraftRecord record;
  const double q_token = probability(q, token);
  record.ratio = q_token > 0.0 ? probability(p, token) / q_token : 0.0;
  record.accept_by_row = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) record.accept_by_row += std::min(p[i], q[i]);
  return record;
}

class StepRecorder {
 public:
  StepRecorder(const StepSample& sample, std::size_t index, const Assumptions& assumed, std::uint64_t key,
               StepWorkspace& workspace)
      : request_(sample.requests[index]),
        tree_(request_.draft),
        emitted_(sample.emitted(index)),
        assumed_(assumed),
        key_(key),
        index_(static_cast<std::int64_t>(index)),
        rows_(request_, kRowsOnly, workspace),
        children_(request_.rows()) {
    for (std::int32_t node = 0; node < tree_.size(); ++node)
      children_[DraftTree::row_after(tree_.parents[static_cast<std::size_t>(node)])].push_back(node);
    EmittedPath found = find_emitted_path(tree_, emitted_.first(emitted_.size() - 1));
    path_is_reported_ = sample.path_nodes.has_value();
    if (path_is_reported_) {
      const std::span<const std::int32_t> reported = sample.reported_path(index);
      record_.wrong_path = tokens_of(tree_, reported) != tokens_of(tree_, found.nodes);
      if (!record_.wrong_path) found = {{reported.begin(), reported.end()}, false};
    }
    record_.end_is_known = !found.ambiguous;
    drafted_.assign(request_.rows(), 0.0);
    drafted_[0] = 1.0;
    for (std::uint32_t row = 0; !children_[row].empty(); row = DraftTree::row_after(children_[row].front()))
      ++record_.first_path_depth;
    path_rows_.push_back(0);
    for (const std::int32_t node : found.nodes) path_rows_.push_back(DraftTree::row_after(node));
  }

  StepRecord run() {
    record_.ratio_tolerance = ratio_tolerance(request_);
    record_.accepted = static_cast<std::uint32_t>(emitted_.size()) - 1;
    record_.depth_max = static_cast<std::uint32_t>(tree_.depth_max());
    record_.emitted.assign(emitted_.size(), kNoTransform);
    for (std::uint32_t row = 0; row < request_.rows(); ++row) look_at_row(row);
    look_at_end();
    if (assumed_.decides) look_at_own_decisions();
    return std::move(record_);
  }

 private:
  void look_at_row(std::uint32_t row) {
    const auto on_path = std::find(path_rows_.begin(), path_rows_.end(), row);
    const bool is_next = note_next(row);
    std::vector<double> p;
    if (on_path != path_rows_.end() || is_next || assumed_.chain_decisions)
      p = normalised_distribution(rows_.target(row));
    if (row == 0) {
      record_.first_distribution = digest_of(p);
      record_.first_row_has_choice = !is_one_hot(p);
    }
    if (is_next) record_.next.back().distribution = digest_of(p);
    if (on_path != path_rows_.end()) look_at_token(static_cast<std::uint32_t>(on_path - path_rows_.begin()), p);
    const bool is_known = assumed_.drafts != DraftSampling::any;
    const bool names_context = row == 0 && !assumed_.drafts_share_noise && has_proposal();
    std::vector<double> q;
    if (!children_[row].empty() && (is_known || names_context)) q = normalised_distribution(rows_.proposal(row));
    if (row == 0 && !q.empty()) record_.draft_distribution = digest_of(q);
    if (is_known && !q.empty()) {
      for (const std::int32_t child : children_[row])
        drafted_[DraftTree::row_after(child)] =
            drafted_[row] * probability(q, tree_.tokens[static_cast<std::size_t>(child)]);
    }
    if (is_known && !q.empty()) look_at_drafts(row, q);
    if (assumed_.chain_decisions) look_at_decision(row, p, q);
  }

  // Without probabilities a chain's proposal is one-hot; siblings have none that is known.
  bool has_proposal() const { return request_.proposal_kind != ProposalKind::one_hot || tree_.is_chain(); }

  // Is this the row after a path that no row before it shows?
  bool note_next(std::uint32_t row) {
    if (row == 0) return false;
    const bool is_deep = tree_.parents[row - 1] != kRootNode;
    if (is_deep && request_.target.vocab_size > kDeepVocabMax) return false;
    std::vector<Token> path = tree_.path(static_cast<std::int32_t>(row) - 1);
    if (path.size() >= kStringTokensMax) return false;
    if (std::any_of(record_.next.begin(), record_.next.end(), [&](const NextRow& n) { return n.path == path; }))
      return false;
    record_.next.push_back({std::move(path), row, {}, drafted_[row]});
    return true;
  }

  void look_at_token(std::uint32_t position, const std::vector<double>& p) {
    const Token token = emitted_[position];
    if (!(probability(p, token) > 0.0)) {
      if (!record_.impossible_token) record_.impossible_row = position;
      record_.impossible_token = true;
    } else if (!is_one_hot(p)) {
      record_.emitted[position] = transform(p, token, uniform(position, AuditUse::token));
    }
  }

  void look_at_drafts(std::uint32_t row, const std::vector<double>& q) {
    const bool with_replacement =
        assumed_.drafts == DraftSampling::drawn || assumed_.drafts == DraftSampling::independent;
    // A greedy target's drafts are one-hot as far as its verifiers look, of one sibling only.
    if (is_one_hot(q) && children_[row].size() > 1 && has_greedy_target(request_)) return;
    std::vector<double> left = q;  // what the next sibling is drawn from
    for (const std::int32_t node : children_[row]) {
      const Token token = tree_.tokens[static_cast<std::size_t>(node)];
      const bool is_drawn = assumed_.drafts != DraftSampling::greedy || node == children_[row].back();
      if (!with_replacement && holds_before(row, node)) {
        if (!record_.repeated_draft) record_.repeated_node = node;
        record_.repeated_draft = true;
        return;
      }
      if (is_drawn && !(probability(q, token) > 0.0)) {
        if (!record_.impossible_draft) record_.impossible_node = node;
        record_.impossible_draft = true;
        return;
      }
      if (is_drawn && !is_one_hot(left)) {
        record_.drafted.push_back(transform(left, token, uniform(static_cast<std::uint32_t>(node), AuditUse::draft)));
        if (node == 0) record_.first_draft = record_.drafted.back();
        if (node == judged_node()) record_.judged_draft = record_.drafted.back();
      }
      if (!with_replacement) remove(left, token);
    }
  }

  std::int32_t judged_node() const {
    const std::uint32_t end = path_rows_.back();
    return children_[end].empty() ? static_cast<std::int32_t>(end) - 1 : children_[end].front();
  }

  bool holds_before(std::uint32_t row, std::int32_t node) const {
    const Token token = tree_.tokens[static_cast<std::size_t>(node)];
    return std::any_of(children_[row].begin(), children_[row].end(), [&](std::int32_t other) {
      return other < node && tree_.tokens[static_cast<std::size_t>(other)] == token;
    });
  }

  static void remove(std::vector<double>& distribution, Token token) {
    distribution[static_cast<std::size_t>(token)] = 0.0;
    double sum = 0.0;
    for (const double x : distribution) sum += x;
    if (sum > 0.0)
      for (double& x : distribution) x /= sum;
  }

  void look_at_decision(std::uint32_t row, const std::vector<double>& p, const std::vector<double>& q) {
    if (q.empty()) {
      if (row == record_.accepted) record_last(row, p);
      return;
    }
    record_.drafts.push_back(draft_record(p, q, tree_.tokens[row]));
    if (row != record_.accepted) return;
    record_last(row, residual_of(p, q));
    const Token last = emitted_.back();
    record_.impossible_recovery =
        probability(p, last) > 0.0 && probability(p, last) < probability(q, last) * (1.0 - record_.ratio_tolerance);
  }

  void record_last(std::uint32_t row, const std::vector<double>& distribution) {
    const Token token = emitted_.back();
    if (probability(distribution, token) > 0.0 && !is_one_hot(distribution))
      record_.last = transform(distribution, token, uniform(row, AuditUse::last_token));
  }

  // Looks at the node where the step ended.
  void look_at_end() {
    const std::uint32_t row = path_rows_.back();
    if (children_[row].empty()) return;
    record_.recovered = true;
    if (assumed_.needs_possible_drafts) {
      const Distribution& q = rows_.proposal(row);
      for (const std::int32_t node : children_[row])
        record_.end_is_known =
            record_.end_is_known && q.probability(tree_.tokens[static_cast<std::size_t>(node)]) > 0.0f;
    }
    record_.drafted_recovery =
        record_.end_is_known && std::any_of(children_[row].begin(), children_[row].end(), [&](std::int32_t node) {
          return tree_.tokens[static_cast<std::size_t>(node)] == emitted_.back();
        });
  }

  void look_at_own_decisions() {
    if (record_.impossible_draft || record_.repeated_draft || record_.wrong_path) return;
    // A verifier may take either of two siblings of one token, unless it takes the first and says so in its path.
    const bool either_is_known = assumed_.decides->info().takes_first_of_equals && path_is_reported_;
    if (!either_is_known && has_repeats()) return;
    std::vector<std::int32_t> path;
    for (const std::uint32_t row : std::span(path_rows_).subspan(1)) path.push_back(static_cast<std::int32_t>(row) - 1);
    OwnOutcome own = own_outcome(*assumed_.decides, rows_, path, emitted_.back(), record_.ratio_tolerance);
    record_.decisions = std::move(own.decisions);
    record_.accepted_distribution = std::move(own.num_accepted);
    record_.impossible_recovery = record_.recovered && own.impossible_last && !record_.impossible_token;
    double total = 0.0;
    for (const double mass : own.last) total += mass;
    if (!(total > 0.0)) return;
    for (double& mass : own.last) mass /= total;
    record_last(path_rows_.back(), own.last);
  }

  bool has_repeats() const {
    for (std::uint32_t row = 0; row < children_.size(); ++row)
      for (const std::int32_t node : children_[row])
        if (holds_before(row, node)) return true;
    return false;
  }

  double uniform(std::uint32_t row, AuditUse use) const { return audit_uniform(key_, index_, row, use); }

  const VerifyRequest& request_;
  const DraftTree& tree_;
  std::span<const Token> emitted_;
  const Assumptions& assumed_;
  std::uint64_t key_;
  std::int64_t index_;
  StepRows rows_;
  std::vector<std::vector<std::int32_t>> children_;  // [K + 1] of the node of each row
  std::vector<std::uint32_t> path_rows_;             // [tau + 1]
  std::vector<double> drafted_;                      // [K + 1] NextRow::drafted of each row
  bool path_is_reported_ = false;
  StepRecord record_;
};

}  // namespace

double audit_uniform(std::uint64_t key, std::int64_t request, std::uint32_t row, AuditUse use) {
  const Address address{static_cast<std::uint32_t>(use), row, static_cast<std::uint32_t>(request), Purpose::choice};
  return uniform_53(high_half(PhiloxSource().block(key, address)));
}

StepRecord record_step(const StepSample& sample, std::size_t index, const Assumptions& assumed, std::uint64_t key,
                       StepWorkspace& workspace) {
  return StepRecorder(sample, index, assumed, key, workspace).run();
}

std::vector<double> target_distribution_of(const VerifyRequest& request, std::uint32_t row, StepWorkspace& workspace) {
  return normalised_distribution(StepRows(request, kRowsOnly, workspace).target(row));
}

}  // namespace draftproof
