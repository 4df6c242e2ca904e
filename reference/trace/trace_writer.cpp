#include "reference/trace/trace_writer.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/archives/safetensors.hpp"
#include "base/error.hpp"
#include "reference/logits/edits.hpp"
#include "reference/step/step_rows.hpp"
#include "reference/trace/trace_settings.hpp"

namespace draftproof {
namespace {

using Requests = std::span<const VerifyRequest>;

// Tensors under construction; they live until the file is written.
class TraceBuilder {
 public:
  explicit TraceBuilder(Requests requests) : requests_(requests) {}

  template <class T, class ValueOf>
  void add_per_request(const std::string& name, ValueOf value_of) {
    std::vector<T> values;
    for (const VerifyRequest& request : requests_) values.push_back(static_cast<T>(value_of(request)));
    add<T>(name, {values.size()}, values);
  }

  // A ragged tensor and its inclusive cumulative lengths.
  template <class T, class SpanOf>
  void add_ragged(const std::string& name, SpanOf span_of) {
    std::vector<T> values;
    for (const VerifyRequest& request : requests_) {
      for (const auto& value : span_of(request)) values.push_back(value);
    }
    add<T>(name, {values.size()}, values);
  }
  template <class Sum = std::int64_t, class SpanOf>
  void add_cumulative(const std::string& name, SpanOf span_of) {
    std::int64_t sum = 0;
    add_per_request<Sum>(
        name, [&](const VerifyRequest& request) { return sum += static_cast<std::int64_t>(span_of(request).size()); });
  }

  template <class T>
  void add(const std::string& name, const std::vector<std::uint64_t>& shape, const std::vector<T>& values) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    add_bytes(name, DTypeOf<T>::value, shape, {bytes.begin(), bytes.end()});
  }
  // The rows of one matrix per request, then those of another, one request after another.
  template <class MatrixOf, class RestOf>
  void add_rows(const std::string& name, MatrixOf matrix_of, RestOf rest_of) {
    const RowMatrix& first = matrix_of(requests_.front());
    const std::size_t row_bytes = static_cast<std::size_t>(first.vocab_size) * dtype_size_bytes(first.dtype);
    std::vector<std::byte> bytes;
    std::uint64_t rows = 0;
    for (const VerifyRequest& request : requests_) {
      for (const RowMatrix& matrix : {RowMatrix(matrix_of(request)), RowMatrix(rest_of(request))}) {
        for (std::int64_t i = 0; i < matrix.rows; ++i, ++rows) {
          const auto* data = static_cast<const std::byte*>(matrix.row(i).data);
          bytes.insert(bytes.end(), data, data + row_bytes);
        }
      }
    }
    add_bytes(name, first.dtype, {rows, static_cast<std::uint64_t>(first.vocab_size)}, std::move(bytes));
  }
  template <class MatrixOf>
  void add_rows(const std::string& name, MatrixOf matrix_of) {
    add_rows(name, matrix_of, [](const VerifyRequest&) { return RowMatrix{}; });
  }

  void write(const std::string& path, const TraceSettings& settings) {
    for (const auto& [name, text] : texts_of(settings)) writer_.metadata(name, text);
    writer_.write(path);
  }

 private:
  void add_bytes(const std::string& name, DType dtype, std::vector<std::uint64_t> shape, std::vector<std::byte> bytes) {
    owned_.push_back(std::move(bytes));  // moving the vector later leaves its data where it is
    writer_.add(name, dtype, std::move(shape), owned_.back());
  }

