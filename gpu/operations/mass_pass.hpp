// The mass pass as a call: kernels/mass.cuh, kernels/distribution.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/parameters.cuh"
#include "gpu/operations/launch_distribution.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

// Row totals for a caller. Grid: rows / 128 blocks, rounded up.
__global__ void export_mass_rows(Global<const DistributionRow> rows, Global<const float> temperature,
                                 std::int64_t count, Global<std::int32_t> row_exponent, Global<std::uint64_t> row_total,
                                 Global<std::int32_t> status) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= count) return;
  const DistributionRow distribution = rows[row];
  row_exponent[row] = distribution.exponent;
  row_total[row] = distribution.total;
  // A greedy row has no masses here.
  status[row] = value_of(temperature, row, 1.0f) == 0.0f ? DRAFTPROOF_ROW_BAD_PARAMETER : distribution.status;
}

}  // namespace

std::int64_t mass_pass_workspace_bytes(const draftproof_mass_pass_arguments& a) {
  OperationMemory memory = OperationMemory::measuring();
  memory.scratch<DistributionRow>("distribution_rows", a.rows);
  return memory.workspace_bytes();
}

void mass_pass(const draftproof_mass_pass_arguments& a, const draftproof_settings& settings) {
  if (a.rows == 0) return;
  OperationMemory memory(a.workspace);
  const std::int64_t tiles = tiles_of(a.vocab_size);
  DistributionScratch distribution;
  distribution.tile_sum = memory.output("tile_sum", a.tile_sum, a.rows * tiles);
  distribution.tile_exponent = memory.output("tile_exponent", a.tile_exponent, a.rows * tiles);
  distribution.rows = memory.scratch<DistributionRow>("distribution_rows", a.rows);
  const RowsView logits = view_of(memory, "logits", a.logits, a.rows, a.vocab_size);
  const Global<const float> temperature = memory.input("temperature", a.temperature, a.rows);
  launch_unfiltered_distribution(settings, logits, a.rows, a.vocab_size, temperature, RowRequests{nullptr, a.rows},
                                 distribution);
  launch(describe(settings, "export_mass_rows", (a.rows + 127) / 128, 128), export_mass_rows, distribution.rows,
         temperature, a.rows, memory.output("row_exponent", a.row_exponent, a.rows),
         memory.output("row_total", a.row_total, a.rows), memory.output("status", a.status, a.rows));
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
