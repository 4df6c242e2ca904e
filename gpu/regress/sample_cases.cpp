// Cases of the pipeline and a draw.
#include <cmath>
#include <limits>

#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/distribution_inputs.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int32_t kDtypes[] = {DRAFTPROOF_F32, DRAFTPROOF_F16, DRAFTPROOF_BF16};

struct Inputs {
  DistributionInputs distribution;
  std::int32_t sampler = DRAFTPROOF_INVERSE;
  bool wants_probabilities = true;
  std::uint64_t first_seed = 0x9e3779b97f4a7c15u;  // request r has r + 1 times this
};

void run(CaseRun& run, const Inputs& in) {
  const DistributionInputs& distribution = in.distribution;
  std::vector<std::uint64_t> seed;
  std::vector<std::uint32_t> step;
  for (std::int64_t r = 0; r < distribution.requests; ++r) {
    seed.push_back(in.first_seed * static_cast<std::uint64_t>(r + 1));
    step.push_back(static_cast<std::uint32_t>(3 * r + 1));
  }
  std::vector<std::uint32_t> row_in_step;
  for (std::int64_t row = 0; row < distribution.rows; ++row) row_in_step.push_back(static_cast<std::uint32_t>(row % 5));
  draftproof_sample_arguments a{};
  distribution.put_into(run, a);
  a.randomness = {run.input(seed), run.input(step)};
  a.row_in_step = run.input(row_in_step);
  a.sampler = in.sampler;
  a.purpose = in.sampler == DRAFTPROOF_RACE ? DRAFTPROOF_DRAFT_SAMPLE : DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = run.output<std::int32_t>("tokens", distribution.rows);
  a.logprobs = run.output<float>("logprobs", distribution.rows);
  a.kept_mass = run.output<float>("kept_mass", distribution.rows);
  if (in.wants_probabilities) {
    a.kept_count = run.output<std::int64_t>("kept_count", distribution.rows);
    a.probabilities_stride = distribution.row_stride;
    const std::vector<float> untouched(static_cast<std::size_t>(distribution.rows * distribution.row_stride), -1.0f);
    a.probabilities = run.in_out("probabilities", untouched);
  }
  a.status = run.output<std::int32_t>("status", distribution.rows);
  run.call(a, device::sample_workspace_bytes, device::sample);
}

RegressCase make(const std::string& what, Inputs in, std::vector<int> block_threads = {0}) {
  const std::string name = "sample/" + what + (in.sampler == DRAFTPROOF_RACE ? "/race/" : "/") +
                           dtype_text(in.distribution.dtype) + "/V" + std::to_string(in.distribution.vocab_size) +
                           "/B" + std::to_string(in.distribution.rows);
  return {name, [in = std::move(in)](CaseRun& r) { run(r, in); }, std::move(block_threads)};
}
RegressCase make(const std::string& what, DistributionInputs distribution, std::vector<int> block_threads = {0}) {
  return make(what, Inputs{std::move(distribution)}, std::move(block_threads));
}

// A row for each of the filters' ways to end: every combination of top_k, top_p, min_p, order and ties.
DistributionInputs every_filter(DistributionInputs distribution, const std::vector<std::int32_t>& top_k,
                                const std::vector<float>& top_p, const std::vector<float>& min_p) {
  const std::vector<float> one_row(distribution.logits.begin(), distribution.logits.begin() + distribution.row_stride);
  distribution.logits.clear();
  distribution.rows = 0;
  for (const std::int32_t k : top_k) {
    for (const float p : top_p) {
      for (const float least : min_p) {
        for (std::uint8_t variant = 0; variant < 4; ++variant) {
          distribution.top_k.push_back(k);
          distribution.top_p.push_back(p);
          distribution.min_p.push_back(least);
          distribution.filter_order.push_back(variant % 2);
          distribution.ties.push_back(variant / 2);
          distribution.logits.insert(distribution.logits.end(), one_row.begin(), one_row.end());
          ++distribution.rows;
        }
      }
    }
  }
  distribution.requests = distribution.rows;
  return distribution;
}

