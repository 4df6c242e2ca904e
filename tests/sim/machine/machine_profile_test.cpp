// A computer whose passes take times that are known: what the profile says between them, and what it predicts.
#include "sim/machine/machine_profile.hpp"

#include "engine/transformer/transformer_model.hpp"
#include "sim/machine/speedup_prediction.hpp"
#include "tests/engine/transformer/random_tensors.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

// 2 ms and 0.1 ms a row; a context of 512 more costs a row 0.256 ms; no time beside the passes.
MachineProfile known() {
  MachineProfile profile;
  profile.cpu = "a processor \"of\" ours";
  profile.simd = "avx2";
  profile.model = "m";
  profile.arithmetic = "int8";
  profile.threads = 2;
  profile.passes = {{1, 64, 2.1}, {4, 64, 2.4}, {16, 64, 3.6}, {1, 576, 2.356}};
  return profile;
}

}  // namespace

TEST_CASE("passes lie on the lines between the timed ones, and rows take longer by their context") {
  const MachineProfile profile = known();
  CHECK(profile.pass_ms(1, 64) == Approx(2.1));
  CHECK(profile.pass_ms(3, 64) == Approx(2.3));
  CHECK(profile.pass_ms(10, 64) == Approx(3.0));
  CHECK(profile.pass_ms(40, 64) == Approx(6.0));
  CHECK(profile.pass_ms(2, 164) == Approx(2.2 + 2 * 0.05));
  // Times that fall as rows are added, and a context that costs more than the pass: not below half the fastest pass.
  MachineProfile falling = known();
  falling.passes = {{1, 64, 2.1}, {4, 64, 20.5}, {16, 64, 3.6}, {1, 65, 1000.0}};
  CHECK(falling.pass_ms(40, 64) == Approx(1.05));
  CHECK(falling.pass_ms(1, 0) == Approx(1.05));
  // As a clock of the simulator: two streams, three rows each, behind 64 tokens.
  CHECK(MachineCost(profile, 0.5).target_ns(planned_pass(10, 2)) == Approx(3.0e6));
  CHECK(MachineCost(profile, 0.5).draft_ns(planned_drafting(3, 2)) == Approx(3 * 0.5 * 2.2e6));
}

TEST_CASE("a machine's profile is read back as written, and one that cannot be is refused with its line") {
  const TemporaryFolder folder;
  const std::string path = folder.file("machine.toml");
  const MachineProfile written = known();
  std::ofstream(path) << toml_of(written);
  const MachineProfile read = read_machine_profile(path);
  CHECK(toml_of(read) == toml_of(written));
  CHECK(read.cpu == written.cpu);
  CHECK(read.passes[3].ms == 2.356);

  MachineProfile falling = known();
  falling.passes[1].rows = 1;
  std::ofstream(path) << toml_of(falling);
  CHECK_THAT(error_of(ErrorKind::input, [&] { read_machine_profile(path); }),
             Contains(path) && Contains("rising row counts"));
  MachineProfile single = known();
  single.passes = {{1, 64, 2.1}, {1, 576, 2.3}};
  std::ofstream(path) << toml_of(single);
  CHECK_THAT(error_of(ErrorKind::input, [&] { read_machine_profile(path); }), Contains("1 row counts at context 64"));
  std::ofstream(path) << toml_of(known()) << "wheels = 4\n";
  CHECK_THAT(error_of(ErrorKind::input, [&] { read_machine_profile(path); }), Contains("wheels"));
}

TEST_CASE("a predicted speedup is the ratio of the times that can be added up by hand") {
  MachineProfile profile = known();
  profile.passes = {{1, 64, 2.1}, {16, 64, 3.6}};  // nothing for context
  // 10 prompt tokens: 3.0 ms. Plain: 20 more tokens. Speculative: 8 steps after the first, all with 4 drafts.
  const CountedRequest request{10, 21, 21, 9, 9, 36};
  const double plain = (3.0 + 20 * 2.1) / 21;
  CHECK(predicted_speedup(profile, std::vector{request}, {}) == Approx(plain / ((3.0 + 8 * 2.5) / 21)));
  // A drafter of six tenths of the target, four passes a step; the first takes in 21 / 9 tokens.
  const double drafting = 0.6 * (2.0 + 0.1 * 21 / 9 + 3 * 2.1);
  CHECK(predicted_speedup(profile, std::vector{request}, {0.6, {1, 1, 1, 1}}) ==
        Approx(plain / ((3.0 + 8 * (2.5 + drafting)) / 21)));
  // Without drafts nothing is gained, whatever the step costs beside its pass.
  profile.step_ms = 0.7;
  CHECK(predicted_speedup(profile, std::vector{CountedRequest{10, 21, 21, 21, 0, 0}}, {}) == Approx(1.0));
  // Two side by side: 12 steps together, then 8 of the longer one alone.
  profile.step_ms = 0.0;
  const std::vector<CountedRequest> two{{10, 13, 13, 13, 0, 0}, {10, 21, 21, 11, 11, 22}};
  const double together = 6.0 + 10 * (2.0 + 0.1 * 3) + 2 * 2.1;
  const double separate = 6.0 + 12 * 2.2 + 8 * 2.1;
  CHECK(predicted_speedup(profile, two, {}) == Approx(separate / together).epsilon(0.02));
  CHECK_THAT(error_of(ErrorKind::input,
                      [&] {
                        predicted_speedup(profile, std::vector{CountedRequest{10, 5, 5, 9, 0, 0}}, {});
                      }),
             Contains("5 tokens in 9 steps"));
}

TEST_CASE("timing a model gives five passes, more rows and further context never for nothing") {
  const RandomLlama tiny(9, {TensorKind::q4_1}, RopePairing::adjacent, false);
  TransformerModel model(tiny.weights(), Arithmetic::int8, 1);
  MachineTiming timing;
  timing.context_len = 16;
  timing.far_context_len = 48;
  timing.repeats = 3;
  const MachineProfile profile = time_machine(model, timing);
  CHECK(profile.passes.size() == 5);
  check(profile, "timed");
  CHECK(profile.step_ms > 0.0);
  timing.far_context_len = 1 << 30;
  CHECK_THAT(error_of(ErrorKind::usage, [&] { time_machine(model, timing); }), Contains("its context is"));
}

}  // namespace draftproof::testing
