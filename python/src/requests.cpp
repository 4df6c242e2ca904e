#include "python/src/requests.hpp"

#include "reference/logits/top_p_fraction.hpp"
#include "reference/step/placeholder.hpp"
#include "reference/step/replayable.hpp"
#include "reference/trace/probability_rows.hpp"
#include "reference/trace/trace_settings.hpp"

namespace draftproof::python {
namespace {

std::vector<std::int64_t> checked_offsets(std::span<const std::int64_t> offsets, std::size_t total, const char* name) {
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t before = i == 0 ? 0 : offsets[i - 1];
    if (offsets[i] < before || (i == 0 && offsets[i] != 0))
      throw usage_error(name, "entry " + std::to_string(i) + " is " + std::to_string(offsets[i]) +
                                  "; expected offsets that start at 0 and ascend");
  }
  if (offsets.empty() || offsets.back() != static_cast<std::int64_t>(total))
    throw usage_error(name, "ends at " + (offsets.empty() ? "nothing" : std::to_string(offsets.back())) +
                                "; expected " + std::to_string(total) + ", as many as there are tokens");
  return {offsets.begin(), offsets.end()};
}

class RequestReader {
 public:
  explicit RequestReader(Arguments& arguments) : arguments_(arguments) {}

  Requests read() {
    const RowMatrix target = arguments_.rows("target");
    const std::span<const Token> drafts = arguments_.vector<Token>("draft_tokens");
    Requests read;
    if (arguments_.has("cu_num_draft_tokens")) {
      read.offsets =
          checked_offsets(arguments_.vector<std::int64_t>("cu_num_draft_tokens"), drafts.size(), "cu_num_draft_tokens");
    } else {
      read.offsets.assign(static_cast<std::size_t>(target.rows) + 1, 0);
    }
    count_ = read.offsets.size() - 1;
    if (target.rows != static_cast<std::int64_t>(drafts.size() + count_))
      throw usage_error("target", "has " + std::to_string(target.rows) + " rows; expected " +
                                      std::to_string(drafts.size() + count_) + ", one a draft and one a request");
    read.requests.resize(count_);
    for (std::size_t b = 0; b < count_; ++b) read_rows(read, b, target, drafts);
    read_parameters(read.requests);
    read_lists(read.requests);
    read_logit_bias(read);
    read_bad_words(read);
    read_bitmask(read);
    read_recorded(read);
    for (VerifyRequest& request : read.requests) end_at_placeholder(request);
    const auto seeds = arguments_.vector<std::uint64_t>("seeds", count_);
    const auto steps = arguments_.vector<std::uint32_t>("steps", count_);
    const auto positions = arguments_.vector<std::uint32_t>("positions", count_);
    for (std::size_t b = 0; b < count_; ++b) {
      if (!seeds.empty()) read.requests[b].seed = seeds[b];
      if (!steps.empty()) read.requests[b].step = steps[b];
      if (!positions.empty()) read.requests[b].position = positions[b];
    }
    check_probabilities(read.requests);
    return read;
  }

 private:
  void read_rows(Requests& read, std::size_t b, const RowMatrix& target, std::span<const Token> drafts) {
    VerifyRequest& request = read.requests[b];
    const std::int64_t begin = read.offsets[b];
    const std::int64_t count = read.offsets[b + 1] - begin;
    const auto tokens = drafts.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
    const bool trees = arguments_.has("draft_parents");
    if (trees) {
      const auto parents = arguments_.vector<std::int32_t>("draft_parents", drafts.size())
                               .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
      request.draft = DraftTree({tokens.begin(), tokens.end()}, {parents.begin(), parents.end()});
    } else {
      request.draft = DraftTree::chain(tokens);
    }
    request.first_row = begin + static_cast<std::int64_t>(b);
    request.target = target.slice(request.first_row, count + 1);
    request.target_is_probabilities = arguments_.flag("target_is_probabilities", false);
    if (arguments_.has("unconditional")) {
      const RowMatrix unconditional = arguments_.rows("unconditional");
      require_shape(unconditional, "unconditional", target.rows, target.vocab_size);
      request.unconditional = unconditional.slice(request.first_row, count + 1);
    }
    if (!arguments_.has("proposal")) return;
    const RowMatrix proposal = arguments_.rows("proposal");
    const auto rows = static_cast<std::int64_t>(drafts.size() + (trees ? count_ : 0));
    require_shape(proposal, "proposal", rows, target.vocab_size);
    request.proposal_kind =
        arguments_.flag("proposal_is_logits", false) ? ProposalKind::logits : ProposalKind::probabilities;
    request.first_proposal_row = trees ? request.first_row : begin;
    request.proposal = proposal.slice(request.first_proposal_row, trees ? count + 1 : count);
  }

