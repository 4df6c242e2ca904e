// Further samplers of engines, as distributions: what they leave of a row, given their state or their random number.
// Everything is compared in integers or in one written expression of doubles over integer sums, so that no result
// depends on an order.
//
// A row's masses m_i (sum S), its logits x_i over the temperature, x_1 the largest, d_i = x_1 - x_i. "First" and
// "ranks" are of the total order (value descending, id ascending). One token always stays: the first, but where
// typical_p or xtc drop it.
//
// Before min-p, top-k and top-p, over every token that is not masked:
//   smoothing    x_i <- x_1 - f (k d_i^2 + s d_i^3), f = smoothing_factor, k = (3 - c) / 2, s = (c - 1) / 2 of the
//                smoothing_curve c; "quadratic sampling" of text-generation-webui (kalomaze). Off: f = 0.
//   top_n_sigma  keeps d_i <= n sigma, sigma the standard deviation (of the population) of the logits. Tang et al.
//                2411.07641, llama.cpp. Off: n = 0.
// After them, each over what the ones before it left:
//   typical_p    ranks tokens by |-log p_i - H| and keeps a token iff the mass strictly before it is
//                < ceil(typical_p S). Meister et al. 2202.00666. -log p_i - H = d_i - mean d: no logarithm is needed.
//                Off: 1.
//   epsilon_cutoff  keeps m_i >= ceil(epsilon S). Hewitt et al. 2210.15191. Off: 0.
//   eta_cutoff   keeps p_i >= min(eta, sqrt(eta) exp(-H)). The same paper. Off: 0.
//   p_less, top_h  p_less.hpp, top_h.hpp. Off: 0 and 1.
//   xtc          with probability xtc_probability, of the tokens with m_i >= ceil(xtc_threshold S), when there are two
//                or more, drops all but the last in rank ("exclude top choices", p-e-w, text-generation-webui and
//                llama.cpp). Given the uniform number u: it excludes iff u < xtc_probability. Over u the distribution
//                of the token is the mixture of both. Off: probability 0.
//   mirostat 2   keeps surprises -log2 p_i <= mu. Basu et al. 2007.14966, algorithm 2 as in llama.cpp. Given the state.
//   mirostat 1   keeps the first k tokens, k = floor(((e 2^mu) / (1 - V^-e))^(1 / s)), e = s - 1, with the exponent s
//                fitted over the first 100 ranks: sum t_i b_i / sum t_i^2, t_i = log((i + 1) / i), b_i = x_i - x_(i+1).
//                The same paper, algorithm 1, rounded as in llama.cpp. Given the state.
//   adaptive-p   adaptive_p.hpp, over what all others left. Given the state.
// typical_p and the cutoffs leave min_tokens_to_keep tokens at least (transformers), as top_k, top_p and min_p do: the
// first ones in rank, of typical_p in its own order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof {

struct SamplerParameters {
  float smoothing_factor = 0.0f;
  float smoothing_curve = 1.0f;
  float top_n_sigma = 0.0f;
  float typical_p = 1.0f;
  float epsilon_cutoff = 0.0f;
  float eta_cutoff = 0.0f;
  float xtc_threshold = 0.1f;
  float xtc_probability = 0.0f;
  float xtc_uniform = -1.0f;  // -1: not given; needed where the probability is neither 0 nor 1
  float mirostat = 0.0f;      // 0: off; 1 or 2
  float mirostat_mu = 10.0f;  // the state: the largest surprise, in bits
  // DRY (dry_penalty.hpp): it edits the logits before the temperature.
  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;
  float dry_allowed_length = 2.0f;
  float dry_range = 0.0f;  // tokens of the context that are looked at; 0: all
  // They edit the logits, too.
  float penalty_last_n = -1.0f;  // edits.hpp; -1: all
  float no_repeat_ngram_size = 0.0f;
  float min_tokens_to_keep = 1.0f;
  float top_p_rule = 0.0f;  // filters.hpp's TopPRule by its number
  float p_less = 0.0f;      // 0: off; 1, or 2: normalised
  float top_h = 1.0f;
  float adaptive_target = -1.0f;  // below 0: off
  float adaptive_mean = -1.0f;    // the state; below 0: the target

  bool before_filters() const { return smoothing_factor != 0.0f || top_n_sigma != 0.0f; }
  bool after_filters() const {
    return typical_p != 1.0f || epsilon_cutoff != 0.0f || eta_cutoff != 0.0f || p_less != 0.0f || top_h != 1.0f ||
           xtc_probability != 0.0f || mirostat != 0.0f;
  }
  bool adapts() const { return adaptive_target >= 0.0f; }
  // Is a number of its own needed for each row of a step?
  bool has_state() const { return mirostat != 0.0f || adapts() || (xtc_probability > 0.0f && xtc_probability < 1.0f); }
};

// The parameters by the names that files and arrays give them.
struct SamplerParameterName {
  std::string_view name;
  float SamplerParameters::*value;
  std::string_view meaning;  // in one line, with the value that switches it off
  float least, most;
  bool whole;            // a whole number
  const char* expected;  // the range in words
};
std::span<const SamplerParameterName> sampler_parameter_names();

// Errors (usage) naming `where` and the parameter.
void validate(const SamplerParameters& parameters, const std::string& where);

// The samplers that stand before the filters: logits over the temperature [V], in place; what is dropped is -infinity.
// NaN and +infinity must not be among them.
void apply_before_filters(const SamplerParameters& parameters, std::span<float> logits);

// Those that stand after the filters.
void apply_after_filters(const SamplerParameters& parameters, LogitsDistribution& distribution);

// The state of Mirostat after a token of probability p (of the distribution that it was drawn from) was emitted: mu -
// rate (-log2 p - tau).
double next_mirostat_mu(double mu, double tau, double rate, double probability);

}  // namespace draftproof
