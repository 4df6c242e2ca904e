#include "gpu/regress/verify_inputs.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "gpu/executors.hpp"
#include "gpu/regress/inputs.hpp"
#include "reference/random/philox.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof::regress {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string kind_text(std::int32_t kind, std::int32_t dtype) {
  if (kind == DRAFTPROOF_ONE_HOT) return "one_hot";
  return (kind == DRAFTPROOF_PROBABILITIES ? "probabilities_" : "logits_") + dtype_text(dtype);
}

// Rows of logits become rows of probabilities, in place; padding stays.
void to_probabilities(std::vector<float>& rows, std::int64_t count, std::int64_t vocab_size, std::int64_t row_stride) {
  LogitsDistribution distribution;
  for (std::int64_t row = 0; row < count; ++row) {
    const std::span<float> out(rows.data() + row * row_stride, static_cast<std::size_t>(vocab_size));
    const std::vector<float> logits(out.begin(), out.end());
    distribution.assign(logits, row);
    for (std::int64_t i = 0; i < vocab_size; ++i)
      out[static_cast<std::size_t>(i)] = distribution.probability(static_cast<Token>(i));
  }
}

// What a drafter keeps, made by the reference.
draftproof_row_sums proposal_sums(CaseRun& run, const VerifyInputs& in) {
  const auto rows = in.draft_tokens.size();
  const std::size_t tiles = (static_cast<std::size_t>(in.shape.vocab_size) + 4095) / 4096;
  std::vector<float> temperature;
  for (std::size_t b = 0; b < in.shape.draft_lens.size(); ++b)
    for (std::int32_t i = 0; i < in.shape.draft_lens[b]; ++i)
      temperature.push_back(in.draft_parameters.temperature.empty() ? 1.0f : in.draft_parameters.temperature[b]);
  std::vector<std::uint64_t> tile_sum(rows * tiles);
  std::vector<std::int32_t> tile_exponent(rows * tiles);
  std::vector<std::int32_t> exponent(rows);
  std::vector<std::uint64_t> total(rows);
  std::vector<std::int32_t> status(rows);
  const draftproof_mass_pass_arguments a{static_cast<std::int64_t>(rows),
                                         in.shape.vocab_size,
                                         {in.proposal.data(), in.proposal_stride, DRAFTPROOF_F32},
                                         temperature.data(),
                                         tile_sum.data(),
                                         tile_exponent.data(),
                                         exponent.data(),
                                         total.data(),
                                         status.data(),
                                         nullptr,
                                         0};
  reference_executor::mass_pass(a, {});
  return {run.input(exponent), run.input(total), run.input(status)};
}

}  // namespace

float& VerifyInputs::target_at(std::int64_t request, std::int64_t place, std::int64_t token) {
  const std::int64_t row = cu_num_draft_tokens[static_cast<std::size_t>(request)] + request + place;
  return target[static_cast<std::size_t>(row * target_stride + token)];
}
float& VerifyInputs::proposal_at(std::int64_t request, std::int64_t place, std::int64_t token) {
  const std::int64_t row = cu_num_draft_tokens[static_cast<std::size_t>(request)] + place;
  return proposal[static_cast<std::size_t>(row * proposal_stride + token)];
}
Token& VerifyInputs::draft_at(std::int64_t request, std::int64_t place) {
  return draft_tokens[static_cast<std::size_t>(cu_num_draft_tokens[static_cast<std::size_t>(request)] + place)];
}

VerifyInputs verify_inputs(std::uint64_t seed, const VerifyShape& shape) {
  VerifyInputs in;
  in.shape = shape;
  in.cu_num_draft_tokens = {0};
  for (const std::int32_t length : shape.draft_lens)
    in.cu_num_draft_tokens.push_back(in.cu_num_draft_tokens.back() + length);
  const std::int64_t drafts = in.cu_num_draft_tokens.back();
  const std::int64_t rows = drafts + in.requests();
  const std::int64_t vocab_size = shape.vocab_size;
  in.target_stride = padded(vocab_size);
  in.proposal_stride = in.target_stride + 64;
  in.proposal = normal_logits(seed, drafts, vocab_size, in.proposal_stride, shape.spread);
  in.target = normal_logits(seed + 1, rows, vocab_size, in.target_stride, shape.spread * shape.distance);
  if (shape.dead_token) {
    for (std::int64_t r = 0; r < rows; ++r)
      in.target[static_cast<std::size_t>(r * in.target_stride + vocab_size - 1)] = -kInfinity;
    for (std::int64_t r = 0; r < drafts; ++r)
      in.proposal[static_cast<std::size_t>(r * in.proposal_stride + vocab_size - 1)] = -kInfinity;
  }
  LogitsDistribution distribution;
  for (std::int64_t b = 0; b < in.requests(); ++b) {
    in.seed.push_back(derive_seed(seed, static_cast<std::uint64_t>(b)));
    in.step.push_back(static_cast<std::uint32_t>(b * 3 % 5));
    for (std::int64_t place = 0; place < shape.draft_lens[static_cast<std::size_t>(b)]; ++place) {
      for (std::int64_t i = 0; i < vocab_size; ++i) in.target_at(b, place, i) += in.proposal_at(b, place, i);
      const bool one_hot = shape.proposal_kind == DRAFTPROOF_ONE_HOT;
      const float* drafted_from = one_hot ? &in.target_at(b, place, 0) : &in.proposal_at(b, place, 0);
      distribution.assign({drafted_from, static_cast<std::size_t>(vocab_size)}, place);
      in.draft_tokens.push_back(
          distribution.draw(philox_block(in.seed.back(), 0, static_cast<std::uint32_t>(place), 0, 1)));
    }
  }
  mask_some(seed + 2, in.target, rows, vocab_size, in.target_stride, shape.masked_share);
  if (shape.target_kind == DRAFTPROOF_PROBABILITIES) to_probabilities(in.target, rows, vocab_size, in.target_stride);
  if (shape.proposal_kind == DRAFTPROOF_PROBABILITIES)
    to_probabilities(in.proposal, drafts, vocab_size, in.proposal_stride);
  return in;
}

