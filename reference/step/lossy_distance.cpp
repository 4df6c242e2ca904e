#include "reference/step/lossy_distance.hpp"

#include "base/parallel.hpp"
#include "reference/logits/guidance.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/step/dense_step_rows.hpp"
#include "reference/verify/lossy/distance.hpp"
#include "reference/verify/lossy/ensemble.hpp"
#include "reference/verify/lossy/fly.hpp"
#include "reference/verify/lossy/relaxed_accept_k.hpp"
#include "reference/verify/lossy/synthetic_acceptance.hpp"
#include "reference/verify/lossy/target_only_thresholds.hpp"
#include "reference/verify/lossy/top_k_resample.hpp"
#include "reference/verify/lossy/typical_acceptance.hpp"

namespace draftproof {
namespace {

// The mean of thresholded_distribution() over one sibling x from q: x stands with probability s(x), and every other
// token y comes with (1 - s(x)) p(y) / (1 - p(x)) instead.
double thresholds_distance(const DenseMasses<double>& p, const DenseMasses<double>& q,
                           const AcceptThresholds<double>& thresholds) {
  DenseMasses<double> emitted(p.size(), 0.0), left(p.size(), 0.0);
  for (std::size_t x = 0; x < p.size(); ++x) {
    const double stands = p[x] >= thresholds.single ? 1.0 : std::min(1.0, p[x] / thresholds.acc);
    emitted[x] = q[x] * stands;
    if (stands < 1.0) left[x] = q[x] * (1.0 - stands) / (1.0 - p[x]);
  }
  const double of_all = total_of(left);
  for (std::size_t y = 0; y < p.size(); ++y) emitted[y] += p[y] * positive_part_of_difference(of_all, left[y]);
  return total_variation_of(p, emitted);
}

}  // namespace

std::optional<double> first_token_distance(const VerifierChoice& choice, StepRows& rows) {
  const VerifyRequest& request = rows.request();
  const auto number = [&](std::string_view name) { return choice.parameter(name); };
  const DenseStepRows target = dense_target(rows), proposal = dense_proposal(rows);
  const auto near_best = [&](std::size_t count, auto near) {
    return total_variation_of(near_best_distribution(proposal.row(0), tokens_near_best(target.row(0), count, near)),
                              target.row(0));
  };
  switch (choice.verifier) {
    case Verifier::typical:
      return typical_acceptance_distance(target.row(0), proposal.row(0),
                                         typical_threshold(target.row(0), {number("epsilon"), number("delta")}));
    case Verifier::thresholds:
      return thresholds_distance(target.row(0), proposal.row(0), {number("acc"), number("single")});
    case Verifier::top_k_resample:
      return top_k_resample_distance(target.row(0), proposal.row(0), static_cast<std::size_t>(number("k")));
    case Verifier::synthetic:
      return synthetic_acceptance_distance(target.row(0), proposal.row(0), number("rate"));
    case Verifier::ensemble:
      return ensemble_distance(target.row(0), proposal.row(0), number("weight"));
    case Verifier::fly: {
      const DenseMasses<double>& p = target.row(0);
      const bool may_stay = number("window") < static_cast<double>(request.draft.size()) &&
                            entropy_of_most_probable(p, static_cast<std::size_t>(number("top"))) >= number("entropy");
      return may_stay ? fly_distance(p, proposal.row(0), DenseMasses<double>(p.size(), 1.0)) : 0.0;
    }
    case Verifier::relaxed: {
      const bool thinking = is_thinking(request.prompt_tokens, request.output_tokens,
                                        static_cast<Token>(number("begin")), static_cast<Token>(number("end")));
      const double delta = thinking ? number("delta") : 0.0;
      return near_best(static_cast<std::size_t>(number("top_k")),
                       [&](double of_token, double best) { return of_token >= best - delta; });
    }
    case Verifier::accept_k: {
      const double factor = natural_exp(-number("tolerance"));
      return near_best(static_cast<std::size_t>(number("tolerance") > 0.0 ? number("k") : 1.0),
                       [&](double of_token, double best) { return of_token >= best * factor; });
    }
    default:
      return std::nullopt;
  }
}

std::vector<std::optional<double>> guidance_distances(std::span<const VerifyRequest> requests, int threads) {
  std::vector<std::vector<std::optional<double>>> of_request(requests.size());
  parallel_for(std::ssize(requests), threads, [&](std::int64_t b, int) {
    const VerifyRequest& r = requests[static_cast<std::size_t>(b)];
    auto& distances = of_request[static_cast<std::size_t>(b)];
    distances.resize(r.rows());
    if (!r.unconditional || r.parameters.guidance_scale == 1.0f) return;
    const auto width = static_cast<std::size_t>(r.target.vocab_size);
    std::vector<float> of_target(width), of_unconditional(width);
    for (std::uint32_t row = 0; row < r.rows(); ++row)
      distances[row] =
          guidance_distance({elements_of(r.target.row(row), 0, width, of_target.data()), width},
                            {elements_of(r.unconditional->row(row), 0, width, of_unconditional.data()), width},
                            r.parameters.guidance_scale);
  });
  std::vector<std::optional<double>> all;
  for (const auto& distances : of_request) all.insert(all.end(), distances.begin(), distances.end());
  return all;
}

}  // namespace draftproof
