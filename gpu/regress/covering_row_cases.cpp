// The covering arrays of the calls on rows of logits.
#include "base/error.hpp"
#include "gpu/api.hpp"
#include "gpu/regress/covering_cases.hpp"
#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {
namespace {

std::int64_t row_count(const Assignment& given) {
  return given.is("rows", "one") ? 1 : 5;
}

draftproof_rows normal_matrix(CaseRun& run, const Assignment& given, const std::string& matrix, std::uint64_t seed) {
  const std::int64_t stride = given.row_stride(matrix);
  return run.rows(normal_logits(seed, row_count(given), given.vocab_size(), stride, 3.0f), stride, given.dtype(matrix));
}

void mass_pass(CaseRun& run, const Assignment& given, std::uint64_t number) {
  draftproof_mass_pass_arguments a{};
  a.rows = row_count(given);
  a.vocab_size = given.vocab_size();
  a.logits = normal_matrix(run, given, "logits", 1000 + number);
  if (given.has("temperature")) {
    std::vector<float> temperature = {0.7f, 1.0f, 2.5f, 0.05f, 1.3f};
    temperature.resize(static_cast<std::size_t>(a.rows));
    a.temperature = run.input(temperature);
  }
  const std::int64_t tiles = (a.vocab_size + 4095) / 4096;
  a.tile_sum = run.output<std::uint64_t>("tile_sum", a.rows * tiles);
  a.tile_exponent = run.output<std::int32_t>("tile_exponent", a.rows * tiles);
  a.row_exponent = run.output<std::int32_t>("row_exponent", a.rows);
  a.row_total = run.output<std::uint64_t>("row_total", a.rows);
  a.status = run.output<std::int32_t>("status", a.rows);
  if (run.describes(a)) return;
  a.workspace_bytes = device::mass_pass_workspace_bytes(a);
  a.workspace = run.workspace(a.workspace_bytes);
  device::mass_pass(a, run.settings());
}

void guidance(CaseRun& run, const Assignment& given, std::uint64_t number) {
  draftproof_guidance_arguments a{};
  a.rows = row_count(given);
  a.vocab_size = given.vocab_size();
  a.conditional = normal_matrix(run, given, "conditional", 2000 + number);
  a.unconditional = normal_matrix(run, given, "unconditional", 2500 + number);
  std::vector<float> scale = {1.5f, 1.0f, 0.0f, -2.0f, 7.5f};
  scale.resize(static_cast<std::size_t>(a.rows));
  a.scale = run.input(scale);
  a.out_stride = a.vocab_size + (given.is("out_stride", "wider") ? 3 : 0);
  a.out = run.in_out("out", std::vector<float>(static_cast<std::size_t>(a.rows * a.out_stride), -7.0f));
  a.status = run.output<std::int32_t>("status", a.rows);
  if (run.describes(a)) return;
  device::guidance(a, run.settings());
}

// Whose the rows are, what the rows hold, parameters and constraints.
DistributionInputs pipeline_inputs(const Assignment& given, std::uint64_t seed) {
  const std::int64_t rows = row_count(given);
  const std::int64_t requests = given.is("requests", "fewer") ? 3 : given.is("requests", "more") ? rows + 2 : rows;
  DistributionInputs in = covering_lists(seed, given, rows, requests, 0);
  in.row_stride = given.row_stride("logits");
  in.dtype = given.dtype("logits");
  in.logits = normal_logits(seed + 1, rows, in.vocab_size, in.row_stride, 3.0f);
  if (!given.is("unconditional.dtype", "absent")) {
    in.unconditional_stride = given.row_stride("unconditional");
    in.unconditional_dtype = given.dtype("unconditional");
    in.unconditional = normal_logits(seed + 2, rows, in.vocab_size, in.unconditional_stride, 3.0f);
  }
  if (given.has("row_request"))
    for (std::int64_t row = 0; row < rows; ++row)
      in.row_request.push_back(static_cast<std::int32_t>(row * 2 % requests));
  if (given.has("parameters.nan_policy")) put_nan(in, 0);
  return in;
}

void sample(CaseRun& run, const Assignment& given, std::uint64_t number) {
  const DistributionInputs in = pipeline_inputs(given, 3000 + 10 * number);
  draftproof_sample_arguments a{};
  in.put_into(run, a);
  std::vector<std::uint64_t> seed;
  std::vector<std::uint32_t> step;
  for (std::int64_t r = 0; r < in.requests; ++r) {
    seed.push_back(0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(r) + number + 1));
    step.push_back(static_cast<std::uint32_t>(3 * r + 1));
  }
  a.randomness = {run.input(seed), run.input(step)};
  if (given.has("row_in_step")) {
    std::vector<std::uint32_t> row_in_step = {3, 0, 1, 0x80000000u, 2};
    row_in_step.resize(static_cast<std::size_t>(a.rows));
    a.row_in_step = run.input(row_in_step);
  }
  a.sampler = given.is("sampler", "race") ? DRAFTPROOF_RACE : DRAFTPROOF_INVERSE;
  a.purpose = given.is("purpose", "draft sample") ? DRAFTPROOF_DRAFT_SAMPLE : DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = run.output<std::int32_t>("tokens", a.rows);
  if (given.has("logprobs")) a.logprobs = run.output<float>("logprobs", a.rows);
  if (given.has("kept_mass")) a.kept_mass = run.output<float>("kept_mass", a.rows);
  if (given.has("kept_count")) a.kept_count = run.output<std::int64_t>("kept_count", a.rows);
  if (!given.is("probabilities_stride", "absent")) {
    a.probabilities_stride = a.vocab_size + (given.is("probabilities_stride", "wider") ? 5 : 0);
    const std::vector<float> untouched(static_cast<std::size_t>(a.rows * a.probabilities_stride), -1.0f);
    a.probabilities = run.in_out("probabilities", untouched);
  }
  a.status = run.output<std::int32_t>("status", a.rows);
  if (run.describes(a)) return;
  a.workspace_bytes = device::sample_workspace_bytes(a);
  a.workspace = run.workspace(a.workspace_bytes);
  device::sample(a, run.settings());
}

void logprobs(CaseRun& run, const Assignment& given, std::uint64_t number) {
  const DistributionInputs in = pipeline_inputs(given, 4000 + 10 * number);
  draftproof_logprobs_arguments a{};
  in.put_into(run, a);
  a.n = given.is("n", "some") ? 7 : std::stoi(given["n"]);
  std::vector<std::int32_t> sampled;
  for (std::int64_t row = 0; row < a.rows; ++row)
    sampled.push_back(static_cast<std::int32_t>(Noise(number).below(static_cast<std::uint64_t>(row), a.vocab_size)));
  a.sampled = run.input(sampled);
  a.tokens = run.output<std::int32_t>("tokens", a.rows * (a.n + 1));
  a.logprobs = run.output<float>("logprobs", a.rows * (a.n + 1));
  a.ranks = run.output<std::int64_t>("ranks", a.rows * (a.n + 1));
  a.status = run.output<std::int32_t>("status", a.rows);
  if (run.describes(a)) return;
  a.workspace_bytes = device::logprobs_workspace_bytes(a);
  a.workspace = run.workspace(a.workspace_bytes);
  device::logprobs(a, run.settings());
}

}  // namespace

std::vector<RegressCase> covering_row_cases(const std::string& call) {
  return covering_cases(call, call == "mass_pass"  ? mass_pass
                              : call == "guidance" ? guidance
                              : call == "sample"   ? sample
                                                   : logprobs);
}

}  // namespace draftproof::regress
