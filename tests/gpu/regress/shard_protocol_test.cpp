// Rows across devices by the calls of draftproof.h: the tokens of whole rows, whatever the split.
#include "gpu/regress/shard_protocol.hpp"

#include "gpu/api.hpp"
#include "tests/support/test.hpp"

namespace draftproof::regress {
namespace {

struct WholeRows {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint32_t> logprobs;
  std::vector<std::int32_t> status;
};

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  if (!values.empty()) std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

// draftproof_sample of the same rows, uncut, by the reference.
WholeRows whole_rows(const ShardInputs& in) {
  const draftproof_settings settings{};
  const auto memory = device::memory_of(DRAFTPROOF_REFERENCE);
  CaseRun run(*memory, settings);
  draftproof_sample_arguments a{};
  a.rows = a.requests = in.rows;
  a.vocab_size = in.vocab_size;
  a.logits = run.rows(in.logits, in.vocab_size, in.dtype);
  a.parameters = in.parameters_in(run);
  a.randomness = in.randomness(run);
  a.row_in_step = run.input(in.row_in_step());
  a.sampler = in.sampler;
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = run.output<std::int32_t>("tokens", in.rows);
  a.logprobs = run.output<float>("logprobs", in.rows);
  a.status = run.output<std::int32_t>("status", in.rows);
  device::sample(a, settings);
  const auto rows = static_cast<std::size_t>(in.rows);
  return {{a.tokens, a.tokens + rows}, bits_of({a.logprobs, a.logprobs + rows}), {a.status, a.status + rows}};
}

void check_equal(const ShardInputs& in, const ShardMessages& across) {
  const WholeRows whole = whole_rows(in);
  CHECK(across.tokens == whole.tokens);
  CHECK(bits_of(across.logprobs) == whole.logprobs);
  CHECK(across.status == whole.status);
}

// Compares with draftproof_verify_chain of the same rows, uncut, by the reference.
void check_equal(const ShardDrafts& in, const ShardVerifyMessages& across) {
  const draftproof_settings settings{};
  const auto memory = device::memory_of(DRAFTPROOF_REFERENCE);
  CaseRun run(*memory, settings);
  run_verifier({"verify_chain", device::verify_chain_workspace_bytes, device::verify_chain}, run,
               arguments_of(run, in.whole), true);
  const std::vector<Output> outputs = run.outputs();
  const auto check = [&](const char* name, const auto& found) {
    INFO(name);
    const auto whole = std::find_if(outputs.begin(), outputs.end(), [&](const Output& o) { return o.name == name; });
    REQUIRE(whole != outputs.end());
    REQUIRE(whole->bytes.size() == found.size() * sizeof(found[0]));
    CHECK((found.empty() || std::memcmp(whole->bytes.data(), found.data(), whole->bytes.size()) == 0));
  };
  check("num_accepted", across.num_accepted);
  check("tokens", across.tokens);
  check("logprobs", across.logprobs);
  check("status", across.status);
}

}  // namespace

TEST_CASE("the shard calls draw the tokens of the whole rows, by the reference and by the kernels",
          "[shards][release]") {
  draftproof_settings simt{};
  simt.executor = DRAFTPROOF_SIMT;
  for (const ShardCase& one : shard_cases()) {
    INFO(one.what);
    check_equal(one.in, one.messages);
    const ShardMessages of_kernels = across_devices(one.in, simt);
    check_equal(one.in, of_kernels);
    CHECK(of_kernels.bytes == one.messages.bytes);
  }
}

TEST_CASE("random splits of random rows draw the tokens of the whole rows by the shard calls", "[shards]") {
  std::int64_t drawn = 0;
  const std::int64_t count = fewer_if_sanitized(400);
  for (std::int64_t seed = 0; seed < count; ++seed) {
    const ShardInputs in = random_shards(static_cast<std::uint64_t>(seed));
    INFO("random_shards(" << seed << ")");
    const ShardMessages across = across_devices(in, {});
    check_equal(in, across);
    for (const std::int32_t token : across.tokens) drawn += token >= 0 ? 1 : 0;
  }
  CHECK(drawn > count);
}

// The kernels say what the reference says, message for message: regression cases of shard_verify.
TEST_CASE("shard_verify decides and draws as verify_chain of whole rows", "[shards]") {
  std::int64_t accepted = 0;
  std::int64_t recovered = 0;
  for (const auto& [what, in] : kinds_of_shard_drafts()) {
    INFO(what);
    const ShardVerifyMessages of_reference = verified_across_devices(in, {});
    check_equal(in, of_reference);
    for (std::size_t b = 0; b < of_reference.num_accepted.size(); ++b) {
      accepted += of_reference.num_accepted[b];
      recovered += of_reference.status[b] == 0 && of_reference.num_accepted[b] < in.whole.shape.draft_lens[b] ? 1 : 0;
    }
  }
  CHECK(accepted > 50);
  CHECK(recovered > 30);
}

TEST_CASE("random drafts over random splits are verified as those of whole rows by shard_verify", "[shards]") {
  std::int64_t emitted = 0;
  const std::int64_t count = fewer_if_sanitized(200);
  for (std::int64_t seed = 0; seed < count; ++seed) {
    const ShardDrafts in = random_shard_drafts(static_cast<std::uint64_t>(seed));
    INFO("random_shard_drafts(" << seed << ")");
    const ShardVerifyMessages across = verified_across_devices(in, {});
    check_equal(in, across);
    for (const std::int32_t token : across.tokens) emitted += token >= 0 ? 1 : 0;
  }
  CHECK(emitted > count);
}

TEST_CASE("a row of 128,256 tokens takes 16 KiB of messages with top_k and top_p, below 1 KiB without", "[shards]") {
  ShardInputs in;
  in.rows = 1;
  in.vocab_size = 128256;
  in.dtype = DRAFTPROOF_BF16;
  in.logits = normal_logits(1, 1, in.vocab_size, in.vocab_size, 4.0f);
  for (std::int64_t d = 0; d <= 16; ++d) in.cuts.push_back(in.vocab_size * d / 16);
  CHECK(across_devices(in, {}).bytes == 4 * 33 + 8 + 8 * 32 + 8 * 16 + 8);
  in.top_k = {50};
  in.top_p = {0.9f};
  const std::int64_t search = 4 * (1024 + 2048) + 2 * (8 * 16 + 8);
  const ShardMessages filtered = across_devices(in, {});
  CHECK(filtered.bytes == 4 * 33 + 8 + 2 * 8 * 32 + search + 8 * 16 + 8);
  CHECK(filtered.bytes < 16 * 1024);
  check_equal(in, filtered);
  // Five drafts: a word each, the sums of the tiles of one row, a share of each device, a token.
  VerifyShape shape;
  shape.draft_lens = {5};
  shape.vocab_size = in.vocab_size;
  shape.target_kind = shape.proposal_kind = DRAFTPROOF_LOGITS;
  const ShardDrafts drafts = cut_drafts(verify_inputs(1, shape), in.cuts);
  CHECK(verified_across_devices(drafts, {}).bytes == 8 * 5 + 8 * 33 + 8 * 16 + 8);
}

}  // namespace draftproof::regress
