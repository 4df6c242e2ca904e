// Samples for tests of the audit: draws and steps of samplers that are right, or wrong by a known amount.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/dtype.hpp"
#include "exactness/audit/audit_sample.hpp"
#include "reference/random/philox.hpp"
#include "reference/verify/block.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/dense_rows.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof::testing {

// `draws` of a distribution that the file gives as `stated`, in one group.
inline DrawSample drawn(std::uint64_t seed, std::int64_t draws, const std::vector<double>& stated,
                        const std::vector<double>& distribution) {
  TestRandom random(seed);
  const auto row = std::make_shared<std::vector<float>>(stated.begin(), stated.end());
  std::vector<std::int64_t> counts(distribution.size(), 0);
  for (std::int64_t i = 0; i < draws; ++i) ++counts[random.draw(distribution)];
  DrawSample sample;
  VerifyRequest request;
  request.target_is_probabilities = true;
  request.target = {DType::f32, row->data(), 1, static_cast<std::int64_t>(row->size()),
                    static_cast<std::int64_t>(row->size())};
  sample.distributions = {request};
  sample.group_ids = {0};
  for (std::size_t token = 0; token < counts.size(); ++token)
    if (counts[token] > 0) sample.counts.push_back({static_cast<Token>(token), counts[token]});
  sample.begins = {0, sample.counts.size()};
  sample.keeps = row;
  return sample;
}

// One draw from each of `groups` distributions of logits with temperature 1; the sampler uses `temperature`.
inline DrawSample drawn_once_each(std::uint64_t seed, std::int64_t groups, float temperature) {
  constexpr std::int64_t kVocab = 11;
  TestRandom random(seed);
  const auto logits = std::make_shared<std::vector<float>>();
  for (std::int64_t i = 0; i < groups * kVocab; ++i) logits->push_back(1.5f * random.normal());
  DrawSample sample;
  sample.begins = {0};
  for (std::int64_t g = 0; g < groups; ++g) {
    VerifyRequest request;
    request.target = {DType::f32, logits->data() + g * kVocab, 1, kVocab, kVocab};
    std::vector<double> distribution;
    double sum = 0.0;
    for (std::int64_t t = 0; t < kVocab; ++t)
      sum += distribution.emplace_back(std::exp(
          static_cast<double>((*logits)[static_cast<std::size_t>(g * kVocab + t)]) / static_cast<double>(temperature)));
    for (double& p : distribution) p /= sum;
    sample.counts.push_back({static_cast<Token>(random.draw(distribution)), 1});
    sample.begins.push_back(sample.counts.size());
    sample.group_ids.push_back(g);
    sample.distributions.push_back(request);
  }
  sample.keeps = logits;
  return sample;
}

using Rows = DenseRows<double>;
using Chance = AddressedChance<PhiloxSource>;
using Engine = std::function<ChainOutcome(std::span<const Token> draft, Rows& target, Rows& proposal, Chance& chance)>;

inline ChainOutcome chain_engine(std::span<const Token> draft, Rows& p, Rows& q, Chance& chance) {
  return verify_chain(draft, p, q, chance);
}
inline ChainOutcome block_engine(std::span<const Token> draft, Rows& p, Rows& q, Chance& chance) {
  return verify_block(draft, p, q, chance);
}

struct StepOptions {
  std::int64_t steps = 6000;
  std::int64_t contexts = 1;  // 0: each request has its own
  std::size_t vocab_size = 5;
  std::uint32_t draft_len = 3;
  bool shared_first_rows = false;  // contexts differ from the second position on
  bool close_drafts = false;       // q within 2 % of p
  bool argmax_drafts = false;      // the drafter takes the likeliest token, but states its distribution
  bool stored_as_bf16 = false;     // probabilities, of target and draft
};

