// Logits that one path of an engine computed, row by row: what two paths are compared by.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/archives/safetensors.hpp"

namespace draftproof {

// Where a row belongs. Rows of two files are the same row where request and position are.
struct RowPlace {
  std::int64_t request = 0;
  std::int64_t position = 0;         // tokens before the row's token, in its request
  std::int64_t draft_position = -1;  // row of its verification step, 0 the first; -1: not given

  friend bool operator==(const RowPlace&, const RowPlace&) = default;
  // "request 3, position 40, row 2 of its step"
  std::string text() const;
};

struct LogitsFile {
  std::string path;
  TensorView logits;  // [N, V] F32, F16, BF16
  std::vector<RowPlace> places;
  bool has_requests = false;   // tensor `requests` [N]; without it all rows are of request 0
  bool has_positions = false;  // tensor `positions` [N]; without it a row's position is its number

  std::size_t rows() const { return places.size(); }
  std::size_t vocab_size() const { return logits.shape.at(1); }
  // Row r, widened to float [V].
  void row(std::size_t r, std::vector<float>& out) const;
};

// Tensors `logits` [N, V] and, where they are known, `requests`, `positions` and `draft_positions` [N] I32 or I64.
// Input errors name file, tensor and place: a wrong dtype or shape, no row, V < 2, a negative number, two rows of one
// place, a tensor of another name.
LogitsFile read_logits_file(const std::string& path);

}  // namespace draftproof
