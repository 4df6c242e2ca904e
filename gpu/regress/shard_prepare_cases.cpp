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
      for (std::int32_t d = 0; d < in.devices(); ++d) {
        draftproof_shard_prepare_arguments a{};
        a.shard = in.shard(r, d);
        a.tile_exponent = r.output<std::int32_t>("tile_exponent", in.rows * (in.tiles() + 1));
        a.largest = r.output<std::int64_t>("largest", in.rows);
        a.own_exponent = r.output<std::int32_t>("own_exponent", in.rows * in.tiles());
        a.own_sum = r.output<std::uint64_t>("own_sum", in.rows * in.tiles());
        call_shard_prepare(a, r.settings());
      }
    };
    cases.push_back({"shard_prepare/" + one.what + "/B" + std::to_string(one.in.rows), run, {128, 512}});
  }
  cases.push_back(far_shard_prepare_case());
  return cases;
}

}  // namespace draftproof::regress
