#include "exactness/audit/filter_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "base/words.hpp"
#include "exactness/audit/tests.hpp"
#include "exactness/statistics/battery.hpp"
#include "reference/step/step_rows.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {
namespace {

// The unfiltered distribution of a row in the total order, with the bounds of what any reading keeps.
class Readings {
  // A float softmax gives such tokens 0, and they may be dropped.
  static constexpr double kVanishing = 1e-30;

 public:
  Readings(std::vector<double> p, std::vector<float> values, const RowParameters& parameters)
      : p_(std::move(p)), values_(std::move(values)), order_(p_.size()), must_(p_.size(), 0), may_(p_.size(), 0) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return values_[a] > values_[b]; });
    if (parameters.temperature == 0.0f) {
      for (std::size_t i = 0; i < p_.size(); ++i) may_[i] = values_[i] == values_[order_.front()] ? 1 : 0;
      if (std::count(may_.begin(), may_.end(), 1) == 1) must_ = may_;
      count_min_ = 1;
      return;
    }
    read(parameters.filters, static_cast<std::size_t>(parameters.samplers.min_tokens_to_keep));
  }

  // Sets of further samplers are allowed between those of parameters that are off by rounding.
  void read(const std::vector<std::vector<std::uint8_t>>& sets) {
    count_min_ = 0;
    for (std::size_t i = 0; i < p_.size(); ++i) {
      const auto in = std::count_if(sets.begin(), sets.end(), [&](const auto& set) { return set[i] != 0; });
      must_[i] = in == std::ssize(sets) && p_[i] > kVanishing ? 1 : 0;
      may_[i] = in > 0 ? 1 : 0;
      count_min_ += must_[i];
    }
  }

  const std::vector<double>& unfiltered() const { return p_; }
  const std::vector<std::size_t>& order() const { return order_; }
  bool must(std::size_t token) const { return must_[token] != 0; }
  bool may(std::size_t token) const { return may_[token] != 0; }
  // So many tokens stay under any reading: those that must, and of a tie at the cut what it takes.
  std::int64_t count_min() const { return count_min_; }

 private:
  // Each bound is a prefix of the order. Tokens of equal logits stand or fall together in what may be kept, and are
  // left out of what must be where the cut goes through them. The first `kept` tokens no filter drops.
  void read(const FilterParameters& filters, std::size_t kept) {
    const std::size_t n = p_.size();
    const std::size_t k = filters.top_k > 0 ? std::min<std::size_t>(n, static_cast<std::size_t>(filters.top_k)) : n;
    const double top_p = static_cast<double>(filters.top_p);
    const double least = static_cast<double>(filters.min_p) * p_[order_.front()];
    const double tolerance = filter_tolerance(static_cast<std::int64_t>(n));
    // Mass that is left where top-p sees only what the others left.
    double joined = 0.0;
    for (std::size_t i = 0; i < k; ++i)
      if (p_[order_[i]] >= least * (1.0 + tolerance)) joined += p_[order_[i]];
    double before = 0.0;
    bool cut = false;
    for (std::size_t i = 0; i < n;) {
      std::size_t end = i;  // of the tokens of equal logits
      while (end < n && values_[order_[end]] == values_[order_[i]]) ++end;
      const double mass = p_[order_[i]];
      const double group = mass * static_cast<double>(end - i);
      const bool may =
          std::isfinite(values_[order_[i]]) &&
          (i < kept || (i < k && (i == 0 || before < top_p + tolerance) && mass >= least * (1.0 - tolerance)));
      const bool by_mass = mass >= least * (1.0 + tolerance) && mass > kVanishing;
      // All of the tie stay for certain where the mass before its last is below top_p even of what the others left.
      const bool must = may && ((by_mass && end <= k && before + group - mass < top_p * joined - tolerance) ||
                                (end <= kept && mass > kVanishing));
      const bool is_only = i == 0 && end == 1;
      for (std::size_t j = i; j < end; ++j) {
        may_[order_[j]] = may ? 1 : 0;
        must_[order_[j]] = must || is_only ? 1 : 0;
      }
      if (must || is_only) {
        count_min_ += static_cast<std::int64_t>(end - i);
      } else if (!cut) {
        cut = true;
        if (i < std::max<std::size_t>(kept, 1)) {
          count_min_ += static_cast<std::int64_t>(std::min(std::max<std::size_t>(kept, 1), end) - i);
        } else if (may && by_mass && before < top_p * joined - tolerance) {
          const double more = std::ceil((top_p * joined - tolerance - before) / mass);
          count_min_ += static_cast<std::int64_t>(std::min(more, static_cast<double>(std::min(k, end) - i)));
        }
      }
      before += group;
      i = end;
    }
  }

  std::vector<double> p_;
  std::vector<float> values_;
  std::vector<std::size_t> order_;
  std::vector<std::uint8_t> must_;
  std::vector<std::uint8_t> may_;
  std::int64_t count_min_ = 0;
};

