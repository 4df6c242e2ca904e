// Sizes that no memory can hold: every count and stride of every call, alone and as a product, is refused by every
// executor with one message before anything runs.
#include "gpu/api.hpp"
#include "tests/gpu/call_arguments.hpp"
#include "tests/support/test.hpp"

namespace {

draftproof_constraints all_constraints() {
  draftproof_constraints c{};
  c.allowed_mask = any<std::uint32_t>();
  c.allowed_mask_stride = 4;
  c.allowed_ids = c.history_tokens = c.row_draft_tokens = c.bad_word_tokens = c.stop_ids = c.bias_tokens =
      any<std::int32_t>();
  c.allowed_offsets = c.history_offsets = c.row_draft_begin = c.bad_word_offsets = c.bad_word_sequences =
      c.stop_offsets = c.bias_offsets = c.prompt_len = c.min_tokens = any<std::int64_t>();
  c.row_draft_len = any<std::int32_t>();
  c.bias_values = any<float>();
  c.history_len_max = 9;
  return c;
}

template <class Arguments>
Arguments rows_call() {
  Arguments a{};
  a.rows = a.requests = 2;
  a.vocab_size = 100;
  a.logits = a.unconditional = rows_of(100);
  a.parameters.repetition_penalty = any<float>();
  a.constraints = all_constraints();
  a.tokens = any<std::int32_t>();
  a.logprobs = any<float>();
  a.status = any<std::int32_t>();
  return a;
}
draftproof_sample_arguments sample() {
  auto a = rows_call<draftproof_sample_arguments>();
  a.randomness = {any<std::uint64_t>(), any<std::uint32_t>()};
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.probabilities = any<float>();
  a.probabilities_stride = 100;
  return a;
}
draftproof_logprobs_arguments logprobs() {
  auto a = rows_call<draftproof_logprobs_arguments>();
  a.n = 3;
  a.sampled = any<std::int32_t>();
  a.ranks = any<std::int64_t>();
  a.ids = any<std::int32_t>();
  a.ids_offsets = any<std::int64_t>();
  return a;
}
draftproof_mass_pass_arguments mass_pass() {
  draftproof_mass_pass_arguments a{};
  a.rows = 2;
  a.vocab_size = 100;
  a.logits = rows_of(100);
  a.tile_sum = a.row_total = any<std::uint64_t>();
  a.tile_exponent = a.row_exponent = a.status = any<std::int32_t>();
  return a;
}
draftproof_guidance_arguments guidance() {
  draftproof_guidance_arguments a{};
  a.rows = 2;
  a.vocab_size = a.out_stride = 100;
  a.conditional = a.unconditional = rows_of(100);
  a.scale = any<float>();
  a.out = any<float>();
  a.status = any<std::int32_t>();
  return a;
}
draftproof_verify_arguments chain() {
  draftproof_verify_arguments a = verify_call();
  a.target_kind = a.proposal_kind = DRAFTPROOF_LOGITS;
  a.target = a.unconditional = a.proposal = rows_of(100);
  a.parameters.repetition_penalty = any<float>();
  a.constraints = all_constraints();
  a.constraints.row_draft_tokens = a.constraints.row_draft_len = nullptr;
  a.constraints.row_draft_begin = nullptr;
  return a;
}
draftproof_verify_arguments tree() {
  draftproof_verify_arguments a = chain();
  a.parents = any<std::int32_t>();
  a.tree_rule = DRAFTPROOF_RRSW;
  return a;
}
draftproof_tree_mask_arguments tree_mask() {
  draftproof_tree_mask_arguments a{};
  a.requests = 2;
  a.draft_tokens_total = 5;
  a.draft_len_max = 3;
  a.cu_num_draft_tokens = any<std::int64_t>();
  a.parents = a.depths = a.status = any<std::int32_t>();
  a.mask = any<std::uint32_t>();
  a.words_per_row = 1;
  return a;
}
// One size of a call: its name in messages, and where it stands.
template <class Arguments>
struct Size {
  const char* name;
  std::int64_t& (*of)(Arguments&);
};
#define SIZE(Arguments, field)                                     \
  {                                                                \
#field, [](Arguments & a) -> std::int64_t& { return a.field; } \
  }

template <class Arguments>
std::vector<Size<Arguments>> constraint_sizes() {
  return {SIZE(Arguments, constraints.allowed_mask_stride),
          SIZE(Arguments, constraints.history_len_max),
          SIZE(Arguments, constraints.allowed_ids_count),
          SIZE(Arguments, constraints.history_tokens_count),
          SIZE(Arguments, constraints.row_draft_tokens_count),
          SIZE(Arguments, constraints.bad_word_tokens_count),
          SIZE(Arguments, constraints.bad_word_sequences_count),
          SIZE(Arguments, constraints.stop_ids_count),
          SIZE(Arguments, constraints.bias_count),
          SIZE(Arguments, unconditional.row_stride),
          SIZE(Arguments, vocab_size),
          SIZE(Arguments, requests)};
}
template <class Arguments>
std::vector<Size<Arguments>> operator+(std::vector<Size<Arguments>> a, const std::vector<Size<Arguments>>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <class Arguments>
using Call = void (*)(const Arguments&, const draftproof_settings&);
template <class Arguments>
using Measure = std::int64_t (*)(const Arguments&);

// Message with which all executors, and the call that measures the workspace, refuse `a`.
template <class Arguments>
std::string refusal(Call<Arguments> call, Measure<Arguments> measure, const Arguments& a) {
  refused_memory.fill(std::byte{0x33});
  std::vector<std::string> messages;
  for (const std::int32_t executor : {DRAFTPROOF_REFERENCE, DRAFTPROOF_SIMT}) {
    draftproof_settings settings{};
    settings.executor = executor;
    messages.push_back(error_of(ErrorKind::usage, [&] { call(a, settings); }));
  }
  if (measure != nullptr) messages.push_back(error_of(ErrorKind::usage, [&] { measure(a); }));
  for (const std::string& message : messages) CHECK(message == messages.front());
  CHECK(std::all_of(refused_memory.begin(), refused_memory.end(), [](std::byte b) { return b == std::byte{0x33}; }));
  return messages.front();
}

template <class Arguments>
void check_sizes(const std::string& name, Call<Arguments> call, Measure<Arguments> measure, const Arguments& valid,
                 const std::vector<Size<Arguments>>& sizes) {
  constexpr std::int64_t kOne = 1;
  for (const Size<Arguments>& size : sizes) {
    for (const std::int64_t value :
         {kOne << 58, kOne << 61, (kOne << 61) + 1, kOne << 62, std::numeric_limits<std::int64_t>::max() - 100,
          std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), -kOne}) {
      Arguments a = valid;
      size.of(a) = value;
      // 2^58 elements of one array are 2^60 bytes: the counts of lists may be that large, where they stand alone.
      const std::string field = size.name;
      const bool is_count = field.ends_with("_count");
      if (is_count && value == kOne << 58 && field != "constraints.bad_word_sequences_count") continue;
      if ((field == "num_slots" || field == "layers" || field.ends_with("_bytes")) && value == kOne << 58) continue;
      INFO(name << ", " << field << " = " << value);
      const std::string message = refusal(call, measure, a);
      CHECK(message.find(name + ", ") == 0);
      CHECK(message.find("; expected ") != std::string::npos);
      // Where the sum or product with another argument is refused, its message names that one.
      const bool names_it = message.find(name + ", " + field + ": it is " + std::to_string(value)) == 0;
      CHECK((names_it || value > 0));
    }
  }
}

TEST_CASE("sizes that no memory holds are refused in every call, by every executor alike", "[device_api][sizes]") {
  using Sample = draftproof_sample_arguments;
  check_sizes(
      "sample", device::sample, device::sample_workspace_bytes, sample(),
      constraint_sizes<Sample>() + std::vector<Size<Sample>>{SIZE(Sample, rows), SIZE(Sample, logits.row_stride),
                                                             SIZE(Sample, probabilities_stride)});
  using Logprobs = draftproof_logprobs_arguments;
  check_sizes("logprobs", device::logprobs, device::logprobs_workspace_bytes, logprobs(),
              constraint_sizes<Logprobs>() + std::vector<Size<Logprobs>>{SIZE(Logprobs, rows),
                                                                         SIZE(Logprobs, logits.row_stride),
                                                                         SIZE(Logprobs, ids_count)});
  using Mass = draftproof_mass_pass_arguments;
  check_sizes("mass_pass", device::mass_pass, device::mass_pass_workspace_bytes, mass_pass(),
              {SIZE(Mass, rows), SIZE(Mass, vocab_size), SIZE(Mass, logits.row_stride)});
  using Guidance = draftproof_guidance_arguments;
  check_sizes<Guidance>("guidance", device::guidance, nullptr, guidance(),
                        {SIZE(Guidance, rows), SIZE(Guidance, vocab_size), SIZE(Guidance, conditional.row_stride),
                         SIZE(Guidance, unconditional.row_stride), SIZE(Guidance, out_stride)});
  using Verify = draftproof_verify_arguments;
  const std::vector<Size<Verify>> of_verify =
      constraint_sizes<Verify>() +
      std::vector<Size<Verify>>{SIZE(Verify, draft_tokens_total), SIZE(Verify, draft_len_max),
                                SIZE(Verify, target.row_stride), SIZE(Verify, proposal.row_stride)};
  check_sizes("verify_chain", device::verify_chain, device::verify_chain_workspace_bytes, chain(), of_verify);
  check_sizes("verify_block", device::verify_block, device::verify_block_workspace_bytes, chain(), of_verify);
  check_sizes("verify_tree", device::verify_tree, device::verify_tree_workspace_bytes, tree(), of_verify);
  using Mask = draftproof_tree_mask_arguments;
  check_sizes<Mask>(
      "tree_mask", device::tree_mask, nullptr, tree_mask(),
      {SIZE(Mask, requests), SIZE(Mask, draft_tokens_total), SIZE(Mask, draft_len_max), SIZE(Mask, words_per_row)});
  using Commit = draftproof_kv_commit_arguments;
  check_sizes<Commit>("kv_commit", device::kv_commit, nullptr, kv_commit_call(),
                      {SIZE(Commit, requests), SIZE(Commit, draft_tokens_total), SIZE(Commit, draft_len_max),
                       SIZE(Commit, num_slots), SIZE(Commit, layers), SIZE(Commit, layer_stride_bytes),
                       SIZE(Commit, slot_stride_bytes), SIZE(Commit, slot_bytes)});
}

TEST_CASE("products of sizes that pass alone are refused", "[device_api][sizes]") {
  constexpr std::int64_t kHuge = 0x7fffffff;
  draftproof_sample_arguments a = sample();
  a.rows = a.requests = kHuge;
  a.constraints.history_len_max = kHuge;
  CHECK(refusal(device::sample, device::sample_workspace_bytes, a).find("sample, workspace: ") == 0);
  a = sample();
  a.rows = a.requests = 1 << 20;
  a.logits.row_stride = std::int64_t{1} << 38;
  CHECK(device::sample_workspace_bytes(a) > 0);  // 2^60 bytes
  ++a.logits.row_stride;
  CHECK(
      refusal(device::sample, device::sample_workspace_bytes, a) ==
      "sample, logits.row_stride: it is 274877906945; expected at most 274877906944 in an array of at most 2^60 bytes");
  a.logits.dtype = DRAFTPROOF_BF16;
  CHECK(device::sample_workspace_bytes(a) > 0);

  draftproof_verify_arguments block = chain();
  block.vocab_size = 4097;  // two tiles
  block.target = block.unconditional = block.proposal = rows_of(4097);
  block.constraints.allowed_mask = nullptr;
  block.draft_len_max = (1 << 29) - 2;
  CHECK(device::verify_block_workspace_bytes(block) > 0);
  block.draft_len_max += 1;
  CHECK(refusal(device::verify_block, device::verify_block_workspace_bytes, block)
            .find("verify_block, draft_len_max: it is 536870911; expected at most 536870910 ") == 0);
  CHECK(device::verify_chain_workspace_bytes(block) > 0);  // has no block of a launch for every place

  draftproof_kv_commit_arguments commit = kv_commit_call();
  commit.num_slots = std::int64_t{1} << 40;
  commit.slot_stride_bytes = std::int64_t{1} << 21;
  CHECK(refusal<draftproof_kv_commit_arguments>(device::kv_commit, nullptr, commit)
            .find("kv_commit, slot_stride_bytes: it is 2097152; expected at most 1048576 ") == 0);
}

TEST_CASE("the sizes of a batch of nothing are refused too", "[device_api][sizes]") {
  draftproof_sample_arguments a = sample();
  a.rows = 0;
  a.constraints.history_len_max = std::numeric_limits<std::int64_t>::max();
  CHECK(refusal(device::sample, device::sample_workspace_bytes, a).find("sample, constraints.history_len_max: ") == 0);
}

}  // namespace
