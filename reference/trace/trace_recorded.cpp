// The random numbers that an engine recorded, request by request.
#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "reference/trace/trace_reader.hpp"

namespace draftproof {
namespace {

// A word w stands for w / 2^32, which a double holds.
TensorView words_as_fractions(TensorView tensor) {
  if (tensor.dtype != DType::u32) return tensor;
  const auto fractions = std::make_shared<std::vector<double>>();
  for (const std::uint32_t word : tensor.as<std::uint32_t>()) fractions->push_back(static_cast<double>(word) * 0x1p-32);
  tensor.dtype = DType::f64;
  tensor.bytes = std::as_bytes(std::span(*fractions));
  tensor.owner = fractions;
  return tensor;
}

RecordedNumbers part_of(const TensorView& tensor, std::uint64_t first, std::uint64_t count) {
  if (tensor.dtype == DType::f32) return {tensor.as<float>().subspan(first, count), {}};
  return {{}, tensor.as<double>().subspan(first, count)};
}

}  // namespace

bool has_recorded(const SafetensorsFile& file) {
  return std::any_of(kRecordedTensors.begin(), kRecordedTensors.end(),
                     [&](const char* name) { return file.contains(name); });
}

std::optional<TensorView> TraceReader::recorded_numbers(const char* name, std::initializer_list<DType> dtypes) {
  std::optional<TensorView> tensor = find_tensor(file_, name, dtypes);
  if (!tensor) return std::nullopt;
  return trace_.views.emplace_back(words_as_fractions(std::move(*tensor)));
}

void TraceReader::read_recorded() {
  if (trace_.kind != TraceKind::steps && trace_.kind != TraceKind::emitted_steps) return;
  for (const char* const name : kRecordedTensors)
    if (file_.contains(name)) trace_.recorded.emplace_back(name);
  std::vector<std::uint64_t> of_drafts = draft_shape_;
  of_drafts.pop_back();
  const std::vector<std::uint64_t> of_rows(target_.shape.begin(), target_.shape.end() - 1);
  const std::vector<std::uint64_t> of_requests{request_count_};
  const std::string drafts = trace_.is_dense ? "[B, K]" : "[M]";
  const std::string rows = trace_.is_dense ? "[B, K + 1" : "[N";
  const auto require_either = [](const TensorView& tensor, const auto& one, const auto& other,
                                 const std::string& text) {
    if (tensor.shape != one && tensor.shape != other)
      throw input_error(tensor.where, "has shape " + shape_text(tensor.shape) + "; expected " + text + ": " +
                                          shape_text(one) + " or " + shape_text(other));
  };
  const auto of_request = [&](std::size_t b) { return &trace_.requests[b].recorded; };

  if (const auto uniforms = recorded_numbers("uniforms", {DType::f32, DType::f64, DType::u32})) {
    require_either(*uniforms, of_drafts, of_rows, drafts + " or " + rows + "]");
    // Without drafts or requests the shapes may be equal, and so are the parts.
    const bool by_rows = uniforms->shape == of_rows;
    for (std::size_t b = 0; b < places_.size(); ++b) {
      const Place& place = places_[b];
      const auto first = static_cast<std::uint64_t>(by_rows ? place.first_row : place.first_draft);
      of_request(b)->uniforms =
          part_of(*uniforms, first, static_cast<std::uint64_t>(place.draft_len) + (by_rows ? 1 : 0));
    }
  }
  if (const auto uniforms = recorded_numbers("draw_uniforms", {DType::f32, DType::f64, DType::u32})) {
    require_either(*uniforms, of_rows, of_requests, rows + "] or [B]");
    const bool by_rows = uniforms->shape == of_rows;
    for (std::size_t b = 0; b < places_.size(); ++b)
      of_request(b)->draw_uniforms = by_rows ? part_of(*uniforms, static_cast<std::uint64_t>(places_[b].first_row),
                                                       static_cast<std::uint64_t>(places_[b].draft_len) + 1)
                                             : part_of(*uniforms, b, 1);
  }
  for (const auto& [name, kind] :
       {std::pair("exponential_noise", NoiseKind::exponential), std::pair("gumbel_noise", NoiseKind::gumbel)}) {
    const auto noise = recorded_numbers(name, {DType::f32, DType::f64});
    if (!noise) continue;
    if (file_.contains("exponential_noise") && file_.contains("gumbel_noise"))
      throw input_error(noise->where, "does not go with gumbel_noise; expected one of them");
    const auto width = static_cast<std::uint64_t>(vocab_size_);
    require_either(*noise, target_.shape, std::vector{request_count_, width}, rows + ", V] or [B, V]");
    const bool by_rows = noise->shape == target_.shape;
    for (std::size_t b = 0; b < places_.size(); ++b) {
      of_request(b)->noise_kind = kind;
      of_request(b)->noise = by_rows ? part_of(*noise, static_cast<std::uint64_t>(places_[b].first_row) * width,
                                               (static_cast<std::uint64_t>(places_[b].draft_len) + 1) * width)
                                     : part_of(*noise, b * width, width);
    }
  }
  if (auto ids = find_tensor(file_, "recovered_tokens", kIndexDTypes)) {
    require_shape(*ids, of_drafts, drafts);
    const TokenTensor& tokens = trace_.tokens.emplace_back(read_tokens(std::move(*ids), vocab_size_, true));
    for (std::size_t b = 0; b < places_.size(); ++b)
      of_request(b)->recovered_tokens = tokens.tokens.subspan(static_cast<std::size_t>(places_[b].first_draft),
                                                              static_cast<std::size_t>(places_[b].draft_len));
  }
  if (auto ids = find_tensor(file_, "bonus_tokens", kIndexDTypes)) {
    require_shape(*ids, of_requests, "[B]");
    const TokenTensor tokens = read_tokens(std::move(*ids), vocab_size_, true);
    for (std::size_t b = 0; b < places_.size(); ++b) of_request(b)->bonus_token = tokens.tokens[b];
  }
}

}  // namespace draftproof