class RowChecker {
 public:
  RowChecker(const FilterSample& sample, std::size_t row, StepWorkspace& workspace)
      : sample_(sample), row_(row), workspace_(workspace) {}

  FilterRow run() {
    FilterRow result;
    const Readings readings = read(true);
    const auto n = readings.unfiltered().size();
    std::vector<double> left(n, 0.0);  // the distribution that the filters left
    std::vector<std::uint8_t> kept(n);
    if (!take_filtered(readings, kept, left)) {
      result.fault = FilterFault::not_a_number;
      result.distance = 1.0;
      return result;
    }
    result.kept_count = std::count(kept.begin(), kept.end(), 1);
    for (const std::size_t i : readings.order()) {
      if (kept[i] != 0 && !readings.may(i))
        note(result.wrongly_kept, result.wrongly_kept_count, result.wrongly_kept_mass, i, readings.unfiltered()[i]);
      if (kept[i] == 0 && readings.must(i))
        note(result.wrongly_dropped, result.wrongly_dropped_count, result.wrongly_dropped_mass, i,
             readings.unfiltered()[i]);
    }
    const bool wrong_set =
        result.wrongly_kept_count + result.wrongly_dropped_count > 0 || result.kept_count < readings.count_min();
    // The right set: what its logits say. The wrong one: how far it is from the reference's choice.
    result.distance = wrong_set ? distance(left, reference_) : distance(left, restricted(readings.unfiltered(), kept));
    if (wrong_set) {
      result.fault = FilterFault::wrong_set;
    } else if (sample_.kept.empty() && sample_.rows[row_].parameters.temperature > 0.0f &&
               result.distance > kFilterValueTolerance) {
      result.fault = FilterFault::wrong_values;
    }
    result.expected_count =
        std::count_if(reference_.begin(), reference_.end(), [](double probability) { return probability > 0.0; });
    return result;
  }

  Readings read(bool with_reference) {
    const VerifyRequest& request = sample_.rows[row_];
    try {
      if (with_reference)
        reference_ = normalised_distribution(StepRows(request, {.logprobs = false}, workspace_).target(0));
      const SamplerParameters& samplers = request.parameters.samplers;
      VerifyRequest open = request;
      open.parameters.filters = {};
      if (samplers.adapts())
        throw usage_error("row " + std::to_string(row_),
                          "adaptive_target is set, which is no filter; expected none here");
      // DRY, smoothing, n-grams and the window of penalties are no filters.
      using P = SamplerParameters;
      open.parameters.samplers = SamplerParameters{};
      for (float P::*const name : {&P::smoothing_factor, &P::smoothing_curve, &P::dry_multiplier, &P::dry_base,
                                   &P::dry_allowed_length, &P::dry_range, &P::penalty_last_n, &P::no_repeat_ngram_size})
        open.parameters.samplers.*name = samplers.*name;
      StepRows rows(open, {.logprobs = false}, workspace_);
      std::vector<double> p = normalised_distribution(rows.target(0));
      const std::span<const float> processed = workspace_.target_pipeline.processed_logits();
      RowParameters parameters = request.parameters;
      // Float sums that pass 1 make a filter drop less than the tolerance, which no draw shows.
      if (!with_reference && parameters.filters.top_p >= 1.0f) parameters.filters.top_p = kOff;
      Readings readings(std::move(p), {processed.begin(), processed.end()}, parameters);
      if (request.parameters.temperature > 0.0f &&
          (samplers.top_n_sigma != 0.0f || samplers.top_p_rule != 0.0f || samplers.after_filters()))
        readings.read(sets_within_rounding(request));
      return readings;
    } catch (const RowError& error) {
      throw error_in_request(request, static_cast<std::int64_t>(row_), error);
    }
  }

 private:
  // The value that p-less compares, of the row as it meets it; a cutoff at a little less or more replaces it.
  double p_less_threshold(VerifyRequest request) {
    SamplerParameters& samplers = request.parameters.samplers;
    const bool norm = samplers.p_less == 2.0f;
    samplers.p_less = samplers.xtc_probability = samplers.mirostat = 0.0f;
    samplers.top_h = 1.0f;
    double squares = 0.0;
    for (const double p : normalised_distribution(StepRows(request, {.logprobs = false}, workspace_).target(0)))
      squares += p * p;
    const auto v = static_cast<double>(request.target.vocab_size);
    return norm ? std::max(0.0, (v * squares - 1.0) / (v - 1.0)) : squares;
  }

