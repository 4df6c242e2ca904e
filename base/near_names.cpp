#include "base/near_names.hpp"

#include <algorithm>
#include <numeric>

#include "base/words.hpp"

namespace draftproof {
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kNameMost = 100;  // longer ones are no slip of the finger
  if (name.find_first_not_of('-') == std::string_view::npos || name.size() > kNameMost) return "";
  const std::string wanted = lower_case(name);
  std::string best;
  std::size_t least = kNameMost;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance < least && 3 * distance <= std::max<std::size_t>(candidate.size() + 1, 3)) {
      least = distance;
      best = candidate;
    }
  }
  if (!best.empty()) return best;
  for (const std::string& candidate : known)
    if (lower_case(candidate).starts_with(wanted)) return candidate;
  return "";
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace draftproof
