// The memory of one call on the CPU executor: a caller's plain pointers become checked ones that know their extent.
// Inputs are only bounds-checked, so that a view of any size costs nothing; what is written has a shadow, begins as
// poison and, if it is an output, must have been written whole when the call ends.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu/checked_size.hpp"
#include "gpu/simt/checked_pointer.hpp"
#include "gpu/simt/region.hpp"

namespace draftproof::simt {

class OperationMemory {
 public:
  // Memory of a call. workspace: at least the bytes that measuring found.
  OperationMemory(void* workspace) : workspace_(static_cast<std::byte*>(workspace)), measures_(false) {}  // NOLINT
  // Touches nothing: scratch() only counts.
  static OperationMemory measuring() { return OperationMemory(); }

  std::int64_t workspace_bytes() const { return layout_.bytes(); }

  // Null stays null.
  template <class T>
  CheckedPointer<const T> input(const char* name, const T* data, std::int64_t count) {
    if (data == nullptr) return nullptr;
    auto* bytes = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(data));  // without cells it is only read
    return {&region<T>(name, bytes, count, false), 0, count};
  }
  template <class T>
  CheckedPointer<T> output(const char* name, T* data, std::int64_t count) {
    if (data == nullptr) return nullptr;
    Region& made = region<T>(name, reinterpret_cast<std::byte*>(data), count, true);
    poison(made.data, made.bytes);
    outputs_.push_back({&made, 1, 0, made.cells.size()});
    return {&made, 0, count};
  }
  // Rows [rows, row_stride], of which the first `columns` elements are written; the others are the caller's.
  template <class T>
  CheckedPointer<T> output_rows(const char* name, T* data, std::int64_t rows, std::int64_t row_stride,
                                std::int64_t columns) {
    static_assert(alignof(T) == sizeof(T));  // one cell an element NOLINT(misc-redundant-expression): not for every T
    if (data == nullptr) return nullptr;
    const std::int64_t count = (rows - 1) * row_stride + columns;
    Region& made = region<T>(name, reinterpret_cast<std::byte*>(data), count, true);
    for (std::int64_t row = 0; row < rows; ++row)
      poison(made.data + row * row_stride * static_cast<std::int64_t>(sizeof(T)),
             static_cast<std::uint64_t>(columns) * sizeof(T));
    outputs_.push_back({&made, static_cast<std::size_t>(rows), static_cast<std::size_t>(row_stride),
                        static_cast<std::size_t>(columns)});
    return {&made, 0, count};
  }
  template <class T>
  CheckedPointer<T> in_out(const char* name, T* data, std::int64_t count) {
    if (data == nullptr) return nullptr;
    Region& made = region<T>(name, reinterpret_cast<std::byte*>(data), count, true);
    made.begins_written = true;
    return {&made, 0, count};
  }
  template <class T>
  CheckedPointer<T> scratch(const char* name, CheckedSize count) {
    const std::int64_t begin = layout_.add(count * static_cast<std::int64_t>(sizeof(T)));
    if (measures_) return nullptr;
    Region& made = region<T>(name, workspace_ + begin, count.value(), true);
    poison(made.data, made.bytes);
    return {&made, 0, count.value()};
  }

  // Throws Error(internal) naming an output and its first element that no kernel has written.
  void check_outputs() const;

 private:
  OperationMemory() = default;

  template <class T>
  Region& region(const char* name, std::byte* data, std::int64_t count, bool has_cells) {
    Region& made = regions_.emplace_back();
    made.name = name;
    made.data = data;
    made.bytes = static_cast<std::uint64_t>(count) * sizeof(T);
    made.element_bytes = sizeof(T);
    made.granule = alignof(T) > 8 ? 8 : alignof(T);
    if (has_cells) made.cells = Cells(made.bytes / made.granule);
    return made;
  }

  std::byte* workspace_ = nullptr;
  bool measures_ = true;
  WorkspaceLayout layout_;
  std::deque<Region> regions_;
  // Cells that must have been written: the first of each row.
  struct Output {
    const Region* region;
    std::size_t rows, row_stride, columns;
  };
  std::vector<Output> outputs_;
};

}  // namespace draftproof::simt