  // Rows that are no distributions would let a sound sampler be called biased.
  void check_probabilities(const std::vector<VerifyRequest>& requests) {
    const bool of_draws = arguments_.has("samples");
    const int threads = arguments_.threads();
    try {
      const nb::gil_scoped_release release;
      check_probability_rows("", requests, threads, of_draws ? "probs" : "target_probs");
    } catch (const Error& error) {
      const bool is_audit = of_draws || arguments_.has("emitted_tokens");
      throw Error(error.kind(), "",
                  std::string(error.what()) + (is_audit ? "; the rows given are at fault, not what was drawn" : ""));
    }
  }

  static void require_shape(const RowMatrix& matrix, const char* name, std::int64_t rows, std::int64_t vocab_size) {
    if (matrix.rows != rows || matrix.vocab_size != vocab_size)
      throw usage_error(name, "has shape [" + std::to_string(matrix.rows) + ", " + std::to_string(matrix.vocab_size) +
                                  "]; expected [" + std::to_string(rows) + ", " + std::to_string(vocab_size) + "]");
  }

  template <class T, class Set>
  void set_each(std::vector<VerifyRequest>& requests, const char* name, const Set& set) {
    const std::span<const T> values = arguments_.vector<T>(name, count_);
    for (std::size_t b = 0; b < values.size(); ++b) set(requests[b].parameters, values[b]);
  }

  void read_parameters(std::vector<VerifyRequest>& requests) {
    set_each<float>(requests, "temperature", [](RowParameters& p, float value) { p.temperature = value; });
    set_each<std::int32_t>(requests, "top_k", [](RowParameters& p, std::int32_t value) { p.filters.top_k = value; });
    set_each<float>(requests, "top_p", [](RowParameters& p, float value) { p.filters.top_p = top_p_of_engine(value); });
    const auto numerators = arguments_.vector<std::uint32_t>("top_p_numerator", count_);
    const auto denominators = arguments_.vector<std::uint32_t>("top_p_denominator", count_);
    for (std::size_t b = 0; b < numerators.size(); ++b)
      set_top_p(requests[b].parameters.filters, numerators[b], denominators[b]);
    set_each<float>(requests, "min_p", [](RowParameters& p, float value) { p.filters.min_p = value; });
    set_each<float>(requests, "repetition_penalty", [](RowParameters& p, float v) { p.repetition_penalty = v; });
    set_each<float>(requests, "frequency_penalty", [](RowParameters& p, float v) { p.frequency_penalty = v; });
    set_each<float>(requests, "presence_penalty", [](RowParameters& p, float v) { p.presence_penalty = v; });
    set_each<float>(requests, "guidance_scale", [](RowParameters& p, float v) { p.guidance_scale = v; });
    for (const SamplerParameterName& sampler : sampler_parameter_names())
      set_each<float>(requests, sampler.name.data(),
                      [&](RowParameters& p, float value) { p.samplers.*sampler.value = value; });
    const auto min_tokens = arguments_.vector<std::int64_t>("min_tokens", count_);
    for (std::size_t b = 0; b < min_tokens.size(); ++b) requests[b].constraints.min_tokens = min_tokens[b];
    TraceSettings settings;
    for (const char* name : {"filter_order", "ties", "penalty_window", "guidance_form", "nan_policy"})
      if (arguments_.has(name)) settings.set(name, arguments_.text(name, ""), name);
    for (VerifyRequest& request : requests) {
      request.parameters.filters.order = settings.filter_order;
      request.parameters.filters.ties = settings.ties;
      request.parameters.penalty_window = settings.penalty_window;
      request.parameters.guidance_form = settings.guidance_form;
      request.parameters.nan_policy = settings.nan_policy;
      request.draft_parameters.nan_policy = request.parameters.nan_policy;
      if (arguments_.flag("draft_processed", true)) continue;
      request.draft_parameters.temperature = request.parameters.temperature;
      request.draft_parameters.filters = request.parameters.filters;
    }
  }

