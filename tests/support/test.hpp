// What all tests include: Catch2, the standard library's common parts, and runs, folders, errors and random inputs.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "tests/support/run_verb.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_random.hpp"
#include "tests/support/this_build.hpp"

namespace draftproof {

// Numbers that rows may hold and sums may not.
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// The logarithm of a weight of zero.
inline constexpr double kNoWeight = -std::numeric_limits<double>::infinity();

// The message of the draftproof::Error that `body` throws; fails the test where it throws nothing or has another kind.
template <class Body>
std::string error_of(ErrorKind kind, Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL_CHECK("no error was thrown");
  return {};
}

}  // namespace draftproof

namespace draftproof::testing {

// Distance of a computed number from the true one, in units of the last place of the true one.
// `exact` carries enough digits to stand for the real number. NaN in, NaN out, which no comparison with a bound passes.
template <class Float>
double ulp_error(Float computed, long double exact) {
  if (exact == 0.0L) return computed == Float{0} ? 0.0 : std::numeric_limits<double>::infinity();
  const int exponent = std::max(std::ilogb(exact), std::numeric_limits<Float>::min_exponent - 1);
  const long double ulp = std::ldexp(1.0L, exponent - (std::numeric_limits<Float>::digits - 1));
  return static_cast<double>(std::fabs(static_cast<long double>(computed) - exact) / ulp);
}

// Points that a figure plots: the numbers of a data block of its script.
using PlottedRows = std::vector<std::vector<double>>;

// Names, which stand in quotes, are left out.
inline void check_plotted(const std::string& script, const std::string& block, const PlottedRows& expected) {
  INFO(block << " of\n" << script);
  const std::string head = "$" + block + " << EOD\n";
  const std::size_t at = script.find(head);
  REQUIRE(at != std::string::npos);
  std::istringstream lines(script.substr(at + head.size()));
  PlottedRows rows;
  for (std::string line; std::getline(lines, line) && line != "EOD";) {
    std::istringstream words(line);
    std::vector<double>& row = rows.emplace_back();
    for (std::string word; words >> word;)
      if (word.front() != '"') row.push_back(std::stod(word));
  }
  REQUIRE(rows.size() == expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(rows[i].size() == expected[i].size());
    for (std::size_t j = 0; j < rows[i].size(); ++j)
      CHECK((std::isfinite(expected[i][j]) ? rows[i][j] == Approx(expected[i][j]).epsilon(1e-5).margin(1e-9)
                                           : std::isnan(rows[i][j])));
  }
}

// The shipped model, SmolLM2-135M-Instruct, where it has been fetched (./draftproof fetch smollm2).
// Its file; where it is not there, nothing, and the test says that it is skipped.
inline std::optional<std::string> shipped_model_path() {
  const std::string path = DRAFTPROOF_SOURCE_DIR "/build/models/SmolLM2-135M-Instruct.gguf";
  if (std::filesystem::exists(path)) return path;
  WARN("SKIPPED: the shipped model is not here; ./draftproof fetch smollm2 downloads it");
  return std::nullopt;
}

// The same for tests of many tokens or of time. Under sanitizers, which make them take minutes, they are skipped too:
// shorter ones run the same code there.
inline std::optional<std::string> shipped_model_at_full_speed() {
  if (!kSanitized) return shipped_model_path();
  WARN("SKIPPED: under sanitizers shorter tests run this code");
  return std::nullopt;
}

// Published measurements that tests compare with where they are: files of ../shared/data beside the source folder, or
// of the folder that DRAFTPROOF_DATA names.
// The file; where it is not there, nothing, and the test says that it is skipped.
inline std::optional<std::string> shared_data(const std::string& name) {
  const char* const folder = std::getenv("DRAFTPROOF_DATA");
  const auto path = std::filesystem::path(folder != nullptr ? folder : DRAFTPROOF_SOURCE_DIR "/../shared/data") / name;
  if (std::filesystem::exists(path)) return path.string();
  WARN("SKIPPED: no " << name << " in ../shared/data, or where DRAFTPROOF_DATA says");
  return std::nullopt;
}

}  // namespace draftproof::testing

using namespace draftproof;
using namespace draftproof::testing;
using Catch::Matchers::Contains;
using nlohmann::ordered_json;
