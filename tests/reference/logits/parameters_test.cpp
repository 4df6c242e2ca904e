#include "reference/logits/parameters.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "tests/support/error_of.hpp"
#include "tests/support/special_values.hpp"

using namespace draftproof;
using Catch::Contains;

namespace {

// The message for default parameters with one of them set wrongly.
template <class Set>
std::string complaint(Set set) {
  RowParameters p;
  set(p);
  return error_of(ErrorKind::usage, [&] { validate(p, "row 12"); });
}

template <class Set>
std::string constraint_complaint(Set set) {
  RowConstraints c;
  set(c);
  return error_of(ErrorKind::usage, [&] { validate(c, 40, "row 12"); });
}

}  // namespace

TEST_CASE("every bad parameter of a row is refused by name") {
  for (const float bad : {-1.0f, -0x1p-149f, kNan, kInfinity, -kInfinity})
    CHECK_THAT(complaint([&](RowParameters& p) { p.temperature = bad; }),
               Contains("row 12") && Contains("temperature"));
  for (const float bad : {0.0f, -0.5f, 1.5f, 1.0f + 0x1p-23f, kNan, kInfinity})
    CHECK_THAT(complaint([&](RowParameters& p) { p.filters.top_p = bad; }),
               Contains("row 12") && Contains("top_p") && Contains("(0, 1]"));
  for (const float bad : {-0.1f, 1.5f, kNan, kInfinity})
    CHECK_THAT(complaint([&](RowParameters& p) { p.filters.min_p = bad; }),
               Contains("row 12") && Contains("min_p") && Contains("[0, 1]"));
  for (const std::int32_t bad : {-1, std::numeric_limits<std::int32_t>::min()})
    CHECK_THAT(complaint([&](RowParameters& p) { p.filters.top_k = bad; }), Contains("row 12") && Contains("top_k"));
  for (const float bad : {0.0f, -1.0f, kNan, kInfinity})
    CHECK_THAT(complaint([&](RowParameters& p) { p.repetition_penalty = bad; }),
               Contains("row 12") && Contains("repetition_penalty"));
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    CHECK_THAT(complaint([&](RowParameters& p) { p.frequency_penalty = bad; }), Contains("frequency_penalty"));
    CHECK_THAT(complaint([&](RowParameters& p) { p.presence_penalty = bad; }), Contains("presence_penalty"));
    CHECK_THAT(complaint([&](RowParameters& p) { p.guidance_scale = bad; }), Contains("guidance_scale"));
  }
}

TEST_CASE("parameters at the edges of their ranges are accepted") {
  RowParameters p;
  CHECK_NOTHROW(validate(p, "row 0"));
  p.temperature = 0.0f;
  p.filters = {std::numeric_limits<std::int32_t>::max(), 0x1p-149f, 1.0f, FilterOrder::top_k_first, Ties::keep_all};
  p.repetition_penalty = 0x1p-149f;
  p.frequency_penalty = -3e38f;
  p.presence_penalty = 3e38f;
  p.guidance_scale = -2.0f;
  CHECK_NOTHROW(validate(p, "row 0"));
}

TEST_CASE("every bad constraint of a row is refused by name") {
  const std::vector<Token> beyond{0, 40};
  const std::vector<Token> negative{-1};
  for (const auto& ids : {beyond, negative}) {
    CHECK_THAT(constraint_complaint([&](RowConstraints& c) { c.allowed_ids = ids; }),
               Contains("row 12") && Contains("allowed ids") && Contains("[0, 40)"));
    CHECK_THAT(constraint_complaint([&](RowConstraints& c) { c.stop_ids = ids; }),
               Contains("row 12") && Contains("stop ids"));
  }
  for (const LogitBias bad : {LogitBias{40, 1.0f}, LogitBias{-1, 1.0f}, LogitBias{0, kNan}, LogitBias{0, kInfinity},
                              LogitBias{0, -kInfinity}}) {
    const std::vector<LogitBias> bias{{1, 0.5f}, bad};
    CHECK_THAT(constraint_complaint([&](RowConstraints& c) { c.logit_bias = bias; }),
               Contains("row 12") && Contains("logit_bias"));
  }
  for (const std::size_t words : {1, 3}) {
    const std::vector<std::uint32_t> mask(words, ~0u);
    CHECK_THAT(constraint_complaint([&](RowConstraints& c) { c.allowed_mask = mask; }),
               Contains("row 12") && Contains("ceil(V/32) = 2"));
  }
  CHECK_THAT(constraint_complaint([](RowConstraints& c) { c.min_tokens = -1; }),
             Contains("row 12") && Contains("min_tokens"));
}

TEST_CASE("constraints of the right shape are accepted") {
  const std::vector<Token> ids{0, 39};
  const std::vector<std::uint32_t> mask(2, 0);
  const std::vector<LogitBias> bias{{39, -100.0f}};
  RowConstraints c;
  CHECK_NOTHROW(validate(c, 40, "row 0"));
  c = {mask, ids, nullptr, 3, ids, bias};
  CHECK_NOTHROW(validate(c, 40, "row 0"));
}