  // One part for each request: `of_drafts` numbers for each draft, `of_rows` for each row, or `of_requests`.
  template <class Set>
  void split_recorded(const Requests& read, const char* name, std::size_t width, bool of_requests, const Set& set) {
    if (!arguments_.has(name)) return;
    const auto numbers = arguments_.vector<double>(name);
    const auto drafts = static_cast<std::size_t>(read.offsets.back());
    const std::size_t rows = (drafts + count_) * width;
    const std::size_t other = of_requests ? count_ * width : drafts * width;
    if (numbers.size() != rows && numbers.size() != other)
      throw usage_error(name, "has " + std::to_string(numbers.size()) + " numbers; expected " + std::to_string(other) +
                                  " or " + std::to_string(rows));
    const bool by_rows = numbers.size() == rows;
    for (std::size_t b = 0; b < count_; ++b) {
      const auto begin = static_cast<std::size_t>(read.offsets[b]);
      const std::size_t length = static_cast<std::size_t>(read.offsets[b + 1]) - begin;
      const std::size_t first = by_rows ? begin + b : of_requests ? b : begin;
      const std::size_t count = by_rows ? length + 1 : of_requests ? 1 : length;
      set(b, RecordedNumbers{{}, numbers.subspan(first * width, count * width)});
    }
  }

  void read_recorded(Requests& read) {
    const auto recorded = [&](std::size_t b) { return &read.requests[b].recorded; };
    const auto vocab_size = static_cast<std::size_t>(read.vocab_size());
    split_recorded(read, "uniforms", 1, false, [&](std::size_t b, auto part) { recorded(b)->uniforms = part; });
    split_recorded(read, "draw_uniforms", 1, true,
                   [&](std::size_t b, auto part) { recorded(b)->draw_uniforms = part; });
    if (arguments_.has("exponential_noise") && arguments_.has("gumbel_noise"))
      throw usage_error("gumbel_noise", "does not go with exponential_noise; expected one of them");
    for (const auto& [name, kind] :
         {std::pair("exponential_noise", NoiseKind::exponential), std::pair("gumbel_noise", NoiseKind::gumbel)})
      split_recorded(read, name, vocab_size, true, [&, noise_kind = kind](std::size_t b, auto part) {
        recorded(b)->noise = part;
        recorded(b)->noise_kind = noise_kind;
      });
    const auto recovered = arguments_.vector<Token>("recovered_tokens", static_cast<std::size_t>(read.offsets.back()));
    const auto bonus = arguments_.vector<Token>("bonus_tokens", count_);
    for (std::size_t b = 0; b < count_; ++b) {
      const auto begin = static_cast<std::size_t>(read.offsets[b]);
      if (arguments_.has("recovered_tokens"))
        recorded(b)->recovered_tokens = recovered.subspan(begin, static_cast<std::size_t>(read.offsets[b + 1]) - begin);
      if (arguments_.has("bonus_tokens")) recorded(b)->bonus_token = bonus[b];
      if (recorded(b)->any()) validate_recorded_numbers(read.requests[b], "request " + std::to_string(b));
    }
  }

  // use(b, begin, end): list b is [begin, end) of an array of this size.
  template <class Use>
  void for_each_list(const char* offsets_name, std::size_t size, const Use& use) {
    const auto offsets = checked_offsets(arguments_.vector<std::int64_t>(offsets_name, count_ + 1), size, offsets_name);
    for (std::size_t b = 0; b < count_; ++b)
      use(b, static_cast<std::size_t>(offsets[b]), static_cast<std::size_t>(offsets[b + 1]));
  }

