// Random verification requests that own what their spans show.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/step/request.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof {

inline RowMatrix matrix_of(const std::vector<float>& values, std::int64_t rows, std::int64_t vocab_size) {
  return {DType::f32, values.data(), rows, vocab_size, vocab_size};
}

// In place: what the logits [rows, vocab_size] become by softmax, in double and rounded.
inline void to_probabilities(std::vector<float>& rows, std::int64_t vocab_size) {
  for (std::size_t first = 0; first < rows.size(); first += static_cast<std::size_t>(vocab_size)) {
    const std::span<float> row(rows.data() + first, static_cast<std::size_t>(vocab_size));
    double total = 0.0;
    for (const float l : row) total += std::exp(static_cast<double>(l));
    for (float& l : row) l = static_cast<float>(std::exp(static_cast<double>(l)) / total);
  }
}

struct OwnedRequest {
  std::vector<Token> draft, prompt, output, stop, allowed;
  std::vector<float> target, unconditional, proposal;
  std::vector<std::uint32_t> masks;
  std::vector<LogitBias> bias;
  std::unique_ptr<BadWords> words;
  VerifyRequest request;

  OwnedRequest() = default;
  OwnedRequest(OwnedRequest&&) = default;  // moving a vector keeps its elements where they are
  OwnedRequest& operator=(OwnedRequest&&) = default;
};

struct RequestFeatures {
  bool history = true;      // penalties, bad words, min_tokens
  bool constraints = true;  // masks, bias
  bool guidance = true;
  bool filters = true;
  bool greedy = true;  // some requests are greedy
  int proposals = 3;   // 1: one-hot only, 2: and probabilities, 3: and logits
};

// A valid request of K <= draft_len_max drafts. Proposals of kind `probabilities` are softmax rows computed in double
// and rounded; the drafts are drawn at random and not from them, which no bit-for-bit property minds.
inline OwnedRequest random_request(TestRandom& random, std::int64_t vocab_size, std::int64_t draft_len_max,
                                   const RequestFeatures& features = {}) {
  OwnedRequest o;
  const std::int64_t draft_len = random.below(draft_len_max + 1);
  const std::int64_t rows = draft_len + 1;
  // Texts of few distinct tokens repeat themselves, so that penalties and bad words have something to do.
  const std::int64_t used = std::min<std::int64_t>(vocab_size, 5);
  o.draft = random.tokens(draft_len, used);
  o.prompt = random.tokens(random.below(6), used);
  o.output = random.tokens(random.below(6), used);
  o.target = normal_row(random, rows * vocab_size);
  const Token safe = random.token(used);  // no constraint bans it
  VerifyRequest& r = o.request;
  RowParameters& p = r.parameters;
  if (features.greedy && random.chance(0.2)) {
    p.temperature = 0.0f;
  } else if (random.chance(0.6)) {
    p.temperature = 0.4f + 1.2f * static_cast<float>(random.uniform());
  }
  if (features.filters) {
    if (random.chance(0.3)) p.filters.top_k = static_cast<std::int32_t>(random.below(vocab_size + 1));
    if (random.chance(0.3)) p.filters.top_p = 0.3f + 0.7f * static_cast<float>(random.uniform());
    if (random.chance(0.3)) p.filters.min_p = 0.2f * static_cast<float>(random.uniform());
    if (random.chance(0.5)) p.filters.order = FilterOrder::top_k_first;
  }
  if (features.guidance && random.chance(0.3)) {
    p.guidance_scale = 1.0f + static_cast<float>(random.uniform());
    o.unconditional = normal_row(random, rows * vocab_size);
    r.unconditional = matrix_of(o.unconditional, rows, vocab_size);
  }
  if (features.history) {
    if (random.chance(0.5)) p.repetition_penalty = 0.6f + static_cast<float>(random.uniform());
    if (random.chance(0.5)) p.frequency_penalty = random.normal() * 0.4f;
    if (random.chance(0.5)) p.presence_penalty = random.normal() * 0.4f;
    std::vector<std::vector<Token>> words;
    for (std::int64_t i = random.below(4); i > 0; --i) {
      std::vector<Token> word = random.tokens(1 + random.below(3), used);
      if (word.back() != safe) words.push_back(word);
    }
    if (!words.empty()) {
      o.words = std::make_unique<BadWords>(words, static_cast<std::size_t>(vocab_size));
      r.constraints.bad_words = o.words.get();
    }
    for (const Token t : random.tokens(2, used))
      if (t != safe) o.stop.push_back(t);
    r.constraints.stop_ids = o.stop;
    if (random.chance(0.5)) r.constraints.min_tokens = random.below(9);
  }
  if (features.constraints) {
    if (random.chance(0.4)) {
      const std::int64_t words = (vocab_size + 31) / 32;
      for (std::int64_t i = 0; i < rows * words; ++i) o.masks.push_back(random.word() | random.word());
      for (std::int64_t row = 0; row < rows; ++row)
        o.masks[static_cast<std::size_t>(row * words + safe / 32)] |= 1u << (safe % 32);
      r.allowed_masks = o.masks;
    }
    if (random.chance(0.4)) {
      for (const Token t : random.tokens(3, vocab_size)) o.bias.push_back({t, random.normal()});
      r.constraints.logit_bias = o.bias;
    }
  }
  r.proposal_kind = static_cast<ProposalKind>(random.below(features.proposals));
  if (r.proposal_kind != ProposalKind::one_hot) {
    o.proposal = normal_row(random, draft_len * vocab_size);
    r.proposal = matrix_of(o.proposal, draft_len, vocab_size);
    if (random.chance(0.5)) r.draft_parameters.temperature = 0.7f;
    if (random.chance(0.3)) r.draft_parameters.filters.top_k = 3;
    if (r.proposal_kind == ProposalKind::probabilities) to_probabilities(o.proposal, vocab_size);
  }
  r.draft = DraftTree::chain(o.draft);
  r.prompt_tokens = o.prompt;
  r.output_tokens = o.output;
  r.target = matrix_of(o.target, rows, vocab_size);
  r.seed = (static_cast<std::uint64_t>(random.word()) << 32) | random.word();
  r.step = static_cast<std::uint32_t>(random.below(100));
  return o;
}