// Values from a few: many ties, at the boundary of every filter.
DistributionInputs tied(DistributionInputs distribution, float step) {
  for (float& x : distribution.logits) x = std::isfinite(x) && x < 1e29f ? std::floor(x / step) * step : x;
  return distribution;
}

void add_plain(std::vector<RegressCase>& cases) {
  for (const std::int64_t vocab_size : kSmallVocabularies)
    for (const std::int32_t dtype : kDtypes)
      cases.push_back(make("plain", normal_rows(4, vocab_size, dtype, 4.0f, padded(vocab_size)), {128, 256, 512}));
  for (const std::int64_t vocab_size : {std::int64_t{7}, std::int64_t{4097}, std::int64_t{32000}}) {
    DistributionInputs distribution = normal_rows(5, vocab_size, DRAFTPROOF_BF16, 4.0f, padded(vocab_size));
    distribution.temperature = {0.3f, 0.0f, 1.0f, 2.5f, 0.9f};
    cases.push_back(make("tempered", distribution, {128, 512}));
    cases.push_back(make("tempered", Inputs{distribution, DRAFTPROOF_RACE, true}, {128, 512}));
  }
  // Noise that a float beside such a logit would lose.
  DistributionInputs high = normal_rows(6, 4097, DRAFTPROOF_F32, 1.0f, 4097);
  for (float& x : high.logits) x += 0x1p24f;
  cases.push_back(make("high", Inputs{high, DRAFTPROOF_RACE, true}));
  cases.push_back(make("high", high));
  // Padding holds NaN, +infinity and 1e30; the row begins at no multiple of 16 bytes.
  cases.push_back(make("unaligned_stride", normal_rows(3, 4097, DRAFTPROOF_F16, 4.0f, 4099)));
  cases.push_back(make("no_rows", normal_rows(0, 4097, DRAFTPROOF_F32, 4.0f, 4097)));
  cases.push_back(
      make("plain", Inputs{normal_rows(1, 151936, DRAFTPROOF_BF16, 3.0f, 151936), DRAFTPROOF_INVERSE, false}));
  cases.push_back(make("plain", Inputs{normal_rows(1, 128256, DRAFTPROOF_BF16, 3.0f, 128256), DRAFTPROOF_RACE, false}));
}

// Equal tokens, none of which has noise above log 128 - 2.5, as in one row of 2 * 10^5: a race that takes for granted
// what the row's sum makes likely has no winner. The next row is like it with other noise.
void add_low_winner(std::vector<RegressCase>& cases) {
  Inputs in{normal_rows(2, 128, DRAFTPROOF_F32, 1.0f, 128), DRAFTPROOF_RACE, true};
  std::fill(in.distribution.logits.begin(), in.distribution.logits.end(), 0.5f);
  in.first_seed = 105788;  // the first whose 128 words are all above 412,000,000
  cases.push_back(make("low_winner", in));
}

