#include "gpu/regress/far_cases.hpp"

#include <algorithm>

#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/distribution_inputs.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/random_trees.hpp"
#include "gpu/regress/shard_protocol.hpp"
#include "gpu/regress/sparse_rows.hpp"
#include "gpu/regress/verify_inputs.hpp"

namespace draftproof::regress {
namespace {

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kVocab = 5000;

RegressCase far_case(const std::string& call, std::function<void(CaseRun&)> run) {
  return {call + "/beyond_2_32_elements", std::move(run), {0}, true};
}

// As the logits of these cases, so that no two matrices hold the same.
draftproof_rows normal(SparseRows& rows, std::uint64_t seed) {
  return rows.filled(normal_logits(seed, kRows, kVocab, kVocab, 3.0f).data(), kRows, kVocab, kVocab);
}

// Makes rows that lie far apart, with a few elements behind each, an output of the case.
void compare(CaseRun& run, const char* name, SparseRows& rows) {
  constexpr std::int64_t kShown = kVocab + 8;
  float* const out = run.output<float>(name, kRows * kShown);
  for (std::int64_t r = 0; r < kRows; ++r) std::copy_n(rows.row(r), kShown, out + r * kShown);
}

void mass_pass(CaseRun& run) {
  SparseRows logits(kRows);
  draftproof_mass_pass_arguments a{};
  a.rows = kRows;
  a.vocab_size = kVocab;
  a.logits = normal(logits, 1);
  run_mass_pass(run, a);
}

void guidance(CaseRun& run) {
  SparseRows conditional(kRows);
  SparseRows unconditional(kRows);
  SparseRows out(kRows);
  draftproof_guidance_arguments a{};
  a.rows = kRows;
  a.vocab_size = kVocab;
  a.conditional = normal(conditional, 2);
  a.unconditional = normal(unconditional, 3);
  a.scale = run.input(std::vector<float>{1.5f, 0.0f, -2.0f, 3.0f});
  a.out = out.row(0);
  a.out_stride = kFarStride;
  a.status = run.output<std::int32_t>("status", kRows);
  device::guidance(a, run.settings());
  compare(run, "out", out);
}

// Rows of logits of both kinds and masks that lie far apart; filters, so that rows are read again and again.
struct FarPipeline {
  SparseRows logits{kRows};
  SparseRows unconditional{kRows};
  SparseRows masks{kRows};
  DistributionInputs in;

  FarPipeline() {
    in.rows = in.requests = kRows;
    in.vocab_size = kVocab;
    in.temperature = {0.7f, 1.0f, 1.3f, 0.9f};
    in.top_k = {50, 0, 900, 20};
    in.top_p = {0.9f, 0.8f, 1.0f, 0.95f};
    in.guidance_scale = {1.5f, 1.0f, 0.5f, -0.5f};
    const Noise noise(4);
    for (std::int64_t r = 0; r < kRows; ++r) {
      auto* const words = reinterpret_cast<std::uint32_t*>(masks.row(r));
      for (std::int64_t w = 0; w < (kVocab + 31) / 32; ++w) {
        const auto at = static_cast<std::uint64_t>(r * 1000 + w);
        words[w] = noise.word(at) | noise.word(at + 10000);
      }
    }
  }

