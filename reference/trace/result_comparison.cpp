#include "reference/trace/result_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "reference/trace/emitted_row.hpp"
#include "reference/trace/trace_reader.hpp"
#include "reference/trace/trace_tensors.hpp"
#include "reference/verify/emitted_path.hpp"

namespace draftproof {
namespace {

constexpr std::initializer_list<DType> kRealDTypes = {DType::f32, DType::f64};

std::string text_of(const ResultDifference& difference, double value) {
  return difference.is_real ? number("%.6g", value) : std::to_string(static_cast<std::int64_t>(value));
}

// The tensors of theirs, each with the shape that it must have.
class TheirResult {
 public:
  TheirResult(const VerifyResult& ours, const SafetensorsFile& file) : ours_(ours) {
    const std::uint64_t requests = ours.num_accepted.size();
    tokens_ = find_tensor(file, "output_tokens", kIndexDTypes);
    if (!tokens_) throw input_error(file.path() + ": " + tensor_label("output_tokens"), "is missing; a result has it");
    if (tokens_->shape.size() != 2 || tokens_->shape[0] != requests)
      throw input_error(tokens_->where, "has shape " + shape_text(tokens_->shape) + "; expected [" +
                                            std::to_string(requests) + ", K + 1], a row for each request of the trace");
    compared_.emplace_back("output_tokens");
    const auto read = [&](const char* name, std::initializer_list<DType> dtypes, const auto& shape,
                          const std::string& meaning) {
      std::optional<TensorView> tensor = find_tensor(file, name, dtypes);
      if (!tensor) return tensor;
      require_shape(*tensor, shape, meaning);
      compared_.emplace_back(name);
      return tensor;
    };
    using Shape = std::vector<std::uint64_t>;
    num_accepted_ = read("num_accepted", kIndexDTypes, Shape{requests}, "[B]");
    accepted_ = read("accepted", {DType::u8, DType::boolean}, Shape{ours.accepted.size()}, "[M]");
    logprob_ = read("logprob", kRealDTypes, tokens_->shape, "the shape of output_tokens");
    raw_logprob_ = read("raw_logprob", kRealDTypes, tokens_->shape, "the shape of output_tokens");
    kept_mass_ = read("kept_mass", kRealDTypes, Shape{ours.kept_mass.size()}, "[N]");
    kept_count_ = read("kept_count", kIndexDTypes, Shape{ours.kept_count.size()}, "[N]");
    path_ = find_tensor(file, "path", kIndexDTypes);
    if (path_) {
      if (path_->shape.size() != 2 || path_->shape[0] != requests)
        throw input_error(path_->where, "has shape " + shape_text(path_->shape) + "; expected [" +
                                            std::to_string(requests) + ", D], the accepted nodes padded with -1");
      compared_.emplace_back("path");
    }
    const Shape of_ids{ours.token_id_logprob.size() / static_cast<std::size_t>(ours.width), tokens_->shape[1]};
    const char* const ids = "[L, W], L the given ids of the trace and W the width of output_tokens";
    token_id_logprob_ = read("token_id_logprob", kRealDTypes, of_ids, ids);
    raw_token_id_logprob_ = read("raw_token_id_logprob", kRealDTypes, of_ids, ids);
  }

  const std::vector<std::string>& compared() const { return compared_; }

  // The difference of the next request, each once in order.
  std::optional<ResultDifference> next() {
    const std::size_t b = request_++;
    const auto drafts = static_cast<std::size_t>(ours_.draft_len[b]);
    const auto width = static_cast<std::size_t>(ours_.width);
    std::optional<ResultDifference> found = in_padded(
        "output_tokens", *tokens_, b, width, [&](std::size_t i) { return ours_.output_tokens[b * width + i]; });
    if (!found && num_accepted_) {
      const std::int64_t theirs = integer_at(*num_accepted_, b);
      if (theirs != ours_.num_accepted[b])
        found = ResultDifference{"num_accepted", static_cast<std::int64_t>(b), std::nullopt,
                                 static_cast<double>(ours_.num_accepted[b]), static_cast<double>(theirs)};
    }
    const std::size_t emitted = static_cast<std::size_t>(ours_.num_accepted[b]) + 1;
    const std::size_t row = tokens_->shape[1];
    if (!found) found = in_range("accepted", accepted_, ours_.accepted, b, drafts, first_draft_, first_draft_);
    if (!found) found = in_range("logprob", logprob_, ours_.logprob, b, emitted, b * width, b * row);
    if (!found) found = in_range("raw_logprob", raw_logprob_, ours_.raw_logprob, b, emitted, b * width, b * row);
    const std::size_t first_row = first_draft_ + b;
    if (!found) found = in_range("kept_mass", kept_mass_, ours_.kept_mass, b, drafts + 1, first_row, first_row);
    if (!found) found = in_range("kept_count", kept_count_, ours_.kept_count, b, drafts + 1, first_row, first_row);
    if (!found && path_ && ours_.path.empty()) {  // chains: the first drafts
      found = in_padded("path", *path_, b, emitted - 1, [](std::size_t i) { return static_cast<std::int64_t>(i); });
    } else if (!found && path_) {
      found = in_padded("path", *path_, b, width - 1, [&](std::size_t i) { return ours_.path[b * (width - 1) + i]; });
    }
    for (const Token id : ours_.logprob_token_ids[b]) {
      const std::size_t j = next_id_++;
      for (const auto& [name, theirs, numbers] :
           {std::tuple("token_id_logprob", &token_id_logprob_, &ours_.token_id_logprob),
            std::tuple("raw_token_id_logprob", &raw_token_id_logprob_, &ours_.raw_token_id_logprob)}) {
        if (found) continue;
        found = in_range(name, *theirs, *numbers, b, emitted, j * width, j * row);
        if (found) found->token_id = id;
      }
    }
    first_draft_ += drafts;
    return found;
  }