// Readings of top-p at its boundary, among ties, beside other filters, and of rows of which little has mass.
void add_top_p_rules(std::vector<RegressCase>& cases) {
  const float almost_one = 1.0f - 0x1p-24f;
  DistributionInputs equal = normal_rows(1, 4, DRAFTPROOF_F32, 1.0f, 4);
  std::fill_n(equal.logits.begin(), 4, 0.5f);
  DistributionInputs all_equal = normal_rows(1, 9000, DRAFTPROOF_F16, 1.0f, 9000);
  std::fill_n(all_equal.logits.begin(), 9000, 0.25f);
  DistributionInputs unlike_tiles = normal_rows(1, 8200, DRAFTPROOF_F32, 4.0f, 8200);
  for (std::int64_t i = 0; i < 4096; ++i) unlike_tiles.logit(0, i) -= 25.0f;
  DistributionInputs masked = normal_rows(1, 4097, DRAFTPROOF_BF16, 4.0f, 4097);
  mask_some(5, masked.logits, 1, 4097, 4097, 0.98);
  DistributionInputs rows[] = {
      every_filter(equal, {0, 2, 3}, {0.25f, 0.5f, 0.625f, 1e-9f}, {0.0f, 1.0f}),
      every_filter(all_equal, {0, 1, 4097}, {almost_one, 0.5f}, {0.0f}),
      every_filter(tied(normal_rows(1, 9000, DRAFTPROOF_BF16, 2.0f, 9024), 1.0f), {0, 700}, {0.95f, 0.3f}, {0.0f}),
      every_filter(normal_rows(1, 4097, DRAFTPROOF_F32, 4.0f, 4097), {0, 50}, {0.9f, almost_one, 1.0f}, {0.0f, 0.02f}),
      every_filter(unlike_tiles, {0, 30}, {almost_one}, {0.0f, 1e-9f}),
      every_filter(normal_rows(1, 8200, DRAFTPROOF_F32, 90000.0f, 8200), {0, 2}, {0.999f}, {0.0f}),
      every_filter(masked, {0, 20}, {0.9f, 0.2f}, {0.1f})};
  const char* const names[] = {"equal", "all_equal", "ties", "every_filter", "unlike_tiles", "huge_spread", "masked"};
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    DistributionInputs& in = rows[i];
    for (std::uint8_t rule = 1; rule < 4; ++rule) {
      in.top_p_rule.assign(static_cast<std::size_t>(in.rows), rule);
      cases.push_back(make("top_p_rule_" + std::to_string(rule) + "_" + names[i], in));
    }
  }
  DistributionInputs bad = normal_rows(4, 100, DRAFTPROOF_F32, 4.0f, 100);
  bad.top_p_rule = {3, 4, 0, 255};
  cases.push_back(make("top_p_rule_bad", bad));
}

