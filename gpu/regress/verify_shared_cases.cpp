// Cases that chain and block verification share: every vocabulary, kind and element type; ragged and empty batches;
// parameters, constraints and seeds of many requests; rows at the borders of the fixed point; rows that refuse.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/regress/inputs.hpp"
#include "gpu/regress/invalid_offsets.hpp"
#include "gpu/regress/sparse_rows.hpp"
#include "gpu/regress/verify_inputs.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof::regress {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Kinds {
  std::int32_t target, proposal;
};
constexpr Kinds kKinds[] = {
    {DRAFTPROOF_PROBABILITIES, DRAFTPROOF_ONE_HOT}, {DRAFTPROOF_PROBABILITIES, DRAFTPROOF_PROBABILITIES},
    {DRAFTPROOF_PROBABILITIES, DRAFTPROOF_LOGITS},  {DRAFTPROOF_LOGITS, DRAFTPROOF_ONE_HOT},
    {DRAFTPROOF_LOGITS, DRAFTPROOF_PROBABILITIES},  {DRAFTPROOF_LOGITS, DRAFTPROOF_LOGITS}};
constexpr std::int32_t kDtypes[] = {DRAFTPROOF_F32, DRAFTPROOF_F16, DRAFTPROOF_BF16};

VerifyShape shape_of(std::vector<std::int32_t> draft_lens, std::int64_t vocab_size, Kinds kinds) {
  VerifyShape shape;
  shape.draft_lens = std::move(draft_lens);
  shape.vocab_size = vocab_size;
  shape.target_kind = kinds.target;
  shape.proposal_kind = kinds.proposal;
  if (kinds.proposal == DRAFTPROOF_ONE_HOT) shape.spread = 12.0f;
  return shape;
}

// A row of probabilities at the borders of RNE(x 2^62): odd multiples of half a unit, subnormals, and what lies
// between.
void tiny_probabilities(std::uint64_t seed, float* row, std::int64_t vocab_size) {
  const Noise noise(seed);
  for (std::int64_t i = 0; i < vocab_size; ++i) {
    const auto at = static_cast<std::uint64_t>(i);
    const auto odd = static_cast<float>(2 * noise.below(at, 1 << 10) + 1);
    constexpr float kUnits[] = {0x1p-63f, 0x1p-149f, 0x1p-62f, 0x1p-45f, 0x1p-22f};
    row[i] = odd * kUnits[noise.below(at + (1 << 20), 5)] / (i % 5 == 4 ? 1024.0f : 1.0f);
  }
}

void vocabularies(const VerifyCall& verifier, std::vector<RegressCase>& cases) {
  int turn = 0;
  for (const std::int64_t vocab_size : kSmallVocabularies) {
    for (const Kinds kinds : kKinds) {
      VerifyShape shape = shape_of({0, 1, 3, 5, 2}, vocab_size, kinds);
      shape.target_dtype = kDtypes[turn % 3];
      shape.proposal_dtype = kDtypes[turn / 3 % 3];
      shape.masked_share = turn % 4 == 3 ? 0.3 : 0.0;
      const std::vector<int> threads = turn % 6 < 2 ? std::vector<int>{128, 256, 512} : std::vector<int>{0};
      cases.push_back(verify_case(verifier, "ragged", static_cast<std::uint64_t>(turn), shape, threads));
      turn += 1;
    }
    turn += 2;
  }
  // Strides and elements that are no multiple of 16 bytes.
  for (const Kinds kinds : {kKinds[1], kKinds[5]}) {
    VerifyShape shape = shape_of({2, 4, 1}, 4099, kinds);
    shape.target_dtype = DRAFTPROOF_BF16;
    VerifyInputs in = verify_inputs(77, shape);
    for (std::vector<float>* rows : {&in.target, &in.proposal}) {
      std::int64_t& stride = rows == &in.target ? in.target_stride : in.proposal_stride;
      const auto count = static_cast<std::int64_t>(rows->size()) / stride;
      std::vector<float> moved;
      for (std::int64_t r = 0; r < count; ++r)
        moved.insert(moved.end(), rows->begin() + r * stride, rows->begin() + r * stride + 4101);
      *rows = std::move(moved);
      stride = 4101;
    }
    cases.push_back(verify_case(verifier, "unaligned", std::move(in), {128, 512}));
  }
  for (std::size_t i = 0; i < std::size(kModelVocabularies); ++i) {
    VerifyShape shape = shape_of({2, 1}, kModelVocabularies[i], i % 2 == 0 ? kKinds[1] : kKinds[5]);
    if (i % 2 == 1) shape.target_dtype = shape.proposal_dtype = DRAFTPROOF_BF16;
    cases.push_back(verify_case(verifier, "model", 90 + i, shape));
  }
}

