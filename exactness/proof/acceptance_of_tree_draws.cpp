// The same values as acceptance_of_trees.cpp without a tree: recursions over what is drawn at one node at a time.

#include "exactness/proof/acceptance_sums.hpp"

namespace draftproof {
namespace {

// The first child of a node through which `num_paths` independent paths pass: its token t has the distribution q, and
// each of the other paths goes the same way with probability q(t). Those that do not are independent draws from q
// without t. visit(t, paths through t, probability)
template <class Visit>
void for_each_first_child(const ExactMasses& q, std::int32_t num_paths, Visit visit) {
  for (std::size_t t = 0; t < q.size(); ++t) {
    Rational choices(1);  // of the followers among the other paths
    for (std::int32_t followers = 0; followers < num_paths; ++followers) {
      const std::int32_t others = num_paths - 1 - followers;
      const Rational probability = q[t] * choices * power(q[t], followers) * power(1 - q[t], others);
      if (probability > 0) visit(t, 1 + followers, probability);
      choices = choices * others / (followers + 1);
    }
  }
}

enum class Drafting : std::uint8_t {
  merged_paths,       // a node's number: how many paths pass through it
  distinct_children,  // a node's number: how many children it gets
};

// The first child of a node with this number, and what it leaves: visit(t, the number of t's node, the number left for
// the other children, probability).
template <class Visit>
void for_each_draw(Drafting drafting, const ExactMasses& q, std::int32_t number, std::int32_t width, Visit visit) {
  if (drafting == Drafting::merged_paths) {
    for_each_first_child(q, number, [&](std::size_t t, std::int32_t through, const Rational& probability) {
      visit(t, through, number - through, probability);
    });
  } else {
    for (std::size_t t = 0; t < q.size() && number > 0; ++t)
      if (q[t] > 0) visit(t, width, number - 1, q[t]);
  }
}

// The mass that arrives at a node of a tree and is to be divided by what is drafted there. `target` is what must go on
// as the target's distribution, `stopped` what has already been decided against the node; both are fractions of the
// same whole. The first child t, drawn from q, is offered whole * q(t) and can take no more than target(t); what no
// child takes stays as the residual, for the next child or for the node itself.
//
// That this is traversal verification: with w = Pr(accepted path passes through the node | it was drafted and judged),
// target = w p and stopped = 1 - w, it says that child t passes with probability min(1, w p(t) / q(t)), and that all
// the residual S = sum of max(w p - q, 0) passes through the node later. So a rejected child leaves p' = norm(residual)
// and w' = S / (S + 1 - w), the update of docs/verifiers.md section 6. And w is also the probability that the node's
// subtree is accepted, by induction over what is drawn in it: sum of min(q, w p) + S = w.
struct Flow {
  ExactMasses target;
  Rational stopped;

  static Flow entering(const ExactMasses& p, const Rational& weight) {
    Flow flow{p, 1 - weight};
    for (Rational& x : flow.target) x *= weight;
    return flow;
  }
  ExactMasses offered(const ExactMasses& q) const {
    const Rational whole = total_of(target) + stopped;
    ExactMasses out;
    for (const Rational& x : q) out.push_back(whole * x);
    return out;
  }
};

// E[accepted drafts below a node].
class TraversalFlow {
 public:
  TraversalFlow(const Models& models, Drafting drafting, std::int32_t width)
      : models_(models), drafting_(drafting), width_(width) {}

  Rational through(const TokenString& path, std::int32_t depth, const Rational& weight, std::int32_t number) const {
    if (depth == 0) return 0;
    return divided(path, depth, Flow::entering(models_.target(path), weight), models_.draft(path), number);
  }

 private:
  Rational divided(const TokenString& path, std::int32_t depth, const Flow& flow, const ExactMasses& q,
                   std::int32_t number) const {
    const ExactMasses offered = flow.offered(q);
    const Flow left{positive_difference(flow.target, offered), flow.stopped};
    Rational sum(0);
    for_each_draw(drafting_, q, number, width_,
                  [&](std::size_t t, std::int32_t below, std::int32_t others, const Rational& probability) {
                    const Rational taken = ratio(flow.target[t], offered[t]);
                    if (taken > 0)
                      sum += probability * (taken + through(followed_by(path, t), depth - 1, taken, below));
                    if (taken < 1) sum += probability * (1 - taken) * divided(path, depth, left, without(q, t), others);
                  });
    return sum;
  }

  const Models& models_;
  Drafting drafting_;
  std::int32_t width_;
};

}  // namespace

Rational rrsw_merged_recursion(const Models& models, const TokenString& prefix, std::int32_t depth,
                               std::int32_t num_paths) {
  if (depth == 0) return 0;
  // Siblings still to be tried, p and q without those that were rejected.
  const std::function<Rational(const ExactMasses&, const ExactMasses&, std::int32_t)> try_siblings =
      [&](const ExactMasses& p, const ExactMasses& q, std::int32_t paths) {
        const ExactMasses residual = normalised_residual(p, q);
        Rational sum(0);
        for_each_first_child(q, paths, [&](std::size_t t, std::int32_t through, const Rational& probability) {
          const Rational accepted = ratio(p[t], q[t]);
          if (accepted > 0)
            sum += probability * accepted *
                   (1 + rrsw_merged_recursion(models, followed_by(prefix, t), depth - 1, through));
          if (accepted < 1)
            sum += probability * (1 - accepted) * try_siblings(residual, without(q, t), paths - through);
        });
        return sum;
      };
  return try_siblings(models.target(prefix), models.draft(prefix), num_paths);
}

Rational traversal_recursion(const Models& models, const TokenString& prefix, std::int32_t depth, std::int32_t width) {
  return TraversalFlow(models, Drafting::distinct_children, width).through(prefix, depth, 1, width);
}

Rational traversal_merged_recursion(const Models& models, const TokenString& prefix, std::int32_t depth,
                                    std::int32_t num_paths) {
  return TraversalFlow(models, Drafting::merged_paths, num_paths).through(prefix, depth, 1, num_paths);
}

Rational list_match_recursion(const Models& models, const TokenString& prefix, std::int32_t depth,
                              std::int32_t num_paths) {
  if (depth == 0 || num_paths == 0) return 0;
  const ExactMasses& p = models.target(prefix);
  const ExactMasses& q = models.draft(prefix);
  Rational sum(0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    if (p[x] == 0 || q[x] == 0) continue;
    Rational choices(num_paths);  // of the paths that go on with x
    for (std::int32_t through = 1; through <= num_paths; ++through) {
      const Rational probability = p[x] * choices * power(q[x], through) * power(1 - q[x], num_paths - through);
      sum += probability * (1 + list_match_recursion(models, followed_by(prefix, x), depth - 1, through));
      choices = choices * (num_paths - through) / (through + 1);
    }
  }
  return sum;
}

}  // namespace draftproof
