#include "engine/transformer/packed_matrix.hpp"

#include <array>
#include <cmath>
#include <cstring>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/parallel.hpp"
#include "engine/transformer/source_blocks.hpp"

namespace draftproof {
namespace {

PackedFormat format_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::f32:
      return PackedFormat::f32;
    case TensorKind::f16:
      return PackedFormat::f16;
    case TensorKind::bf16:
      return PackedFormat::bf16;
    case TensorKind::q8_0:
    case TensorKind::q5_0:
      return PackedFormat::byte_scale;
    case TensorKind::q4_0:
      return PackedFormat::nibble_scale;
    case TensorKind::q4_1:
      return PackedFormat::nibble_scale_min;
    case TensorKind::q4_k:
      return PackedFormat::nibble_wide_scale_min;
    case TensorKind::q5_k:
      return PackedFormat::byte_wide_scale_min;
    case TensorKind::q6_k:
      return PackedFormat::byte_wide_half_scales;
    case TensorKind::b2:
    case TensorKind::b3:
    case TensorKind::b4:
      return PackedFormat::nibble_half_scales_min;
    default:
      return PackedFormat::byte_half_scales_min;
  }
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void store_scale(std::byte* at, int scale_bytes, float value) {
  if (scale_bytes == 4) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const std::uint16_t half = f32_to_f16(value);
  std::memcpy(at, &half, sizeof half);
}

float load_scale(const std::byte* at, int scale_bytes) {
  return scale_bytes == 4 ? load<float>(at) : f16_to_f32(load<std::uint16_t>(at));
}

// Where a block of a group lies and what is in it.
struct BlockPlace {
  std::byte* scales;  // [scales_per_row][16]
  std::byte* codes;
};
BlockPlace place_of(std::byte* group, const PackedLayout& layout, std::size_t blocks, std::size_t block) {
  return {group + block * layout.scale_bytes_of_block(),
          group + layout.codes_at(blocks) + block * layout.code_bytes_of_block()};
}

std::byte* scale_at(const BlockPlace& place, const PackedLayout& layout, int which, std::int64_t lane) {
  return place.scales + (static_cast<std::size_t>(which) * kGroupRows + static_cast<std::size_t>(lane)) *
                            static_cast<std::size_t>(layout.scale_bytes);
}

// The byte that holds the code of a column, and which nibble of it.
struct CodePlace {
  std::byte* byte;
  bool high;
};
CodePlace code_at(const BlockPlace& place, const PackedLayout& layout, std::int64_t lane, std::int64_t column) {
  const bool high = layout.code_bits == 4 && column >= 16;
  const std::int64_t in_parts = high ? column - 16 : column;
  return {place.codes + in_parts / 4 * 64 + lane * 4 + in_parts % 4, high};
}

void put(const SourceBlock& source, const PackedLayout& layout, const BlockPlace& place, std::int64_t lane) {
  const int halves = layout.halves ? 2 : 1;
  for (int h = 0; h < halves; ++h) {
    store_scale(scale_at(place, layout, h, lane), layout.scale_bytes, source.scale[h]);
    if (layout.has_min) store_scale(scale_at(place, layout, halves + h, lane), layout.scale_bytes, source.min[h]);
  }
  for (std::int64_t column = 0; column < kBlockColumns; ++column) {
    const CodePlace code = code_at(place, layout, lane, column);
    const auto value = static_cast<std::byte>(source.code[static_cast<std::size_t>(column)]);
    *code.byte |= code.high ? value << 4 : value;  // the buffer was zero
  }
}

bool all_finite(const SourceBlock& source) {
  for (const float value : {source.scale[0], source.scale[1], source.min[0], source.min[1]})
    if (!std::isfinite(value)) return false;
  return true;
}

bool element_finite(PackedFormat format, const std::byte* at) {
  if (format == PackedFormat::f32) return std::isfinite(load<float>(at));
  const auto bits = load<std::uint16_t>(at);
  return std::isfinite(format == PackedFormat::f16 ? f16_to_f32(bits) : bf16_to_f32(bits));
}

}  // namespace

PackedMatrix::PackedMatrix(const std::string& name, TensorKind kind, std::int64_t rows, std::int64_t columns,
                           std::span<const std::byte> data, int threads, std::shared_ptr<WeightArena> arena)
    : format_(format_of(kind)), rows_(rows), columns_(columns) {
  const std::int64_t unit = std::max(kBlockColumns, info_of(kind).block_len);
  if (rows < 1 || columns < unit || columns % unit != 0)
    throw input_error(name, "its rows have " + std::to_string(columns) + " values; expected a multiple of " +
                                std::to_string(unit) + " for " + std::string(info_of(kind).name));
  const auto row_bytes = static_cast<std::size_t>(encoded_bytes(kind, columns));
  if (data.size() != row_bytes * static_cast<std::size_t>(rows))
    throw input_error(name, "it has " + std::to_string(data.size()) + " bytes; expected " +
                                std::to_string(row_bytes * static_cast<std::size_t>(rows)));
  arena_ = arena != nullptr ? std::move(arena) : std::make_shared<WeightArena>(bytes());
  data_ = arena_->take(bytes());
  const PackedLayout layout = layout_of(format_);
  const auto num_blocks = static_cast<std::size_t>(blocks());
  const auto not_finite = [&](std::int64_t row, std::size_t block) {
    return input_error(name, "row " + std::to_string(row) + " has a value in columns " + std::to_string(block * 32) +
                                 " to " + std::to_string(block * 32 + 31) + " that is not finite; expected numbers");
  };
  parallel_for(groups(), threads, [&](std::int64_t g, int) {
    std::byte* const group = data_ + static_cast<std::size_t>(g) * group_bytes();
    const std::int64_t row_end = std::min(rows_, (g + 1) * kGroupRows);
    for (std::int64_t row = g * kGroupRows; row < row_end; ++row) {
      const std::int64_t lane = row % kGroupRows;
      const std::byte* const source = data.data() + static_cast<std::size_t>(row) * row_bytes;
      for (std::size_t b = 0; b < num_blocks; ++b) {
        if (layout.quantised()) {
          const SourceBlock block = source_block(kind, source, b);
          if (!all_finite(block)) throw not_finite(row, b);
          put(block, layout, place_of(group, layout, num_blocks, b), lane);
          continue;
        }
        const auto element_bytes = static_cast<std::size_t>(layout.scale_bytes);
        for (std::size_t c = b * 32; c < b * 32 + 32; ++c) {
          if (!element_finite(format_, source + c * element_bytes)) throw not_finite(row, b);
          std::memcpy(group + (c * kGroupRows + static_cast<std::size_t>(lane)) * element_bytes,
                      source + c * element_bytes, element_bytes);
        }
      }
    }
  });
}

