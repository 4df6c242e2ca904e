// Cases of a draw of rows across devices: every stage of every device.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/far_cases.hpp"
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
      ShardCalls calls(r, one.in);
      for (std::int32_t d = 0; d < one.in.devices(); ++d)
        for (std::int32_t stage = 0; stage < 3; ++stage) call_shard_draw(r, calls.draw(d, one.messages, stage));
    };
    cases.push_back({"shard_draw/" + one.what + "/B" + std::to_string(one.in.rows), run, {128, 512}});
  }
  cases.push_back(far_shard_case("shard_draw", [](CaseRun& r, ShardCalls& calls, const ShardMessages& m) {
    for (std::int32_t stage = 0; stage < 3; ++stage) call_shard_draw(r, calls.draw(1, m, stage));
  }));
  return cases;
}

}  // namespace draftproof::regress