// A random request whose draft is a tree of at most `nodes_max` nodes, or a chain by chance: any earlier node may be a
// parent, and siblings may repeat one another. A proposal has a row for every node.
inline OwnedRequest random_tree_request(TestRandom& random, std::int64_t vocab_size, std::int64_t nodes_max,
                                        const RequestFeatures& features = {}) {
  OwnedRequest o = random_request(random, vocab_size, nodes_max, features);
  VerifyRequest& r = o.request;
  const std::int64_t reach = 1 + random.below(4);  // how far back a parent may be; 1: a chain
  for (std::int32_t node = 0; node < r.draft.size(); ++node)
    r.draft.parents[static_cast<std::size_t>(node)] =
        std::max(kRootNode, node - 1 - static_cast<std::int32_t>(random.below(reach)));
  if (r.proposal_kind == ProposalKind::one_hot) return o;
  std::vector<float> last = normal_row(random, vocab_size);
  if (r.proposal_kind == ProposalKind::probabilities) to_probabilities(last, vocab_size);
  o.proposal.insert(o.proposal.end(), last.begin(), last.end());
  r.proposal = matrix_of(o.proposal, r.rows(), vocab_size);
  return o;
}

// Bit for bit, but for NaN, which may not occur.
inline bool same_emission(const Emission& a, const Emission& b) {
  return a.num_accepted == b.num_accepted && a.path == b.path && a.tokens == b.tokens && a.logprobs == b.logprobs &&
         a.raw_logprobs == b.raw_logprobs && a.kept_mass == b.kept_mass && a.kept_count == b.kept_count &&
         a.token_id_logprobs == b.token_id_logprobs && a.raw_token_id_logprobs == b.raw_token_id_logprobs;
}
inline bool same_emission(const std::vector<Emission>& a, const std::vector<Emission>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Emission& x, const Emission& y) { return same_emission(x, y); });
}

}  // namespace draftproof
