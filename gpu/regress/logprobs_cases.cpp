// Cases of log-probabilities.
#include <cmath>
#include <iterator>
#include <limits>

#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/distribution_inputs.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/invalid_offsets.hpp"

namespace draftproof::regress {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Inputs {
  DistributionInputs distribution;
  std::int32_t n;
  std::vector<std::int32_t> sampled;
  std::vector<std::int32_t> ids = {};
  std::vector<std::int64_t> ids_offsets = {};
  std::int32_t ids_max = 0;
};

void run(CaseRun& run, const Inputs& in) {
  draftproof_logprobs_arguments a{};
  in.distribution.put_into(run, a);
  a.n = in.n;
  a.sampled = run.input(in.sampled);
  a.ids = run.optional(in.ids);
  a.ids_count = std::ssize(in.ids);
  a.ids_offsets = run.optional(in.ids_offsets);
  a.ids_max = in.ids_max;
  run_logprobs(run, a);
}

RegressCase named(const std::string& what, Inputs in, std::vector<int> block_threads) {
  const std::string name = "logprobs/" + what + "/n" + std::to_string(in.n) + "/" + dtype_text(in.distribution.dtype) +
                           "/V" + std::to_string(in.distribution.vocab_size) + "/B" +
                           std::to_string(in.distribution.rows);
  return {name, [in = std::move(in)](CaseRun& r) { run(r, in); }, std::move(block_threads)};
}

// Sampled tokens are likely ones and unlikely ones.
Inputs inputs_of(const std::string& what, const DistributionInputs& distribution, std::int32_t n) {
  Inputs in{distribution, n, {}};
  for (std::int64_t row = 0; row < distribution.rows; ++row) {
    std::int64_t token = Noise(77).below(static_cast<std::uint64_t>(row), distribution.vocab_size);
    for (std::int64_t i = 0; row % 2 == 0 && i < distribution.vocab_size; ++i)
      if (in.distribution.logit(row, i) > in.distribution.logit(row, token)) token = i;
    in.sampled.push_back(static_cast<std::int32_t>(token));
  }
  if (what == "bad_sampled") in.sampled = {-1, static_cast<std::int32_t>(distribution.vocab_size), 0, 1 << 30};
  return in;
}

RegressCase make(const std::string& what, const DistributionInputs& distribution, std::int32_t n,
                 std::vector<int> block_threads = {0}) {
  return named(what, inputs_of(what, distribution, n), std::move(block_threads));
}

// Each request asks for some tokens: none, the sampled one of its row twice, neighbours of the first, or 128 at random.
Inputs asking(const std::string& what, const DistributionInputs& distribution, std::int32_t n) {
  Inputs in = inputs_of(what, distribution, n);
  in.ids_max = 128;
  in.ids_offsets = {0};
  const std::int64_t v = distribution.vocab_size;
  for (std::int64_t request = 0; request < distribution.requests; ++request) {
    const std::int32_t sampled = in.sampled[static_cast<std::size_t>(request % distribution.rows)];
    if (request % 4 == 1) in.ids.insert(in.ids.end(), {sampled, 0, sampled});
    for (std::int32_t i = 0; request % 4 == 2 && i < 40; ++i)
      in.ids.push_back(static_cast<std::int32_t>((sampled + i * i) % v));
    for (std::int32_t i = 0; request % 4 == 3 && i < 128; ++i)
      in.ids.push_back(static_cast<std::int32_t>(Noise(78).below(static_cast<std::uint64_t>(request * 128 + i), v)));
    in.ids_offsets.push_back(std::ssize(in.ids));
  }
  return in;
}

}  // namespace

void run_logprobs(CaseRun& run, draftproof_logprobs_arguments a) {
  const std::int64_t places = a.rows * (a.n + 1 + a.ids_max);
  a.tokens = run.output<std::int32_t>("tokens", places);
  a.logprobs = run.output<float>("logprobs", places);
  a.ranks = run.output<std::int64_t>("ranks", places);
  a.status = run.output<std::int32_t>("status", a.rows);
  run.call(a, device::logprobs_workspace_bytes, device::logprobs);
}

