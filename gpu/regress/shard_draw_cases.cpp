// Cases of a draw of rows across devices: every stage of every device.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/shard_protocol.hpp"

namespace draftproof::regress {

void call_shard_draw(CaseRun& run, draftproof_shard_draw_arguments a) {
  a.workspace_bytes = device::shard_draw_workspace_bytes(a);
  a.workspace = run.workspace(a.workspace_bytes);
  device::shard_draw(a, run.settings());
}

std::vector<RegressCase> shard_draw_cases() {
  std::vector<RegressCase> cases;
  for (const ShardCase& one : shard_cases()) {
    const auto run = [one](CaseRun& r) {
      const ShardInputs& in = one.in;
      for (std::int32_t d = 0; d < in.devices(); ++d) {
        draftproof_shard_draw_arguments a{};
        a.shard = in.shard(r, d);
        a.tile_exponent = r.input(one.messages.tile_exponent);
        a.largest = r.input(one.messages.largest);
        a.tile_sum = r.input(one.messages.tile_sum);
        a.kept = r.optional(one.messages.kept);
        a.randomness = in.randomness(r);
        a.row_in_step = r.input(in.row_in_step());
        a.sampler = in.sampler;
        a.purpose = DRAFTPROOF_TARGET_SAMPLE;
        const bool is_race = in.sampler == DRAFTPROOF_RACE;
        for (a.stage = 0; a.stage < 2; ++a.stage) {
          a.combined = a.stage == 0 ? nullptr : r.input(one.messages.drawn[0]);
          a.winner = is_race ? r.in_out("winner", one.messages.winner[static_cast<std::size_t>(d)]) : nullptr;
          a.message = r.output<std::int64_t>("message", in.rows * (a.stage == 0 && !is_race ? in.devices() : 1));
          call_shard_draw(r, a);
        }
        a.combined = r.input(one.messages.drawn[1]);
        a.winner = nullptr;
        a.message = nullptr;
        a.tokens = r.output<std::int32_t>("tokens", in.rows);
        a.logprobs = r.output<float>("logprobs", in.rows);
        a.status = r.output<std::int32_t>("status", in.rows);
        call_shard_draw(r, a);
      }
    };
    cases.push_back({"shard_draw/" + one.what + "/B" + std::to_string(one.in.rows), run, {128, 512}});
  }
  return cases;
}

}  // namespace draftproof::regress