  Requests requests_;
  std::vector<std::vector<std::byte>> owned_;
  SafetensorsWriter writer_;
};

bool same_filters(const FilterParameters& a, const FilterParameters& b) {
  return a.top_k == b.top_k && a.top_p == b.top_p && a.min_p == b.min_p && a.order == b.order && a.ties == b.ties &&
         a.top_p_numerator == b.top_p_numerator && a.top_p_denominator == b.top_p_denominator;
}

bool drafted_like_target(const VerifyRequest& request) {
  return request.draft.empty() || (request.draft_parameters.temperature == request.parameters.temperature &&
                                   same_filters(request.draft_parameters.filters, request.parameters.filters));
}

void require_alike(Requests requests) {
  const VerifyRequest& first = requests.front();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const VerifyRequest& r = requests[i];
    const auto require = [i](bool right, const char* what_is_wrong) {
      if (!right) throw input_error("request " + std::to_string(i), what_is_wrong);
    };
    require(r.target.vocab_size == first.target.vocab_size && r.target.dtype == first.target.dtype,
            "its target rows have another vocabulary or dtype than those of request 0; a trace has one");
    require(r.target_is_probabilities == first.target_is_probabilities,
            "logits and probabilities cannot be mixed in a trace");
    require(r.unconditional.has_value() == first.unconditional.has_value(),
            "either every request of a trace has unconditional rows or none has");
    require(!r.unconditional || r.unconditional->dtype == first.unconditional->dtype,
            "its unconditional rows have another dtype than those of request 0; a trace has one");
    require(r.parameters.filters.order == first.parameters.filters.order &&
                r.parameters.filters.ties == first.parameters.filters.ties &&
                r.parameters.guidance_form == first.parameters.guidance_form &&
                r.parameters.nan_policy == first.parameters.nan_policy,
            "filter order, ties, form of guidance and NaN policy hold for a whole trace; they differ from request 0's");
    require(r.constraints.allowed_ids.empty() && r.constraints.bad_words == nullptr && r.constraints.min_tokens == 0,
            "a trace has no allowed ids, bad words or min_tokens; write them as a bitmask");
  }
}

// The draft logits of every request as the pipeline left them.
std::vector<float> processed_draft_logits(Requests requests, bool trees) {
  std::vector<float> rows;
  Pipeline pipeline;
  Distribution distribution;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (has_argmax_drafts(requests[i]) && !requests[i].draft.empty())
      throw input_error("request " + std::to_string(i),
                        "argmax drafts cannot be mixed with sampled ones in a trace; pass them as one-hot proposals");
    for (std::uint32_t row = 0; row + (trees ? 0 : 1) < requests[i].rows(); ++row) {
      if (requests[i].draft.children(static_cast<std::int32_t>(row) - 1).empty()) {
        rows.insert(rows.end(), static_cast<std::size_t>(requests[i].target.vocab_size), 0.0f);
        continue;
      }
      process_proposal_row(requests[i], row, requests[i].draft_parameters, pipeline, distribution);
      for (std::size_t token = 0; token < pipeline.processed_logits().size(); ++token) {
        const bool kept = distribution.logits_distribution()->is_kept(static_cast<Token>(token));
        rows.push_back(kept ? pipeline.processed_logits()[token] : -std::numeric_limits<float>::infinity());
      }
    }
  }
  return rows;
}

// The proposal tensor, and what draft_processed says about it.
bool add_proposals(TraceBuilder& trace, Requests requests, bool trees) {
  const VerifyRequest* drafted = nullptr;
  bool one_hot = true;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const VerifyRequest& r = requests[i];
    if (r.draft.empty()) continue;
    if (drafted == nullptr) drafted = &r;
    if (r.proposal_kind != drafted->proposal_kind ||
        (r.proposal_kind != ProposalKind::one_hot && r.proposal.dtype != drafted->proposal.dtype))
      throw input_error("request " + std::to_string(i), "a trace has one kind of proposal and one dtype of it");
    one_hot = one_hot && (r.proposal_kind == ProposalKind::one_hot || has_argmax_drafts(r));
  }
  if (one_hot) return true;
  // A request without drafts may have an empty matrix of any dtype, so the first that has drafts speaks for all.
  const RowMatrix none{drafted->proposal.dtype, nullptr, 0, drafted->proposal.vocab_size, 0};
  // Beside parents the rows are laid out like the target's: a chain's last row, which proposes nothing, is zeros.
  const std::vector<std::byte> zeros(static_cast<std::size_t>(none.vocab_size) * dtype_size_bytes(none.dtype));
  const RowMatrix zero_row{none.dtype, zeros.data(), 1, none.vocab_size, none.vocab_size};
  const auto proposal_of = [&](const VerifyRequest& r) {
    if (r.draft.empty()) return none;
    return r.proposal.slice(0, std::min(r.proposal.rows, r.draft.size() + std::int64_t{trees}));
  };
  const auto rest_of = [&](const VerifyRequest& r) {
    return trees && proposal_of(r).rows <= r.draft.size() ? zero_row : none;
  };
  if (drafted->proposal_kind == ProposalKind::probabilities) {
    trace.add_rows("draft_probs", proposal_of, rest_of);
    return true;
  }
  if (std::all_of(requests.begin(), requests.end(), drafted_like_target)) {
    trace.add_rows("draft_logits", proposal_of, rest_of);
    return false;
  }
  const std::vector<float> rows = processed_draft_logits(requests, trees);
  const auto vocab_size = static_cast<std::uint64_t>(drafted->proposal.vocab_size);
  trace.add("draft_logits", {rows.size() / vocab_size, vocab_size}, rows);
  return true;
}

