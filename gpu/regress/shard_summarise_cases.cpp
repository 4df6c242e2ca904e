// Cases of the sums of rows across devices, before filters and after them.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/far_cases.hpp"
#include "gpu/regress/shard_protocol.hpp"

namespace draftproof::regress {

void call_shard_summarise(const draftproof_shard_summarise_arguments& a, const draftproof_settings& settings) {
  device::shard_summarise(a, settings);
}

std::vector<RegressCase> shard_summarise_cases() {
  std::vector<RegressCase> cases;
  for (const ShardCase& one : shard_cases()) {
    const auto run = [one](CaseRun& r) {
      ShardCalls calls(r, one.in);
      for (std::int32_t d = 0; d < one.in.devices(); ++d)
        for (const bool is_filtered : {false, true})
          call_shard_summarise(calls.summarise(d, one.messages, is_filtered), r.settings());
    };
    cases.push_back({"shard_summarise/" + one.what + "/B" + std::to_string(one.in.rows), run, {128, 512}});
  }
  cases.push_back(far_shard_case("shard_summarise", [](CaseRun& r, ShardCalls& calls, const ShardMessages& m) {
    call_shard_summarise(calls.summarise(1, m, true), r.settings());
  }));
  return cases;
}

}  // namespace draftproof::regress