 private:
  // Columns that only one of the files has must be padding.
  template <class Ours>
  static std::optional<ResultDifference> in_padded(const char* name, const TensorView& theirs, std::size_t b,
                                                   std::size_t width, const Ours& ours_at) {
    const std::uint64_t their_width = theirs.shape[1];
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(width, their_width); ++i) {
      const std::int64_t a = i < width ? ours_at(i) : kPaddingToken;
      const std::int64_t c = i < their_width ? integer_at(theirs, b * their_width + i) : kPaddingToken;
      if (a != c)
        return ResultDifference{name, static_cast<std::int64_t>(b), static_cast<std::int64_t>(i),
                                static_cast<double>(a), static_cast<double>(c)};
    }
    return std::nullopt;
  }

  template <class T>
  static std::optional<ResultDifference> in_range(const char* name, const std::optional<TensorView>& theirs,
                                                  const std::vector<T>& ours, std::size_t b, std::size_t count,
                                                  std::size_t first_of_ours, std::size_t first_of_theirs) {
    for (std::size_t i = 0; theirs && i < count; ++i) {
      const double a = static_cast<double>(ours[first_of_ours + i]);
      const double c = value_at(*theirs, first_of_theirs + i);
      const bool is_real = std::is_floating_point_v<T>;
      if (a == c || (is_real && std::abs(a - c) <= kRealTolerance)) continue;  // NaN is another number
      return ResultDifference{name, static_cast<std::int64_t>(b), static_cast<std::int64_t>(i), a, c, is_real};
    }
    return std::nullopt;
  }

  static double value_at(const TensorView& tensor, std::uint64_t index) {
    if (tensor.dtype == DType::u8 || tensor.dtype == DType::boolean) return tensor.as<std::uint8_t>()[index];
    return number_at(tensor, index);
  }

  const VerifyResult& ours_;
  std::optional<TensorView> tokens_, num_accepted_, accepted_, logprob_, raw_logprob_, kept_mass_, kept_count_, path_,
      token_id_logprob_, raw_token_id_logprob_;
  std::vector<std::string> compared_;
  std::size_t request_ = 0;
  std::size_t first_draft_ = 0;
  std::size_t next_id_ = 0;
};

}  // namespace

std::optional<bool> ResultComparison::has_input(const std::string& sha256) const {
  if (!input_sha256) return std::nullopt;
  return *input_sha256 == sha256;
}

std::string ResultComparison::sentence() const {
  if (!first) return {};
  const std::string request = std::to_string(first->request);
  std::string text = std::to_string(differing_requests) + " request(s) differ from " + path + ", first request " +
                     request + ": " + first->tensor + "[" + request;
  if (first->index) text += ", " + std::to_string(*first->index);
  text += "]";
  if (first->token_id) text += " of id " + std::to_string(*first->token_id);
  return text + " is " + text_of(*first, first->ours) + " here and " + text_of(*first, first->theirs) + " there";
}

ResultComparison compare_result(const VerifyResult& result, const std::string& path) {
  return compare_result(result, SafetensorsFile::open(path));
}

ResultComparison compare_result(const VerifyResult& result, const SafetensorsFile& file) {
  require_known_tensors(file, TraceKind::emitted_steps);
  TheirResult theirs(result, file);
  const TensorView tokens = file.tensor("output_tokens");
  ResultComparison comparison;
  comparison.path = file.path();
  comparison.tensors = theirs.compared();
  if (const auto found = file.metadata().find("input_sha256"); found != file.metadata().end())
    comparison.input_sha256 = found->second;
  for (std::size_t b = 0; b < result.num_accepted.size(); ++b) {
    const std::optional<ResultDifference> difference = theirs.next();
    if (!difference) continue;
    ++comparison.differing_requests;
    if (comparison.first) continue;
    comparison.first = difference;
    for (std::uint64_t i = 0; i < tokens.shape[1]; ++i)
      comparison.first_row.push_back(integer_at(tokens, b * tokens.shape[1] + i));
  }
  return comparison;
}

std::optional<Departure> departure_of(std::span<const VerifyRequest> requests, const VerifyOptions& options,
                                      const ResultComparison& comparison) {
  if (!comparison.first || comparison.first->tensor != "output_tokens") return std::nullopt;
  const VerifyRequest& request = requests[static_cast<std::size_t>(comparison.first->request)];
  const EmittedRow row = read_emitted_row(comparison.first_row, request.draft, request.target.vocab_size);
  if (!row.wrong.empty()) return std::nullopt;
  const auto end = comparison.first_row.begin() + static_cast<std::ptrdiff_t>(row.count);
  const std::vector<Token> emitted(comparison.first_row.begin(), end);
  const EmittedPath path = find_emitted_path(request.draft, std::span(emitted).first(emitted.size() - 1));
  StepWorkspace workspace;
  return find_departure(request, options, emitted, path.nodes, workspace);
}

std::vector<std::string> findings_of(const ImpossibleDrafts& impossible, const ConsistencyReport& consistency,
                                     const std::optional<ResultComparison>& comparison,
                                     const std::string& input_sha256) {
  std::vector<std::string> findings;
  if (impossible.count > 0) findings.push_back(impossible.sentence());
  if (consistency.distribution_changes) findings.push_back(consistency.sentence);
  if (comparison && comparison->first) {
    findings.push_back(comparison->sentence());
    if (comparison->has_input(input_sha256) == false) findings.back() += "; it was made from another input";
  }
  return findings;
}

}  // namespace draftproof
