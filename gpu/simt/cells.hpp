// The shadow cells of one piece of memory. Cells that no kernel touches cost nothing, so that the rows of an output may
// lie as far apart as a caller likes.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/simt/shadow.hpp"

namespace draftproof::simt {

class Cells {
 public:
  Cells() = default;
  // Untouched ones: all bits 0. Error (input): the system has no address space for so many.
  explicit Cells(std::size_t count);

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  Cell& operator[](std::size_t i) { return cells_.get()[i]; }
  const Cell& operator[](std::size_t i) const { return cells_.get()[i]; }
  Cell* begin() { return cells_.get(); }
  Cell* end() { return cells_.get() + size_; }
  const Cell* begin() const { return cells_.get(); }
  const Cell* end() const { return cells_.get() + size_; }

 private:
  struct Release {
    std::size_t mapped_bytes;  // 0: from the heap
    void operator()(Cell* cells) const;
  };
  std::size_t size_ = 0;
  std::unique_ptr<Cell, Release> cells_{nullptr, Release{0}};
};

}  // namespace draftproof::simt