void add_filters(std::vector<RegressCase>& cases) {
  // Two tokens of mass 2^44 and a hundred of mass 1: half of the sum lies 50 above the first, which S - V says is
  // enough.
  DistributionInputs limit = normal_rows(2, 102, DRAFTPROOF_F32, 1.0f, 102);
  std::fill(limit.logits.begin(), limit.logits.end(), -30.498f);  // 2^-44
  for (const std::int64_t row : {0, 1}) limit.logit(row, 7) = limit.logit(row, 90) = 0.0f;
  limit.top_p = {0.5f, 0.4999f};
  cases.push_back(make("top_p_at_the_limit", limit));
  const float almost_one = 1.0f - 0x1p-24f;
  for (const std::int64_t vocab_size : {std::int64_t{1}, std::int64_t{33}, std::int64_t{4097}, std::int64_t{9000}})
    cases.push_back(make("every_filter",
                         every_filter(normal_rows(1, vocab_size, DRAFTPROOF_F32, 4.0f, vocab_size), {0, 1, 50, 8999},
                                      {1.0f, 0.9f, 1e-9f}, {0.0f, 0.02f}),
                         vocab_size == 4097 ? std::vector<int>{128, 512} : std::vector<int>{0}));
  cases.push_back(make("every_filter_ties",
                       every_filter(tied(normal_rows(1, 9000, DRAFTPROOF_BF16, 2.0f, 9024), 1.0f), {0, 3, 700, 6000},
                                    {1.0f, 0.95f}, {0.0f, 0.05f}),
                       {0, 128}));
  // All logits in one bucket; top-p ends close to the last token, and between ids.
  cases.push_back(make("flat", every_filter(normal_rows(1, 9000, DRAFTPROOF_F32, 1e-3f, 9000), {0, 4500, 8999},
                                            {1.0f, almost_one, 0.5f, 1e-3f}, {0.0f})));
  DistributionInputs equal = normal_rows(1, 9000, DRAFTPROOF_F16, 1.0f, 9000);
  std::fill_n(equal.logits.begin(), 9000, 0.25f);
  cases.push_back(make("all_equal", every_filter(equal, {0, 1, 4097}, {1.0f, almost_one, 0.5f}, {0.0f, 1.0f})));
  // More ties at the end of top-k than a search lists, ties kept: top-p is a share of all of them.
  for (std::int64_t i = 0; i < 9000; ++i) equal.logit(0, i) = 1.0f - static_cast<float>(i % 3);
  cases.push_back(make("many_ties", every_filter(equal, {3001, 5999}, {1.0f, 0.75f}, {0.0f})));
  // A few tokens hold everything, the others lie far beyond the last bucket: only a count can end there.
  DistributionInputs peaked = normal_rows(1, 9000, DRAFTPROOF_F32, 8.0f, 9000);
  for (std::int64_t i = 0; i < 9000; ++i) peaked.logit(0, i) -= i % 4000 == 17 ? 0.0f : 90.0f;
  cases.push_back(make("peaked", every_filter(peaked, {0, 2, 3, 4, 5000}, {1.0f, almost_one, 0.7f}, {0.0f, 1e-30f})));
  cases.push_back(make("huge_spread", every_filter(normal_rows(1, 8200, DRAFTPROOF_F32, 90000.0f, 8200),
                                                   {0, 1, 2, 7000}, {1.0f, 0.999f}, {0.0f, 1e-6f})));
  // Beyond the range of the float exponential, and in tiles of very different exponents.
  DistributionInputs far = normal_rows(1, 8200, DRAFTPROOF_F32, 4.0f, 8200);
  for (std::int64_t i = 0; i < 4096; ++i) far.logit(0, i) -= 25.0f;
  cases.push_back(make("unlike_tiles", every_filter(far, {0, 30, 6000}, {1.0f, 0.97f, almost_one}, {0.0f, 1e-9f})));
  for (float& x : far.logits) x += 70000.0f;
  cases.push_back(make("beyond_65536", every_filter(far, {0, 30}, {1.0f, 0.97f}, {0.0f, 0.01f})));
  DistributionInputs masked = normal_rows(1, 4097, DRAFTPROOF_BF16, 4.0f, 4097);
  mask_some(5, masked.logits, 1, 4097, 4097, 0.98);
  cases.push_back(make("masked", every_filter(masked, {0, 20, 100, 4000}, {1.0f, 0.9f}, {0.0f, 0.1f})));
  DistributionInputs cold =
      every_filter(normal_rows(1, 32000, DRAFTPROOF_BF16, 4.0f, 32000), {50}, {1.0f, 0.95f}, {0.0f});
  cold.temperature.assign(static_cast<std::size_t>(cold.rows), 0.05f);
  cases.push_back(make("cold", Inputs{cold, DRAFTPROOF_INVERSE, false}));
  cases.push_back(make("cold", Inputs{cold, DRAFTPROOF_RACE, false}));
}

// Each filter alone: a kernel that takes no other can be asked too. Rows are peaked, broad, flat, and flat but for one
// token far below, in turns: a search of too few rounds for a threshold ends beside it.
void add_filters_alone(std::vector<RegressCase>& cases) {
  constexpr float kSpreads[] = {4.0f, 1.0f, 1e-2f, 1e-2f};
  const auto alone = [&](const std::string& filter, std::int64_t vocab_size, auto array, const auto& values) {
    const auto rows = static_cast<std::int64_t>(4 * std::size(values));
    DistributionInputs in = normal_rows(rows, vocab_size, DRAFTPROOF_F32, 1.0f, padded(vocab_size));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < vocab_size; ++i) in.logit(row, i) *= kSpreads[row % 4];
      if (row % 4 == 3) in.logit(row, row % vocab_size) = -20000.0f;
      (in.*array).push_back(values[static_cast<std::size_t>(row / 4)]);
    }
    cases.push_back(make(filter + "_alone", in));
  };
  using In = DistributionInputs;
  for (const std::int64_t vocab_size :
       {std::int64_t{33}, std::int64_t{1000}, std::int64_t{4097}, std::int64_t{32000}}) {
    const auto most = static_cast<std::int32_t>(vocab_size);
    alone("top_k", vocab_size, &In::top_k, std::vector<std::int32_t>{1, 5, most / 3, most - 1});
    alone("top_p", vocab_size, &In::top_p, std::vector<float>{0.1f, 0.5f, 0.9f, 0.99f});
    alone("min_p", vocab_size, &In::min_p, std::vector<float>{0.02f, 0.5f, 0.999f, 1.0f});
  }
}