namespace audit_samples {

struct Storage {
  std::vector<float> rows;
  std::vector<std::uint16_t> rows_16;
  std::vector<Token> drafts;
};

inline std::vector<double> row_of(std::uint64_t context, std::uint32_t position, Token last, bool is_draft,
                                  std::size_t vocab_size) {
  TestRandom random(derive_seed(context, position * 64 + static_cast<std::uint64_t>(last) * 2 + (is_draft ? 1 : 0)));
  std::vector<double> distribution;
  double sum = 0.0;
  for (std::size_t i = 0; i < vocab_size; ++i)
    sum += distribution.emplace_back(i > 0 && random.below(6) == 0 ? 0.0 : 0.05 + random.uniform());
  for (double& p : distribution) p = static_cast<double>(static_cast<float>(p / sum));
  return distribution;
}

inline std::vector<double> close_to(const std::vector<double>& p, const std::vector<double>& other) {
  std::vector<double> distribution(p.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += distribution[i] = p[i] * (1.0 + 0.02 * other[i]);
  for (double& x : distribution) x = static_cast<double>(static_cast<float>(x / sum));
  return distribution;
}

}  // namespace audit_samples

// Steps of models that depend on context, position and last token.
inline StepSample stepped(std::uint64_t seed, const StepOptions& options, const Engine& engine) {
  using audit_samples::close_to;
  using audit_samples::row_of;
  const auto storage = std::make_shared<audit_samples::Storage>();
  const auto steps = static_cast<std::size_t>(options.steps);
  const std::size_t rows_each = 2 * options.draft_len + 1;
  storage->rows.reserve(steps * rows_each * options.vocab_size);
  storage->drafts.reserve(steps * options.draft_len);
  StepSample sample;
  sample.begins = {0};
  TestRandom random(seed);
  PhiloxSource source;
  const auto store = [&](const std::vector<double>& row) {
    for (const double p : row) storage->rows.push_back(static_cast<float>(p));
  };
  for (std::size_t b = 0; b < steps; ++b) {
    const std::uint64_t context =
        1000 + (options.contexts > 0 ? b % static_cast<std::uint64_t>(options.contexts) : b * 977 + seed);
    Rows target, proposal;
    std::vector<Token> draft;
    Token last = 0;
    for (std::uint32_t i = 0; i <= options.draft_len; ++i) {
      const std::uint64_t row_context = i == 0 && options.shared_first_rows ? 1 : context;
      target.rows.push_back(row_of(row_context, i, last, false, options.vocab_size));
      if (i == options.draft_len) break;
      proposal.rows.push_back(row_of(row_context, i, last, true, options.vocab_size));
      if (options.close_drafts) proposal.rows.back() = close_to(target.rows.back(), proposal.rows.back());
      const std::vector<double>& q = proposal.rows.back();
      last = static_cast<Token>(options.argmax_drafts
                                    ? static_cast<std::size_t>(std::max_element(q.begin(), q.end()) - q.begin())
                                    : random.draw(q));
      draft.push_back(last);
    }
    for (const auto& row : target.rows) store(row);
    for (const auto& row : proposal.rows) store(row);
    Chance chance(source, derive_seed(seed, b), 0);
    const ChainOutcome outcome = engine(draft, target, proposal, chance);
    storage->drafts.insert(storage->drafts.end(), draft.begin(), draft.end());
    sample.tokens.insert(sample.tokens.end(), draft.begin(), draft.begin() + outcome.num_accepted);
    sample.tokens.push_back(outcome.last_token);
    sample.begins.push_back(sample.tokens.size());
  }
  for (const float p : storage->rows) storage->rows_16.push_back(f32_to_bf16(p));
  const auto vocab_size = static_cast<std::int64_t>(options.vocab_size);
  for (std::size_t b = 0; b < steps; ++b) {
    const std::size_t first = b * rows_each * options.vocab_size;
    const auto matrix = [&](std::size_t offset, std::int64_t rows) {
      return options.stored_as_bf16
                 ? RowMatrix{DType::bf16, storage->rows_16.data() + first + offset, rows, vocab_size, vocab_size}
                 : RowMatrix{DType::f32, storage->rows.data() + first + offset, rows, vocab_size, vocab_size};
    };
    VerifyRequest request;
    request.draft =
        DraftTree::chain(std::span<const Token>(storage->drafts).subspan(b * options.draft_len, options.draft_len));
    request.target_is_probabilities = true;
    request.target = matrix(0, options.draft_len + 1);
    request.proposal_kind = ProposalKind::probabilities;
    request.proposal = matrix((options.draft_len + 1) * options.vocab_size, options.draft_len);
    request.first_row = static_cast<std::int64_t>(b * (options.draft_len + 1));
    sample.requests.push_back(request);
  }
  sample.keeps = storage;
  return sample;
}

}  // namespace draftproof::testing
