#include "reference/verify/draft_vocabulary.hpp"

#include "tests/support/test.hpp"

namespace {

std::string refusal_of_offsets(std::vector<std::int64_t> offsets, std::int64_t vocab_size) {
  try {
    DraftVocabulary::of_offsets(offsets, vocab_size, "d2t");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::input);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Offsets and ids name the same tokens, and a row goes to them and back") {
  const std::array<std::int64_t, 3> offsets{1, 1, 3};
  const DraftVocabulary of_offsets = DraftVocabulary::of_offsets(offsets, 6, "d2t");
  const DraftVocabulary of_ids({1, 2, 5}, 6, "ids");
  for (const DraftVocabulary& vocabulary : {of_offsets, of_ids}) {
    CHECK(vocabulary.size() == 3);
    CHECK(vocabulary.vocab_size() == 6);
    CHECK(vocabulary.target_id(0) == 1);
    CHECK(vocabulary.target_id(1) == 2);
    CHECK(vocabulary.target_id(2) == 5);
    const DenseMasses<double> row{0.5, 0.25, 0.25};
    CHECK(vocabulary.scattered(row) == DenseMasses<double>{0.0, 0.5, 0.25, 0.0, 0.0, 0.25});
    CHECK(vocabulary.gathered(vocabulary.scattered(row)) == row);
    // Tokens outside are left out, and the rest is not divided by its sum.
    CHECK(vocabulary.gathered(DenseMasses<double>{9.0, 1.0, 2.0, 9.0, 9.0, 3.0}) == DenseMasses<double>{1.0, 2.0, 3.0});
  }
}

TEST_CASE("A draft vocabulary that is no part of the target's is refused with the token that shows it") {
  CHECK(refusal_of_offsets({1, 1, 3}, 6).empty());
  // Ids taken for offsets, as a file of the other convention has them: 1 + 2, 2 + 5.
  CHECK(refusal_of_offsets({1, 2, 5}, 6) ==
        "d2t: the offset of draft token 2 is 5; expected an id 2 + offset in [0, 6)");
  CHECK(refusal_of_offsets({1, -2}, 6) ==
        "d2t: the offset of draft token 1 is -2; expected an id 1 + offset in [0, 6)");
  CHECK(refusal_of_offsets({2, 1}, 6) ==
        "d2t: draft token 1 is the target's 2; expected ids that rise, here one above 2 and below 6");
  CHECK(refusal_of_offsets({}, 6) == "d2t: the draft vocabulary is empty; expected one token or more");
  CHECK_FALSE(refusal_of_offsets({std::numeric_limits<std::int64_t>::max()}, 6).empty());
  CHECK_FALSE(refusal_of_offsets({0, std::numeric_limits<std::int64_t>::min()}, 6).empty());
  CHECK_THROWS_WITH(DraftVocabulary({0, 6}, 6, "ids"),
                    "ids: draft token 1 is the target's 6; expected ids that rise, here one above 0 and below 6");
  CHECK_THROWS_WITH(DraftVocabulary({-1}, 6, "ids"), Contains("expected ids that rise, here one above -1"));
}