void add_edits(std::vector<RegressCase>& cases) {
  std::uint64_t seed = 1;
  for (const std::int64_t vocab_size : {std::int64_t{7}, std::int64_t{33}, std::int64_t{4096}, std::int64_t{9001}})
    for (const std::int32_t dtype : kDtypes)
      cases.push_back(make("everything", everything(++seed, 11, 8, vocab_size, dtype),
                           vocab_size == 4096 ? std::vector<int>{128, 512} : std::vector<int>{0}));
  DistributionInputs distribution = everything(++seed, 12, 12, 4097, DRAFTPROOF_F32);
  cases.push_back(make("everything", Inputs{distribution, DRAFTPROOF_RACE, true}, {128, 256}));
  // Each edit alone: an edit that runs without its own arrays shows here.
  using In = DistributionInputs;
  const auto alone = [&](const char* what, auto... arrays) {
    const In all = everything(40, 9, 9, 4100, DRAFTPROOF_BF16);
    In one = normal_rows(9, 4100, DRAFTPROOF_BF16, 3.0f, all.row_stride);
    ((one.*arrays = all.*arrays), ...);
    cases.push_back(make(what, one));
  };
  const auto with_history = [&](const char* what, auto... arrays) {
    alone(what, &In::history_tokens, &In::history_offsets, &In::prompt_len, &In::history_len_max, arrays...);
  };
  alone("guidance_alone", &In::unconditional, &In::guidance_scale);
  alone("bitmask_alone", &In::allowed_mask, &In::allowed_mask_stride);
  alone("allowed_ids_alone", &In::allowed_ids, &In::allowed_offsets);
  alone("bias_alone", &In::bias_tokens, &In::bias_values, &In::bias_offsets);
  with_history("penalties_alone", &In::repetition_penalty, &In::frequency_penalty, &In::presence_penalty);
  with_history("bad_words_alone", &In::bad_word_tokens, &In::bad_word_offsets, &In::bad_word_sequences);
  with_history("min_tokens_alone", &In::min_tokens, &In::stop_ids, &In::stop_offsets);
}

