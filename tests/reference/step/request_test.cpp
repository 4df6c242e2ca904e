#include "reference/step/request.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <vector>

#include "base/dtype.hpp"
#include "reference/step/verify_step.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_request.hpp"

using namespace draftproof;
using Catch::Contains;

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

std::string complaint(ErrorKind kind, const std::function<void(VerifyRequest&)>& break_it) {
  ValidRequest f;
  break_it(f.request);
  return error_of(kind, [&] { validate(f.request, Verifier::chain, 31); });
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
  CHECK_THAT(complaint(ErrorKind::input, [](VerifyRequest& r) { r.target.rows = 2; }),
             Contains("request 31") && Contains("target") && Contains("[3, 40]"));
  CHECK_THAT(complaint(ErrorKind::input, [](VerifyRequest& r) { r.proposal.rows = 4; }),
             Contains("request 31") && Contains("draft") && Contains("[2, 40]"));
  CHECK_THAT(complaint(ErrorKind::input, [](VerifyRequest& r) { r.proposal.vocab_size = 39; }),
             Contains("request 31") && Contains("draft") && Contains("[2, 40]"));
  CHECK_THAT(complaint(ErrorKind::input, [](VerifyRequest& r) { r.unconditional->vocab_size = 41; }),
             Contains("request 31") && Contains("unconditional") && Contains("[3, 40]"));
  CHECK_THAT(complaint(ErrorKind::input, [](VerifyRequest& r) { r.target.vocab_size = 0; }), Contains("request 31"));
  CHECK_THAT(complaint(ErrorKind::input, [](VerifyRequest& r) { r.target.vocab_size = kVocabularyLimit + 1; }),
             Contains("request 31") && Contains("524288"));
  CHECK_THAT(complaint(ErrorKind::input, [](VerifyRequest& r) { r.allowed_masks = r.allowed_masks.subspan(0, 5); }),
             Contains("request 31") && Contains("= 6"));
}

TEST_CASE("element types that are no logits are refused by name") {
  for (const DType dtype : {DType::f64, DType::i32, DType::f8_e4m3}) {
    CHECK_THAT(complaint(ErrorKind::input, [&](VerifyRequest& r) { r.target.dtype = dtype; }),
               Contains("request 31") && Contains("target") && Contains("F32"));
    CHECK_THAT(complaint(ErrorKind::input, [&](VerifyRequest& r) { r.proposal.dtype = dtype; }),
               Contains("request 31") && Contains("draft"));
    CHECK_THAT(complaint(ErrorKind::input, [&](VerifyRequest& r) { r.unconditional->dtype = dtype; }),
               Contains("request 31") && Contains("unconditional"));
  }
}

TEST_CASE("token ids outside the vocabulary are refused with their place") {
  for (const Token bad : {kPaddingToken, Token{40}}) {
    const std::vector<Token> ids{5, bad};
    CHECK_THAT(complaint(ErrorKind::input, [&](VerifyRequest& r) { r.draft = DraftTree::chain(ids); }),
               Contains("request 31") && Contains("draft_tokens[1]") && Contains("[0, 40)"));
    CHECK_THAT(complaint(ErrorKind::input, [&](VerifyRequest& r) { r.prompt_tokens = ids; }),
               Contains("request 31") && Contains("prompt_tokens[1]"));
    CHECK_THAT(complaint(ErrorKind::input, [&](VerifyRequest& r) { r.output_tokens = ids; }),
               Contains("request 31") && Contains("output_tokens[1]"));
    CHECK_THAT(complaint(ErrorKind::usage, [&](VerifyRequest& r) { r.constraints.stop_ids = ids; }),
               Contains("request 31") && Contains("stop ids"));
    CHECK_THAT(complaint(ErrorKind::usage, [&](VerifyRequest& r) { r.constraints.allowed_ids = ids; }),
               Contains("request 31") && Contains("allowed ids"));
    const std::vector<LogitBias> bias{{bad, 1.0f}};
    CHECK_THAT(complaint(ErrorKind::usage, [&](VerifyRequest& r) { r.constraints.logit_bias = bias; }),
               Contains("request 31") && Contains("logit_bias"));
  }
}