std::vector<RegressCase> logprobs_cases() {
  std::vector<RegressCase> cases;
  for (const std::int64_t vocab_size : kSmallVocabularies)
    for (const std::int32_t dtype : {DRAFTPROOF_F32, DRAFTPROOF_F16, DRAFTPROOF_BF16})
      cases.push_back(make("plain", normal_rows(4, vocab_size, dtype, 4.0f, padded(vocab_size)), 20,
                           dtype == DRAFTPROOF_F32 ? std::vector<int>{128, 256, 512} : std::vector<int>{0}));
  for (const std::int32_t n : {0, 1, 1024})
    cases.push_back(make("plain", normal_rows(4, 4097, DRAFTPROOF_BF16, 4.0f, 4160), n, {128, 512}));
  cases.push_back(make("plain", normal_rows(1, 128256, DRAFTPROOF_BF16, 3.0f, 128256), 5));

  // Ranks and the last place are decided by ids.
  DistributionInputs tied = normal_rows(4, 9000, DRAFTPROOF_F32, 2.0f, 9000);
  for (float& x : tied.logits) x = std::floor(x);
  std::fill_n(tied.logits.begin() + 9000, 9000, -0.5f);
  cases.push_back(make("tied", tied, 20, {128, 512}));
  cases.push_back(make("tied", tied, 1000));
  cases.push_back(named("ids_tied", asking("ids_tied", tied, 20), {128, 512}));
  // More tokens of one value than the list of a search holds, and of two values next to each other.
  for (float& x : tied.logits) x *= 1e-3f;
  cases.push_back(make("flat", tied, 700));
  DistributionInputs negative_zero = normal_rows(2, 1, DRAFTPROOF_F32, 1.0f, 1);
  negative_zero.logits = {-0.0f, 0.0f};
  cases.push_back(make("negative_zero", negative_zero, 2));
  DistributionInputs masked = normal_rows(4, 4097, DRAFTPROOF_F16, 4.0f, 4097);
  mask_some(3, masked.logits, 4, 4097, 4097, 0.998);
  cases.push_back(make("masked", masked, 20));
  cases.push_back(named("ids_masked", asking("ids_masked", masked, 0), {0}));
  cases.push_back(make("far", normal_rows(3, 8200, DRAFTPROOF_F32, 50000.0f, 8200), 12));

  DistributionInputs filtered = normal_rows(6, 9000, DRAFTPROOF_BF16, 4.0f, 9024);
  filtered.top_k = {0, 5, 20, 21, 0, 3000};
  filtered.min_p = {0.01f, 0.0f, 0.0f, 0.0f, 0.0f, 1e-4f};
  filtered.temperature = {1.0f, 1.0f, 0.4f, 2.0f, 0.0f, 1.5f};
  cases.push_back(make("filtered", filtered, 20, {128, 512}));
  cases.push_back(make("everything", everything(7, 9, 8, 4100, DRAFTPROOF_BF16), 9, {128, 512}));
  DistributionInputs greedy = filtered;
  greedy.temperature[1] = greedy.temperature[3] = 0.0f;
  cases.push_back(named("ids_filtered", asking("ids", filtered, 20), {128, 512}));
  cases.push_back(named("ids_greedy", asking("ids", greedy, 20), {128}));
  cases.push_back(named("ids_everything", asking("ids", everything(7, 9, 8, 4100, DRAFTPROOF_BF16), 9), {128, 512}));

  DistributionInputs bad = normal_rows(5, 4200, DRAFTPROOF_F32, 4.0f, 4200);
  bad.logit(0, 4199) = std::numeric_limits<float>::quiet_NaN();
  bad.logit(1, 17) = kInfinity;
  std::fill_n(bad.logits.begin() + 3 * 4200, 4200, -kInfinity);
  cases.push_back(make("bad_rows", bad, 3));
  cases.push_back(make("bad_sampled", normal_rows(4, 100, DRAFTPROOF_F32, 4.0f, 100), 3));
  for (const InvalidRows& rows : invalid_rows()) cases.push_back(make("invalid_" + rows.what, rows.inputs, 3, {128}));
  // Ids outside the vocabulary, lists that lead out of the array, and lists longer than a row has places for.
  const Inputs ids = asking("ids", normal_rows(12, 200, DRAFTPROOF_F32, 3.0f, 200), 3);
  Inputs bad_ids = ids;
  bad_ids.ids[0] = -1;
  bad_ids.ids[50] = 200;
  bad_ids.ids[static_cast<std::size_t>(ids.ids_offsets[6])] = 1 << 30;
  cases.push_back(named("ids_bad", bad_ids, {128}));
  bad_ids = ids;
  bad_ids.ids_max = 127;
  cases.push_back(named("ids_too_many", bad_ids, {128}));
  for (const InvalidOffsets& lie : invalid_list_offsets(ids.ids_offsets, std::ssize(ids.ids))) {
    bad_ids = ids;
    bad_ids.ids_offsets = lie.offsets;
    cases.push_back(named("ids_offsets_" + lie.what, bad_ids, {128}));
  }
  cases.push_back(make("no_rows", normal_rows(0, 100, DRAFTPROOF_F32, 4.0f, 100), 3));
  cases.push_back(far_logprobs_case());
  return cases;
}

}  // namespace draftproof::regress