void batches(const VerifyCall& verifier, std::vector<RegressCase>& cases) {
  cases.push_back(verify_case(verifier, "no_requests", 1, shape_of({}, 33, kKinds[1])));
  for (const Kinds kinds : kKinds)
    cases.push_back(verify_case(verifier, "no_drafts", 2, shape_of({0, 0, 0}, 4097, kinds)));
  cases.push_back(verify_case(verifier, "one_request", 3, shape_of({4}, 33, kKinds[1])));

  // More drafts than a warp has lanes, and targets so near that many are accepted.
  std::vector<std::int32_t> lens;
  for (std::int32_t b = 0; b < 24; ++b) lens.push_back(b * 7 % 41);
  for (const Kinds kinds : {kKinds[0], kKinds[1], kKinds[5]}) {
    VerifyShape shape = shape_of(lens, 33, kinds);
    shape.distance = 0.01f;
    if (kinds.proposal == DRAFTPROOF_ONE_HOT) shape.spread = 40.0f;
    VerifyInputs in = verify_inputs(4, shape);
    // Some are impossible behind the first warp's worth.
    for (std::int64_t b = 0; b < 24; ++b)
      if (lens[static_cast<std::size_t>(b)] > 35)
        in.target_at(b, 33, in.draft_at(b, 33)) = kinds.target == DRAFTPROOF_LOGITS ? -kInfinity : 0.0f;
    cases.push_back(verify_case(verifier, "long_drafts", std::move(in), {128}));
  }

  // All requests alike but for the seed, then but for the step: nothing else may tell them apart.
  for (const Kinds kinds : {kKinds[1], kKinds[3], kKinds[5]}) {
    VerifyShape shape = shape_of({3, 3, 3, 3, 3, 3, 3, 3}, 70, kinds);
    shape.distance = 0.5f;
    VerifyInputs in = verify_inputs(5, shape);
    for (std::int64_t b = 1; b < 8; ++b) {
      for (std::int64_t place = 0; place <= 3; ++place) {
        std::copy_n(&in.target_at(0, place, 0), in.target_stride, &in.target_at(b, place, 0));
        if (place == 3) continue;
        std::copy_n(&in.proposal_at(0, place, 0), in.proposal_stride, &in.proposal_at(b, place, 0));
        in.draft_at(b, place) = in.draft_at(0, place);
      }
    }
    in.step.assign(8, 0x80000001u);
    for (std::uint64_t b = 0; b < 8; ++b) in.seed[b] = b << 32 | 7;  // differ in the high word alone
    cases.push_back(verify_case(verifier, "seeds", in));
    in.seed.assign(8, 0xfedcba9876543210u);
    for (std::uint32_t b = 0; b < 8; ++b) in.step[b] = b << 28;
    in.wants_logprobs = false;
    cases.push_back(verify_case(verifier, "steps", std::move(in)));
  }
}

void parameters(const VerifyCall& verifier, std::vector<RegressCase>& cases) {
  for (const Kinds kinds : {kKinds[3], kKinds[4], kKinds[5], kKinds[2]}) {
    VerifyInputs in = verify_inputs(6, shape_of({3, 0, 2, 4, 1, 3, 5, 2}, 4200, kinds));
    in.parameters.temperature = {0.7f, 0.0f, 1.0f, 0.0f, 1.3f, 0.25f, 1.0f, 2.0f};
    for (const std::int64_t place : {0, 1, 3}) in.draft_at(3, place) = first_token(in, 3, place);
    in.draft_parameters.temperature = {1.0f, 1.0f, 0.0f, 0.5f, 0.9f, 0.0f, 1.0f, 1.5f};
    cases.push_back(verify_case(verifier, "temperatures", in, {128, 256, 512}));
    if (kinds.proposal == DRAFTPROOF_LOGITS) {
      in.gives_sums = true;
      cases.push_back(verify_case(verifier, "proposal_sums", in, {128, 512}));
      in.gives_sums = false;
    }
    in.parameters.top_k = {0, 5, 40, 1, 3, 0, 1000, 20};
    in.parameters.top_p = {0.9f, 1.0f, 0.5f, 0.3f, 0.99f, 1.0f, 0.95f, 1.0f};
    in.parameters.min_p = {0.0f, 0.1f, 0.01f, 0.0f, 0.05f, 0.2f, 0.0f, 0.001f};
    in.draft_parameters.top_k = {50, 0, 3, 0, 7, 2, 0, 9};
    in.draft_parameters.min_p = {0.0f, 0.0f, 0.1f, 0.02f, 0.0f, 0.3f, 0.005f, 0.0f};
    cases.push_back(verify_case(verifier, "filters", in));
  }
  // The history of a row goes on with the drafts before it.
  for (const Kinds kinds : {kKinds[3], kKinds[5]}) {
    VerifyInputs in = verify_inputs(7, shape_of({4, 4, 0, 3, 5}, 40, kinds));
    for (std::int64_t place = 1; place < 4; ++place) in.draft_at(0, place) = in.draft_at(0, 0);
    add_histories(8, in);
    in.parameters.temperature = {1.0f, 0.0f, 0.8f, 1.2f, 0.0f};
    in.parameters.repetition_penalty = {1.3f, 1.1f, 1.0f, 0.8f, 1.5f};
    in.parameters.frequency_penalty = {0.9f, 0.5f, 0.0f, -0.5f, 1.5f};
    in.parameters.presence_penalty = {0.0f, 0.3f, 0.2f, 1.0f, 0.0f};
    const Noise noise(9);
    for (std::uint64_t word = 0; word < in.target.size() / static_cast<std::size_t>(in.target_stride) * 2; ++word)
      in.allowed_mask.push_back(noise.word(2 * word) | noise.word(2 * word + 1));
    cases.push_back(verify_case(verifier, "constraints", std::move(in)));
  }
}