// Everything that a row can be refused for, a row each, between rows that are valid.
void add_refusals(std::vector<RegressCase>& cases) {
  DistributionInputs bad = normal_rows(11, 4200, DRAFTPROOF_F32, 4.0f, 4200);
  bad.logit(0, 4199) = kNan;
  bad.logit(1, 17) = kInfinity;
  bad.logit(2, 4100) = 0x1.8p29f;
  std::fill_n(bad.logits.begin() + 3 * 4200, 4200, -kInfinity);
  std::fill_n(bad.logits.begin() + 4 * 4200, 4200, -0x1.8p29f);
  bad.logit(5, 3) = kNan;
  bad.logit(5, 4000) = kInfinity;
  std::fill_n(bad.logits.begin() + 7 * 4200, 4200, kNan);
  cases.push_back(make("bad_rows", bad, {128, 512}));
  cases.push_back(make("bad_rows", Inputs{bad, DRAFTPROOF_RACE, true}));
  bad.top_k.assign(11, 7);
  cases.push_back(make("bad_rows_filtered", bad));
  bad.nan_policy = {1, 0, 1, 1, 1, 1, 0, 1, 0, 2, 1};
  bad.temperature = {1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.5f, 0x1p-120f, 1.0f, 1.0f, 1.0f, 0x1p-22f};
  cases.push_back(make("bad_rows_nan_policy", bad, {128, 512}));

  // NaN and infinity are refused even where they are masked; a logit that is only too large is not.
  DistributionInputs hidden = normal_rows(4, 100, DRAFTPROOF_F32, 4.0f, 100);
  hidden.logit(0, 33) = kNan;
  hidden.logit(1, 33) = kInfinity;
  hidden.logit(2, 33) = 0x1p30f;
  hidden.allowed_mask_stride = 4;
  for (int word = 0; word < 16; ++word) hidden.allowed_mask.push_back(word % 4 == 1 ? 0xfffffffdu : 0xffffffffu);
  cases.push_back(make("bad_and_masked", hidden));

  DistributionInputs bad_parameters = normal_rows(15, 100, DRAFTPROOF_BF16, 4.0f, 100);
  bad_parameters.temperature = {1.0f, -1.0f, kNan, kInfinity, 1.0f, 1.0f, 1.0f, 1.0f,
                                0.0f, 1.0f,  1.0f, 1.0f,      1.0f, 1.0f, 1.0f};
  bad_parameters.top_k = {0, 0, 0, 0, -1, 0, 0, 0, -5, 0, 0, 0, 0, 5, 0};
  bad_parameters.top_p = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 0.0f, 1.5f, kNan, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 0.5f, 1.0f};
  bad_parameters.min_p = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, -0.1f, 1.1f, kNan, 0.0f, 0.1f, 0.0f};
  bad_parameters.filter_order = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0};
  bad_parameters.ties = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2};
  cases.push_back(make("bad_parameters", bad_parameters));
  DistributionInputs penalties = normal_rows(8, 100, DRAFTPROOF_F32, 4.0f, 100);
  penalties.repetition_penalty = {0.0f, -1.0f, kInfinity, 1.2f, 1.2f, 1.2f, 1e-38f, 1.0f};
  penalties.frequency_penalty = {0.0f, 0.0f, 0.0f, kNan, 0.0f, 3e38f, 0.0f, -3e38f};
  penalties.presence_penalty = {0.0f, 0.0f, 0.0f, 0.0f, -kInfinity, 3e38f, 0.0f, 0.0f};
  penalties.history_tokens = {1, 2, 3, 4, 5, 6, 7, 7, 7, 8, 9, 9};
  penalties.history_offsets = {0, 1, 2, 3, 4, 5, 9, 10, 12};
  penalties.prompt_len = {0, 0, 0, 0, 0, 1, 0, 0};
  penalties.history_len_max = 4;
  penalties.logit(7, 9) = -kInfinity;  // masked, and stays so under a penalty that overflows
  cases.push_back(make("bad_penalties", penalties));

  DistributionInputs ids = everything(50, 8, 8, 300, DRAFTPROOF_F32);
  ids.history_tokens[1] = 300;  // request 0
  ids.bias_tokens[0] = -1;      // the first request that has some
  ids.stop_ids[static_cast<std::size_t>(ids.stop_offsets[2])] = 1 << 30;
  ids.allowed_ids[0] = -7;
  ids.bad_word_tokens.back() = 301;
  ids.row_draft_tokens[static_cast<std::size_t>(ids.row_draft_begin[5])] = 300;  // of a request that is valid
  cases.push_back(make("bad_ids", ids, {128, 512}));
  DistributionInputs shapes = everything(51, 8, 8, 300, DRAFTPROOF_F32);
  shapes.prompt_len[0] = -1;
  shapes.prompt_len[1] += 1000;
  shapes.min_tokens[2] = -1;
  shapes.history_len_max = 40;
  shapes.bias_values.back() = kInfinity;
  cases.push_back(make("bad_histories", shapes));

  // A prompt said to be longer than the history concerns nobody while min_tokens is 0.
  DistributionInputs unread = everything(52, 8, 8, 300, DRAFTPROOF_F32);
  unread.repetition_penalty.assign(8, 1.0f);
  unread.frequency_penalty.assign(8, 0.0f);
  unread.presence_penalty.assign(8, 0.0f);
  unread.bad_word_sequences.assign(9, 0);
  unread.min_tokens = {0, 0, 1, 0, 0, 0, 0, 0};
  for (std::int64_t& length : unread.prompt_len) length += 1000;
  cases.push_back(make("unread_prompt_lengths", unread));
  // A NaN in either half of a word of 16 bits, in the first tile and in the next.
  for (const std::int32_t dtype : {DRAFTPROOF_F16, DRAFTPROOF_BF16}) {
    DistributionInputs halves = normal_rows(5, 8192, dtype, 4.0f, 8192);
    for (std::int64_t row = 0; row < 4; ++row) halves.logit(row, row % 2 + row / 2 * 4096) = kNan;
    cases.push_back(make("nan_in_halves", halves));
    cases.push_back(make("nan_in_halves", Inputs{halves, DRAFTPROOF_RACE, false}));
    halves.top_k.assign(5, 7);
    cases.push_back(make("nan_in_halves_filtered", halves));
  }

  // Overflow: bias beyond f32, guidance beyond f32, temperatures that carry a finite logit to infinity.
  DistributionInputs over = normal_rows(5, 70, DRAFTPROOF_F32, 4.0f, 70);
  for (std::int64_t row = 0; row < 5; ++row) over.logit(row, 6) = row == 4 ? -3e38f : 3e38f;
  over.temperature = {1.0f, 0.0f, 0.0f, 0.5f, 1.0f};
  over.bias_tokens = {6, 6, 6, 6};
  over.bias_values = {3e38f, 3e38f, -3e38f, -3e38f};
  over.bias_offsets = {0, 1, 2, 3, 3, 4};
  cases.push_back(make("overflow", over));
  DistributionInputs guided = normal_rows(9, 300, DRAFTPROOF_F32, 4.0f, 300);
  guided.unconditional = normal_logits(9, 9, 300, 300, 4.0f);
  guided.guidance_scale = {2.0f, 2.0f, 2.0f, 2.0f, 3e38f, 1.0f, kNan, 2.0f, 1.0f};
  guided.unconditional[7] = -kInfinity;       // masked by the unconditional row alone
  guided.unconditional[300 + 7] = kInfinity;  // no logit
  guided.logit(2, 7) = -kInfinity;            // masked: valid
  guided.logit(3, 7) = kNan;
  guided.unconditional[5 * 300 + 7] = kNan;  // not looked at
  guided.logit(7, 9) = kNan;
  guided.unconditional[7 * 300 + 10] = kInfinity;  // the higher status is reported
  cases.push_back(make("bad_guidance", guided));
  guided.unconditional.clear();
  cases.push_back(make("no_unconditional", guided));
}

}  // namespace

std::vector<RegressCase> sample_cases() {
  std::vector<RegressCase> cases;
  add_plain(cases);
  add_low_winner(cases);
  add_filters(cases);
  add_top_p_rules(cases);
  add_filters_alone(cases);
  add_edits(cases);
  add_refusals(cases);
  for (const InvalidRows& rows : invalid_rows()) {
    cases.push_back(make("invalid_" + rows.what, rows.inputs, {128}));
    // Nothing counts what is kept, so that plain rows are not filtered either.
    if (rows.inputs.allowed_offsets.empty())
      cases.push_back(make("invalid_" + rows.what, Inputs{rows.inputs, DRAFTPROOF_RACE, false}, {128}));
  }
  cases.push_back(far_sample_case());
  return cases;
}

}  // namespace draftproof::regress