  template <class Arguments>
  void put_into(CaseRun& run, Arguments& a) {
    in.put_into(run, a);
    a.logits = normal(logits, 5);
    a.unconditional = normal(unconditional, 6);
    a.constraints.allowed_mask = reinterpret_cast<const std::uint32_t*>(masks.row(0));
    a.constraints.allowed_mask_stride = kFarStride;
  }
};

void sample(CaseRun& run) {
  FarPipeline far;
  SparseRows probabilities(kRows);
  draftproof_sample_arguments a{};
  far.put_into(run, a);
  a.randomness = {run.input(std::vector<std::uint64_t>{11, 12, 13, 14}), run.input(std::vector<std::uint32_t>(4, 7))};
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = run.output<std::int32_t>("tokens", kRows);
  a.logprobs = run.output<float>("logprobs", kRows);
  a.probabilities = probabilities.row(0);
  a.probabilities_stride = kFarStride;
  a.status = run.output<std::int32_t>("status", kRows);
  run.call(a, device::sample_workspace_bytes, device::sample);
  compare(run, "probabilities", probabilities);
}

void logprobs(CaseRun& run) {
  FarPipeline far;
  draftproof_logprobs_arguments a{};
  far.put_into(run, a);
  a.n = 5;
  a.sampled = run.input(std::vector<std::int32_t>{4999, 0, 17, 4096});
  run_logprobs(run, a);
}

// One tree whose deepest node has the last row.
void verify_tree(CaseRun& run, std::int32_t kind) {
  SparseRows target(kRows);
  SparseRows proposal(kRows);
  draftproof_verify_arguments a{};
  a.requests = 1;
  a.draft_tokens_total = a.draft_len_max = kRows - 1;
  a.vocab_size = kVocab;
  a.tree_rule = DRAFTPROOF_RRSW;
  a.target_kind = a.proposal_kind = kind;
  const auto fill = [&](SparseRows& rows, float spread) {
    if (kind == DRAFTPROOF_LOGITS)
      return rows.filled(normal_logits(8, kRows, kVocab, kVocab, spread).data(), kRows, kVocab, kVocab);
    return rows.filled(probability_rows(8, kRows, kVocab, kVocab, spread).data(), kRows, kVocab, kVocab);
  };
  a.target = fill(target, 3.0f);
  a.proposal = fill(proposal, 2.0f);
  // Each draft is what its target likes best, so that the walk goes down to the last row.
  std::vector<std::int32_t> tokens;
  for (std::int64_t r = 0; r + 1 < kRows; ++r)
    tokens.push_back(
        static_cast<std::int32_t>(std::max_element(target.row(r), target.row(r) + kVocab) - target.row(r)));
  a.draft_tokens = run.input(tokens);
  a.cu_num_draft_tokens = run.input(std::vector<std::int64_t>{0, kRows - 1});
  a.parents = run.input(std::vector<std::int32_t>{-1, 0, 1});
  a.constraints.history_len_max = a.draft_len_max;
  a.randomness = {run.input(std::vector<std::uint64_t>{21}), run.input(std::vector<std::uint32_t>{2})};
  run_verifier({"verify_tree", device::verify_tree_workspace_bytes, device::verify_tree}, run, a, true, true);
}

// Slots 2^31 units of 16 bytes apart in each of two layers.
void kv_commit(CaseRun& run) {
  constexpr std::int64_t kSlots = 4;
  constexpr std::int64_t kSlotBytes = 48;
  constexpr std::int64_t kSlotStride = kFarStride * 16;
  constexpr std::int64_t kLayers = 2;
  SparseMemory cache(kLayers * kSlots * kSlotStride);
  const auto entry = [&](std::int64_t layer, std::int64_t slot) {
    return static_cast<std::uint8_t*>(cache.begin()) + (layer * kSlots + slot) * kSlotStride;
  };
  for (std::int64_t i = 0; i < kLayers * kSlots * kSlotBytes; ++i)
    entry(0, i / kSlotBytes)[i % kSlotBytes] = static_cast<std::uint8_t>(Noise(9).word(static_cast<std::uint64_t>(i)));
  draftproof_kv_commit_arguments a{};
  a.requests = 1;
  a.draft_tokens_total = a.draft_len_max = kSlots - 1;
  a.cu_num_draft_tokens = run.input(std::vector<std::int64_t>{0, kSlots - 1});
  a.num_accepted = run.input(std::vector<std::int32_t>{2});
  a.path = run.input(std::vector<std::int32_t>{1, 2, -1});
  a.slots = run.input(std::vector<std::int64_t>{1, 3, 0, 2});
  a.num_slots = kSlots;
  a.cache = cache.begin();
  a.layers = kLayers;
  a.layer_stride_bytes = kSlots * kSlotStride;
  a.slot_stride_bytes = kSlotStride;
  a.slot_bytes = kSlotBytes;
  a.kv_len = run.in_out("kv_len", std::vector<std::int64_t>{100});
  a.freed_slots = run.output<std::int64_t>("freed_slots", kSlots);
  a.status = run.output<std::int32_t>("status", 1);
  device::kv_commit(a, run.settings());
  auto* const out = run.output<std::uint8_t>("cache", kLayers * kSlots * kSlotBytes);
  for (std::int64_t i = 0; i < kLayers * kSlots; ++i) std::copy_n(entry(0, i), kSlotBytes, out + i * kSlotBytes);
}

}  // namespace

// The second of three devices has its logits far apart; the messages are those of the same logits close together.
RegressCase far_shard_case(const char* name, std::function<void(CaseRun&, ShardCalls&, const ShardMessages&)> call) {
  const LateInputs<ShardCase> inputs([] {
    ShardInputs in = normal_shards(kRows, 2 * kVocab, DRAFTPROOF_F32, {0, kVocab / 2, kVocab / 2 + kVocab, 2 * kVocab});
    in.top_k = {50, 0, 900, 20};
    in.top_p = {0.9f, 0.8f, 1.0f, 0.95f};
    ShardMessages messages = across_devices(in, {});
    return ShardCase{"", std::move(in), std::move(messages)};
  });
  return far_case(name, [inputs, call = std::move(call)](CaseRun& run) {
    SparseRows logits(kRows);
    ShardCalls calls(run, (*inputs).in, &logits);
    call(run, calls, (*inputs).messages);
  });
}
// A request whose last target row, of the bonus token, lies beyond 2^32, and so does the one before.
RegressCase far_shard_verify_case() {
  struct Inputs {
    ShardDrafts drafts;
    ShardVerifyMessages messages;
  };
  const LateInputs<Inputs> inputs([] {
    VerifyShape shape;
    shape.draft_lens = {kRows - 1};
    shape.vocab_size = kVocab;
    shape.target_kind = DRAFTPROOF_LOGITS;
    shape.proposal_kind = DRAFTPROOF_ONE_HOT;
    shape.spread = 12.0f;
    VerifyInputs whole = verify_inputs(8, shape);
    for (std::int64_t place = 0; place + 1 < kRows; ++place) whole.draft_at(0, place) = first_token(whole, 0, place);
    ShardDrafts drafts = cut_drafts(std::move(whole), {0, kVocab});
    ShardVerifyMessages messages = verified_across_devices(drafts, {});
    return Inputs{std::move(drafts), std::move(messages)};
  });
  return far_case("shard_verify", [inputs](CaseRun& run) {
    SparseRows target(kRows);
    ShardVerifyCalls calls(run, (*inputs).drafts, &target);
    for (std::int32_t stage = 0; stage < 5; ++stage) call_shard_verify(run, calls.verify(0, (*inputs).messages, stage));
  });
}
RegressCase far_mass_pass_case() {
  return far_case("mass_pass", mass_pass);
}
RegressCase far_guidance_case() {
  return far_case("guidance", guidance);
}
RegressCase far_sample_case() {
  return far_case("sample", sample);
}
RegressCase far_logprobs_case() {
  return far_case("logprobs", logprobs);
}
std::vector<RegressCase> far_verify_tree_cases() {
  std::vector<RegressCase> cases;
  for (const std::int32_t kind : {DRAFTPROOF_PROBABILITIES, DRAFTPROOF_LOGITS}) {
    cases.push_back(far_case("verify_tree", [kind](CaseRun& run) { verify_tree(run, kind); }));
    cases.back().name += kind == DRAFTPROOF_LOGITS ? "/logits" : "/probabilities";
  }
  return cases;
}
RegressCase far_kv_commit_case() {
  return far_case("kv_commit", kv_commit);
}

}  // namespace draftproof::regress