// Probabilities of drafts that are the floats next to u q, above and below in turns: a coin of fewer bits, or a
// division of floats, decides otherwise.
VerifyInputs near_coins(Kinds kinds) {
  VerifyInputs in = verify_inputs(19, shape_of(std::vector<std::int32_t>(16, 1), 33, kinds));
  for (std::int64_t b = 0; b < 16; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const RandomBlock block = philox_block(in.seed[at], 0, 0, in.step[at], static_cast<std::uint32_t>(Purpose::accept));
    const float q = kinds.proposal == DRAFTPROOF_PROBABILITIES ? 0.7f : 1.0f;
    const double border = uniform_53(high_half(block)) * static_cast<double>(q);
    auto p = static_cast<float>(border);
    const bool wants_above = b % 2 == 0;
    if (wants_above && static_cast<double>(p) <= border) p = std::nextafter(p, 1.0f);
    if (!wants_above && static_cast<double>(p) > border) p = std::nextafter(p, 0.0f);
    in.target_at(b, 0, in.draft_at(b, 0)) = p;
    if (kinds.proposal == DRAFTPROOF_PROBABILITIES) in.proposal_at(b, 0, in.draft_at(b, 0)) = q;
  }
  return in;
}

void borders(const VerifyCall& verifier, std::vector<RegressCase>& cases) {
  for (const Kinds kinds : {kKinds[0], kKinds[1]}) cases.push_back(verify_case(verifier, "coins", near_coins(kinds)));
  for (const std::int32_t dtype : kDtypes) {
    VerifyShape shape = shape_of({2, 2, 2, 2}, 4200, kKinds[1]);
    shape.target_dtype = shape.proposal_dtype = dtype;
    VerifyInputs in = verify_inputs(10, shape);
    for (std::int64_t b = 0; b < 3; ++b) {
      for (std::int64_t place = 0; place < 3; ++place) {
        const auto seed = static_cast<std::uint64_t>(20 + b * 3 + place);
        tiny_probabilities(seed, &in.target_at(b, place, 0), 4200);
        if (place < 2 && b > 0) tiny_probabilities(seed + b, &in.proposal_at(b, place, 0), 4200);
      }
    }
    // All probabilities alike, and a minus before the zeros.
    std::fill_n(&in.target_at(3, 0, 0), 4200, 0x1p-12f);
    std::fill_n(&in.proposal_at(3, 0, 0), 2100, -0.0f);
    std::fill_n(&in.proposal_at(3, 0, 0) + 2100, 2100, 0x1p-11f);
    cases.push_back(verify_case(verifier, "fixed_point", std::move(in), {128, 256, 512}));
  }
  // Target and proposal are one distribution, so that nothing is left of it: a draft that neither can give leads there.
  for (const Kinds kinds : {kKinds[1], kKinds[2], kKinds[4], kKinds[5]}) {
    VerifyShape shape = shape_of({2, 1, 3, 1}, 4100, kinds);
    shape.distance = 0.0f;
    shape.dead_token = true;
    VerifyInputs in = verify_inputs(18, shape);
    for (const std::int64_t b : {0, 1}) in.draft_at(b, 0) = 4099;
    in.draft_at(2, 1) = 4099;
    cases.push_back(verify_case(verifier, "nothing_remains", std::move(in), {128, 512}));
  }
  for (const float spread : {1e-4f, 60.0f, 60000.0f}) {
    VerifyShape shape = shape_of({1, 2, 3, 2}, 9000, kKinds[5]);
    shape.spread = spread;
    shape.distance = spread > 100.0f ? 1.0f : 0.1f;
    VerifyInputs in = verify_inputs(11, shape);
    // Two tiles of one row far below the third, and a tile without mass.
    for (std::int64_t i = 0; i < 8192; ++i) in.target_at(1, 0, i) -= 90.0f;
    for (std::int64_t i = 0; i < 4096; ++i) in.target_at(2, 1, i) = -kInfinity;
    for (std::int64_t i = 4096; i < 9000; ++i) in.proposal_at(2, 1, i) -= 100.0f;
    cases.push_back(verify_case(verifier, "spread_" + std::to_string(static_cast<int>(spread)), std::move(in)));
  }
}