std::size_t PackedMatrix::bytes_of(TensorKind kind, std::int64_t rows, std::int64_t columns) {
  const std::size_t group = layout_of(format_of(kind)).group_bytes(static_cast<std::size_t>(columns / kBlockColumns));
  return (group * static_cast<std::size_t>((rows + kGroupRows - 1) / kGroupRows) + 63) / 64 * 64;
}

PackedMatrix PackedMatrix::gathered(std::span<const std::int32_t> rows, int threads) const {
  PackedMatrix out;
  out.format_ = format_;
  out.rows_ = std::ssize(rows);
  out.columns_ = columns_;
  out.arena_ = std::make_shared<WeightArena>((out.bytes() + 63) / 64 * 64);
  out.data_ = out.arena_->take(out.bytes());
  // A group is a list of runs of 16 lanes: of scales or elements, and of four codes.
  const PackedLayout layout = layout_of(format_);
  const std::size_t codes = layout.codes_at(static_cast<std::size_t>(blocks()));
  const auto copy_lanes = [](const std::byte* from, std::int64_t from_lane, std::byte* to, std::int64_t to_lane,
                             std::size_t begin, std::size_t end, std::size_t bytes) {
    for (std::size_t at = begin; at < end; at += kGroupRows * bytes)
      std::memcpy(to + at + static_cast<std::size_t>(to_lane) * bytes,
                  from + at + static_cast<std::size_t>(from_lane) * bytes, bytes);
  };
  parallel_for(out.groups(), threads, [&](std::int64_t g, int) {
    std::byte* const to = out.data_ + static_cast<std::size_t>(g) * group_bytes();
    for (std::int64_t i = g * kGroupRows; i < std::min(out.rows_, (g + 1) * kGroupRows); ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(i)];
      const std::byte* const from = group(row / kGroupRows);
      const auto scale_bytes = static_cast<std::size_t>(layout.scale_bytes);
      if (!layout.quantised()) {
        copy_lanes(from, row % kGroupRows, to, i % kGroupRows, 0, group_bytes(), scale_bytes);
        continue;
      }
      copy_lanes(from, row % kGroupRows, to, i % kGroupRows, 0,
                 static_cast<std::size_t>(blocks()) * layout.scale_bytes_of_block(), scale_bytes);
      copy_lanes(from, row % kGroupRows, to, i % kGroupRows, codes, group_bytes(), 4);
    }
  });
  return out;
}

void PackedMatrix::decode_row(std::int64_t row, std::span<float> out) const {
  const PackedLayout layout = layout_of(format_);
  const auto num_blocks = static_cast<std::size_t>(blocks());
  const std::int64_t lane = row % kGroupRows;
  std::byte* const at = data_ + static_cast<std::size_t>(row / kGroupRows) * group_bytes();
  for (std::size_t c = 0; c < out.size(); ++c) {
    if (!layout.quantised()) {
      const std::byte* const element =
          at + (c * kGroupRows + static_cast<std::size_t>(lane)) * static_cast<std::size_t>(layout.scale_bytes);
      if (format_ == PackedFormat::f32)
        out[c] = load<float>(element);
      else
        out[c] = format_ == PackedFormat::f16 ? f16_to_f32(load<std::uint16_t>(element))
                                              : bf16_to_f32(load<std::uint16_t>(element));
      continue;
    }
    const BlockPlace place = place_of(at, layout, num_blocks, c / 32);
    const auto column = static_cast<std::int64_t>(c % 32);
    const int half = layout.halves && column >= 16 ? 1 : 0;
    const CodePlace code = code_at(place, layout, lane, column);
    const int byte = std::to_integer<int>(*code.byte);
    const int value = layout.code_bits == 8 ? byte : (code.high ? byte >> 4 : byte & 15);
    const float d = load_scale(scale_at(place, layout, half, lane), layout.scale_bytes);
    const auto number = static_cast<float>(value - layout.offset);
    out[c] =
        layout.has_min
            ? std::fma(d, number,
                       load_scale(scale_at(place, layout, (layout.halves ? 2 : 1) + half, lane), layout.scale_bytes))
            : d * number;
  }
}

}  // namespace draftproof
