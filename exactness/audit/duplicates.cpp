#include "exactness/audit/duplicates.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

namespace draftproof {
namespace {

using StreamName = std::pair<std::int64_t, std::uint64_t>;  // row and seed
using Place = std::pair<std::int64_t, std::int64_t>;        // step and position

struct Stream {
  StreamName name;
  std::vector<std::size_t> draws;  // in the order of their places
};

std::vector<Stream> streams_of(std::size_t draws, const DrawCoordinates& at) {
  std::map<StreamName, std::vector<std::pair<Place, std::size_t>>> placed;
  for (std::size_t i = 0; i < draws; ++i) {
    const StreamName name{at.row.empty() ? 0 : at.row[i], at.seed.empty() ? 0 : at.seed[i]};
    placed[name].push_back({{at.step.empty() ? 0 : at.step[i], at.position.empty() ? 0 : at.position[i]}, i});
  }
  std::vector<Stream> streams;
  for (auto& [name, places] : placed) {
    std::sort(places.begin(), places.end());
    Stream& stream = streams.emplace_back(Stream{name, {}});
    for (const auto& [place, draw] : places) stream.draws.push_back(draw);
  }
  return streams;
}

std::int64_t pairs_among(std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  return n * (n - 1) / 2;
}

}  // namespace

std::vector<TestResult> duplicate_tests(std::span<const Token> tokens, const DrawCoordinates& at,
                                        const std::function<double(std::size_t, std::size_t)>& coincidence) {
  if (at.row.empty() && at.seed.empty()) return {};
  const std::vector<Stream> streams = streams_of(tokens.size(), at);
  // Streams that drew at the same places, and those of them with the same tokens there.
  std::map<std::vector<Place>, std::map<std::vector<Token>, std::vector<std::size_t>>> alike;
  std::size_t longest = 0;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    std::vector<Place> places;
    std::vector<Token> drawn;
    for (const std::size_t i : streams[s].draws) {
      places.emplace_back(at.step.empty() ? 0 : at.step[i], at.position.empty() ? 0 : at.position[i]);
      drawn.push_back(tokens[i]);
    }
    longest = std::max(longest, drawn.size());
    alike[std::move(places)][std::move(drawn)].push_back(s);
  }
  TestResult test;
  test.name = "duplicate_streams";
  test.statistic_name = "pairs";
  test.unit = "pairs of rows or seeds";
  test.null_distribution = NullDistribution::union_bound;
  test.is_correlation = true;
  double least = 0.0;  // of the logarithms
  for (const auto& [places, by_tokens] : alike) {
    std::size_t comparable = 0;
    for (const auto& [drawn, members] : by_tokens) {
      comparable += members.size();
      test.statistic += static_cast<double>(pairs_among(members.size()));
      for (std::size_t j = 1; j < members.size(); ++j) {
        const Stream& a = streams[members[j - 1]];
        const Stream& b = streams[members[j]];
        double chance = 0.0;
        for (std::size_t i = 0; i < a.draws.size(); ++i) chance += std::log(coincidence(a.draws[i], b.draws[i]));
        if (chance >= least) continue;
        least = chance;
        const auto key = [&](const Stream& s) {
          return at.row.empty() ? static_cast<std::int64_t>(s.name.second) : s.name.first;
        };
        const char* const unit = at.row.empty() ? "seed" : "row";
        test.worst_cells = {{{{unit, key(a)}, {std::string("other_") + unit, key(b)}}, 1.0, std::exp(chance)}};
      }
    }
    test.n += pairs_among(comparable);
  }
  if (longest < 2 || test.n == 0) return {};
  test.p_value = std::min(1.0, static_cast<double>(test.n) * std::exp(least));
  test.estimated_tv = test.statistic / static_cast<double>(test.n);
  return {std::move(test)};
}

}  // namespace draftproof
