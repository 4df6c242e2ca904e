// Samples for tests of the audit: draws of samplers that are right, or wrong by a known amount.
#pragma once

#include "exactness/audit/audit_sample.hpp"
#include "tests/support/test.hpp"

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

}  // namespace draftproof::testing
