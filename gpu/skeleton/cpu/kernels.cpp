// Kernels of draftproof_kernels.h in plain floats on the host, each a direct reading of its definition: a library to
// begin with. Put your own code into the seven functions at the end, or leave one out, and run ./ci.sh.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "draftproof_kernels.h"

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

template <class Number>
double total(const std::vector<Number>& masses) {
  return std::accumulate(masses.begin(), masses.end(), 0.0);
}

// The first token, in order of id, at which the running sum of masses is above u times their total.
template <class Number>
std::int32_t draw_by_id(const std::vector<Number>& masses, double u) {
  const double all = total(masses);
  double sum = 0.0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    if (masses[i] == 0) continue;
    last = i;
    sum += masses[i];
    if (sum > u * all) break;
  }
  return static_cast<std::int32_t>(last);
}

// The tokens of one row that may be drawn, with their logits over the temperature.
class KeptRow {
 public:
  KeptRow(const draftproof_kernels_rows& in, std::int64_t row) : logits_(static_cast<std::size_t>(in.vocab_size)) {
    const float* const from = in.logits + row * in.row_stride;
    const float temperature = in.temperature[row];
    for (std::size_t i = 0; i < logits_.size(); ++i) logits_[i] = temperature == 0.0f ? from[i] : from[i] / temperature;
    if (temperature == 0.0f) {
      keep_first();
    } else {
      softmax();
      filter(in.top_k[row], in.top_p[row], in.min_p[row]);
    }
  }

  const std::vector<float>& logits() const { return logits_; }  // kMasked: dropped

  const std::vector<float>& probabilities() {
    softmax();
    return p_;
  }

 private:
  // Greedy: the lowest id of the largest logits.
  void keep_first() {
    const auto first = std::max_element(logits_.begin(), logits_.end());
    for (auto x = logits_.begin(); x != logits_.end(); ++x)
      if (x != first) *x = kMasked;
  }

  void softmax() {
    const float largest = *std::max_element(logits_.begin(), logits_.end());
    p_.resize(logits_.size());
    for (std::size_t i = 0; i < p_.size(); ++i) p_[i] = std::exp(logits_[i] - largest);
    float total = 0.0f;
    for (const float p : p_) total += p;
    for (float& p : p_) p /= total;
  }

  // Each filter looks at the whole row; what all of them keep is kept.
  void filter(std::int32_t top_k, float top_p, float min_p) {
    if (top_k == 0 && top_p == 1.0f && min_p == 0.0f) return;
    std::vector<std::int32_t> order(logits_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return logit(a) > logit(b); });
    const float least = min_p * probability(order.front());
    float before = 0.0f;
    for (std::size_t place = 0; place < order.size(); ++place) {
      const bool in_top_k = top_k == 0 || place < static_cast<std::size_t>(top_k);
      const bool in_top_p = place == 0 || top_p == 1.0f || before < top_p;
      const float p = probability(order[place]);
      before += p;
      if (!in_top_k || !in_top_p || p < least) logits_[static_cast<std::size_t>(order[place])] = kMasked;
    }
  }

  float logit(std::int32_t token) const { return logits_[static_cast<std::size_t>(token)]; }
  float probability(std::int32_t token) const { return p_[static_cast<std::size_t>(token)]; }

  std::vector<float> logits_;
  std::vector<float> p_;
};

// The distribution that a rejection of `draft` leaves: max(p - q, 0), or p where that is nothing. q NULL: 1 at the
// draft, 0 elsewhere.
std::vector<float> residual(const float* p, const float* q, std::int32_t draft, std::int64_t vocab_size) {
  std::vector<float> left(static_cast<std::size_t>(vocab_size));
  bool is_empty = true;
  for (std::int64_t i = 0; i < vocab_size; ++i) {
    const float proposed = q != nullptr ? q[i] : i == draft ? 1.0f : 0.0f;
    left[static_cast<std::size_t>(i)] = std::max(p[i] - proposed, 0.0f);
    is_empty = is_empty && p[i] <= proposed;
  }
  if (is_empty) left.assign(p, p + vocab_size);
  return left;
}

// The child whose share of p the row's coin falls into, or -1; `left` loses the children's tokens.
std::int32_t child_by_target(const draftproof_kernels_verify_tree_call& call, std::int32_t begin, std::int64_t row,
                             const std::vector<std::int32_t>& children, std::vector<double>& left) {
  const double coin = call.coins[row] * total(left);
  double sum = 0.0;
  std::int32_t chosen = -1;
  for (const std::int32_t child : children) {
    double& mass = left[static_cast<std::size_t>(call.draft_tokens[begin + child])];
    sum += mass;
    if (chosen < 0 && mass > 0.0 && coin < sum) chosen = child;
    mass = 0.0;
  }
  return chosen;
}

