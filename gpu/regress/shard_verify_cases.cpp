// Cases of chain verification across devices: every stage of every device.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/shard_protocol.hpp"

namespace draftproof::regress {

void call_shard_verify(CaseRun& run, draftproof_shard_verify_arguments a) {
  a.workspace_bytes = device::shard_verify_workspace_bytes(a);
  a.workspace = run.workspace(a.workspace_bytes);
  device::shard_verify(a, run.settings());
}

std::vector<RegressCase> shard_verify_cases() {
  std::vector<RegressCase> cases;
  for (const auto& [what, in] : kinds_of_shard_drafts()) {
    const LateInputs<ShardVerifyMessages> made([in = in] { return verified_across_devices(in, {}); });
    const auto run = [in = in, made](CaseRun& r) {
      ShardVerifyCalls calls(r, in);
      for (std::int32_t d = 0; d < in.target.devices(); ++d)
        for (std::int32_t stage = 0; stage < 5; ++stage) call_shard_verify(r, calls.verify(d, *made, stage));
    };
    const std::vector<int> block_threads = what.starts_with("cut_tiles") ? std::vector<int>{128, 512} : std::vector{0};
    cases.push_back({"shard_verify/" + what + "/B" + std::to_string(in.whole.requests()), run, block_threads});
  }
  cases.push_back(far_shard_verify_case());
  return cases;
}

}  // namespace draftproof::regress
