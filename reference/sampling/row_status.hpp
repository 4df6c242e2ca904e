// Faults of a row, as a code that every layer understands (the same numbers as draftproof_row_status of
// gpu/draftproof.h), and the exception that carries it from wherever a row is read to the border, where text is made.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace draftproof {

// If several apply to a row, the highest is reported.
enum class RowStatus : std::int32_t {
  ok = 0,
  nothing_left = 1,     // every token is masked, or far below every limit
  all_zero = 2,         // every probability is 0
  bad_sum = 3,          // the probabilities sum to more than 3
  logit_too_large = 4,  // a logit over the temperature is above 2^29
  infinite_logit = 5,   // +infinity, as given or after bias, penalties and temperature
  nan_logit = 6,
  bad_probability = 7,  // not a number in [0, 1]
  bad_guidance = 8,     // +infinity, or a token that only the unconditional row masks, or overflow
  bad_id = 9,           // a token id outside the vocabulary, a parent that is no earlier node
  bad_parameter = 10,   // a sampling parameter outside its range
};

// Which row: its number in its tensor, and where a verification step asks for it, the step's own place.
struct RowName {
  RowName(std::int64_t row = 0) : number(row) {}  // NOLINT(google-explicit-constructor): a row is usually its number
  RowName(std::int64_t row, const char* tensor_name, std::int64_t place_in_step)
      : number(row), tensor(tensor_name), place(place_in_step) {}

  std::int64_t number;
  const char* tensor = nullptr;  // a static string, as "target_logits"; null: not named
  std::int64_t place = -1;       // row of the step: 0 is the context's, i + 1 that after node i; -1: no step
};

class RowError : public Error {
 public:
  // `what_is_wrong` says what was found and what is expected. column -1: the row as a whole.
  RowError(RowStatus status, const RowName& row, std::int64_t column, const std::string& what_is_wrong)
      : Error(ErrorKind::input, text_of(row, column), what_is_wrong),
        status_(status),
        row_(row),
        column_(column),
        what_is_wrong_(what_is_wrong) {}

  RowStatus status() const { return status_; }
  const RowName& row() const { return row_; }
  std::int64_t column() const { return column_; }
  const std::string& what_is_wrong() const { return what_is_wrong_; }

 private:
  static std::string text_of(const RowName& row, std::int64_t column) {
    return "row " + std::to_string(row.number) + (row.tensor != nullptr ? std::string(" of ") + row.tensor : "") +
           (column >= 0 ? ", column " + std::to_string(column) : "");
  }

  RowStatus status_;
  RowName row_;
  std::int64_t column_;
  std::string what_is_wrong_;
};

}  // namespace draftproof
