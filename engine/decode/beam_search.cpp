#include "engine/decode/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <list>
#include <numeric>
#include <string>

#include "base/error.hpp"
#include "engine/decode/engine.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"

namespace draftproof {
namespace {

// A bound against typing errors: the powers of all lengths are tabulated.
constexpr std::int64_t kMaxTokensLimit = 1 << 20;
// exp of a larger magnitude leaves the normal doubles.
constexpr double kMaxExponent = 700.0;

void check(const BeamSearchParameters& parameters, std::span<const Token> prompt, std::size_t vocab_size) {
  constexpr std::size_t kMaxVocab = static_cast<std::size_t>(std::numeric_limits<Token>::max());
  if (vocab_size < 1 || vocab_size > kMaxVocab) {
    throw usage_error("vocab_size", std::to_string(vocab_size) + " is not in [1, 2^31 - 1]");
  }
  if (parameters.beam_width < 1) {
    throw usage_error("beam_width", std::to_string(parameters.beam_width) + " is not at least 1");
  }
  if (parameters.best_of < 1 || parameters.best_of > parameters.beam_width) {
    throw usage_error("best_of", std::to_string(parameters.best_of) + " is not between 1 and beam_width " +
                                     std::to_string(parameters.beam_width));
  }
  if (parameters.max_tokens < 1 || parameters.max_tokens > kMaxTokensLimit) {
    throw usage_error("max_tokens", std::to_string(parameters.max_tokens) + " is not between 1 and " +
                                        std::to_string(kMaxTokensLimit));
  }
  const double exponent = parameters.length_penalty * natural_log(static_cast<double>(parameters.max_tokens));
  if (!(std::fabs(parameters.length_penalty) <= kMaxExponent && std::fabs(exponent) <= kMaxExponent)) {
    throw usage_error("length_penalty", std::to_string(parameters.length_penalty) +
                                            " is not a number for which max_tokens^length_penalty fits a double");
  }
  require_ids("eos_ids", parameters.eos_ids, vocab_size);
  require_ids("prompt", prompt, vocab_size);
}

struct Beam {
  std::vector<Token> context;  // prompt and generated tokens
  double sum_logprob = 0.0;
};

struct Candidate {
  double sum_logprob;
  std::size_t beam;
  std::size_t beam_order;  // place of the beam's tokens in lexicographic order
  Token token;
};

// Candidates of one step have equally many tokens, so this is the lexicographic order of their sequences.
bool better(const Candidate& a, const Candidate& b) {
  if (a.sum_logprob != b.sum_logprob) return a.sum_logprob > b.sum_logprob;
  if (a.beam_order != b.beam_order) return a.beam_order < b.beam_order;
  return a.token < b.token;
}

bool better_hypothesis(const BeamHypothesis& a, const BeamHypothesis& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.tokens < b.tokens;
}

// length^length_penalty for every length up to max_tokens, and the range that is still to come at each length.
class LengthPowers {
 public:
  LengthPowers(double length_penalty, std::size_t max_tokens) : max_tokens_(max_tokens), power_(max_tokens + 1, 1.0) {
    for (std::size_t length = 1; length <= max_tokens; ++length) {
      const auto x = static_cast<double>(length);
      if (length_penalty == 1.0)
        power_[length] = x;
      else if (length_penalty != 0.0)
        power_[length] = natural_exp(length_penalty * natural_log(x));
    }
    // The powers are monotone up to their rounding; the suffix extremes make the bound below exact all the same.
    largest_from_ = power_;
    smallest_from_ = power_;
    for (std::size_t length = max_tokens; length-- > 0;) {
      largest_from_[length] = std::max(power_[length], largest_from_[length + 1]);
      smallest_from_[length] = std::min(power_[length], smallest_from_[length + 1]);
    }
  }

  double score(double sum_logprob, std::size_t length) const { return sum_logprob / power_[length]; }

