#include "reference/step/request.hpp"

#include "base/dtype.hpp"
#include "reference/step/verify_step.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kColumns = 40;
constexpr std::int64_t kDrafts = 2;

// A valid request with every part, for a test to break one of.
struct ValidRequest {
  std::vector<Token> draft{1, 2};
  std::vector<float> rows = std::vector<float>(static_cast<std::size_t>((kDrafts + 1) * kColumns), 0.25f);
  std::vector<std::uint32_t> masks = std::vector<std::uint32_t>(6, ~0u);
  std::vector<Token> text{3, 4};
  VerifyRequest request;

  ValidRequest() {
    request.draft = DraftTree::chain(draft);
    request.target = matrix_of(rows, kDrafts + 1, kColumns);
    request.unconditional = request.target;
    request.proposal_kind = ProposalKind::logits;
    request.proposal = request.target.slice(0, kDrafts);
    request.allowed_masks = masks;
    request.prompt_tokens = text;
    request.output_tokens = text;
  }
};

// A broken part, and the words of the complaint beside the request's number.
struct Break {
  std::function<void(VerifyRequest&)> in;
  std::vector<std::string> words;
  ErrorKind kind = ErrorKind::input;
};
void check_refused(const std::vector<Break>& breaks) {
  for (std::size_t i = 0; i < breaks.size(); ++i) {
    ValidRequest f;
    breaks[i].in(f.request);
    const std::string complaint = error_of(breaks[i].kind, [&] { validate(f.request, Verifier::chain, 31); });
    INFO("break " << i);
    CHECK_THAT(complaint, Contains("request 31"));
    for (const std::string& word : breaks[i].words) CHECK_THAT(complaint, Contains(word));
  }
}

}  // namespace

TEST_CASE("a request of every part is valid") {
  ValidRequest f;
  CHECK_NOTHROW(validate(f.request, Verifier::chain, 0));
  f.request.draft = {};
  f.request.target = f.request.target.slice(0, 1);
  f.request.unconditional = std::nullopt;
  f.request.proposal = f.request.proposal.slice(0, 0);
  f.request.allowed_masks = {};
  CHECK_NOTHROW(validate(f.request, Verifier::chain, 0));
}

TEST_CASE("shapes that do not fit are refused with the right one") {
  check_refused({{[](auto& r) { r.target.rows = 2; }, {"target", "[3, 40]"}},
                 {[](auto& r) { r.proposal.rows = 4; }, {"draft", "[2, 40]"}},
                 {[](auto& r) { r.proposal.vocab_size = 39; }, {"draft", "[2, 40]"}},
                 {[](auto& r) { r.unconditional->vocab_size = 41; }, {"unconditional", "[3, 40]"}},
                 {[](auto& r) { r.target.vocab_size = 0; }, {}},
                 {[](auto& r) { r.target.vocab_size = kVocabularyLimit + 1; }, {"524288"}},
                 {[](auto& r) { r.allowed_masks = r.allowed_masks.subspan(0, 5); }, {"= 6"}}});
}

TEST_CASE("element types that are no logits are refused by name") {
  for (const DType dtype : {DType::f64, DType::i32, DType::f8_e4m3})
    check_refused({{[&](auto& r) { r.target.dtype = dtype; }, {"target", "F32"}},
                   {[&](auto& r) { r.proposal.dtype = dtype; }, {"draft"}},
                   {[&](auto& r) { r.unconditional->dtype = dtype; }, {"unconditional"}}});
}

TEST_CASE("token ids outside the vocabulary are refused with their place") {
  for (const Token bad : {kPaddingToken, Token{40}}) {
    const std::vector<Token> ids{5, bad};
    const std::vector<LogitBias> bias{{bad, 1.0f}};
    check_refused({{[&](auto& r) { r.draft = DraftTree::chain(ids); }, {"draft_tokens[1]", "[0, 40)"}},
                   {[&](auto& r) { r.prompt_tokens = ids; }, {"prompt_tokens[1]"}},
                   {[&](auto& r) { r.output_tokens = ids; }, {"output_tokens[1]"}},
                   {[&](auto& r) { r.logprob_token_ids = ids; }, {"logprob_token_ids[1]"}},
                   {[&](auto& r) { r.constraints.stop_ids = ids; }, {"stop ids"}, ErrorKind::usage},
                   {[&](auto& r) { r.constraints.allowed_ids = ids; }, {"allowed ids"}, ErrorKind::usage},
                   {[&](auto& r) { r.constraints.logit_bias = bias; }, {"logit_bias"}, ErrorKind::usage}});
  }
}

