// Verification across devices against verify_step of the whole rows.
#include "reference/shard/sharded_verify.hpp"

#include <deque>

#include "reference/step/verify_step.hpp"
#include "tests/reference/shard/random_shards.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

// The rows of a request over devices: as StepRows has them.
class RowsAcross {
 public:
  RowsAcross(const VerifyRequest& request, const Devices& devices) : devices_(devices) {
    const auto words = static_cast<std::size_t>((request.target.vocab_size + 31) / 32);
    for (std::uint32_t r = 0; r < request.rows(); ++r) {
      RowInput input;
      input.parameters = request.parameters;
      input.constraints = request.constraints;
      if (!request.allowed_masks.empty())
        input.constraints.allowed_mask = request.allowed_masks.subspan(r * words, words);
      const SplitRow& row = split(request.target.row(r));
      target.emplace_back(devices).run(input, row.parts());
    }
    for (std::uint32_t r = 0; r + 1 < request.rows(); ++r) {
      ShardedRow& row = proposal.emplace_back(devices);
      RowInput input;
      input.parameters = request.draft_parameters;
      if (request.proposal_kind == ProposalKind::one_hot || request.parameters.temperature == 0.0f)
        row.make_one_hot(request.draft.tokens[r]);
      else if (request.proposal_kind == ProposalKind::probabilities)
        row.make_probabilities(split(request.proposal.row(r)).parts(), {});
      else
        row.run(input, split(request.proposal.row(r)).parts());
    }
  }

  std::vector<ShardedRow> target, proposal;

 private:
  const SplitRow& split(const RowView& row) {
    const auto* x = static_cast<const float*>(row.data);
    return splits_.emplace_back(std::vector<float>(x, x + row.vocab_size), DType::f32, devices_);
  }

  const Devices& devices_;
  std::deque<SplitRow> splits_;
};

TEST_CASE("verification across devices decides as verification of whole rows", "[shard]") {
  StepWorkspace workspace;
  PhiloxSource source;
  std::int64_t accepted = 0;
  std::int64_t recovered = 0;
  for (std::int64_t i = 0; i < num_rows(1500) / 5; ++i) {
    TestRandom random(static_cast<std::uint64_t>(i));
    const RequestFeatures features{.history = false, .guidance = false};
    const std::int64_t vocab_size = random.chance(0.8) ? 6 + random.below(40) : 6 + random.below(9000);
    const Devices devices(random_split(random, vocab_size));
    const OwnedRequest chain = random_request(random, vocab_size, 3, features);
    const OwnedRequest tree = random_tree_request(random, vocab_size, 5, features);
    for (const Verifier verifier :
         {Verifier::chain, Verifier::block, Verifier::sampler_match, Verifier::coupled, Verifier::target_only}) {
      const VerifyRequest& request = verifier == Verifier::target_only ? tree.request : chain.request;
      const RowsAcross rows(request, devices);
      for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
        VerifyOptions options{.verifier = verifier, .sampler = sampler};
        const Emission whole = verify_step(request, options, source, workspace);
        AddressedChance<> chance(source, request.seed, request.step, sampler);
        const TreeOutcome across =
            verify_across(verifier, request.draft, rows.target, rows.proposal, request.position_or_default(), chance);
        INFO("case " << i << ", " << info_of(verifier).name << ", V " << vocab_size << ", " << devices.count()
                     << " devices");
        REQUIRE(emitted_tokens(request.draft, across) == whole.tokens);
        REQUIRE(across.path == whole.path);
        accepted += whole.num_accepted;
        recovered += whole.num_accepted < static_cast<std::uint32_t>(request.draft.size()) ? 1 : 0;
      }
    }
  }
  CHECK(accepted > num_rows(1500) / 10);
  CHECK(recovered > num_rows(1500) / 10);
}

}  // namespace
}  // namespace draftproof::testing
