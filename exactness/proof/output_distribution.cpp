#include "exactness/proof/output_distribution.hpp"

#include <algorithm>

namespace draftproof {
namespace {

// One length of the tree of all strings: what the verifier and the target give to each.
struct Node {
  Rational emitted;    // strings that pass through, plus what was completed from shorter ones
  Rational completed;  // the part of it that is carried on by draws from the target
  Rational expected;
};

using Level = std::map<TokenString, Node>;

std::size_t longest(const OutputDistribution& distribution) {
  std::size_t length = 0;
  for (const auto& [string, probability] : distribution) length = std::max(length, string.size());
  return length;
}

// Probability of the strings that have `length` tokens or more, by their first `length` tokens.
OutputDistribution prefixes(const OutputDistribution& distribution, std::size_t length) {
  OutputDistribution out;
  for (const auto& [string, probability] : distribution) {
    if (string.size() < length) continue;
    out[TokenString(string.begin(), string.begin() + static_cast<std::ptrdiff_t>(length))] += probability;
  }
  return out;
}

Rational at(const OutputDistribution& distribution, const TokenString& string) {
  const auto found = distribution.find(string);
  return found == distribution.end() ? Rational(0) : found->second;
}

Level first_level(const OutputDistribution& distribution) {
  Rational sum(0);
  for (const auto& [string, probability] : distribution) sum += probability;
  return {{{}, {sum, at(distribution, {}), Rational(1)}}};
}

Level next_level(const Level& level, const OutputDistribution& distribution, std::size_t length,
                 const TargetDistribution& target, std::int32_t vocab_size) {
  const OutputDistribution passing = prefixes(distribution, length);
  Level next;
  for (const auto& [prefix, node] : level) {
    const DenseMasses<Rational>& p = target(prefix);
    for (Token token = 0; token < vocab_size; ++token) {
      TokenString string = prefix;
      string.push_back(token);
      const Rational& share = p[static_cast<std::size_t>(token)];
      const Rational carried = node.completed * share;
      Node child{at(passing, string) + carried, carried + at(distribution, string), node.expected * share};
      if (child.emitted != 0 || child.expected != 0) next.emplace(std::move(string), std::move(child));
    }
  }
  return next;
}

}  // namespace

std::optional<DistributionDifference> first_difference(const OutputDistribution& distribution,
                                                       const TargetDistribution& target, std::int32_t vocab_size) {
  Level level = first_level(distribution);
  if (level.begin()->second.emitted != 1)
    return DistributionDifference{{}, kPaddingToken, level.begin()->second.emitted, 1};
  const std::size_t length_max = longest(distribution);
  for (std::size_t length = 1; length <= length_max; ++length) {
    level = next_level(level, distribution, length, target, vocab_size);
    for (const auto& [string, node] : level) {
      if (node.emitted != node.expected)
        return DistributionDifference{{string.begin(), string.end() - 1}, string.back(), node.emitted, node.expected};
    }
  }
  return std::nullopt;
}

Rational total_variation(const OutputDistribution& distribution, const TargetDistribution& target,
                         std::int32_t vocab_size) {
  Level level = first_level(distribution);
  const std::size_t length_max = longest(distribution);
  for (std::size_t length = 1; length <= length_max; ++length)
    level = next_level(level, distribution, length, target, vocab_size);
  Rational distance(0);
  for (const auto& [string, node] : level) distance += abs(node.emitted - node.expected);
  return distance / 2;
}

Rational distance_between(const OutputDistribution& a, const OutputDistribution& b) {
  OutputDistribution difference = a;
  for (const auto& [string, probability] : b) difference[string] -= probability;
  Rational sum(0);
  for (const auto& [string, probability] : difference) sum += abs(probability);
  return sum / 2;
}

OutputDistribution compose(const OutputDistribution& first,
                           const std::function<OutputDistribution(const TokenString& prefix)>& second) {
  OutputDistribution distribution;
  for (const auto& [prefix, probability] : first) {
    for (const auto& [string, conditional] : second(prefix)) {
      TokenString whole = prefix;
      whole.insert(whole.end(), string.begin(), string.end());
      distribution[whole] += probability * conditional;
    }
  }
  return distribution;
}

}  // namespace draftproof