TEST_CASE("bad parameters of the target and of the draft are refused apart") {
  const ErrorKind usage = ErrorKind::usage;
  check_refused(
      {{[](auto& r) { r.parameters.temperature = -1.0f; }, {"request 31: temperature"}, usage},
       {[](auto& r) { r.draft_parameters.filters.top_p = 0.0f; }, {"request 31, draft parameters: top_p"}, usage},
       {[](auto& r) { r.draft_parameters.presence_penalty = 1.0f; }, {"request 31, draft parameters"}, usage},
       {[](auto& r) { r.draft_parameters.guidance_scale = 2.0f; }, {"request 31, draft parameters"}, usage},
       {[](auto& r) { r.parameters.guidance_scale = 2.0f, r.unconditional = std::nullopt; }, {"unconditional"}}});
}

TEST_CASE("parameters of a target that is already probabilities are not looked at") {
  ValidRequest f;
  f.request.target_is_probabilities = true;
  f.request.parameters.temperature = -1.0f;
  CHECK_NOTHROW(validate(f.request, Verifier::chain, 0));
}

// The values of a matrix, exactly representable in the type: once dense in f32 and once with gaps in the type.
struct RowsApart {
  std::vector<float> dense, apart;
  std::vector<std::uint16_t> apart_half;
  RowMatrix dense_rows, rows;

  RowsApart(const RowMatrix& from, DType dtype) : dense_rows(from), rows(from) {
    rows.row_stride = from.vocab_size + 3;
    rows.dtype = dtype;
    apart.assign(static_cast<std::size_t>(from.rows * rows.row_stride), std::numeric_limits<float>::quiet_NaN());
    apart_half.assign(apart.size(), 0x7fff);  // NaN in both
    for (std::int64_t row = 0; row < from.rows; ++row)
      for (std::int64_t t = 0; t < from.vocab_size; ++t) {
        const auto to = static_cast<std::size_t>(row * rows.row_stride + t);
        const float x = element_of(from.row(row), t);
        apart_half[to] = dtype == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x);
        apart[to] = dtype == DType::f32   ? x
                    : dtype == DType::f16 ? f16_to_f32(apart_half[to])
                                          : bf16_to_f32(apart_half[to]);
        dense.push_back(apart[to]);
      }
    dense_rows.data = dense.data();
    rows.data = dtype == DType::f32 ? static_cast<const void*>(apart.data()) : apart_half.data();
  }
};

TEST_CASE("rows may lie apart in memory and be of any of the three float types") {
  TestRandom random(501);
  int guided = 0;
  for (int i = 0; i < 100; ++i) {
    const OwnedRequest o = random_request(random, 1 + random.below(40), 4);
    StepWorkspace workspace;
    PhiloxSource source;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      VerifyRequest expected = o.request;
      VerifyRequest apart = o.request;
      const RowsApart target(o.request.target, dtype);
      expected.target = target.dense_rows;
      apart.target = target.rows;
      const RowsApart unconditional(o.request.unconditional.value_or(o.request.target), dtype);
      if (o.request.unconditional) {
        ++guided;
        expected.unconditional = unconditional.dense_rows;
        apart.unconditional = unconditional.rows;
      }
      validate(apart, Verifier::chain, 0);
      CAPTURE(i, static_cast<int>(dtype));
      REQUIRE(same_emission(verify_step(expected, {}, source, workspace), verify_step(apart, {}, source, workspace)));
    }
  }
  CHECK(guided > 20);
}

TEST_CASE("a slice of a matrix starts at its first row") {
  const std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7};
  const RowMatrix m{DType::f32, values.data(), 4, 1, 2};
  CHECK(element_of(m.slice(1, 3).row(2), 0) == 6.0f);
  CHECK(m.slice(1, 3).rows == 3);
}
