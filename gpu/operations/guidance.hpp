// Guidance as a call: kernels/guide_rows.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/guide_rows.cuh"
#include "gpu/operations/launch_distribution.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

void guidance(const draftproof_guidance_arguments& a, const draftproof_settings& settings) {
  if (a.rows == 0) return;
  OperationMemory memory(nullptr);
  GuidedRows g{};
  g.conditional = view_of(memory, "conditional", a.conditional, a.rows, a.vocab_size);
  g.unconditional = view_of(memory, "unconditional", a.unconditional, a.rows, a.vocab_size);
  g.scale = memory.input("scale", a.scale, a.rows);
  g.vocab_size = a.vocab_size;
  g.tiles = tiles_of(a.vocab_size);
  g.out = memory.output_rows("out", a.out, a.rows, a.out_stride, a.vocab_size);
  g.out_stride = a.out_stride;
  g.aligned = reinterpret_cast<std::uintptr_t>(a.out) % 16 == 0 && a.out_stride % 4 == 0;
  g.status = memory.output("status", a.status, a.rows);
  const std::uint32_t threads = block_threads(settings, 256);
  launch(describe(settings, "begin_guided_rows", (a.rows + threads - 1) / threads, threads), begin_guided_rows, g.scale,
         a.rows, g.status);
  launch(describe(settings, "guide_rows", a.rows * g.tiles, threads), guide_rows, g);
  launch(describe(settings, "refuse_guided_rows", a.rows * g.tiles, threads), refuse_guided_rows, g);
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR
