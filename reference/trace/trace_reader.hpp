// From the tensors of a trace file to requests: the inside of trace.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/trace/trace.hpp"

namespace draftproof {

// Tensors of an engine's own random numbers.
inline constexpr std::array kRecordedTensors = {"uniforms",     "draw_uniforms",    "exponential_noise",
                                                "gumbel_noise", "recovered_tokens", "bonus_tokens"};
bool has_recorded(const SafetensorsFile& file);

// Error: a tensor that the format of this kind does not have, listing those that it has.
void require_known_tensors(const SafetensorsFile& file, TraceKind kind);

// Fills the requests of contents whose file and settings are set. B requests, M drafts, N = M + B target rows, V tokens
// as in the format's table. Everything but the sums of probability rows is checked.
class TraceReader {
 public:
  explicit TraceReader(TraceContents& trace) : trace_(trace), file_(trace.file) {}
  void read();

 private:
  // Where the rows of a request lie in the target tensor, and its drafts in the draft tensors, both flattened to rows.
  struct Place {
    std::int64_t first_row;
    std::int64_t first_draft;
    std::int64_t draft_len;
  };

  void read_target();
  void read_ragged_drafts();
  void read_draws();
  void read_dense_drafts();
  void read_parents();
  void read_proposals();
  void read_unconditional();
  void read_top_p_fractions();
  void read_parameters();
  void read_seeds_and_steps();
  void read_histories();
  void read_bitmask();
  void read_logit_bias();
  void read_recorded();  // trace_recorded.cpp
  void validate_requests() const;

  std::optional<TensorView> per_request(std::string_view name, std::initializer_list<DType> dtypes) const;
  // [B], or a scalar for all requests.
  std::optional<TensorView> parameter(std::string_view name, std::initializer_list<DType> dtypes) const;
  const TensorView& keep(TensorView tensor);
  std::optional<TensorView> recorded_numbers(const char* name, std::initializer_list<DType> dtypes);
  RowMatrix rows_of(const TensorView& tensor, std::int64_t first, std::int64_t count) const;
  void place_requests(std::vector<Place> places, const TokenTensor& drafts);
  void read_ids(std::string_view name, std::string_view sums_name, std::span<const Token> VerifyRequest::*ids_of);

  TraceContents& trace_;
  const SafetensorsFile& file_;
  TensorView target_;
  std::int64_t vocab_size_ = 0;
  std::uint64_t request_count_ = 0;
  std::uint64_t draft_count_ = 0;           // M, without padding
  std::vector<std::uint64_t> draft_shape_;  // of tensors [M, V] or [B, K, V]
  std::vector<Place> places_;
};

}  // namespace draftproof
