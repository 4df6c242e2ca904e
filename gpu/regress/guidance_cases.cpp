// Cases of guidance alone.
#include <limits>

#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/distribution_inputs.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {
namespace {

// `guidance_scale` and both rows of logits.
void run(CaseRun& run, const DistributionInputs& in) {
  draftproof_guidance_arguments a{};
  a.rows = in.rows;
  a.vocab_size = in.vocab_size;
  a.conditional = in.logits_in(run);
  a.unconditional = run.rows(in.unconditional, in.row_stride, in.unconditional_dtype);
  a.scale = run.input(in.guidance_scale);
  a.out_stride = in.row_stride + 1;
  // Elements behind a row are the caller's and stay.
  a.out = run.in_out("out", std::vector<float>(static_cast<std::size_t>(in.rows * a.out_stride), -7.0f));
  a.status = run.output<std::int32_t>("status", in.rows);
  run.call(a, device::guidance);
}

RegressCase make(const std::string& what, DistributionInputs in, std::vector<int> block_threads = {0}) {
  const std::string name = "guidance/" + what + "/" + dtype_text(in.dtype) + "/V" + std::to_string(in.vocab_size) +
                           "/B" + std::to_string(in.rows);
  return {name, [in = std::move(in)](CaseRun& r) { run(r, in); }, std::move(block_threads)};
}

DistributionInputs normal(std::int64_t rows, std::int64_t vocab_size, std::int32_t dtype, std::int64_t row_stride) {
  constexpr float kScales[] = {1.5f, 1.0f, 0.0f, -2.0f, 7.5f};
  DistributionInputs in = normal_rows(rows, vocab_size, dtype, 4.0f, row_stride);
  in.unconditional =
      normal_logits(static_cast<std::uint64_t>(vocab_size * 8 + dtype) + 1, rows, vocab_size, row_stride, 4.0f);
  in.unconditional_dtype = dtype;
  for (std::int64_t row = 0; row < rows; ++row) in.guidance_scale.push_back(kScales[row % 5]);
  return in;
}

}  // namespace

std::vector<RegressCase> guidance_cases() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<RegressCase> cases;
  for (const std::int64_t vocab_size : kSmallVocabularies)
    for (const std::int32_t dtype : {DRAFTPROOF_F32, DRAFTPROOF_F16, DRAFTPROOF_BF16})
      cases.push_back(make("padded", normal(5, vocab_size, dtype, padded(vocab_size)), {128, 256, 512}));
  cases.push_back(make("padded", normal(1, 128256, DRAFTPROOF_BF16, 128256)));
  cases.push_back(make("unaligned_stride", normal(5, 4097, DRAFTPROOF_F32, 4099)));
  cases.push_back(make("no_rows", normal(0, 4097, DRAFTPROOF_F32, 4097)));
  DistributionInputs mixed = normal(5, 4097, DRAFTPROOF_F16, 4160);
  mixed.unconditional_dtype = DRAFTPROOF_F32;
  cases.push_back(make("other_dtype", mixed));

  DistributionInputs bad = normal(10, 9000, DRAFTPROOF_F32, 9000);
  bad.guidance_scale = {2.0f, 2.0f, 2.0f, 1.0f, 2.0f, kNan, kInfinity, 3e38f, 2.0f, 2.0f};
  const auto at = [](std::size_t row, std::size_t token) { return row * 9000 + token; };
  bad.logits[at(0, 8999)] = kInfinity;
  bad.unconditional[at(1, 4096)] = -kInfinity;  // masked by the unconditional row alone
  bad.logits[at(2, 5)] = -kInfinity;            // masked: valid, whether the other masks it too or not
  bad.logits[at(2, 6)] = -kInfinity;
  bad.unconditional[at(2, 6)] = -kInfinity;
  bad.logits[at(3, 5)] = kInfinity;  // scale 1 looks at nothing
  bad.unconditional[at(3, 6)] = -kInfinity;
  bad.logits[at(4, 17)] = kNan;  // stays a NaN, which the NaN policy meets
  bad.unconditional[at(4, 18)] = kNan;
  bad.logits[at(8, 3)] = 3e38f;  // beyond f32
  bad.unconditional[at(8, 3)] = -3e38f;
  bad.logits[at(9, 3)] = kNan;
  bad.unconditional[at(9, 3)] = kInfinity;
  cases.push_back(make("bad_rows", bad, {128, 256, 512}));
  cases.push_back(far_guidance_case());
  return cases;
}

}  // namespace draftproof::regress
