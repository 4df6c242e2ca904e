// Cases of the first message of rows across devices.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/shard_protocol.hpp"

namespace draftproof::regress {

void call_shard_prepare(const draftproof_shard_prepare_arguments& a, const draftproof_settings& settings) {
  device::shard_prepare(a, settings);
}

std::vector<RegressCase> shard_prepare_cases() {
  std::vector<RegressCase> cases;
  for (const ShardCase& one : shard_cases()) {
    const auto run = [in = one.in](CaseRun& r) {
      ShardCalls calls(r, in);
      for (std::int32_t d = 0; d < in.devices(); ++d) call_shard_prepare(calls.prepare(d), r.settings());
    };
    cases.push_back({"shard_prepare/" + one.what + "/B" + std::to_string(one.in.rows), run, {128, 512}});
  }
  cases.push_back(far_shard_case("shard_prepare", [](CaseRun& r, ShardCalls& calls, const ShardMessages&) {
    call_shard_prepare(calls.prepare(1), r.settings());
  }));
  return cases;
}

}  // namespace draftproof::regress