TEST_CASE("bad parameters of the target and of the draft are refused apart") {
  CHECK_THAT(complaint(ErrorKind::usage, [](VerifyRequest& r) { r.parameters.temperature = -1.0f; }),
             Contains("request 31: temperature"));
  CHECK_THAT(complaint(ErrorKind::usage, [](VerifyRequest& r) { r.draft_parameters.filters.top_p = 0.0f; }),
             Contains("request 31, draft parameters: top_p"));
  CHECK_THAT(complaint(ErrorKind::usage, [](VerifyRequest& r) { r.draft_parameters.presence_penalty = 1.0f; }),
             Contains("request 31, draft parameters"));
  CHECK_THAT(complaint(ErrorKind::usage, [](VerifyRequest& r) { r.draft_parameters.guidance_scale = 2.0f; }),
             Contains("request 31, draft parameters"));
  CHECK_THAT(complaint(ErrorKind::input,
                       [](VerifyRequest& r) {
                         r.parameters.guidance_scale = 2.0f;
                         r.unconditional = std::nullopt;
                       }),
             Contains("request 31") && Contains("unconditional"));
}

TEST_CASE("parameters of a target that is already probabilities are not looked at") {
  ValidRequest f;
  f.request.target_is_probabilities = true;
  f.request.parameters.temperature = -1.0f;
  CHECK_NOTHROW(validate(f.request, Verifier::chain, 0));
}

TEST_CASE("rows may lie apart in memory and be of any of the three float types") {
  TestRandom random(501);
  for (int i = 0; i < 100; ++i) {
    const OwnedRequest o = random_request(random, 1 + random.below(40), 4);
    StepWorkspace workspace;
    PhiloxSource source;
    const std::int64_t vocab_size = o.request.target.vocab_size;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      // The same values, exactly representable in the type, once dense in f32 and once with gaps in the type.
      const std::int64_t stride = vocab_size + 3;
      std::vector<float> dense(o.target.size());
      std::vector<float> apart(static_cast<std::size_t>(o.request.target.rows * stride),
                               std::numeric_limits<float>::quiet_NaN());
      std::vector<std::uint16_t> apart_half(apart.size(), 0x7fff);  // NaN in both
      for (std::int64_t row = 0; row < o.request.target.rows; ++row) {
        for (std::int64_t t = 0; t < vocab_size; ++t) {
          const auto from = static_cast<std::size_t>(row * vocab_size + t);
          const auto to = static_cast<std::size_t>(row * stride + t);
          const float x = o.target[from];
          apart_half[to] = dtype == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x);
          if (dtype == DType::f32) dense[from] = x;
          if (dtype == DType::f16) dense[from] = f16_to_f32(apart_half[to]);
          if (dtype == DType::bf16) dense[from] = bf16_to_f32(apart_half[to]);
          apart[to] = dense[from];
        }
      }
      VerifyRequest expected = o.request;
      expected.target.data = dense.data();
      VerifyRequest strided = o.request;
      strided.target.row_stride = stride;
      strided.target.dtype = dtype;
      strided.target.data = dtype == DType::f32 ? static_cast<const void*>(apart.data()) : apart_half.data();
      validate(strided, Verifier::chain, 0);
      CAPTURE(i, static_cast<int>(dtype));
      REQUIRE(same_emission(verify_step(expected, {}, source, workspace), verify_step(strided, {}, source, workspace)));
    }
  }
}

TEST_CASE("a slice of a matrix starts at its first row") {
  const std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7};
  const RowMatrix m{DType::f32, values.data(), 4, 1, 2};
  CHECK(element_of(m.slice(1, 3).row(2), 0) == 6.0f);
  CHECK(m.slice(1, 3).rows == 3);
}
