#include "python/src/requests.hpp"

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
    read_histories(read.requests);
    read_masks(read);
    const auto seeds = arguments_.vector<std::uint64_t>("seeds", count_);
    const auto steps = arguments_.vector<std::uint32_t>("steps", count_);
    const auto positions = arguments_.vector<std::uint32_t>("positions", count_);
    for (std::size_t b = 0; b < count_; ++b) {
      if (!seeds.empty()) read.requests[b].seed = seeds[b];
      if (!steps.empty()) read.requests[b].step = steps[b];
      if (!positions.empty()) read.requests[b].position = positions[b];
    }
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
    if (!arguments_.has("proposal")) return;
    const RowMatrix proposal = arguments_.rows("proposal");
    const auto rows = static_cast<std::int64_t>(drafts.size() + (trees ? count_ : 0));
    if (proposal.rows != rows || proposal.vocab_size != target.vocab_size)
      throw usage_error("proposal", "has shape [" + std::to_string(proposal.rows) + ", " +
                                        std::to_string(proposal.vocab_size) + "]; expected [" + std::to_string(rows) +
                                        ", " + std::to_string(target.vocab_size) + "]");
    request.proposal_kind = ProposalKind::probabilities;
    request.first_proposal_row = trees ? request.first_row : begin;
    request.proposal = proposal.slice(request.first_proposal_row, trees ? count + 1 : count);
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
    set_each<float>(requests, "min_p", [](RowParameters& p, float value) { p.filters.min_p = value; });
    set_each<float>(requests, "repetition_penalty", [](RowParameters& p, float v) { p.repetition_penalty = v; });
    set_each<float>(requests, "frequency_penalty", [](RowParameters& p, float v) { p.frequency_penalty = v; });
    set_each<float>(requests, "presence_penalty", [](RowParameters& p, float v) { p.presence_penalty = v; });
    const auto order = choice("filter_order", {"joint", "top_k_first"});
    const auto ties = choice("ties", {"exact_k", "keep_all"});
    const auto nan = choice("nan_policy", {"error", "as_minus_inf"});
    for (VerifyRequest& request : requests) {
      request.parameters.filters.order = order == 0 ? FilterOrder::joint : FilterOrder::top_k_first;
      request.parameters.filters.ties = ties == 0 ? Ties::exact_k : Ties::keep_all;
      request.parameters.nan_policy = nan == 0 ? NanPolicy::error : NanPolicy::as_minus_inf;
    }
  }

  int choice(const char* name, const std::pair<std::string, std::string>& names) const {
    const std::string given = arguments_.text(name, names.first);
    if (given != names.first && given != names.second)
      throw usage_error(name, "is '" + given + "'; expected '" + names.first + "' or '" + names.second + "'");
    return given == names.second ? 1 : 0;
  }

  void read_histories(std::vector<VerifyRequest>& requests) {
    const auto read = [&](const char* name, const char* offsets_name, auto member) {
      if (!arguments_.has(name)) return;
      const auto tokens = arguments_.vector<Token>(name);
      const auto offsets =
          checked_offsets(arguments_.vector<std::int64_t>(offsets_name, count_ + 1), tokens.size(), offsets_name);
      for (std::size_t b = 0; b < count_; ++b)
        requests[b].*member =
            tokens.subspan(static_cast<std::size_t>(offsets[b]), static_cast<std::size_t>(offsets[b + 1] - offsets[b]));
    };
    read("prompt_tokens", "prompt_offsets", &VerifyRequest::prompt_tokens);
    read("output_tokens", "output_offsets", &VerifyRequest::output_tokens);
  }

  void read_masks(Requests& read) {
    if (!arguments_.has("allowed_masks")) return;
    const auto words = static_cast<std::size_t>((read.vocab_size() + 31) / 32);
    const auto rows = static_cast<std::size_t>(read.offsets.back()) + count_;
    const auto masks = arguments_.vector<std::uint32_t>("allowed_masks", rows * words);
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
