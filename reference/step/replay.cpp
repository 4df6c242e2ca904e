#include "reference/step/replay.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/printable.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/step/verify_step_of.hpp"
#include "reference/verify/replaying_chance.hpp"

namespace draftproof {
namespace {

std::string text_of(double x) {
  return number("%.9g", x);
}

// A lossy verifier may accept what a greedy target forbids, and throws its coins.
ReplayingChance chance_of(const VerifyRequest& request, const VerifyOptions& options,
                          std::vector<ReplayedDecision>* decisions) {
  const bool greedy = has_greedy_target(request) && options.verifier.info().lossless;
  const auto draft_len = static_cast<std::uint32_t>(request.draft.size());
  return {request.recorded, draft_len, options.convention, greedy, request.position_or_default(), decisions};
}

// Decisions of an engine, as far as what it emitted shows them.
class EngineStep {
 public:
  EngineStep(const VerifyRequest& request, const VerifierInfo& verifier, std::span<const Token> emitted,
             std::span<const std::int32_t> path)
      : tree_(request.draft), verifier_(verifier), emitted_(emitted), path_(path) {}

  // Nothing: it does not show. Of block verification all coins are thrown, and the last that passed counts; traversal
  // ends at the leaf that passes; a token that is drawn may be a sibling whose coin failed.
  std::optional<bool> coin(std::int32_t node) const {
    const std::int32_t end = path_.empty() ? kRootNode : path_.back();
    const bool on_path = std::find(path_.begin(), path_.end(), node) != path_.end();
    if (verifier_.decisions == Decisions::leaf_by_leaf) return node == end;
    if (verifier_.decisions == Decisions::last_passing) return node < end ? std::nullopt : std::optional(node == end);
    if (on_path && verifier_.recovered != Recovered::undrafted) return std::nullopt;
    return on_path;
  }

  std::int32_t position_of_row(std::uint32_t row) const { return tree_.depth(static_cast<std::int32_t>(row) - 1); }
  // Siblings: the index of the one that it took, or their number.
  Token drawn(const ReplayedDecision& draw) const {
    const auto position = static_cast<std::size_t>(position_of_row(draw.row));
    if (draw.purpose != Purpose::sibling_coin) return position < emitted_.size() ? emitted_[position] : kPaddingToken;
    const std::vector<std::int32_t> nodes = tree_.children(static_cast<std::int32_t>(draw.row) - 1);
    const auto taken = position < path_.size() ? std::find(nodes.begin(), nodes.end(), path_[position]) : nodes.end();
    return static_cast<Token>(taken - nodes.begin());
  }

 private:
  const DraftTree& tree_;
  const VerifierInfo& verifier_;
  std::span<const Token> emitted_;
  std::span<const std::int32_t> path_;
};

double distance_of_coin(double p, double q, double u) {
  const double larger = std::max(p, u * q);
  return larger > 0.0 ? std::abs(u * q - p) / larger : 0.0;
}

// How far u is from the part of [0, 1] that belongs to a token.
double distance_of_uniform(const DenseMasses<double>& masses, double u, std::size_t token) {
  double total = 0.0;
  double before = 0.0;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    if (i < token) before += masses[i];
    total += masses[i];
  }
  return std::max({0.0, before / total - u, u - (before + masses[token]) / total});
}

double distance_of_race(const DenseMasses<double>& masses, const RecordedRandomness& recorded, std::size_t first,
                        std::size_t winner, std::size_t token) {
  const double their_noise = (*recorded.noise)[first + token];
  const double our_noise = (*recorded.noise)[first + winner];
  if (recorded.noise_kind == NoiseKind::gumbel)
    return 1.0 - natural_exp(
                     std::min(0.0, natural_log(masses[token]) + their_noise - natural_log(masses[winner]) - our_noise));
  return 1.0 - std::min(1.0, masses[token] * our_noise / (masses[winner] * their_noise));
}

double distance_of_draw(const ReplayedDecision& draw, const RecordedRandomness& recorded, Token theirs) {
  const auto token = static_cast<std::size_t>(theirs);
  if (theirs < 0 || token >= draw.masses.size()) return 1.0;
  if (draw.u >= 0.0) return distance_of_uniform(draw.masses, draw.u, token);
  if (!recorded.noise || !(draw.masses[token] > 0.0)) return 1.0;
  const std::size_t first = recorded.noise->size() == draw.masses.size() ? 0 : draw.row * draw.masses.size();
  return distance_of_race(draw.masses, recorded, first, static_cast<std::size_t>(draw.token), token);
}

}  // namespace

