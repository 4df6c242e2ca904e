// Every draft row is processed with the history that plain decoding would have had there, bit for bit. What is reported
// of rows, and rows that are asked for in any order: every_verifier_test.cpp.
#include "reference/step/step_rows.hpp"

#include "tests/reference/step/own_rows.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

TEST_CASE("every draft row has the distribution of plain decoding with the history it would have had") {
  TestRandom random(201);
  StepWorkspace workspace;
  own_rows::Row plain, frozen;
  int rows = 0;
  int rows_that_a_frozen_history_gets_wrong = 0;
  for (int i = 0; i < 1500; ++i) {
    const OwnedRequest o = random_request(random, 1 + random.below(40), 5);
    validate(o.request, Verifier::chain, i);
    StepRows step(o.request, {}, workspace);
    CAPTURE(i);
    for (std::uint32_t row = 0; row < o.request.rows(); ++row) {
      const DenseMasses<double> found = own_rows::dense(step.target(row));
      own_rows::process(o.request, row, o.request.draft.path(static_cast<std::int32_t>(row) - 1), plain);
      CAPTURE(row);
      REQUIRE(found == own_rows::dense(plain.distribution));
      // The planted fault: drafts do not enter the history (vllm #18902, sglang #33643).
      if (row == 0) continue;
      ++rows;
      own_rows::process(o.request, row, {}, frozen);
      rows_that_a_frozen_history_gets_wrong += found != own_rows::dense(frozen.distribution);
    }
  }
  CHECK(rows > 2000);
  CHECK(rows_that_a_frozen_history_gets_wrong > rows / 3);
}
