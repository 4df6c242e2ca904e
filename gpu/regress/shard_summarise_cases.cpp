// Cases of the sums of rows across devices, before filters and after them.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/shard_protocol.hpp"

namespace draftproof::regress {

void call_shard_summarise(const draftproof_shard_summarise_arguments& a, const draftproof_settings& settings) {
  device::shard_summarise(a, settings);
}

std::vector<RegressCase> shard_summarise_cases() {
  std::vector<RegressCase> cases;
  for (const ShardCase& one : shard_cases()) {
    const auto run = [one](CaseRun& r) {
      for (std::int32_t d = 0; d < one.in.devices(); ++d) {
        draftproof_shard_summarise_arguments a{};
        a.shard = one.in.shard(r, d);
        a.tile_exponent = r.input(one.messages.tile_exponent);
        a.own_exponent = r.input(one.messages.own_exponent[static_cast<std::size_t>(d)]);
        a.own_sum = r.input(one.messages.own_sum[static_cast<std::size_t>(d)]);
        for (const bool is_filtered : {false, true}) {
          if (is_filtered) a.kept = r.optional(one.messages.kept);
          a.tile_sum = r.output<std::uint64_t>("tile_sum", one.in.rows * one.in.tiles());
          call_shard_summarise(a, r.settings());
        }
      }
    };
    cases.push_back({"shard_summarise/" + one.what + "/B" + std::to_string(one.in.rows), run, {128, 512}});
  }
  return cases;
}

}  // namespace draftproof::regress