  // No continuation of a beam of `length` < max_tokens tokens scores higher. A later sum exceeds the present one by at
  // most kLogProbRounding per token, and by as much again for the rounding of the additions. Division is monotone.
  double score_bound(double sum_logprob, std::size_t length) const {
    const double most = sum_logprob + 2.0 * double{kLogProbRounding} * static_cast<double>(max_tokens_ - length);
    return most / (most < 0.0 ? largest_from_[length + 1] : smallest_from_[length + 1]);
  }

 private:
  std::size_t max_tokens_;
  std::vector<double> power_;
  std::vector<double> largest_from_;
  std::vector<double> smallest_from_;
};

class Search {
 public:
  Search(std::span<const Token> prompt, std::size_t vocab_size, const BeamSearchParameters& parameters)
      : prompt_size_(prompt.size()),
        parameters_(parameters),
        eos_ids_(parameters.eos_ids),
        beam_width_(static_cast<std::size_t>(parameters.beam_width)),
        best_of_(static_cast<std::size_t>(parameters.best_of)),
        max_tokens_(static_cast<std::size_t>(parameters.max_tokens)),
        powers_(parameters.length_penalty, max_tokens_),
        log_probs_(vocab_size),
        running_(1) {
    std::sort(eos_ids_.begin(), eos_ids_.end());
    eos_ids_.erase(std::unique(eos_ids_.begin(), eos_ids_.end()), eos_ids_.end());
    running_[0].context.assign(prompt.begin(), prompt.end());
  }

  bool done() const { return done_; }
  // Of the running beams, in the order in which step() asks for their log-probabilities.
  std::vector<std::span<const Token>> contexts() const {
    std::vector<std::span<const Token>> contexts;
    for (const Beam& beam : running_) contexts.emplace_back(beam.context);
    return contexts;
  }
  void step(const NextLogProbs& next_log_probs) {
    advance(best_candidates(length_, next_log_probs));
    ++length_;
    done_ = running_.empty() || length_ == max_tokens_ || may_stop(length_);
    if (length_ == max_tokens_)
      for (const Beam& beam : running_) finish(beam.context, beam.sum_logprob, FinishReason::length);
  }
  std::vector<BeamHypothesis> hypotheses() { return std::move(pool_); }

 private:
  std::vector<Candidate> best_candidates(std::size_t step, const NextLogProbs& next_log_probs) {
    const std::vector<std::size_t> order = lexicographic_order();
    // beam_width may be any number; what is kept is bounded by the candidates there are.
    const std::size_t kept_max = beam_width_ > std::numeric_limits<std::size_t>::max() / (eos_ids_.size() + 2)
                                     ? std::numeric_limits<std::size_t>::max()
                                     : beam_width_ * (eos_ids_.size() + 1);
    std::vector<Candidate> candidates;
    for (std::size_t b = 0; b < running_.size(); ++b) {
      extend(step, b, order[b], next_log_probs, candidates);
      if (candidates.size() > kept_max) {
        const auto kept_end = candidates.begin() + static_cast<std::ptrdiff_t>(kept_max);
        std::nth_element(candidates.begin(), kept_end, candidates.end(), better);
        candidates.erase(kept_end, candidates.end());
      }
    }
    std::sort(candidates.begin(), candidates.end(), better);
    return candidates;
  }

  // order[b] is the place of running_[b] when the beams are sorted by their tokens.
  std::vector<std::size_t> lexicographic_order() const {
    std::vector<std::size_t> sorted(running_.size());
    std::iota(sorted.begin(), sorted.end(), std::size_t{0});
    std::sort(sorted.begin(), sorted.end(),
              [&](std::size_t a, std::size_t b) { return running_[a].context < running_[b].context; });
    std::vector<std::size_t> order(running_.size());
    for (std::size_t place = 0; place < sorted.size(); ++place) order[sorted[place]] = place;
    return order;
  }

