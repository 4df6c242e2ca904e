// Faults of runners of heads that engines had (docs/heads.md), each planted by itself: the text stays plain decoding's,
// and the oracle finds the fault. DRAFTPROOF_HEAD_FAULTS=1 prints what it found, and the acceptance lengths.
#include "engine/heads/lab/acceptance_oracle.hpp"
#include "tests/engine/heads/lab/fault_runs.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

TEST_CASE("the oracle finds every fault that engines had with heads, and the text does not show one", "[release]") {
  auto& [tiny, target, schedule, greedy, heads] = fault_lab();
  const HeadRun drawn = run_schedule_of_heads(target, nullptr, fault_schedule(0.8f, true));
  std::map<std::string, double> clean;  // acceptance lengths
  for (const auto& [name, taught] : heads) {
    INFO(name);
    const auto weights = taught.head.weights();
    HeadDrafter drafter(std::make_shared<DraftHead>(weights, target, "test head"), std::nullopt);
    AcceptanceOracle oracle(weights, target, transformer_kernels());
    oracle.attach(drafter);
    const HeadRun run = run_schedule_of_heads(target, &drafter, schedule);
    oracle.compare();
    CHECK(run.texts == greedy.texts);
    CHECK(run.metrics.prefix_hits > 0);
    if (oracle.first()) FAIL(oracle.first()->text());
    clean[name] = run.acceptance_length();
    CHECK(clean[name] > 1.5);
  }
  std::set<int> numbers;
  for (const PlantedHeadFault& planted : kPlantedFaults) {
    INFO(planted.number << ", " << planted.name << ", " << planted.head);
    numbers.insert(planted.number);
    const std::shared_ptr<const HeadWeights> weights = heads.at(planted.head).head.weights();
    const HeadFault fault = fault_named(planted, weights, target);
    for (const float temperature : {0.0f, 0.8f}) {
      HeadDrafter head(std::make_shared<DraftHead>(fault.weights, target, "test head"), std::nullopt);
      const std::unique_ptr<FaultyDrafter> drafter = fault.plant(head, target);
      AcceptanceOracle oracle(weights, target, transformer_kernels());
      oracle.attach(*drafter);
      const HeadRun run =
          run_schedule_of_heads(target, drafter.get(), fault_schedule(temperature, planted.shares_prefixes));
      CHECK(run.texts == (temperature == 0.0f ? greedy : drawn).texts);
      if (temperature != 0.0f) continue;
      oracle.compare();
      REQUIRE(oracle.first());
      if (std::getenv("DRAFTPROOF_HEAD_FAULTS") != nullptr)
        WARN(planted.number << ", " << planted.name << ": " << oracle.first()->text() << "; acceptance length "
                            << run.acceptance_length() << " for " << clean[planted.head]);
    }
  }
  CHECK(numbers == std::set<int>(kHeadFaultNumbers.begin(), kHeadFaultNumbers.end()));
}

TEST_CASE("a map of draft tokens with its offsets added twice is refused where a token leaves the vocabulary") {
  const RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  const TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  RandomHead head(HeadFamily::eagle3, target.weights().shape);
  std::vector<Token>& tokens = head.tensors.description.draft_tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] += tokens[i] - static_cast<Token>(i);
  CHECK_THROWS_WITH(head.head(target), Contains("expected tokens of the target"));
}

}  // namespace
}  // namespace draftproof::testing