Token first_token(VerifyInputs& in, std::int64_t request, std::int64_t place) {
  const float* row = &in.target_at(request, place, 0);
  return static_cast<Token>(std::max_element(row, row + in.shape.vocab_size) - row);
}

void add_histories(std::uint64_t seed, VerifyInputs& in) {
  const Noise noise(seed);
  in.history_offsets = {0};
  for (std::int64_t b = 0; b < in.requests(); ++b) {
    const std::int64_t length = 3 + b % 7;
    for (std::int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<std::uint64_t>(in.history_tokens.size());
      const bool repeats = i % 2 == 0 && in.shape.draft_lens[static_cast<std::size_t>(b)] > 0;
      in.history_tokens.push_back(repeats ? in.draft_at(b, 0)
                                          : static_cast<Token>(noise.below(at, in.shape.vocab_size)));
    }
    in.history_offsets.push_back(in.history_offsets.back() + length);
    in.prompt_len.push_back(b % 4);
  }
}

draftproof_verify_arguments arguments_of(CaseRun& run, const VerifyInputs& in) {
  draftproof_verify_arguments a{};
  const std::vector<std::int32_t>& lens = in.shape.draft_lens;
  a.requests = in.requests();
  a.draft_tokens_total = static_cast<std::int64_t>(in.draft_tokens.size());
  a.draft_len_max = lens.empty() ? 0 : *std::max_element(lens.begin(), lens.end());
  a.vocab_size = in.shape.vocab_size;
  a.draft_tokens = run.input(in.draft_tokens);
  a.cu_num_draft_tokens = run.input(in.cu_num_draft_tokens);
  a.target_kind = in.shape.target_kind;
  a.target = run.rows(in.target, in.target_stride, in.shape.target_dtype);
  a.parameters = in.parameters.parameters_in(run);
  a.proposal_kind = in.shape.proposal_kind;
  if (a.proposal_kind != DRAFTPROOF_ONE_HOT)
    a.proposal = run.rows(in.proposal, in.proposal_stride, in.shape.proposal_dtype);
  a.draft_parameters = in.draft_parameters.parameters_in(run);
  if (in.gives_sums) a.proposal_sums = proposal_sums(run, in);
  a.randomness = {run.input(in.seed), run.input(in.step)};
  if (!in.allowed_mask.empty()) {
    a.constraints.allowed_mask = run.input(in.allowed_mask);
    a.constraints.allowed_mask_stride = (a.vocab_size + 31) / 32;
  }
  if (in.history_offsets.empty()) return a;
  a.constraints.history_tokens = run.input(in.history_tokens);
  a.constraints.history_tokens_count = static_cast<std::int64_t>(in.history_tokens.size());
  a.constraints.history_offsets = run.input(in.history_offsets);
  a.constraints.prompt_len = run.input(in.prompt_len);
  for (std::size_t b = 0; b < lens.size(); ++b) {
    const std::int64_t length = in.history_offsets[b + 1] - in.history_offsets[b] + lens[b];
    a.constraints.history_len_max = std::max(a.constraints.history_len_max, length);
  }
  return a;
}

void run_verifier(const VerifyCall& verifier, CaseRun& run, draftproof_verify_arguments a, bool wants_logprobs,
                  bool wants_path) {
  const std::int64_t places = a.requests * (a.draft_len_max + 1);
  a.num_accepted = run.output<std::int32_t>("num_accepted", a.requests);
  a.tokens = run.output<Token>("tokens", places);
  if (wants_logprobs) a.logprobs = run.output<float>("logprobs", places);
  if (wants_path) a.path = run.output<std::int32_t>("path", a.requests * a.draft_len_max);
  a.status = run.output<std::int32_t>("status", a.requests);
  run.call(a, verifier.workspace_bytes, verifier.call);
}

namespace {

RegressCase late_case(const VerifyCall& verifier, const std::string& what, const VerifyShape& shape,
                      const LateInputs<VerifyInputs>& in, std::vector<int> block_threads) {
  const std::string name = std::string(verifier.name) + "/" + what + "/" +
                           kind_text(shape.target_kind, shape.target_dtype) + "/" +
                           kind_text(shape.proposal_kind, shape.proposal_dtype) + "/V" +
                           std::to_string(shape.vocab_size) + "/B" + std::to_string(shape.draft_lens.size());
  return {name,
          [verifier, in](CaseRun& run) { run_verifier(verifier, run, arguments_of(run, *in), (*in).wants_logprobs); },
          std::move(block_threads)};
}

}  // namespace

RegressCase verify_case(const VerifyCall& verifier, const std::string& what, VerifyInputs in,
                        std::vector<int> block_threads) {
  const VerifyShape shape = in.shape;
  return late_case(verifier, what, shape, LateInputs<VerifyInputs>(std::move(in)), std::move(block_threads));
}

RegressCase verify_case(const VerifyCall& verifier, const std::string& what, std::uint64_t seed,
                        const VerifyShape& shape, std::vector<int> block_threads) {
  const LateInputs<VerifyInputs> in([seed, shape] { return verify_inputs(seed, shape); });
  return late_case(verifier, what, shape, in, std::move(block_threads));
}

}  // namespace draftproof::regress