// Requests that differ in every parameter, so that a row that is taken for another request's shows.
void invalid_offsets(const VerifyCall& verifier, std::vector<RegressCase>& cases) {
  for (const Kinds kinds : {kKinds[1], kKinds[3], kKinds[5]}) {
    VerifyInputs valid = verify_inputs(21, shape_of({2, 2, 0, 2, 1, 2, 2, 2, 2, 1, 2, 2}, 50, kinds));
    add_histories(22, valid);
    const auto each = [](float first, float step) {
      std::vector<float> values;
      for (int b = 0; b < 12; ++b) values.push_back(first + step * static_cast<float>(b));
      return values;
    };
    if (kinds.target == DRAFTPROOF_LOGITS) {
      valid.parameters.temperature = each(0.5f, 0.125f);
      valid.parameters.repetition_penalty = each(1.0f, 0.0625f);
    }
    if (kinds.proposal == DRAFTPROOF_LOGITS) valid.draft_parameters.temperature = each(1.5f, -0.0625f);
    for (InvalidOffsets& lie : invalid_draft_offsets(valid.cu_num_draft_tokens)) {
      VerifyInputs in = valid;
      in.cu_num_draft_tokens = std::move(lie.offsets);
      cases.push_back(verify_case(verifier, "invalid_offsets_" + lie.what, std::move(in), {128}));
    }
  }
}