// The first child that stands, or -1; `left` becomes p - q of those that do not. Both are held unnormalised.
std::int32_t child_by_rejection(const draftproof_kernels_verify_tree_call& call, std::int32_t begin, std::int64_t b,
                                std::int64_t row, const std::vector<std::int32_t>& children,
                                std::vector<double>& left) {
  const float* const q = call.draft_probs + row * call.row_stride;
  if (children.empty()) return -1;
  std::vector<double> undrafted(q, q + call.vocab_size);
  double left_total = total(left), undrafted_total = total(undrafted);
  for (const std::int32_t child : children) {
    const auto token = static_cast<std::size_t>(call.draft_tokens[begin + child]);
    if (undrafted_total <= 0.0 || undrafted[token] <= 0.0) continue;
    const double scale = left_total / undrafted_total;
    if (call.coins[begin + b + child + 1] * (scale * undrafted[token]) < left[token]) return child;
    std::vector<double> rest(left.size());
    for (std::size_t i = 0; i < left.size(); ++i) rest[i] = std::max(left[i] - scale * undrafted[i], 0.0);
    undrafted[token] = 0.0;
    undrafted_total = total(undrafted);
    if (const double sum = total(rest); sum > 0.0) {
      left = rest;
      left_total = sum;
    }
  }
  return -1;
}

}  // namespace

void draftproof_kernels_describe(draftproof_kernels_description* description) {
  *description = {DRAFTPROOF_KERNELS_VERSION, DRAFTPROOF_KERNELS_HOST, DRAFTPROOF_KERNELS_GIVEN, "naive float kernels"};
}

int draftproof_kernels_filter(const draftproof_kernels_filter_call* call) {
  for (std::int64_t row = 0; row < call->in.rows; ++row) {
    const KeptRow kept(call->in, row);
    std::copy(kept.logits().begin(), kept.logits().end(), call->filtered + row * call->in.row_stride);
  }
  return 0;
}

int draftproof_kernels_sample(const draftproof_kernels_sample_call* call) {
  for (std::int64_t row = 0; row < call->in.rows; ++row)
    call->tokens[row] = draw_by_id(KeptRow(call->in, row).probabilities(), call->uniforms[row]);
  return 0;
}

int draftproof_kernels_verify_chain(const draftproof_kernels_verify_chain_call* call) {
  for (std::int64_t b = 0; b < call->requests; ++b) {
    const std::int32_t begin = call->cu_num_draft_tokens[b];
    const std::int32_t draft_len = call->cu_num_draft_tokens[b + 1] - begin;
    std::int32_t* const tokens = call->tokens + b * (call->draft_len_max + 1);
    std::fill_n(tokens, call->draft_len_max + 1, -1);
    std::int32_t place = 0;
    const auto p = [&] { return call->target_probs + (begin + b + place) * call->row_stride; };
    const auto q = [&] {
      return call->draft_probs == nullptr ? nullptr : call->draft_probs + (begin + place) * call->row_stride;
    };
    const auto draft = [&] { return call->draft_tokens[begin + place]; };
    const auto accepts = [&] {
      const float proposed = q() == nullptr ? 1.0f : q()[draft()];
      return call->coins[begin + place] * proposed < p()[draft()];
    };
    for (; place < draft_len && accepts(); ++place) tokens[place] = draft();
    const std::vector<float> left = place < draft_len
                                        ? residual(p(), q(), draft(), call->vocab_size)
                                        : std::vector<float>(p(), p() + call->vocab_size);  // the bonus row
    tokens[place] = draw_by_id(left, call->draws[b]);
    call->num_accepted[b] = place;
  }
  return 0;
}