Emission replay_step(const VerifyRequest& request, const VerifyOptions& options, StepWorkspace& workspace) {
  ReplayingChance chance = chance_of(request, options, nullptr);
  StepRows rows(request, options, workspace);
  const TreeOutcome outcome = step_detail::judge(options.verifier, rows, chance);
  if (const auto& impossible = chance.impossible_token()) {
    const bool is_bonus = impossible->row == static_cast<std::uint32_t>(request.draft.size());
    throw RowError(RowStatus::bad_id,
                   {request.first_row + impossible->row,
                    request.target_is_probabilities ? "target_probs" : "target_logits", impossible->row},
                   -1,
                   std::string("the recorded ") + (is_bonus ? "bonus" : "recovered") + " token " +
                       std::to_string(impossible->token) + " has no mass in what it was drawn from; expected a token " +
                       (is_bonus ? "of positive probability" : "of the residual"));
  }
  return step_detail::emission_of(outcome, options, rows);
}

std::optional<Departure> find_departure(const VerifyRequest& request, const VerifyOptions& options,
                                        std::span<const Token> emitted, std::span<const std::int32_t> path,
                                        StepWorkspace& workspace) {
  VerifyOptions tokens_only = options;
  tokens_only.logprobs = tokens_only.all_rows = false;
  std::vector<ReplayedDecision> decisions;
  ReplayingChance chance = chance_of(request, tokens_only, &decisions);
  const Emission emission = verify_step_by(request, tokens_only, chance, workspace);
  if (std::ranges::equal(emission.tokens, emitted)) return std::nullopt;
  const EngineStep engine(request, options.verifier.info(), emitted, path);
  for (const ReplayedDecision& decision : decisions) {
    Departure departure;
    departure.is_coin = decision.is_coin;
    if (decision.u >= 0.0) departure.u = decision.u;
    if (decision.is_coin) {
      const auto node = static_cast<std::int32_t>(decision.row);
      if (engine.coin(node).value_or(decision.accepted) == decision.accepted) continue;
      departure.position = request.draft.depth(node) - 1;
      departure.p = decision.p;
      departure.q = decision.q;
      departure.token = request.draft.tokens[decision.row];
      departure.accepted = decision.accepted;
      departure.distance = distance_of_coin(decision.p, decision.q, decision.u);
      return departure;
    }
    const Token theirs = engine.drawn(decision);
    if (theirs == decision.token) continue;
    departure.position = engine.position_of_row(decision.row);
    departure.is_sibling = decision.purpose == Purpose::sibling_coin;
    departure.token = decision.token;
    departure.theirs = theirs;
    departure.distance = distance_of_draw(decision, request.recorded, theirs);
    return departure;
  }
  Departure departure;  // no decision of the replay shows it
  const auto [ours, theirs] = std::ranges::mismatch(emission.tokens, emitted);
  departure.position = static_cast<std::int32_t>(ours - emission.tokens.begin());
  departure.token = ours == emission.tokens.end() ? kPaddingToken : *ours;
  departure.theirs = theirs == emitted.end() ? kPaddingToken : *theirs;
  return departure;
}

std::string Departure::sentence() const {
  std::string text;
  if (is_coin) {
    text = "draft " + std::to_string(token) + " at position " + std::to_string(position) + " has p = " + text_of(p) +
           ", q = " + text_of(q) + (u ? ", u = " + text_of(*u) : "") + ": it is " +
           (accepted ? "accepted, and the engine rejected it" : "rejected, and the engine accepted it");
  } else {
    const std::string what = is_sibling ? "sibling " : "token ";
    text = "at position " + std::to_string(position) + (u ? " u = " + text_of(*u) + " draws " : " comes ") + what +
           std::to_string(token) + ", and the engine has " + what + std::to_string(theirs);
  }
  if (distance < 1e-4) text += "; they are " + text_of(distance) + " apart, which rounding may explain";
  return text;
}

}  // namespace draftproof
