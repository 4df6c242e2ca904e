// Confidences of a drafter that has a head for them (DSpark's, arXiv:2607.05147): before a draft is drawn, the
// probability that it is accepted where those before it are. Acceptances are those of another model, to the word;
// confidences are drawn around them so that they are calibrated: among the drafts of a slot with confidence c the share
// c is accepted.
//
//   a_k        the other model's conditional rate of slot k in a run
//   c          ~ Beta(kappa a_k, kappa (1 - a_k)), kappa = 1 / explained - 1
//   accepted   ~ Bernoulli(c), so that
//   c | accepted ~ Beta(kappa a_k + 1, kappa (1 - a_k)),   c | rejected ~ Beta(kappa a_k, kappa (1 - a_k) + 1)
//
// explained is the share of the variance of an acceptance that its confidence explains: at 0 every confidence is a_k,
// at 1 it is the outcome itself. Drafts behind the first rejected one have no outcome: they get one with probability
// a_k. The confidences of one draft are independent of each other. (Requests of one mixture are not told apart: the
// rates are those over all of them.)
//
// A drafter may be wrong of itself: `error` is added to the logarithm of the odds of every confidence that is reported;
// above 0 it is too sure.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

class Confidences final : public AcceptanceModel {
 public:
  // explained in [0, 1].
  Confidences(std::shared_ptr<const AcceptanceModel> model, double explained, double error, std::uint64_t seed);

  AcceptanceState begin(std::uint64_t request) const override;
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                        std::int32_t depth) const override {
    return model_->accepted(state, place, nodes, depth);
  }
  bool gives_confidences() const override { return true; }
  std::int32_t accepted_with_confidences(AcceptanceState& state, AcceptancePlace place, std::int32_t depth,
                                         std::vector<float>& confidences) const override;
  std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const override {
    return model_->survival(nodes, depth, context_len);
  }
  std::vector<double> survival_in_run(std::int32_t nodes, std::int32_t depth,
                                      std::int32_t context_len = 0) const override {
    return model_->survival_in_run(nodes, depth, context_len);
  }

 private:
  const std::vector<double>& conditional(std::int32_t depth) const;
  double draw(double rate, bool accepted, const AcceptanceState& state, std::int32_t output_len,
              std::int32_t slot) const;

  std::shared_ptr<const AcceptanceModel> model_;
  double explained_;
  double odds_factor_;  // e^error
  std::uint64_t seed_;
  struct OfDepth {
    std::once_flag once;
    std::vector<double> conditional;
  };
  mutable std::array<OfDepth, kAcceptanceDepthMax + 1> rates_;  // computed when a depth is first asked for
};

}  // namespace draftproof
