#include "studies/tree/verification_walk.hpp"

#include <algorithm>
#include <array>

#include "base/printable.hpp"

namespace draftproof {
namespace {

std::string short_text(double value) {
  return number("%.4g", value);
}

class Walker {
 public:
  explicit Walker(const WalkInputs& inputs)
      : inputs_(inputs), joint_(inputs.verifier.info().joint), states_(inputs.tree.tokens.size(), NodeState::waiting) {}

  std::vector<WalkStep> run() {
    if (inputs_.verifier.info().coins == Coins::of_selected_path) select();
    for (const RecordedDecision& decision : inputs_.decisions) {
      switch (decision.kind) {
        case RecordedDecision::Kind::accept:
          coin(decision);
          break;
        case RecordedDecision::Kind::draw:
          decision.purpose == Purpose::sibling_coin ? shares(decision) : draw(decision);
          break;
        case RecordedDecision::Kind::race:
          race(decision);
          break;
      }
    }
    return std::move(steps_);
  }

 private:
  WalkStep& add(WalkStep::Kind kind, std::int32_t at) {
    WalkStep& step = steps_.emplace_back();
    step.kind = kind;
    step.at = at;
    return step;
  }
  void close(WalkStep& step) { step.states = states_; }

  std::string name(std::int32_t node) const {
    return "node " + std::to_string(node) + " '" + inputs_.text_of(token_of(node)) + "'";
  }
  std::string place(std::int32_t at) const { return at == kRootNode ? "the context" : name(at); }
  Token token_of(std::int32_t node) const { return inputs_.tree.tokens[static_cast<std::size_t>(node)]; }
  std::int32_t parent_of(std::int32_t node) const { return inputs_.tree.parents[static_cast<std::size_t>(node)]; }

  // The node that a coin's row is about, and the one that a prefix row stands at.
  std::int32_t node_of(std::uint32_t row) const {
    return inputs_.selected.empty() ? static_cast<std::int32_t>(row) : inputs_.selected[row];
  }
  std::int32_t node_at(std::uint32_t prefix_row) const { return prefix_row == 0 ? kRootNode : node_of(prefix_row - 1); }

  // A node that stands has its whole path standing.
  void accept(std::int32_t node) {
    for (; node != kRootNode; node = parent_of(node)) states_[static_cast<std::size_t>(node)] = NodeState::accepted;
  }
  void reject(std::int32_t node) { states_[static_cast<std::size_t>(node)] = NodeState::rejected; }

  void select() {
    WalkStep& step = add(WalkStep::Kind::select, kRootNode);
    step.text = "Selects the path of the highest ratios p/q:";
    for (const std::int32_t node : inputs_.selected) step.text += " " + std::to_string(node);
    if (inputs_.selected.empty()) step.text += " none";
    close(step);
  }

  // Importance-weighted selection: coins of later siblings select, that of the first accepts what was selected
  // (importance.hpp).
  void selection(WalkStep& step, const RecordedDecision& decision) {
    const std::vector<std::int32_t> siblings = inputs_.tree.children(step.at);
    const auto taken = std::ranges::find_if(
        siblings, [&](auto sibling) { return std::ranges::find(inputs_.path, sibling) != inputs_.path.end(); });
    step.text = "u q = " + short_text(decision.u * decision.q) + (decision.accepted ? " < " : " >= ") +
                "p = " + short_text(decision.p) + ": ";
    if (step.node != siblings.front())
      step.text = name(step.node) + ": " + step.text + (decision.accepted ? "selected" : "not selected");
    else if (decision.accepted && taken != siblings.end()) {
      step.node = *taken;
      accept(*taken);
      step.text = name(*taken) + ", selected: " + step.text + "accepted";
    } else {
      for (const std::int32_t sibling : siblings) reject(sibling);
      step.text = "The selected child of " + place(step.at) + ": " + step.text + "rejected";
    }
    close(step);
  }

