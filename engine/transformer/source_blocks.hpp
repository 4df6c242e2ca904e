// Blocks of a file as the integers and scales that they hold: what decode_blocks() multiplies out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/weights/block_formats.hpp"

namespace draftproof {

// 32 columns of a row: x = scale (code - offset) or scale code + min, the offset being that of the packed format. The
// second scale and min are of the upper 16 columns where a format has blocks of 16; else they repeat the first.
struct SourceBlock {
  std::array<std::uint8_t, 32> code{};
  float scale[2] = {0.0f, 0.0f};
  float min[2] = {0.0f, 0.0f};
};

// Columns 32 block ... of a row of a quantised kind.
SourceBlock source_block(TensorKind kind, const std::byte* row, std::size_t block);

}  // namespace draftproof
