#include "reference/logits/parameters.hpp"

#include <type_traits>

#include "tests/support/test.hpp"

namespace {

// A value that is set wrongly must be refused by the name of the row, and with these words.
template <class Set>
void check_refused(Set set, const std::vector<std::string>& words) {
  const std::string complaint = error_of(ErrorKind::usage, [&] {
    if constexpr (std::is_invocable_v<Set, RowParameters&>) {
      RowParameters parameters;
      set(parameters);
      validate(parameters, "row 12");
    } else {
      RowConstraints constraints;
      set(constraints);
      validate(constraints, 40, "row 12");
    }
  });
  CHECK_THAT(complaint, Contains("row 12"));
  for (const std::string& word : words) CHECK_THAT(complaint, Contains(word));
}

}  // namespace

TEST_CASE("every bad parameter of a row is refused by name") {
  for (const float bad : {-1.0f, -0x1p-149f, kNan, kInfinity, -kInfinity})
    check_refused([&](RowParameters& p) { p.temperature = bad; }, {"temperature"});
  for (const float bad : {0.0f, -0.5f, 1.5f, 1.0f + 0x1p-23f, kNan, kInfinity})
    check_refused([&](RowParameters& p) { p.filters.top_p = bad; }, {"top_p", "(0, 1]"});
  for (const float bad : {-0.1f, 1.5f, kNan, kInfinity})
    check_refused([&](RowParameters& p) { p.filters.min_p = bad; }, {"min_p", "[0, 1]"});
  for (const std::int32_t bad : {-1, std::numeric_limits<std::int32_t>::min()})
    check_refused([&](RowParameters& p) { p.filters.top_k = bad; }, {"top_k"});
  for (const float bad : {0.0f, -1.0f, kNan, kInfinity})
    check_refused([&](RowParameters& p) { p.repetition_penalty = bad; }, {"repetition_penalty"});
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    check_refused([&](RowParameters& p) { p.frequency_penalty = bad; }, {"frequency_penalty"});
    check_refused([&](RowParameters& p) { p.presence_penalty = bad; }, {"presence_penalty"});
    check_refused([&](RowParameters& p) { p.guidance_scale = bad; }, {"guidance_scale"});
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
  for (const std::vector<Token>& ids : {std::vector<Token>{0, 40}, {-1}}) {
    check_refused([&](RowConstraints& c) { c.allowed_ids = ids; }, {"allowed ids", "[0, 40)"});
    check_refused([&](RowConstraints& c) { c.stop_ids = ids; }, {"stop ids"});
  }
  for (const LogitBias bad : {LogitBias{40, 1.0f}, LogitBias{-1, 1.0f}, LogitBias{0, kNan}, LogitBias{0, kInfinity},
                              LogitBias{0, -kInfinity}}) {
    const std::vector<LogitBias> bias{{1, 0.5f}, bad};
    check_refused([&](RowConstraints& c) { c.logit_bias = bias; }, {"logit_bias"});
  }
  for (const std::size_t words : {1, 3}) {
    const std::vector<std::uint32_t> mask(words, ~0u);
    check_refused([&](RowConstraints& c) { c.allowed_mask = mask; }, {"ceil(V/32) = 2"});
  }
  check_refused([](RowConstraints& c) { c.min_tokens = -1; }, {"min_tokens"});
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
