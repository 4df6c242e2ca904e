// The rows of a call as the reference sees them: a call's arrays become RowParameters, RowConstraints and History, and
// a RowError becomes its status.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/draftproof.h"
#include "gpu/offset_guards.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/sampling/distribution.hpp"

namespace draftproof::reference_executor {

// An element of an optional array.
template <class T>
T value_of(const T* values, std::int64_t at, T off) {
  return values == nullptr ? off : values[at];
}

DType dtype_of(const draftproof_rows& rows);
// Row `row` of a matrix of rows.
RowView row_view(const draftproof_rows& rows, std::int64_t row, std::int64_t vocab_size);

std::vector<float> floats_of(const RowView& view);

// Elements of a list whose offsets may be invalid; of such a list none.
template <class T>
struct GuardedList {
  std::span<const T> elements = {};
  bool valid = true;
};
template <class T>
GuardedList<T> guarded_list(const T* values, const ListRange& range) {
  return {{values + range.begin, static_cast<std::size_t>(range.count())}, range.valid};
}

// The drafted tokens that stand before a row, where the call has some.
GuardedList<Token> drafted_before(const draftproof_constraints& constraints, std::int64_t row);

// The request of a row; -1, of which there is none, where the call names one outside of [0, requests).
inline std::int64_t request_of_row(const std::int32_t* row_request, std::int64_t row, std::int64_t requests) {
  const std::int64_t request = row_request == nullptr ? row : row_request[row];
  return is_index(request, requests) ? request : -1;
}

// ok or bad_parameter.
RowStatus status_of(const draftproof_parameters& parameters, std::int64_t request);
RowParameters parameters_of(const draftproof_parameters& parameters, std::int64_t request);

// One request's constraints, but for the mask, with the storage behind them. Its lists and ids may be invalid: status()
// is asked before the others are.
class RequestConstraints {
 public:
  RequestConstraints(const draftproof_constraints& constraints, std::int64_t vocab_size, std::int64_t request);

  // bad_parameter, bad_id or ok, of a row whose history goes on with `drafted`. Only a history that is looked at can
  // refuse a row.
  RowStatus status(const RowParameters& parameters, const GuardedList<Token>& drafted);
  bool looks_at_history() const { return looks_at_history_; }

  const RowConstraints& constraints();
  std::span<const Token> prompt() const { return committed_.first(static_cast<std::size_t>(prompt_len_)); }
  std::span<const Token> output() const { return committed_.subspan(static_cast<std::size_t>(prompt_len_)); }

 private:
  // The elements of a list that every row looks at.
  std::span<const Token> looked_at(const GuardedList<Token>& list);

  std::int64_t vocab_size_;
  std::span<const Token> committed_;
  std::int64_t prompt_len_ = 0;
  std::int64_t history_len_max_ = 0;
  bool lists_valid_ = true;
  bool history_valid_ = true;
  bool has_bad_words_ = false;
  bool looks_at_history_ = false;
  std::vector<LogitBias> bias_;
  std::vector<std::vector<Token>> sequences_;
  std::optional<BadWords> bad_words_;
  RowConstraints constraints_;
};

// Rows of logits that go through the pipeline.
struct RowsInput {
  std::int64_t vocab_size = 0;
  draftproof_rows logits{};
  draftproof_rows unconditional{};
  draftproof_parameters parameters{};
  draftproof_constraints constraints{};
};

class Rows {
 public:
  explicit Rows(const RowsInput& input) : input_(input) {}

  // Fills `distribution` with that of a row of `request` (-1: there is none), whose history goes on with `drafted`
  // after what is committed. The distribution is meaningless unless ok is returned, and good until the next call.
  RowStatus process(std::int64_t row, std::int64_t request, const GuardedList<Token>& drafted,
                    Distribution& distribution);

  Pipeline& pipeline() { return pipeline_; }

 private:
  RowsInput input_;
  Pipeline pipeline_;
};

}  // namespace draftproof::reference_executor