void add_target(TraceBuilder& trace, Requests requests) {
  const auto target_of = [](const VerifyRequest& r) { return r.target; };
  const bool probabilities = requests.front().target_is_probabilities;
  trace.add_rows(probabilities ? "target_probs" : "target_logits", target_of);
  if (requests.front().unconditional)
    trace.add_rows("uncond_logits", [](const VerifyRequest& r) { return *r.unconditional; });
}

void add_parameters(TraceBuilder& trace, Requests requests) {
  const auto add = [&](const char* name, auto value_of) { trace.add_per_request<float>(name, value_of); };
  add("temperature", [](const VerifyRequest& r) { return r.parameters.temperature; });
  add("top_p", [](const VerifyRequest& r) { return r.parameters.filters.top_p; });
  if (std::any_of(requests.begin(), requests.end(),
                  [](const VerifyRequest& r) { return r.parameters.filters.top_p_denominator != 0; })) {
    trace.add_per_request<std::int64_t>("top_p_numerator",
                                        [](const VerifyRequest& r) { return r.parameters.filters.top_p_numerator; });
    trace.add_per_request<std::int64_t>("top_p_denominator",
                                        [](const VerifyRequest& r) { return r.parameters.filters.top_p_denominator; });
  }
  add("min_p", [](const VerifyRequest& r) { return r.parameters.filters.min_p; });
  trace.add_per_request<std::int32_t>("top_k", [](const VerifyRequest& r) { return r.parameters.filters.top_k; });
  for (const SamplerParameterName& sampler : sampler_parameter_names()) {
    const SamplerParameters standard;
    const auto value_of = [&](const VerifyRequest& r) { return r.parameters.samplers.*sampler.value; };
    if (std::any_of(requests.begin(), requests.end(),
                    [&](const VerifyRequest& r) { return value_of(r) != standard.*sampler.value; }))
      trace.add_per_request<float>(std::string(sampler.name), value_of);
  }
  if (requests.front().unconditional)
    add("guidance_scale", [](const VerifyRequest& r) { return r.parameters.guidance_scale; });

  const auto penalised = [](const VerifyRequest& r) { return needs_history(r.parameters, r.constraints); };
  if (std::none_of(requests.begin(), requests.end(), penalised)) return;
  add("repetition_penalty", [](const VerifyRequest& r) { return r.parameters.repetition_penalty; });
  add("frequency_penalty", [](const VerifyRequest& r) { return r.parameters.frequency_penalty; });
  add("presence_penalty", [](const VerifyRequest& r) { return r.parameters.presence_penalty; });
  const auto prompt_of = [](const VerifyRequest& r) { return r.prompt_tokens; };
  const auto output_of = [](const VerifyRequest& r) { return r.output_tokens; };
  trace.add_ragged<std::int32_t>("prompt_tokens", prompt_of);
  trace.add_cumulative("cu_prompt_tokens", prompt_of);
  trace.add_ragged<std::int32_t>("output_tokens", output_of);
  trace.add_cumulative("cu_output_tokens", output_of);
}