  void extend(std::size_t step, std::size_t b, std::size_t beam_order, const NextLogProbs& next_log_probs,
              std::vector<Candidate>& candidates) {
    // The poison turns an entry that the model does not write into an error.
    std::fill(log_probs_.begin(), log_probs_.end(), std::numeric_limits<float>::quiet_NaN());
    next_log_probs(running_[b].context, log_probs_);
    const std::string beam_name = "beam search step " + std::to_string(step) + ", beam " + std::to_string(b);
    const std::size_t first = candidates.size();
    for (std::size_t token = 0; token < log_probs_.size(); ++token) {
      const float log_prob = log_probs_[token];
      if (!(log_prob <= kLogProbRounding)) {
        throw input_error(beam_name + ", token " + std::to_string(token),
                          "log-probability " + (std::isnan(log_prob) ? "NaN" : std::to_string(log_prob)) +
                              "; the model must write every entry, at most 0");
      }
      if (std::isinf(log_prob)) continue;
      candidates.push_back({running_[b].sum_logprob + double{log_prob}, b, beam_order, static_cast<Token>(token)});
    }
    if (candidates.size() == first) {
      throw input_error(beam_name, "every log-probability is -inf; at least one token must be able to follow");
    }
  }

  void advance(const std::vector<Candidate>& candidates) {
    std::vector<Beam> next;
    for (std::size_t rank = 0; rank < candidates.size() && next.size() < beam_width_; ++rank) {
      const Candidate& candidate = candidates[rank];
      const bool ends = std::binary_search(eos_ids_.begin(), eos_ids_.end(), candidate.token);
      if (ends && rank >= beam_width_) continue;
      Beam extended{running_[candidate.beam].context, candidate.sum_logprob};
      extended.context.push_back(candidate.token);
      if (ends)
        finish(extended.context, extended.sum_logprob, FinishReason::eos);
      else
        next.push_back(std::move(extended));
    }
    running_ = std::move(next);
  }

  void finish(const std::vector<Token>& context, double sum_logprob, FinishReason reason) {
    BeamHypothesis hypothesis;
    hypothesis.tokens.assign(context.begin() + static_cast<std::ptrdiff_t>(prompt_size_), context.end());
    hypothesis.sum_logprob = sum_logprob;
    hypothesis.score = powers_.score(sum_logprob, hypothesis.tokens.size());
    hypothesis.finish_reason = reason;
    pool_.insert(std::upper_bound(pool_.begin(), pool_.end(), hypothesis, better_hypothesis), std::move(hypothesis));
    if (pool_.size() > best_of_) pool_.pop_back();
  }

  bool may_stop(std::size_t length) const {
    if (pool_.size() < best_of_) return false;
    const double best_running_sum = running_.front().sum_logprob;  // running_ is in rank order
    const double worst_in_pool = pool_.back().score;
    switch (parameters_.stopping) {
      // Strictly below: an equal score could still win by its tokens.
      case BeamStopping::exact:
        return powers_.score_bound(best_running_sum, length) < worst_in_pool;
      case BeamStopping::current_length:
        return powers_.score(best_running_sum, length) <= worst_in_pool;
      case BeamStopping::first_finished:
        return true;
    }
    throw Error(ErrorKind::internal, "BeamStopping", "a value outside the enumeration");
  }

  std::size_t prompt_size_;
  const BeamSearchParameters& parameters_;
  std::vector<Token> eos_ids_;
  std::size_t beam_width_;
  std::size_t best_of_;
  std::size_t max_tokens_;
  LengthPowers powers_;
  std::vector<float> log_probs_;
  std::vector<Beam> running_;
  std::size_t length_ = 0;  // generated tokens of the running beams
  bool done_ = false;
  std::vector<BeamHypothesis> pool_;  // best first, at most best_of_
};

// A search whose beams are requests of an engine.
class EngineSearch {
 public:
  EngineSearch(Engine& engine, std::size_t number, const BeamRequest& request, std::size_t vocab_size)
      : engine_(engine), number_(number), search_(request.prompt, vocab_size, request.parameters) {
    constexpr std::int64_t kTies = 64;
    const auto most = static_cast<std::int64_t>(vocab_size);
    const auto ends = static_cast<std::int64_t>(request.parameters.eos_ids.size());
    one_token_.parameters.temperature = 0.0f;
    one_token_.stop.max_tokens = 1;
    one_token_.num_logprobs = std::min(most, std::min(most, request.parameters.beam_width) * (ends + 1) + kTies);
  }
  ~EngineSearch() {
    for (const std::uint64_t beam : beams_) {
      engine_.cancel(beam);
      engine_.take(beam);
    }
  }
  EngineSearch(const EngineSearch&) = delete;
  EngineSearch& operator=(const EngineSearch&) = delete;