int draftproof_kernels_verify_block(const draftproof_kernels_verify_block_call* call) {
  for (std::int64_t b = 0; b < call->requests; ++b) {
    const std::int32_t begin = call->cu_num_draft_tokens[b];
    const std::int32_t draft_len = call->cu_num_draft_tokens[b + 1] - begin;
    const auto p = [&](std::int32_t row) { return call->target_probs + (begin + b + row) * call->row_stride; };
    // q of the draft at `row`, NULL draft_probs: 1 at the draft, 0 elsewhere.
    const auto q = [&](std::int32_t row, std::int32_t token) -> double {
      if (call->draft_probs != nullptr) return call->draft_probs[(begin + row) * call->row_stride + token];
      return call->draft_tokens[begin + row] == token ? 1.0 : 0.0;
    };
    const auto residual = [&](std::int32_t row, double weight) {
      std::vector<double> left(static_cast<std::size_t>(call->vocab_size));
      for (std::int32_t i = 0; i < call->vocab_size; ++i)
        left[static_cast<std::size_t>(i)] = std::max(weight * static_cast<double>(p(row)[i]) - q(row, i), 0.0);
      return left;
    };
    std::int32_t accepted = 0;
    double weight = 1.0, accepted_weight = 1.0;
    for (std::int32_t row = 0; row < draft_len; ++row) {
      const std::int32_t draft = call->draft_tokens[begin + row];
      const double mass = weight * static_cast<double>(p(row)[draft]);
      weight = mass <= 0.0 ? 0.0 : mass >= q(row, draft) ? 1.0 : mass / q(row, draft);
      double threshold = weight;
      if (row + 1 < draft_len) {
        const double sum = total(residual(row + 1, weight));
        threshold = sum + (1.0 - weight) > 0.0 ? sum / (sum + (1.0 - weight)) : 1.0;
      }
      if (call->coins[begin + row] >= threshold) continue;
      accepted = row + 1;
      accepted_weight = weight;
    }
    std::vector<double> left(p(accepted), p(accepted) + call->vocab_size);  // of the bonus row
    if (accepted < draft_len)
      if (const std::vector<double> rest = residual(accepted, accepted_weight); total(rest) > 0.0) left = rest;
    std::int32_t* const tokens = call->tokens + b * (call->draft_len_max + 1);
    std::fill_n(tokens, call->draft_len_max + 1, -1);
    std::copy_n(call->draft_tokens + begin, accepted, tokens);
    tokens[accepted] = draw_by_id(left, call->draws[b]);
    call->num_accepted[b] = accepted;
  }
  return 0;
}

int draftproof_kernels_verify_tree(const draftproof_kernels_verify_tree_call* call) {
  for (std::int64_t b = 0; b < call->requests; ++b) {
    const std::int32_t begin = call->cu_num_draft_tokens[b];
    const std::int32_t nodes = call->cu_num_draft_tokens[b + 1] - begin;
    std::int32_t* const tokens = call->tokens + b * (call->draft_len_max + 1);
    std::int32_t* const path = call->path + b * call->draft_len_max;
    std::fill_n(tokens, call->draft_len_max + 1, -1);
    std::fill_n(path, call->draft_len_max, -1);
    std::int32_t accepted = 0;
    for (std::int32_t node = -1;;) {
      const std::int64_t row = begin + b + node + 1;
      std::vector<std::int32_t> children;
      for (std::int32_t i = node + 1; i < nodes; ++i)
        if (call->parents[begin + i] == node) children.push_back(i);
      const float* const p = call->target_probs + row * call->row_stride;
      std::vector<double> left(p, p + call->vocab_size);  // of p, unnormalised
      const std::int32_t child = call->rule == DRAFTPROOF_KERNELS_TARGET_ONLY
                                     ? child_by_target(*call, begin, row, children, left)
                                     : child_by_rejection(*call, begin, b, row, children, left);
      if (child < 0) {
        tokens[accepted] = draw_by_id(left, call->draws[b]);
        break;
      }
      tokens[accepted] = call->draft_tokens[begin + child];
      path[accepted++] = child;
      node = child;
    }
    call->num_accepted[b] = accepted;
  }
  return 0;
}

int draftproof_kernels_guidance(const draftproof_kernels_guidance_call* call) {
  for (std::int64_t row = 0; row < call->rows; ++row) {
    for (std::int64_t i = 0; i < call->vocab_size; ++i) {
      const std::int64_t at = row * call->row_stride + i;
      const float c = call->conditional[at];
      const float u = call->unconditional[at];
      call->out[at] = c == kMasked || call->scale[row] == 1.0f ? c : u + call->scale[row] * (c - u);
    }
  }
  return 0;
}

int draftproof_kernels_tree_mask(const draftproof_kernels_tree_mask_call* call) {
  for (std::int64_t b = 0; b < call->requests; ++b) {
    const std::int32_t begin = call->cu_num_draft_tokens[b];
    const std::int32_t rows = call->cu_num_draft_tokens[b + 1] - begin + 1;
    std::uint32_t* const mask = call->mask + (begin + b) * call->words_per_row;
    for (std::int32_t row = 0; row < rows; ++row) {
      std::uint32_t* const words = mask + row * call->words_per_row;
      if (row == 0) {
        std::fill_n(words, call->words_per_row, 0u);
      } else {  // as its parent, which stands before it
        const std::int32_t parent_row = call->parents[begin + row - 1] + 1;
        std::copy_n(mask + parent_row * call->words_per_row, call->words_per_row, words);
      }
      words[row / 32] |= 1u << (row % 32);
    }
  }
  return 0;
}
