#include "reference/trace/trace_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/split.hpp"
#include "reference/logits/top_p_fraction.hpp"
#include "reference/random/philox.hpp"
#include "reference/step/placeholder.hpp"
#include "reference/step/replayable.hpp"

namespace draftproof {
namespace {

constexpr std::array kTensorNames = {"target_logits",
                                     "target_probs",
                                     "cu_num_draft_tokens",
                                     "draft_tokens",
                                     "draft_parents",
                                     "draft_probs",
                                     "draft_logits",
                                     "uncond_logits",
                                     "temperature",
                                     "top_p",
                                     "top_p_numerator",
                                     "top_p_denominator",
                                     "min_p",
                                     "top_k",
                                     "repetition_penalty",
                                     "frequency_penalty",
                                     "presence_penalty",
                                     "guidance_scale",
                                     "dry_breakers",
                                     "seed",
                                     "step",
                                     "position",
                                     "prompt_tokens",
                                     "cu_prompt_tokens",
                                     "output_tokens",
                                     "cu_output_tokens",
                                     "bitmask",
                                     "logit_bias_tokens",
                                     "logit_bias_values",
                                     "cu_logit_bias"};

std::string missing(const SafetensorsFile& file, std::string_view name) {
  return file.path() + ": " + tensor_label(name);
}

// A request takes some 500 bytes of memory, and two in a file of one token.
constexpr std::uint64_t kRequestsMax = std::uint64_t{1} << 22;

void require_request_count(const TensorView& tensor, std::uint64_t count) {
  if (count > kRequestsMax)
    throw input_error(tensor.where, "makes " + std::to_string(count) + " requests; expected at most " +
                                        std::to_string(kRequestsMax) + " in a file");
}

void require_rank(const TensorView& tensor, std::size_t rank, const std::string& meaning) {
  if (tensor.shape.size() != rank)
    throw input_error(tensor.where, "has shape " + shape_text(tensor.shape) + "; expected " + meaning);
}

}  // namespace

void require_known_tensors(const SafetensorsFile& file, TraceKind kind) {
  std::vector<std::string_view> right(kTensorNames.begin(), kTensorNames.end());
  for (const SamplerParameterName& sampler : sampler_parameter_names()) right.push_back(sampler.name);
  if (kind == TraceKind::steps || kind == TraceKind::emitted_steps) {
    right.insert(right.end(), {"logprob_token_ids", "cu_logprob_token_ids"});
    right.insert(right.end(), kRecordedTensors.begin(), kRecordedTensors.end());
  }
  // A replay compares with what the engine emitted, which may stand in the same file.
  if (kind == TraceKind::emitted_steps || (kind == TraceKind::steps && has_recorded(file)))
    right.insert(right.end(), {"num_accepted", "path", "group", "row", "accepted", "logprob", "raw_logprob",
                               "token_id_logprob", "raw_token_id_logprob", "kept_mass", "kept_count"});
  if (kind == TraceKind::draws || kind == TraceKind::filtered) {
    // A misplaced draft tensor would be ignored silently.
    std::erase_if(right, [](std::string_view name) { return name.find("draft") != name.npos; });
    if (kind == TraceKind::draws) {
      right.insert(right.end(), {"samples", "group", "row"});
    } else {
      right.insert(right.end(), {"filtered_logits", "kept"});
    }
  }
  for (const std::string& name : file.names()) {
    if (std::find(right.begin(), right.end(), name) != right.end()) continue;
    throw input_error(missing(file, name), "is not a tensor of a trace; known: " + joined(right, ", "));
  }
}

void TraceReader::read() {
  read_target();
  if (trace_.kind == TraceKind::draws || trace_.kind == TraceKind::filtered) {
    read_draws();
  } else if (trace_.is_dense) {
    read_dense_drafts();
  } else {
    read_ragged_drafts();
  }
  read_parents();
  read_proposals();
  read_unconditional();
  read_parameters();
  read_seeds_and_steps();
  read_histories();
  read_bitmask();
  read_logit_bias();
  read_recorded();
  for (VerifyRequest& request : trace_.requests) end_at_placeholder(request);
  validate_requests();
}

const TensorView& TraceReader::keep(TensorView tensor) {
  return trace_.views.emplace_back(with_rows_of_binary32(std::move(tensor)));
}

RowMatrix TraceReader::rows_of(const TensorView& tensor, std::int64_t first, std::int64_t count) const {
  const RowMatrix whole{tensor.dtype, tensor.bytes.data(), 0, vocab_size_, vocab_size_};
  return whole.slice(first, count);
}

std::optional<TensorView> TraceReader::per_request(std::string_view name, std::initializer_list<DType> dtypes) const {
  std::optional<TensorView> tensor = find_tensor(file_, name, dtypes);
  if (tensor) require_shape(*tensor, {request_count_}, "[B]");
  return tensor;
}

std::optional<TensorView> TraceReader::parameter(std::string_view name, std::initializer_list<DType> dtypes) const {
  std::optional<TensorView> tensor = find_tensor(file_, name, dtypes);
  if (tensor && !tensor->shape.empty()) require_shape(*tensor, {request_count_}, "[B]");
  return tensor;
}

void TraceReader::read_target() {
  std::optional<TensorView> logits = find_tensor(file_, "target_logits", kRowDTypes);
  std::optional<TensorView> probabilities = find_tensor(file_, "target_probs", kRowDTypes);
  if (logits.has_value() == probabilities.has_value())
    throw input_error(file_.path(), logits ? "has both target_logits and target_probs; expected one of them"
                                           : "has neither target_logits nor target_probs; expected one of them");
  target_ = keep(logits ? std::move(*logits) : std::move(*probabilities));
  const std::vector<std::uint64_t>& shape = target_.shape;
  if (shape.size() != 2 && shape.size() != 3)
    throw input_error(target_.where, "has shape " + shape_text(shape) +
                                         "; expected [N, V] with cu_num_draft_tokens, or dense [B, K + 1, V]");
  if (shape.back() < 1 || shape.back() > static_cast<std::uint64_t>(kVocabularyLimit))
    throw input_error(target_.where, "has shape " + shape_text(shape) + ", a vocabulary of " +
                                         std::to_string(shape.back()) + "; expected 1 to " +
                                         std::to_string(kVocabularyLimit) + " tokens");
  trace_.is_dense = shape.size() == 3;
  trace_.vocab_size = vocab_size_ = static_cast<std::int64_t>(shape.back());
}

void TraceReader::place_requests(std::vector<Place> places, const TokenTensor& drafts) {
  places_ = std::move(places);
  trace_.requests.resize(places_.size());
  for (std::size_t b = 0; b < places_.size(); ++b) {
    const Place& place = places_[b];
    VerifyRequest& request = trace_.requests[b];
    request.draft = DraftTree::chain(
        drafts.tokens.subspan(static_cast<std::size_t>(place.first_draft), static_cast<std::size_t>(place.draft_len)));
    request.target_is_probabilities = target_.name == "target_probs";
    request.target = rows_of(target_, place.first_row, place.draft_len + 1);
    request.first_row = place.first_row;
  }
}

void TraceReader::read_ragged_drafts() {
  std::optional<TensorView> sums = find_tensor(file_, "cu_num_draft_tokens", kIndexDTypes);
  if (!sums)
    throw input_error(missing(file_, "cu_num_draft_tokens"),
                      "is missing; it is needed beside rows [N, V] (without it they must be dense, [B, K + 1, V])");
  require_rank(*sums, 1, "[B]");
  std::optional<TensorView> ids = find_tensor(file_, "draft_tokens", kIndexDTypes);
  if (!ids) throw input_error(missing(file_, "draft_tokens"), "is missing; expected [M]");
  require_rank(*ids, 1, "[M], as there is cu_num_draft_tokens");
  request_count_ = sums->shape[0];
  require_request_count(*sums, request_count_);
  draft_count_ = ids->shape[0];
  draft_shape_ = {draft_count_, target_.shape[1]};
  if (request_count_ > 0 && target_.shape[0] + 1 == draft_count_ + request_count_ && integer_at(*sums, 0) == 0)
    throw input_error(sums->where, "has B + 1 entries, the first one 0; expected inclusive sums, [B] = [" +
                                       std::to_string(request_count_ - 1) + "], without it");
  const std::vector<std::int64_t> offsets = read_cumulative_sums(*sums, draft_count_, "M (the length of draft_tokens)");
  require_shape(target_, {draft_count_ + request_count_, target_.shape[1]}, "[M + B, V]");

  const TokenTensor& drafts = trace_.tokens.emplace_back(read_tokens(std::move(*ids), vocab_size_, true));
  std::vector<Place> places;
  places.reserve(request_count_);
  for (std::size_t b = 0; b < request_count_; ++b) {
    const std::int64_t first = offsets[b];
    places.push_back({first + static_cast<std::int64_t>(b), first, offsets[b + 1] - first});
  }
  place_requests(std::move(places), drafts);
}

void TraceReader::read_draws() {
  require_rank(target_, 2, "[G, V]");
  request_count_ = target_.shape[0];
  require_request_count(target_, request_count_);
  std::vector<Place> places;
  for (std::uint64_t g = 0; g < request_count_; ++g) places.push_back({static_cast<std::int64_t>(g), 0, 0});
  place_requests(std::move(places), trace_.tokens.emplace_back());
}

void TraceReader::read_dense_drafts() {
  if (file_.contains("cu_num_draft_tokens"))
    throw input_error(missing(file_, "cu_num_draft_tokens"),
                      "does not go with dense rows [B, K + 1, V]; draft_tokens padded with -1 says how many there are");
  std::optional<TensorView> ids = find_tensor(file_, "draft_tokens", kIndexDTypes);
  if (!ids) throw input_error(missing(file_, "draft_tokens"), "is missing; expected [B, K]");
  const std::uint64_t rows = target_.shape[1];
  if (rows == 0) throw input_error(target_.where, "has shape " + shape_text(target_.shape) + "; K + 1 is at least 1");
  request_count_ = target_.shape[0];
  require_request_count(target_, request_count_);
  draft_shape_ = {request_count_, rows - 1, target_.shape[2]};
  require_shape(*ids, {request_count_, rows - 1}, "[B, K]");
  const auto width = static_cast<std::int64_t>(rows - 1);

  const TokenTensor& drafts = trace_.tokens.emplace_back(read_tokens(std::move(*ids), vocab_size_, true));
  std::vector<Place> places;
  places.reserve(request_count_);
  for (std::int64_t b = 0; b < static_cast<std::int64_t>(request_count_); ++b) {
    const auto row = drafts.tokens.subspan(static_cast<std::size_t>(b * width), static_cast<std::size_t>(width));
    // Padding ends a request's drafts; behind a placeholder others stand (step/placeholder.hpp).
    const auto last = std::find_if(row.rbegin(), row.rend(), [](Token id) { return id != kPaddingToken; });
    const std::int64_t draft_len = row.rend() - last;
    draft_count_ += static_cast<std::uint64_t>(draft_len);
    places.push_back({b * (width + 1), b * width, draft_len});
  }
  place_requests(std::move(places), drafts);
}

void TraceReader::read_proposals() {
  std::optional<TensorView> probabilities = find_tensor(file_, "draft_probs", kRowDTypes);
  std::optional<TensorView> logits = find_tensor(file_, "draft_logits", kRowDTypes);
  if (probabilities && logits)
    throw input_error(file_.path(), "has both draft_probs and draft_logits; expected one of them, or neither");
  if (!probabilities && !logits) return;
  const TensorView& proposal = keep(probabilities ? std::move(*probabilities) : std::move(*logits));
  // Every inner node of a tree proposes, so that its rows are laid out like the target's.
  if (trace_.has_parents) {
    require_shape(proposal, target_.shape, "the shape of the target rows, as there is draft_parents");
  } else {
    require_shape(proposal, draft_shape_, trace_.is_dense ? "[B, K, V]" : "[M, V]");
  }
  for (std::size_t b = 0; b < places_.size(); ++b) {
    const Place& place = places_[b];
    VerifyRequest& request = trace_.requests[b];
    request.proposal_kind = probabilities ? ProposalKind::probabilities : ProposalKind::logits;
    request.first_proposal_row = trace_.has_parents ? place.first_row : place.first_draft;
    request.proposal = rows_of(proposal, request.first_proposal_row, place.draft_len + (trace_.has_parents ? 1 : 0));
  }
}

void TraceReader::read_parents() {
  const std::optional<TensorView> parents = find_tensor(file_, "draft_parents", kIndexDTypes);
  trace_.has_parents = parents.has_value();
  if (!parents) return;
  std::vector<std::uint64_t> shape = draft_shape_;
  shape.pop_back();
  require_shape(*parents, shape, trace_.is_dense ? "[B, K]" : "[M]");
  for (std::size_t b = 0; b < places_.size(); ++b) {
    DraftTree& draft = trace_.requests[b].draft;
    for (std::int32_t node = 0; node < draft.size(); ++node) {
      const std::int64_t parent = integer_at(*parents, static_cast<std::uint64_t>(places_[b].first_draft + node));
      if (parent < kRootNode || parent >= node)
        throw input_error(parents->where, "request " + std::to_string(b) + ", node " + std::to_string(node) + " is " +
                                              std::to_string(parent) +
                                              "; expected -1 (the context) or an earlier node of the request");
      draft.parents[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(parent);
    }
  }
}

void TraceReader::read_unconditional() {
  std::optional<TensorView> found = find_tensor(file_, "uncond_logits", kRowDTypes);
  if (!found) return;
  if (target_.name != "target_logits")
    throw input_error(found->where, "goes with target_logits; beside target_probs, which are final, it has no use");
  if (!file_.contains("guidance_scale"))
    throw input_error(found->where, "needs guidance_scale [B]; without it every scale is 1 and this has no use");
  const TensorView& unconditional = keep(std::move(*found));
  require_shape(unconditional, target_.shape, "the shape of target_logits");
  for (std::size_t b = 0; b < places_.size(); ++b)
    trace_.requests[b].unconditional = rows_of(unconditional, places_[b].first_row, places_[b].draft_len + 1);
}

void TraceReader::read_top_p_fractions() {
  const std::optional<TensorView> numerators = parameter("top_p_numerator", kIndexDTypes);
  const std::optional<TensorView> denominators = parameter("top_p_denominator", kIndexDTypes);
  if (numerators.has_value() != denominators.has_value())
    throw input_error(file_.path(), "has one of top_p_numerator and top_p_denominator; expected both or neither");
  if (!numerators) return;
  const auto part = [](const TensorView& tensor, std::uint64_t b) {
    const std::int64_t value = integer_at(tensor, tensor.shape.empty() ? 0 : b);
    if (!std::in_range<std::uint32_t>(value))
      throw input_error(tensor.where, "request " + std::to_string(b) + " is " + std::to_string(value) +
                                          "; expected a whole number in [0, 2^32)");
    return static_cast<std::uint32_t>(value);
  };
  for (std::uint64_t b = 0; b < request_count_; ++b)
    set_top_p(trace_.requests[b].parameters.filters, part(*numerators, b), part(*denominators, b));
}

void TraceReader::read_parameters() {
  const auto read_floats = [&](std::string_view name, const auto& set) {
    const std::optional<TensorView> tensor = parameter(name, {DType::f32, DType::f64, DType::i32, DType::i64});
    if (!tensor) return;
    for (std::size_t b = 0; b < request_count_; ++b)
      set(trace_.requests[b].parameters, number_at(*tensor, tensor->shape.empty() ? 0 : b));
  };
  read_floats("temperature", [](RowParameters& p, float value) { p.temperature = value; });
  read_floats("top_p", [](RowParameters& p, float value) { p.filters.top_p = top_p_of_engine(value); });
  read_top_p_fractions();
  read_floats("min_p", [](RowParameters& p, float value) { p.filters.min_p = value; });
  read_floats("repetition_penalty", [](RowParameters& p, float value) { p.repetition_penalty = value; });
  read_floats("frequency_penalty", [](RowParameters& p, float value) { p.frequency_penalty = value; });
  read_floats("presence_penalty", [](RowParameters& p, float value) { p.presence_penalty = value; });
  read_floats("guidance_scale", [](RowParameters& p, float value) { p.guidance_scale = value; });
  for (const SamplerParameterName& sampler : sampler_parameter_names())
    read_floats(sampler.name, [&](RowParameters& p, float value) { p.samplers.*sampler.value = value; });
  if (std::optional<TensorView> ids = find_tensor(file_, "dry_breakers", kIndexDTypes)) {
    require_rank(*ids, 1, "[n], sequence breakers of all requests");
    const TokenTensor& breakers = trace_.tokens.emplace_back(read_tokens(std::move(*ids), vocab_size_, false));
    for (VerifyRequest& request : trace_.requests) request.constraints.dry_breakers = breakers.tokens;
  }
  if (const std::optional<TensorView> top_k = parameter("top_k", kIndexDTypes)) {
    for (std::size_t b = 0; b < request_count_; ++b) {
      const std::int64_t k = integer_at(*top_k, top_k->shape.empty() ? 0 : b);
      constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
      trace_.requests[b].parameters.filters.top_k = static_cast<std::int32_t>(std::clamp(k, -kMost, kMost));
    }
  }
  for (VerifyRequest& request : trace_.requests) {
    request.parameters.filters.order = trace_.settings.filter_order;
    request.parameters.filters.ties = trace_.settings.ties;
    request.parameters.penalty_window = trace_.settings.penalty_window;
    request.parameters.guidance_form = trace_.settings.guidance_form;
    request.parameters.nan_policy = trace_.settings.nan_policy;
    request.draft_parameters.nan_policy = trace_.settings.nan_policy;
    if (trace_.settings.draft_processed) continue;
    // Temperature and filters alone: penalties, guidance and further samplers are the target's.
    request.draft_parameters.temperature = request.parameters.temperature;
    request.draft_parameters.filters = request.parameters.filters;
  }
}

void TraceReader::read_seeds_and_steps() {
  if (trace_.kind == TraceKind::draws) return;  // there they say where each draw was made (audit_file.cpp)
  const std::optional<TensorView> seeds = per_request("seed", {DType::u64, DType::i64});
  trace_.has_seeds = seeds.has_value();
  for (std::size_t b = 0; b < request_count_; ++b) {
    std::uint64_t& seed = trace_.requests[b].seed;
    if (!seeds) {
      seed = derive_seed(trace_.settings.seed, b);
    } else if (seeds->dtype == DType::u64) {
      seed = seeds->as<std::uint64_t>()[b];
    } else {
      seed = static_cast<std::uint64_t>(seeds->as<std::int64_t>()[b]);
    }
  }
  const auto read_counts = [&](const char* name, const char* what, const auto& set) {
    const std::optional<TensorView> counts = per_request(name, kIndexDTypes);
    if (!counts) return;
    for (std::size_t b = 0; b < request_count_; ++b) {
      const std::int64_t count = integer_at(*counts, b);
      if (count < 0 || count > std::numeric_limits<std::uint32_t>::max())
        throw input_error(counts->where, entry_is(b, std::to_string(count)) + "; expected " + what + " in [0, 2^32)");
      set(trace_.requests[b], static_cast<std::uint32_t>(count));
    }
  };
  read_counts("step", "a step number", [](VerifyRequest& request, std::uint32_t step) { request.step = step; });
  read_counts("position", "a number of tokens",
              [](VerifyRequest& request, std::uint32_t position) { request.position = position; });
}

void TraceReader::read_ids(std::string_view name, std::string_view sums_name,
                           std::span<const Token> VerifyRequest::*ids_of) {
  std::optional<TensorView> ids = find_tensor(file_, name, kIndexDTypes);
  const std::optional<TensorView> sums = per_request(sums_name, kIndexDTypes);
  if (ids.has_value() != sums.has_value())
    throw input_error(missing(file_, ids ? sums_name : name),
                      "is missing; " + tensor_label(ids ? name : sums_name) + " needs it");
  if (!ids) return;
  require_rank(*ids, 1, "one dimension");
  const std::string meaning = "the length of " + std::string(name);
  const std::vector<std::int64_t> offsets = read_cumulative_sums(*sums, ids->shape[0], meaning);
  const TokenTensor& tokens = trace_.tokens.emplace_back(read_tokens(std::move(*ids), vocab_size_, false));
  for (std::size_t b = 0; b < request_count_; ++b)
    trace_.requests[b].*ids_of = tokens.tokens.subspan(static_cast<std::size_t>(offsets[b]),
                                                       static_cast<std::size_t>(offsets[b + 1] - offsets[b]));
}

void TraceReader::read_histories() {
  read_ids("logprob_token_ids", "cu_logprob_token_ids", &VerifyRequest::logprob_token_ids);
  read_ids("prompt_tokens", "cu_prompt_tokens", &VerifyRequest::prompt_tokens);
  // In an emitted step, a matrix of this name is what the step put out.
  const bool may_be = trace_.kind == TraceKind::emitted_steps || has_recorded(file_);
  const bool is_emission = may_be && file_.contains("output_tokens") && file_.tensor("output_tokens").shape.size() == 2;
  if (!is_emission) read_ids("output_tokens", "cu_output_tokens", &VerifyRequest::output_tokens);
}

void TraceReader::read_bitmask() {
  std::optional<TensorView> found = find_tensor(file_, "bitmask", {DType::i32, DType::u32});
  if (!found) return;
  const TensorView& mask = keep(std::move(*found));
  const auto words = static_cast<std::uint64_t>((vocab_size_ + 31) / 32);
  const bool is_dense = trace_.is_dense && mask.shape.size() == 3;
  if (is_dense) {
    require_shape(mask, {request_count_, target_.shape[1], words}, "[B, K + 1, ceil(V/32)]");
  } else {
    require_shape(mask, {draft_count_ + request_count_, words}, "[N, ceil(V/32)]");
  }
  // i32 is how PyTorch holds the words; their bits are the same.
  const std::span<const std::uint32_t> all{reinterpret_cast<const std::uint32_t*>(mask.bytes.data()),
                                           mask.element_count()};
  std::uint64_t packed_row = 0;
  for (std::size_t b = 0; b < places_.size(); ++b) {
    const std::uint64_t rows = static_cast<std::uint64_t>(places_[b].draft_len) + 1;
    const std::uint64_t first = is_dense ? static_cast<std::uint64_t>(places_[b].first_row) : packed_row;
    trace_.requests[b].allowed_masks = all.subspan(first * words, rows * words);
    packed_row += rows;
  }
}

void TraceReader::read_logit_bias() {
  const std::optional<TensorView> ids = find_tensor(file_, "logit_bias_tokens", kIndexDTypes);
  const std::optional<TensorView> values = find_tensor(file_, "logit_bias_values", {DType::f32});
  const std::optional<TensorView> sums = per_request("cu_logit_bias", kIndexDTypes);
  if (!ids && !values && !sums) return;
  if (!ids || !values || !sums)
    throw input_error(file_.path(),
                      "has some of logit_bias_tokens, logit_bias_values and cu_logit_bias; all three are needed");
  require_rank(*ids, 1, "[L]");
  require_shape(*values, ids->shape, "[L]");
  const std::vector<std::int64_t> offsets =
      read_cumulative_sums(*sums, ids->shape[0], "L (the length of logit_bias_tokens)");
  const TokenTensor tokens = read_tokens(*ids, vocab_size_, false);
  const std::span<const float> biases = values->as<float>();
  for (std::size_t i = 0; i < biases.size(); ++i) {
    if (!std::isfinite(biases[i]))
      throw input_error(values->where, entry_is(i, std::to_string(biases[i])) + "; expected finite numbers");
    trace_.logit_bias.push_back({tokens.tokens[i], biases[i]});
  }
  const std::span<const LogitBias> all = trace_.logit_bias;
  for (std::size_t b = 0; b < request_count_; ++b)
    trace_.requests[b].constraints.logit_bias =
        all.subspan(static_cast<std::size_t>(offsets[b]), static_cast<std::size_t>(offsets[b + 1] - offsets[b]));
}

void TraceReader::validate_requests() const {
  for (std::size_t b = 0; b < trace_.requests.size(); ++b) {
    try {
      // Parameters beside target_probs only record how those were made, but nonsense is worth an error there too.
      validate(trace_.requests[b].parameters, "request " + std::to_string(b));
      validate(trace_.requests[b], trace_.settings.verifier, static_cast<std::int64_t>(b));
      if (!trace_.requests[b].recorded.any()) continue;
      validate_recorded_numbers(trace_.requests[b], "request " + std::to_string(b));
      // The audit says which verifier emitted steps to be audited.
      if (trace_.kind == TraceKind::steps)
        require_replayable(trace_.requests[b], trace_.settings.verifier, "request " + std::to_string(b));
    } catch (const Error& error) {
      throw Error(error.kind(), file_.path(), error.what());
    }
  }
}

}  // namespace draftproof