  std::size_t number() const { return number_; }
  void submit() {
    for (const std::span<const Token> context : search_.contexts())
      beams_.push_back(engine_.submit(context, one_token_, false, "a beam", true));
  }
  // Behind a step of the engine: goes on where the rows of all beams are there. True: the search is done.
  bool advance(std::vector<BeamHypothesis>& hypotheses) {
    while (!beams_.empty()) {
      std::optional<Generation> row = engine_.take(beams_.front());
      if (!row) return false;
      beams_.pop_front();
      if (row->failure) std::rethrow_exception(row->failure);
      rows_.push_back(std::move(*row));
    }
    std::size_t next = 0;
    search_.step([&](std::span<const Token>, std::span<float> log_probs) {
      std::ranges::fill(log_probs, -std::numeric_limits<float>::infinity());
      for (const TokenLogprob& entry : rows_[next++].logprobs.front())
        log_probs[static_cast<std::size_t>(entry.token)] = entry.logprob;
    });
    rows_.clear();
    if (search_.done()) {
      hypotheses = search_.hypotheses();
      return true;
    }
    submit();
    return false;
  }

 private:
  Engine& engine_;
  std::size_t number_;
  Search search_;
  DecodingOptions one_token_;
  std::deque<std::uint64_t> beams_;  // requests that have not been taken
  std::vector<Generation> rows_;     // of those before them
};

}  // namespace

std::vector<BeamHypothesis> beam_search(std::span<const Token> prompt, std::size_t vocab_size,
                                        const BeamSearchParameters& parameters, const NextLogProbs& next_log_probs) {
  check(parameters, prompt, vocab_size);
  Search search(prompt, vocab_size, parameters);
  while (!search.done()) search.step(next_log_probs);
  return search.hypotheses();
}

std::vector<BeamHypothesis> beam_search(Engine& engine, std::span<const Token> prompt, std::size_t vocab_size,
                                        const BeamSearchParameters& parameters) {
  const BeamRequest request{prompt, parameters};
  std::vector<BeamOutcome> outcomes = beam_search(engine, {&request, 1}, vocab_size, 1);
  if (outcomes[0].failure) std::rethrow_exception(outcomes[0].failure);
  return std::move(outcomes[0].hypotheses);
}

std::vector<BeamOutcome> beam_search(Engine& engine, std::span<const BeamRequest> requests, std::size_t vocab_size,
                                     std::size_t at_once) {
  std::vector<BeamOutcome> outcomes(requests.size());
  std::list<EngineSearch> searches;
  // Runs `action`; what it throws is the outcome of the request.
  const auto went_on = [&](std::size_t number, auto action) {
    try {
      action();
      return true;
    } catch (const Error&) {
      outcomes[number].failure = std::current_exception();
      return false;
    }
  };
  for (std::size_t next = 0; next < requests.size() || !searches.empty();) {
    for (; next < requests.size() && searches.size() < at_once; ++next) {
      const BeamRequest& request = requests[next];
      if (!went_on(next, [&] { check(request.parameters, request.prompt, vocab_size); })) continue;
      searches.emplace_back(engine, next, request, vocab_size);
      if (!went_on(next, [&] { searches.back().submit(); })) searches.pop_back();
    }
    if (!searches.empty() && !engine.step())
      throw Error(ErrorKind::internal, "beam search", "a beam's request has not ended");
    std::erase_if(searches, [&](EngineSearch& search) {
      bool done = false;
      const bool goes_on =
          went_on(search.number(), [&] { done = search.advance(outcomes[search.number()].hypotheses); });
      return done || !goes_on;
    });
  }
  return outcomes;
}

}  // namespace draftproof