  // Sets that the reference keeps, at the parameters themselves and at some that are a little smaller and larger.
  std::vector<std::vector<std::uint8_t>> sets_within_rounding(const VerifyRequest& request) {
    const double tolerance = filter_tolerance(request.target.vocab_size);
    std::vector<std::vector<std::uint8_t>> sets;
    for (const double factor : {1.0 - tolerance, 1.0, 1.0 + tolerance}) {
      VerifyRequest other = request;
      const auto scale = [&](float& x, float most) {
        if (x != most) x = std::min(most, static_cast<float>(static_cast<double>(x) * factor));
      };
      FilterParameters& filters = other.parameters.filters;
      filters.top_p_denominator = 0;
      SamplerParameters& samplers = other.parameters.samplers;
      scale(filters.top_p, 1.0f);
      scale(filters.min_p, 1.0f);
      scale(samplers.typical_p, 1.0f);
      scale(samplers.epsilon_cutoff, 0.999f);
      scale(samplers.eta_cutoff, 0.999f);
      scale(samplers.xtc_threshold, 1.0f);
      scale(samplers.top_h, 1.0f);
      if (samplers.p_less != 0.0f && samplers.eta_cutoff == 0.0f) {
        const double threshold = p_less_threshold(other) * factor;
        samplers.epsilon_cutoff = std::max(samplers.epsilon_cutoff, static_cast<float>(std::min(0.999, threshold)));
        samplers.p_less = 0.0f;
      }
      for (float* const x : {&samplers.top_n_sigma, &samplers.mirostat_mu}) *x = static_cast<float>(*x * factor);
      const Distribution& left = StepRows(other, {.logprobs = false}, workspace_).target(0);
      std::vector<std::uint8_t>& set = sets.emplace_back();
      for (Token token = 0; token < request.target.vocab_size; ++token)
        set.push_back(left.probability(token) > 0.0f ? 1 : 0);
    }
    return sets;
  }

  bool take_filtered(const Readings& readings, std::vector<std::uint8_t>& kept, std::vector<double>& left) const {
    const std::size_t n = kept.size();
    if (!sample_.kept.empty()) {
      std::copy_n(sample_.kept.begin() + static_cast<std::ptrdiff_t>(row_ * n), n, kept.begin());
      left = restricted(readings.unfiltered(), kept);
      return true;
    }
    const RowView view = sample_.filtered.row(static_cast<std::int64_t>(row_));
    float largest = -std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < n; ++i) {
      const float x = element_of(view, static_cast<std::int64_t>(i));
      if (std::isnan(x) || x == std::numeric_limits<float>::infinity()) return false;
      largest = std::max(largest, x);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double x = element_of(view, static_cast<std::int64_t>(i));
      // Engines write -infinity, or the least number of a type.
      kept[i] = x > kDropped ? 1 : 0;
      left[i] = kept[i] != 0 ? std::exp(x - static_cast<double>(largest)) : 0.0;
    }
    normalise(left);
    return true;
  }

  static constexpr double kDropped = -1e9;
  static constexpr float kOff = 2.0f;  // a top_p that no sum reaches

  static void note(std::vector<Token>& tokens, std::int64_t& count, double& mass, std::size_t token, double p) {
    if (tokens.size() < FilterRow::kTokensShown) tokens.push_back(static_cast<Token>(token));
    ++count;
    mass += p;
  }

  static void normalise(std::vector<double>& distribution) {
    const double sum = std::accumulate(distribution.begin(), distribution.end(), 0.0);
    if (sum > 0.0)
      for (double& p : distribution) p /= sum;
  }

  static std::vector<double> restricted(const std::vector<double>& p, const std::vector<std::uint8_t>& kept) {
    std::vector<double> left(p.size());
    for (std::size_t i = 0; i < p.size(); ++i) left[i] = kept[i] != 0 ? p[i] : 0.0;
    normalise(left);
    return left;
  }

  static double distance(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
    return std::min(1.0, sum / 2.0);
  }

  const FilterSample& sample_;
  std::size_t row_;
  StepWorkspace& workspace_;
  std::vector<double> reference_;
};

