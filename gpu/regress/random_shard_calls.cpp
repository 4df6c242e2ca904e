// Random calls on rows across devices: one device each; what all have said before comes from the reference.
#include "gpu/api.hpp"
#include "gpu/regress/random_call.hpp"
#include "gpu/regress/shard_protocol.hpp"

namespace draftproof::regress {
namespace {

std::int32_t any_device(RandomCall& call, const ShardInputs& in) {
  return static_cast<std::int32_t>(call.random.below(in.devices()));
}

struct RandomShard {
  ShardInputs in;
  ShardMessages messages;
  std::int32_t device;
  ShardCalls calls;

  explicit RandomShard(RandomCall& call)
      : in(random_shards(call.random.word())),
        messages(across_devices(in, {})),
        device(any_device(call, in)),
        calls(call.run, in, nullptr, true) {}
};

void spoil(RandomCall& call, draftproof_shard& c) {
  if (!call.is_wrong()) return;
  switch (call.random.below(6)) {
    case 0:
      c.rows = -1;
      break;
    case 1:
      c.vocab_size = 0;
      break;
    case 2:
      c.begin = c.end + 1;
      break;
    case 3:
      c.end = c.vocab_size + 1;
      break;
    case 4:
      c.device = c.devices;
      break;
    default:
      c.devices = 257;
      c.logits.data = c.temperature = nullptr;
  }
}

}  // namespace

void random_shard_prepare(RandomCall& call) {
  RandomShard one(call);
  draftproof_shard_prepare_arguments a = one.calls.prepare(one.device);
  spoil(call, a.shard);
  call.compare([&](const auto& settings) { call_shard_prepare(a, settings); });
}

void random_shard_summarise(RandomCall& call) {
  RandomShard one(call);
  draftproof_shard_summarise_arguments a = one.calls.summarise(one.device, one.messages, call.random.chance(0.6));
  spoil(call, a.shard);
  call.compare([&](const auto& settings) { call_shard_summarise(a, settings); });
}

void random_shard_select(RandomCall& call) {
  RandomShard one(call);
  const auto rows = static_cast<std::size_t>(one.in.rows);
  const ShardRound at =
      one.messages.rounds.empty()
          ? ShardRound{0, 0, {}, std::vector<draftproof_shard_search>(rows), std::vector<draftproof_shard_kept>(rows)}
          : call.one_of(one.messages.rounds);
  draftproof_shard_select_arguments a = one.calls.select(one.device, one.messages, at);
  spoil(call, a.shard);
  if (call.is_wrong()) a.filter = 2;
  if (call.is_wrong()) a.round = 7;
  call.compare([&](const auto& settings) { call_shard_select(a, settings); });
}

void random_shard_draw(RandomCall& call) {
  RandomShard one(call);
  const auto stage = static_cast<std::int32_t>(call.random.below(3));
  draftproof_shard_draw_arguments a = one.calls.draw(one.device, one.messages, stage);
  spoil(call, a.shard);
  if (call.is_wrong()) a.sampler = 2;
  if (call.is_wrong()) a.purpose = 3;
  if (call.is_wrong()) a.stage = 3;
  call.compare([&](const auto&) { call_shard_draw(call.run, a); });
}

void random_shard_verify(RandomCall& call) {
  const ShardDrafts in = random_shard_drafts(call.random.word());
  const ShardVerifyMessages messages = verified_across_devices(in, {});
  const std::int32_t device = any_device(call, in.target);
  const auto stage = static_cast<std::int32_t>(call.random.below(5));
  ShardVerifyCalls calls(call.run, in, nullptr, true);
  draftproof_shard_verify_arguments a = calls.verify(device, messages, stage);
  if (call.random.chance(0.3)) a.logprobs = nullptr;
  spoil(call, a.target.shard);
  spoil(call, a.proposal.shard);
  if (call.is_wrong()) a.requests += call.one_of<std::int64_t>({-1, 1, std::int64_t{1} << 40});
  if (call.is_wrong()) a.draft_tokens_total += 1;
  if (call.is_wrong()) a.draft_len_max -= 1;
  if (call.is_wrong()) a.proposal_kind = 3;
  if (call.is_wrong()) a.stage = 5;
  call.compare([&](const auto&) { call_shard_verify(call.run, a); });
}

}  // namespace draftproof::regress
