// Cases of the filters of rows across devices: every round of every device.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/shard_protocol.hpp"

namespace draftproof::regress {

void call_shard_select(const draftproof_shard_select_arguments& a, const draftproof_settings& settings) {
  device::shard_select(a, settings);
}

std::vector<RegressCase> shard_select_cases() {
  std::vector<RegressCase> cases;
  for (const ShardCase& one : shard_cases()) {
    if (one.messages.rounds.empty()) continue;
    const auto run = [one](CaseRun& r) {
      ShardCalls calls(r, one.in);
      for (std::int32_t d = 0; d < one.in.devices(); ++d)
        for (const ShardRound& at : one.messages.rounds)
          call_shard_select(calls.select(d, one.messages, at), r.settings());
    };
    cases.push_back({"shard_select/" + one.what + "/B" + std::to_string(one.in.rows), run, {0}});
  }
  cases.push_back(far_shard_case("shard_select", [](CaseRun& r, ShardCalls& calls, const ShardMessages& m) {
    for (const ShardRound& at : m.rounds) call_shard_select(calls.select(1, m, at), r.settings());
  }));
  return cases;
}

}  // namespace draftproof::regress
