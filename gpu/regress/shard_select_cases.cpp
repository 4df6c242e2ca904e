// Cases of the filters of rows across devices: every round of every device.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
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
      for (std::int32_t d = 0; d < one.in.devices(); ++d) {
        draftproof_shard_select_arguments a{};
        a.shard = one.in.shard(r, d);
        a.tile_exponent = r.input(one.messages.tile_exponent);
        a.largest = r.input(one.messages.largest);
        a.parameters = one.in.filters(r);
        for (const ShardRound& at : one.messages.rounds) {
          a.filter = at.filter;
          a.round = at.round;
          a.combined = at.round == 0 ? nullptr : r.input(at.combined);
          a.search = r.in_out("search", at.search);
          a.kept = r.in_out("kept", at.kept);
          a.message = at.round == 6
                          ? nullptr
                          : r.output<std::uint64_t>(
                                "message", one.in.rows * ShardRound::words(at.filter, at.round, one.in.devices()));
          call_shard_select(a, r.settings());
        }
      }
    };
    cases.push_back({"shard_select/" + one.what + "/B" + std::to_string(one.in.rows), run, {0}});
  }
  return cases;
}

}  // namespace draftproof::regress