  void read_lists(std::vector<VerifyRequest>& requests) {
    const auto read = [&](const char* name, const char* offsets_name, const auto& member) {
      if (!arguments_.has(name)) return;
      const auto tokens = arguments_.vector<Token>(name);
      for_each_list(offsets_name, tokens.size(), [&](std::size_t b, std::size_t begin, std::size_t end) {
        member(requests[b]) = tokens.subspan(begin, end - begin);
      });
    };
    read(
        "prompt_tokens", "cu_prompt_tokens", [](VerifyRequest & r) -> auto& { return r.prompt_tokens; });
    read(
        "output_tokens", "cu_output_tokens", [](VerifyRequest & r) -> auto& { return r.output_tokens; });
    read(
        "logprob_token_ids", "cu_logprob_token_ids", [](VerifyRequest & r) -> auto& { return r.logprob_token_ids; });
    read(
        "stop_ids", "cu_stop_ids", [](VerifyRequest & r) -> auto& { return r.constraints.stop_ids; });
    read(
        "allowed_ids", "cu_allowed_ids", [](VerifyRequest & r) -> auto& { return r.constraints.allowed_ids; });
    read(
        "dry_breakers", "cu_dry_breakers", [](VerifyRequest & r) -> auto& { return r.constraints.dry_breakers; });
  }

  void read_logit_bias(Requests& read) {
    if (!arguments_.has("logit_bias_tokens")) return;
    const auto tokens = arguments_.vector<Token>("logit_bias_tokens");
    const auto values = arguments_.vector<float>("logit_bias_values", tokens.size());
    for (std::size_t i = 0; i < values.size(); ++i) read.logit_bias.push_back({tokens[i], values[i]});
    const std::span<const LogitBias> all = read.logit_bias;
    for_each_list("cu_logit_bias", all.size(), [&](std::size_t b, std::size_t begin, std::size_t end) {
      read.requests[b].constraints.logit_bias = all.subspan(begin, end - begin);
    });
  }

  void read_bad_words(Requests& read) {
    if (!arguments_.has("bad_word_tokens")) return;
    const auto tokens = arguments_.vector<Token>("bad_word_tokens");
    const auto ends =
        checked_offsets(arguments_.vector<std::int64_t>("cu_bad_word_tokens"), tokens.size(), "cu_bad_word_tokens");
    read.bad_words.reserve(count_);
    for_each_list("cu_bad_words", ends.size() - 1, [&](std::size_t b, std::size_t begin, std::size_t end) {
      std::vector<std::vector<Token>> sequences;
      for (std::size_t s = begin; s < end; ++s)
        sequences.emplace_back(tokens.begin() + ends[s], tokens.begin() + ends[s + 1]);
      try {
        read.bad_words.emplace_back(std::move(sequences), static_cast<std::size_t>(read.vocab_size()));
      } catch (const Error& error) {
        throw Error(error.kind(), "request " + std::to_string(b), error.what());
      }
    });
    for (std::size_t b = 0; b < count_; ++b) read.requests[b].constraints.bad_words = &read.bad_words[b];
  }

  void read_bitmask(Requests& read) {
    if (!arguments_.has("bitmask")) return;
    const auto words = static_cast<std::size_t>((read.vocab_size() + 31) / 32);
    const auto rows = static_cast<std::size_t>(read.offsets.back()) + count_;
    const auto masks = arguments_.vector<std::uint32_t>("bitmask", rows * words);
    for (VerifyRequest& request : read.requests)
      request.allowed_masks =
          masks.subspan(static_cast<std::size_t>(request.first_row) * words, request.rows() * words);
  }

  Arguments& arguments_;
  std::size_t count_ = 0;
};

}  // namespace

Requests requests_of(Arguments& arguments) {
  return RequestReader(arguments).read();
}

}  // namespace draftproof::python