void refusals(const VerifyCall& verifier, std::vector<RegressCase>& cases) {
  for (const Kinds kinds : kKinds) {
    VerifyInputs in = verify_inputs(12, shape_of({3, 3, 3, 0}, 33, kinds));
    in.draft_at(0, 0) = -1;
    in.draft_at(1, 2) = 33;
    in.draft_at(2, 1) = std::numeric_limits<Token>::min();
    cases.push_back(verify_case(verifier, "bad_ids", std::move(in)));
  }
  // A bad element of each kind, at the draft and elsewhere, in each row of a request of its own; of some it stands
  // where nobody looks.
  for (const Kinds kinds : {kKinds[0], kKinds[1]}) {
    VerifyInputs in = verify_inputs(13, shape_of(std::vector<std::int32_t>(40, 2), 4200, kinds));
    constexpr float kBad[] = {kNan, kInfinity, -0x1p-149f, 0x1.000002p0f};
    for (std::int64_t b = 0; b < 40; ++b) {
      const std::int64_t place = b / 4 % 5;  // three target rows, then two proposal rows
      const bool at_draft = b % 8 < 4 && place != 2;
      const std::int64_t token = at_draft ? in.draft_at(b, place % 3) : 4199 - b;
      (place < 3 ? in.target_at(b, place, token) : in.proposal_at(b, place - 3, token)) = kBad[b % 4];
    }
    cases.push_back(verify_case(verifier, "bad_probabilities", std::move(in), {128, 512}));
  }
  // Probabilities that are none beside logits that are none.
  for (const Kinds kinds : kKinds) {
    if (kinds.target != DRAFTPROOF_PROBABILITIES || kinds.proposal != DRAFTPROOF_LOGITS) continue;
    VerifyInputs in = verify_inputs(18, shape_of({2, 2, 2, 2}, 33, kinds));
    for (std::int64_t b = 0; b < 4; ++b) {
      in.target_at(b, b % 2, in.draft_at(b, b % 2)) = -1.0f;
      in.proposal_at(b, b / 2, 5) = kNan;
    }
    cases.push_back(verify_case(verifier, "bad_probabilities_and_logits", std::move(in)));
  }
  // Offsets that lead out of the arrays.
  for (const std::int64_t offset : {std::int64_t{1000}, std::int64_t{-5}, std::int64_t{1}}) {
    VerifyInputs in = verify_inputs(17, shape_of({2, 2, 2, 2}, 33, kKinds[1]));
    in.cu_num_draft_tokens[2] = offset;
    cases.push_back(verify_case(verifier, "bad_offsets_" + std::to_string(offset), std::move(in)));
  }
  invalid_offsets(verifier, cases);
  for (const Kinds kinds : {kKinds[0], kKinds[1]}) {
    VerifyInputs in = verify_inputs(14, shape_of({0, 0, 0, 0, 1, 1, 1, 2}, 5000, kinds));
    const auto clear = [](float* row) { std::fill_n(row, 5000, 0.0f); };
    for (std::int64_t b = 0; b < 7; ++b) clear(&in.target_at(b, 0, 0));  // request 0: all zero
    for (const std::int64_t token : {3, 4500, 4999})
      for (std::int64_t b = 1; b < 4; ++b) in.target_at(b, 0, token) = 1.0f;  // request 1: exactly 3
    in.target_at(2, 0, 0) = 0x1p-60f;                                         // above it in one tile
    in.target_at(3, 0, 4600) = 0x1p-62f;                                      // by the least that counts
    std::fill_n(&in.target_at(4, 0, 0), 5000, 1.0f);                          // overflows everything
    in.target_at(4, 0, in.draft_at(4, 0)) = 0.0f;
    clear(&in.proposal_at(3, 0, 0));  // both zero
    in.proposal_at(6, 0, in.draft_at(6, 0)) = 1.0f;
    clear(&in.target_at(7, 1, 0));
    cases.push_back(verify_case(verifier, "sums", std::move(in), {128, 512}));
  }
  for (const Kinds kinds : {kKinds[3], kKinds[5], kKinds[2]}) {
    VerifyInputs in = verify_inputs(15, shape_of({2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 4500, kinds));
    in.parameters.temperature = {1.0f, 1.0f, 0.0f, 1.0f, 0.0f, 1.0f, 1.0f, -1.0f, 1.0f, 1.0f};
    in.draft_parameters.temperature = {1.0f, 1.0f, 1.0f, 0.0f, 1.0f, 1.0f, 1.0f, 1.0f, kNan, 1.0f};
    if (kinds.target == DRAFTPROOF_LOGITS) {
      in.target_at(0, 0, 4400) = kNan;
      in.target_at(1, 1, 17) = kInfinity;
      std::fill_n(&in.target_at(2, 0, 0), 4500, -kInfinity);
      in.target_at(5, 2, 4096) = 0x1.8p29f;
      in.target_at(6, 1, 0) = kNan;
    }
    if (kinds.proposal == DRAFTPROOF_LOGITS) {
      in.proposal_at(3, 0, 5) = kNan;  // argmax drafts and greedy targets do not look
      in.proposal_at(4, 0, 6) = kNan;
      if (kinds.target == DRAFTPROOF_LOGITS) in.draft_at(4, 0) = first_token(in, 4, 0);
      in.proposal_at(9, 0, 7) = kInfinity;
      in.proposal_at(6, 1, 8) = kInfinity;
    }
    cases.push_back(verify_case(verifier, "bad_logits", in));
    in.gives_sums = true;
    if (kinds.proposal == DRAFTPROOF_LOGITS)
      cases.push_back(verify_case(verifier, "bad_logits_proposal_sums", std::move(in)));
  }
}

void far_rows(const VerifyCall& verifier, std::vector<RegressCase>& cases) {
  for (const Kinds kinds : {kKinds[1], kKinds[5]}) {
    VerifyInputs in = verify_inputs(16, shape_of({2, 1}, 5000, kinds));
    RegressCase one = verify_case(verifier, "beyond_2_32_elements", in);
    one.run = [verifier, in](CaseRun& run) {
      SparseRows target(5);
      SparseRows proposal(3);
      draftproof_verify_arguments a = arguments_of(run, in);
      a.target = target.filled(in.target.data(), 5, in.target_stride, 5000);
      a.proposal = proposal.filled(in.proposal.data(), 3, in.proposal_stride, 5000);
      run_verifier(verifier, run, a, true);
    };
    one.host_only = true;
    cases.push_back(std::move(one));
  }
}

}  // namespace

std::vector<RegressCase> shared_verify_cases(const VerifyCall& verifier) {
  std::vector<RegressCase> cases;
  vocabularies(verifier, cases);
  batches(verifier, cases);
  parameters(verifier, cases);
  borders(verifier, cases);
  refusals(verifier, cases);
  far_rows(verifier, cases);
  return cases;
}

}  // namespace draftproof::regress