  void coin(const RecordedDecision& decision) {
    const std::int32_t node = node_of(decision.row);
    WalkStep& step = add(WalkStep::Kind::coin, parent_of(node));
    step.node = node;
    step.p = decision.p;
    step.q = decision.q;
    step.u = decision.u;
    step.accepted = decision.accepted;
    if (inputs_.verifier.info().verifier == Verifier::importance) return selection(step, decision);
    step.text = name(node) + ": ";
    if (joint_) {
      // The whole path stands or not, with one weight.
      step.text += "u = " + short_text(decision.u) + (decision.accepted ? " < " : " >= ") +
                   "h = " + short_text(decision.p) +
                   (decision.accepted ? ": the path to it stands" : ": it does not stand");
    } else if (decision.p >= decision.q && decision.accepted) {
      step.text += "p = " + short_text(decision.p) + " >= q = " + short_text(decision.q) + ": accepted for certain";
    } else {
      step.text += "u q = " + short_text(decision.u) + " x " + short_text(decision.q) + " = " +
                   short_text(decision.u * decision.q) + (decision.accepted ? " < " : " >= ") +
                   "p = " + short_text(decision.p) + (decision.accepted ? ": accepted" : ": rejected");
    }
    decision.accepted ? accept(node) : reject(node);
    close(step);
  }

  void shares(const RecordedDecision& decision) {
    const std::int32_t at = node_at(decision.row);
    const std::vector<std::int32_t> children = inputs_.tree.children(at);
    WalkStep& step = add(WalkStep::Kind::shares, at);
    step.u = decision.u;
    step.shares = decision.masses;
    const auto chosen = static_cast<std::size_t>(decision.token);
    step.probability = decision.masses[chosen];
    step.accepted = chosen < children.size();
    if (step.accepted) step.node = children[chosen];
    for (std::size_t j = 0; j < std::min(chosen, children.size()); ++j) reject(children[j]);
    if (step.accepted) accept(step.node);
    step.text = "u = " + short_text(decision.u) + " among shares of the children of " + place(at) + ":";
    for (std::size_t j = 0; j < children.size(); ++j)
      step.text += " " + std::to_string(children[j]) + " " + short_text(decision.masses[j]) + ",";
    step.text += " rest " + short_text(decision.masses.back()) + ": " +
                 (step.accepted ? name(step.node) + " accepted" : std::string("none accepted"));
    close(step);
  }

  // A token that was drawn at a node: where a child holds it, that child is accepted.
  void draw(const RecordedDecision& decision) {
    const std::int32_t at = node_at(decision.row);
    WalkStep& step = add(WalkStep::Kind::draw, at);
    step.u = decision.u;
    take(step, decision);
    const bool residual = decision.purpose == Purpose::residual;
    step.text = std::string("Draws '") + inputs_.text_of(step.token) + "' (probability " +
                short_text(step.probability) + ") from " + (residual ? "the residual at " : "p at ") + place(at) +
                (step.accepted ? ": " + name(step.node) + " accepted"
                 : residual    ? ": the recovered token"
                               : end_name(at));
    close(step);
  }

  void race(const RecordedDecision& decision) {
    WalkStep& step = add(WalkStep::Kind::race, last_accepted_);
    take(step, decision);
    step.text = "The race at position " + std::to_string(decision.row - inputs_.position) + " is won by '" +
                inputs_.text_of(step.token) + "' (p = " + short_text(step.probability) + ")" +
                (step.accepted ? ": " + name(step.node) + " accepted" : end_name(step.at));
    close(step);
  }

  std::string end_name(std::int32_t at) const {
    return inputs_.tree.children(at).empty() ? ": the bonus token" : ": no child holds it, it is emitted";
  }

  void take(WalkStep& step, const RecordedDecision& decision) {
    step.token = decision.token;
    step.probability = decision.masses[static_cast<std::size_t>(decision.token)];
    for (const std::int32_t child : inputs_.tree.children(step.at)) {
      NodeState& state = states_[static_cast<std::size_t>(child)];
      // Verifiers of whole paths emit what they draw, whatever hangs below.
      if (!joint_ && !step.accepted && token_of(child) == decision.token) {
        step.accepted = true;
        step.node = child;
        accept(child);
        last_accepted_ = child;
      } else if (state == NodeState::waiting && !joint_) {
        state = NodeState::rejected;
      }
    }
  }

  const WalkInputs& inputs_;
  bool joint_;  // judges whole paths by one coin each
  std::vector<NodeState> states_;
  std::int32_t last_accepted_ = kRootNode;  // by a draw or a race
  std::vector<WalkStep> steps_;
};

}  // namespace

std::string_view name_of(NodeState state) {
  constexpr std::array<std::string_view, 3> kNames{"waiting", "accepted", "rejected"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view name_of(WalkStep::Kind kind) {
  constexpr std::array<std::string_view, 5> kNames{"select", "coin", "shares", "draw", "race"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<WalkStep> walk_of(const WalkInputs& inputs) {
  return Walker(inputs).run();
}

}  // namespace draftproof
