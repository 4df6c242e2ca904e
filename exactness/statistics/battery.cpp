#include "exactness/statistics/battery.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/words.hpp"
#include "exactness/statistics/chi_squared.hpp"
#include "exactness/statistics/holm.hpp"
#include "exactness/statistics/kolmogorov_smirnov.hpp"

namespace draftproof {
namespace {

double detectable(const TestResult& test, double level) {
  if (test.n == 0) return 1.0;
  switch (test.null_distribution) {
    case NullDistribution::chi_squared:
      return detectable_total_variation(static_cast<double>(test.n), test.df.value_or(0), level, kStatedPower);
    case NullDistribution::kolmogorov:
      return detectable_kolmogorov_distance(test.n, level, kStatedPower);
    case NullDistribution::tail:
    case NullDistribution::union_bound:
      return 1.0;
    case NullDistribution::certainty:
      break;
  }
  // 1 - (1 - t)^n = power
  return 1.0 - std::pow(1.0 - kStatedPower, 1.0 / static_cast<double>(test.n));
}

// Below the range of doubles.
std::string p_text(double p) {
  return p == 0.0 ? "less than 1e-300" : short_number(p);
}

std::string evidence(const TestResult& test, std::size_t tests) {
  std::ostringstream text;
  text << test.statistic_name << " = " << short_number(test.statistic);
  if (test.df) text << " on " << *test.df << " degrees of freedom";
  text << " over " << test.n << " " << test.unit << ", p = " << p_text(test.p_value) << " (Holm over "
       << tests_in_words(tests) << ": " << p_text(test.p_value_holm) << ")";
  return text.str();
}

std::string sentence_of(const TestResult& test, std::size_t tests) {
  std::ostringstream text;
  text << test.name << ": ";
  if (test.null_distribution == NullDistribution::certainty) {
    if (test.rejects) {
      text << "refuted: " << short_number(test.statistic) << " of " << test.n << " " << test.unit
           << (test.name == "well_formed" ? " are malformed" : " are impossible under the distribution");
      if (!test.worst_cells.empty()) text << ", first " << test.worst_cells.front().label();
    } else {
      text << "none of " << test.n << " " << test.unit
           << " is impossible under the distribution; a fault that does so with "
           << "probability " << short_number(test.detectable_tv) << " would have shown with 99 % probability";
    }
    return text.str();
  }
  if (test.null_distribution == NullDistribution::tail) {
    text << evidence(test, tests) << ": "
         << (test.rejects ? "refuted at level " + short_number(test.alpha) : std::string("nothing found"));
    if (test.is_correlation) {
      if (test.rejects) text << "; draws that should be independent are correlated";
    } else if (test.worst_cells.empty()) {
      if (test.rejects)
        text << "; drawn tokens are " << (test.statistic > 0 ? "more" : "less") << " probable than stated";
    } else {
      text << "; " << short_number(test.worst_cells.front().expected) << " expected";
    }
    return text.str();
  }
  if (test.null_distribution == NullDistribution::union_bound) {
    text << short_number(test.statistic) << " of " << test.n << " " << test.unit
         << " drew the same tokens throughout; by chance that has a probability of at most " << p_text(test.p_value)
         << " (Holm over " << tests_in_words(tests) << ": " << p_text(test.p_value_holm) << ")";
    if (test.rejects && !test.worst_cells.empty()) text << ", first " << test.worst_cells.front().label();
    return text.str();
  }
  text << evidence(test, tests);
  if (test.is_correlation && test.rejects) {
    text << ": correlated at level " << short_number(test.alpha) << "; the pairs are "
         << short_number(test.estimated_tv) << " away from independence, whatever the distribution of each";
    return text.str();
  }
  const char* const which =
      test.null_distribution == NullDistribution::kolmogorov ? "along the order of probability of " : "of ";
  if (test.rejects) {
    text << ": refuted at level " << short_number(test.alpha) << "; estimated distance "
         << short_number(test.estimated_tv);
    if (!test.worst_cells.empty()) {
      const CountedCell& worst = test.worst_cells.front();
      text << ", worst cell " << worst.label() << ": " << short_number(worst.observed) << " observed, "
           << short_number(worst.expected) << " expected";
    }
  } else if (test.detectable_tv < 1.0) {
    text << ": nothing found; a "
         << (test.is_correlation ? "distance of pairs from independence " : "total variation distance ") << which
         << short_number(test.detectable_tv) << " would have been found with 99 % probability";
  } else {
    text << ": nothing found, but so few cannot show a fault with 99 % probability";
  }
  return text.str();
}

}  // namespace

void judge(std::vector<TestResult>& tests, double alpha) {
  std::vector<double> p_values;
  for (const TestResult& test : tests) p_values.push_back(test.p_value);
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    TestResult& test = tests[i];
    test.alpha = alpha;
    test.p_value_holm = adjusted[i];
    test.rejects = adjusted[i] < alpha;
    test.detectable_tv = detectable(test, alpha / static_cast<double>(tests.size()));
    test.sentence = sentence_of(test, tests.size());
  }
}

double detectable_distance(const std::vector<TestResult>& tests) {
  double smallest = 1.0;
  for (const TestResult& test : tests) {
    if (test.covers_all) smallest = std::min(smallest, test.detectable_tv);
  }
  return smallest;
}

std::string tests_in_words(std::size_t tests) {
  return counted_noun(tests, "test");
}

std::string short_number(double value) {
  std::ostringstream text;
  const double magnitude = std::abs(value);
  if (magnitude >= 1000.0 && magnitude < 1e15) {
    text << std::llround(value);
  } else {
    text.precision(3);
    text << value;
  }
  return text.str();
}

}  // namespace draftproof