std::string sentence_of(const FilterCheck& check) {
  const std::string rows = counted_noun(std::ssize(check.rows), "row");
  if (check.holds) return "holds: " + rows + ", each with the tokens and the distribution that the parameters ask for";
  const auto worst = static_cast<std::size_t>(check.failing.front());
  const FilterRow& row = check.rows[worst];
  std::string text = "fails in " + std::to_string(check.failing.size()) + " of " + rows + ", worst in row " +
                     std::to_string(worst) + ": ";
  switch (row.fault) {
    case FilterFault::not_a_number:
      return text + "a filtered logit is NaN or +infinity";
    case FilterFault::wrong_values:
      return text + "the right tokens are kept, but their distribution is off by a total variation distance of " +
             short_number(row.distance);
    case FilterFault::wrong_set:
    case FilterFault::none:
      break;
  }
  text +=
      std::to_string(row.kept_count) + " tokens are kept where " + std::to_string(row.expected_count) + " should be; ";
  if (row.wrongly_kept_count > 0)
    text += std::to_string(row.wrongly_kept_count) + " wrongly kept (mass " + short_number(row.wrongly_kept_mass) +
            ", first token " + std::to_string(row.wrongly_kept.front()) + "), ";
  if (row.wrongly_dropped_count > 0)
    text += std::to_string(row.wrongly_dropped_count) + " wrongly dropped (mass " +
            short_number(row.wrongly_dropped_mass) + ", first token " + std::to_string(row.wrongly_dropped.front()) +
            "), ";
  return text + "a total variation distance of " + short_number(row.distance);
}

}  // namespace

std::string name_of(FilterFault fault) {
  constexpr std::array kNames{"none", "wrong_set", "wrong_values", "not_a_number"};
  return kNames[static_cast<std::size_t>(fault)];
}

UsualReadings usual_readings(const FilterSample& sample, int threads) {
  const std::size_t size = sample.rows.empty() ? 0 : static_cast<std::size_t>(sample.rows.front().target.vocab_size);
  UsualReadings out{std::vector<std::uint8_t>(sample.rows.size() * size),
                    std::vector<std::uint8_t>(sample.rows.size() * size)};
  std::vector<StepWorkspace> workspaces(static_cast<std::size_t>(threads));
  parallel_for(std::ssize(sample.rows), threads, [&](std::int64_t i, int thread) {
    const auto row = static_cast<std::size_t>(i);
    validate(sample.rows[row], Verifier::naive, i);
    const Readings readings = RowChecker(sample, row, workspaces[static_cast<std::size_t>(thread)]).read(false);
    for (std::size_t token = 0; token < size; ++token) {
      out.must[row * size + token] = readings.must(token) ? 1 : 0;
      out.may[row * size + token] = readings.may(token) ? 1 : 0;
    }
  });
  return out;
}

FilterCheck check_filter(const FilterSample& sample, int threads) {
  const auto count = static_cast<std::int64_t>(sample.rows.size());
  const std::int64_t vocab_size = sample.rows.empty() ? 0 : sample.rows.front().target.vocab_size;
  if (sample.kept.empty() && (sample.filtered.rows != count || sample.filtered.vocab_size != vocab_size))
    throw usage_error("filtered_logits", "has shape [" + std::to_string(sample.filtered.rows) + ", " +
                                             std::to_string(sample.filtered.vocab_size) + "]; expected [" +
                                             std::to_string(count) + ", " + std::to_string(vocab_size) + "]");
  if (!sample.kept.empty() && sample.kept.size() != static_cast<std::size_t>(count * vocab_size))
    throw usage_error("kept", "has " + std::to_string(sample.kept.size()) + " elements; expected " +
                                  std::to_string(count * vocab_size));
  FilterCheck check;
  check.rows.resize(sample.rows.size());
  std::vector<StepWorkspace> workspaces(static_cast<std::size_t>(threads));
  parallel_for(count, threads, [&](std::int64_t i, int thread) {
    const auto row = static_cast<std::size_t>(i);
    validate(sample.rows[row], Verifier::naive, i);
    check.rows[row] = RowChecker(sample, row, workspaces[static_cast<std::size_t>(thread)]).run();
  });
  for (std::int64_t i = 0; i < count; ++i)
    if (check.rows[static_cast<std::size_t>(i)].fault != FilterFault::none) check.failing.push_back(i);
  std::stable_sort(check.failing.begin(), check.failing.end(), [&](std::int64_t a, std::int64_t b) {
    return check.rows[static_cast<std::size_t>(a)].distance > check.rows[static_cast<std::size_t>(b)].distance;
  });
  check.holds = check.failing.empty();
  check.sentence = sentence_of(check);
  return check;
}

}  // namespace draftproof
