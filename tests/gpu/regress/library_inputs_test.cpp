// Inputs of the regression's cases for somebody else's kernels: rows as they are, but those that the reference refuses.
#include "gpu/regress/library_inputs.hpp"

#include "gpu/regress/cases.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/library_regression.hpp"
#include "tests/support/test.hpp"

namespace {

using namespace draftproof::regress;

std::optional<LibraryInputs> inputs_named(const std::string& name) {
  const std::vector<RegressCase> cases = cases_named(name);
  INFO(name);
  REQUIRE(cases.size() == 1);
  return library_inputs(cases.front());
}

}  // namespace

TEST_CASE("rows of 16 bits are given to a library as the same numbers in f32, and what they are padded with is NaN") {
  const auto inputs = inputs_named("sample/plain/bf16/V33/B4");
  REQUIRE(inputs);
  const auto& rows = std::get<RowInputs>(*inputs);
  CHECK(rows.rows() == 4);
  CHECK(rows.vocab_size == 33);
  CHECK(rows.row_stride == 64);
  REQUIRE(rows.logits.size() == 4 * 64);
  const std::vector<float> made = normal_logits(33 * 8 + DRAFTPROOF_BF16, 4, 33, 64, 4.0f);
  for (std::size_t i = 0; i < rows.logits.size(); ++i) {
    if (i % 64 >= 33) {
      CHECK(std::isnan(rows.logits[i]));
    } else {
      CHECK(rows.logits[i] == bf16_to_f32(f32_to_bf16(made[i])));
    }
  }
  CHECK(rows.top_p == std::vector<float>(4, 1.0f));
}

TEST_CASE("rows and requests that the reference refuses are left out, and the others are given") {
  // 11 rows, of which 7 are refused: NaN and infinity, too large, nothing left.
  const auto rows = inputs_named("sample/bad_rows/f32/V4200/B11");
  REQUIRE(rows);
  CHECK(std::get<RowInputs>(*rows).rows() == 4);
  // Requests 0, 1 and 2 have a draft outside of the vocabulary; 3 has none.
  const auto chain = inputs_named("verify_chain/bad_ids/probabilities_f32/probabilities_f32/V33/B4");
  REQUIRE(chain);
  CHECK(std::get<DraftInputs>(*chain).requests() == 1);
  CHECK(std::get<DraftInputs>(*chain).drafts() == 0);
  const auto trees = inputs_named("tree_mask/bad_parents/n40/B5");
  REQUIRE(trees);
  CHECK(std::get<TreeInputs>(*trees).requests() == 1);
  const auto guided = inputs_named("guidance/bad_rows/f32/V9000/B10");
  REQUIRE(guided);
  CHECK(std::get<GuidanceInputs>(*guided).rows() > 0);
  for (const float x : std::get<GuidanceInputs>(*guided).conditional) CHECK_FALSE(x == HUGE_VALF);
}

TEST_CASE("what the calls of a library cannot express is not asked of it: penalties, masks, logits in verification",
          "[release]") {
  CHECK_FALSE(inputs_named("sample/penalties_alone/bf16/V4100/B9"));
  CHECK_FALSE(inputs_named("sample/bitmask_alone/bf16/V4100/B9"));
  CHECK_FALSE(inputs_named("sample/no_rows/f32/V4097/B0"));
  CHECK_FALSE(inputs_named("verify_chain/model/logits_bf16/logits_bf16/V50257/B2"));
  CHECK(inputs_named("verify_chain/model/probabilities_f32/probabilities_f32/V32000/B2"));
}

TEST_CASE("cases of a library are named after its calls, and filters are tried on the rows of samples") {
  const std::vector<LibraryCase> cases = library_cases({"filter", "sample"}, "plain/f32/V33/");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].name == "filter/plain/f32/V33/B4");
  CHECK(cases[1].name == "sample/plain/f32/V33/B4");
  CHECK(cases[0].inputs == cases[1].inputs);
  CHECK(library_cases({"filter", "sample"}, "filter/plain/f32/V33/").size() == 1);
  CHECK(library_cases({"guidance"}, "filter/").empty());
}