void add_constraints(TraceBuilder& trace, Requests requests) {
  const auto bias_of = [](const VerifyRequest& r) { return r.constraints.logit_bias; };
  if (std::any_of(requests.begin(), requests.end(), [&](const VerifyRequest& r) { return !bias_of(r).empty(); })) {
    std::vector<std::int32_t> tokens;
    std::vector<float> values;
    for (const VerifyRequest& request : requests) {
      for (const LogitBias& bias : bias_of(request)) {
        tokens.push_back(bias.token);
        values.push_back(bias.value);
      }
    }
    trace.add("logit_bias_tokens", {tokens.size()}, tokens);
    trace.add("logit_bias_values", {values.size()}, values);
    trace.add_cumulative<std::int32_t>("cu_logit_bias", bias_of);
  }
  const auto masked = [](const VerifyRequest& r) { return !r.allowed_masks.empty(); };
  if (std::none_of(requests.begin(), requests.end(), masked)) return;
  const auto words = static_cast<std::size_t>((requests.front().target.vocab_size + 31) / 32);
  std::vector<std::uint32_t> mask;
  for (const VerifyRequest& r : requests) {
    const std::size_t stride = r.allowed_mask_stride == 0 ? words : static_cast<std::size_t>(r.allowed_mask_stride);
    for (std::uint32_t row = 0; row < r.rows() && !r.allowed_masks.empty(); ++row) {
      const auto of_row = r.allowed_masks.subspan(row * stride, words);
      mask.insert(mask.end(), of_row.begin(), of_row.end());
    }
    if (r.allowed_masks.empty()) mask.insert(mask.end(), r.rows() * words, ~std::uint32_t{0});
  }
  trace.add("bitmask", {mask.size() / words, words}, mask);
}

}  // namespace

void write_trace(const std::string& path, std::span<const VerifyRequest> requests, const VerifyOptions& options) {
  if (requests.empty()) throw input_error(path, "there is no verification step to write; a trace has at least one");
  require_alike(requests);
  TraceBuilder trace(requests);
  const auto draft_of = [](const VerifyRequest& r) { return std::span<const Token>(r.draft.tokens); };
  trace.add_ragged<std::int32_t>("draft_tokens", draft_of);
  trace.add_cumulative("cu_num_draft_tokens", draft_of);
  const bool trees =
      std::any_of(requests.begin(), requests.end(), [](const VerifyRequest& r) { return !r.draft.is_chain(); });
  if (trees)
    trace.add_ragged<std::int32_t>("draft_parents", [](const VerifyRequest& r) { return std::span(r.draft.parents); });
  trace.add_per_request<std::uint64_t>("seed", [](const VerifyRequest& r) { return r.seed; });
  trace.add_per_request<std::int64_t>("step", [](const VerifyRequest& r) { return r.step; });
  if (options.verifier.info().is_coupled())
    trace.add_per_request<std::int64_t>("position", [](const VerifyRequest& r) { return r.position_or_default(); });
  const auto ids_of = [](const VerifyRequest& r) { return r.logprob_token_ids; };
  if (std::any_of(requests.begin(), requests.end(), [&](const VerifyRequest& r) { return !ids_of(r).empty(); })) {
    trace.add_ragged<std::int32_t>("logprob_token_ids", ids_of);
    trace.add_cumulative("cu_logprob_token_ids", ids_of);
  }
  add_target(trace, requests);
  if (!requests.front().target_is_probabilities) {
    add_parameters(trace, requests);
    add_constraints(trace, requests);
  }
  TraceSettings settings;
  settings.draft_processed = add_proposals(trace, requests, trees);
  settings.verifier = options.verifier;
  settings.sampler = options.sampler;
  settings.convention = options.convention;
  settings.filter_order = requests.front().parameters.filters.order;
  settings.ties = requests.front().parameters.filters.ties;
  settings.penalty_window = requests.front().parameters.penalty_window;
  settings.guidance_form = requests.front().parameters.guidance_form;
  settings.nan_policy = requests.front().parameters.nan_policy;
  trace.write(path, settings);
}

}  // namespace draftproof
