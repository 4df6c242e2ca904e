// Cases of the mass pass.
#include <limits>

#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/distribution_inputs.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {
namespace {

void run(CaseRun& run, const DistributionInputs& in) {
  draftproof_mass_pass_arguments a{};
  a.rows = in.rows;
  a.vocab_size = in.vocab_size;
  a.logits = in.logits_in(run);
  a.temperature = run.optional(in.temperature);
  run_mass_pass(run, a);
}

RegressCase make(const std::string& what, DistributionInputs in, std::vector<int> block_threads = {0}) {
  const std::string name = "mass_pass/" + what + "/" + dtype_text(in.dtype) + "/V" + std::to_string(in.vocab_size) +
                           "/B" + std::to_string(in.rows);
  return {name, [in = std::move(in)](CaseRun& r) { run(r, in); }, std::move(block_threads)};
}

}  // namespace

void run_mass_pass(CaseRun& run, draftproof_mass_pass_arguments a) {
  const std::int64_t tiles = (a.vocab_size + 4095) / 4096;
  a.tile_sum = run.output<std::uint64_t>("tile_sum", a.rows * tiles);
  a.tile_exponent = run.output<std::int32_t>("tile_exponent", a.rows * tiles);
  a.row_exponent = run.output<std::int32_t>("row_exponent", a.rows);
  a.row_total = run.output<std::uint64_t>("row_total", a.rows);
  a.status = run.output<std::int32_t>("status", a.rows);
  run.call(a, device::mass_pass_workspace_bytes, device::mass_pass);
}

std::vector<RegressCase> mass_pass_cases() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<RegressCase> cases;
  for (const std::int64_t vocab_size : kSmallVocabularies)
    for (const std::int32_t dtype : {DRAFTPROOF_F32, DRAFTPROOF_F16, DRAFTPROOF_BF16})
      cases.push_back(make("padded", normal_rows(3, vocab_size, dtype, 4.0f, padded(vocab_size)), {128, 256, 512}));
  for (const std::int64_t vocab_size : kModelVocabularies)
    cases.push_back(make("padded", normal_rows(1, vocab_size, DRAFTPROOF_BF16, 3.0f, padded(vocab_size))));
  cases.push_back(make("unaligned_stride", normal_rows(3, 4097, DRAFTPROOF_F32, 4.0f, 4099)));
  cases.push_back(make("no_rows", normal_rows(0, 4097, DRAFTPROOF_F32, 4.0f, 4097)));
  // Beyond +-65536 the exponential takes another route; tiles there lie far apart.
  cases.push_back(make("huge_spread", normal_rows(4, 8200, DRAFTPROOF_F32, 60000.0f, 8200), {128, 512}));
  cases.push_back(make("tiny_spread", normal_rows(2, 8200, DRAFTPROOF_F32, 1e-4f, 8200)));

  DistributionInputs tempered = normal_rows(4, 4097, DRAFTPROOF_BF16, 4.0f, 4160);
  tempered.temperature = {0.3f, 1.0f, 2.5f, 1e-3f};
  cases.push_back(make("tempered", tempered));
  tempered.temperature = {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN(), kInfinity};
  cases.push_back(make("bad_temperature", tempered));

  DistributionInputs bad = normal_rows(7, 9000, DRAFTPROOF_F32, 4.0f, 9000);
  bad.logits[8999] = std::numeric_limits<float>::quiet_NaN();
  bad.logits[9000 + 4096] = kInfinity;
  bad.logits[2 * 9000 + 17] = 0x1.8p29f;
  std::fill_n(bad.logits.begin() + 3 * 9000, 9000, -kInfinity);        // nothing left
  std::fill_n(bad.logits.begin() + 4 * 9000, 4096, -kInfinity);        // one tile without mass
  std::fill_n(bad.logits.begin() + 5 * 9000, 9000, -0x1.8p29f);        // finite, and masked all the same
  bad.logits[5 * 9000 + 5] = std::numeric_limits<float>::quiet_NaN();  // the higher status is reported
  bad.logits[5 * 9000 + 8000] = kInfinity;
  cases.push_back(make("bad_rows", bad, {128, 256, 512}));
  // At temperature 1 a whole tile takes another route than part of one. A NaN in each place of a vector, among the
  // first of a thread and the last of a tile; and in rows whose temperature leaves no masses.
  const std::vector<std::int64_t> places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 1023, 2040, 4094, 4095, 4096, 4097, 8190, 8191};
  for (const std::int32_t dtype : {DRAFTPROOF_F32, DRAFTPROOF_F16, DRAFTPROOF_BF16}) {
    DistributionInputs nan = normal_rows(static_cast<std::int64_t>(places.size()) + 1, 8192, dtype, 4.0f, 8192);
    for (std::size_t row = 0; row < places.size(); ++row)
      nan.logits[row * 8192 + static_cast<std::size_t>(places[row])] = std::numeric_limits<float>::quiet_NaN();
    cases.push_back(make("nan_in_each_place", nan, {128, 256, 512}));
    nan.temperature.assign(static_cast<std::size_t>(nan.rows), 1.0f);
    nan.temperature[1] = 0.0f;
    nan.temperature[2] = -0.0f;
    cases.push_back(make("nan_of_greedy_rows", nan));
  }
  cases.push_back(far_mass_pass_case());
  return cases;
}

}  // namespace draftproof::regress
