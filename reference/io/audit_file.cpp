#include "reference/io/audit_file.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "reference/error.hpp"
#include "reference/io/audit_csv.hpp"
#include "reference/io/trace_tensors.hpp"
#include "reference/verify/emitted_path.hpp"

namespace draftproof {
namespace {

bool is_csv(std::string_view path) {
  return path.ends_with(".csv") || path.ends_with(".CSV");
}

TensorView required(const SafetensorsFile& file, std::string_view name, const char* meaning) {
  std::optional<TensorView> tensor = find_tensor(file, name, kIndexDTypes);
  if (!tensor)
    throw input_error(file.path() + ": " + tensor_label(name), "is missing; expected " + std::string(meaning));
  return std::move(*tensor);
}

// --- Single draws
// --------------------------------------------------------------------------------------------------------

// Group of each sample, all in [0, G).
std::vector<std::uint32_t> groups_of_samples(const SafetensorsFile& file, std::size_t samples, std::size_t groups) {
  std::vector<std::uint32_t> group(samples, 0);
  const std::optional<TensorView> tensor = find_tensor(file, "group", kIndexDTypes);
  if (!tensor) {
    if (groups != 1 && samples > 0)
      throw input_error(
          file.path() + ": " + tensor_label("group"),
          "is missing; expected [n], as there are " + std::to_string(groups) + " rows of the distribution");
    return group;
  }
  require_shape(*tensor, {samples}, "[n]");
  for (std::size_t i = 0; i < samples; ++i) {
    const std::int64_t g = integer_at(*tensor, i);
    if (g < 0 || g >= static_cast<std::int64_t>(groups))
      throw input_error(tensor->where, entry_is(i, std::to_string(g)) + "; expected groups in [0, " +
                                           std::to_string(groups) + "), rows of the distribution");
    group[i] = static_cast<std::uint32_t>(g);
  }
  return group;
}

// Samples by group (a counting sort), then counted group by group in a table of one row: memory for the samples and for
// one row, however many groups there are.
void count_samples(DrawSample& sample, std::span<const Token> samples, std::span<const std::uint32_t> group) {
  const std::size_t groups = sample.distributions.size();
  std::vector<std::size_t> next(groups + 1, 0);
  for (const std::uint32_t g : group) ++next[g + 1];
  for (std::size_t g = 0; g < groups; ++g) next[g + 1] += next[g];
  const std::vector<std::size_t> begin = next;
  std::vector<Token> sorted(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) sorted[next[group[i]]++] = samples[i];

  std::vector<std::int64_t> counts(static_cast<std::size_t>(sample.vocab_size()), 0);
  std::vector<Token> seen;
  sample.begins = {0};
  for (std::size_t g = 0; g < groups; ++g) {
    seen.clear();
    for (std::size_t i = begin[g]; i < begin[g + 1]; ++i) {
      if (counts[static_cast<std::size_t>(sorted[i])]++ == 0) seen.push_back(sorted[i]);
    }
    std::sort(seen.begin(), seen.end());
    for (const Token token : seen)
      sample.counts.push_back({token, std::exchange(counts[static_cast<std::size_t>(token)], 0)});
    sample.begins.push_back(sample.counts.size());
  }
}

DrawSample read_draws(const std::string& path, const AuditFileOptions& options) {
  if (!options.outputs_path.empty())
    throw usage_error("--outputs", "has no use: " + path + " holds single draws, 'samples'");
  TraceOptions trace_options = options.trace;
  trace_options.kind = TraceKind::draws;
  const auto trace = std::make_shared<Trace>(Trace::open(path, trace_options));
  DrawSample sample;
  sample.distributions.assign(trace->requests().begin(), trace->requests().end());
  for (std::size_t g = 0; g < sample.distributions.size(); ++g)
    sample.group_ids.push_back(static_cast<std::int64_t>(g));
  TensorView ids = required(trace->file(), "samples", "[n]");
  if (ids.shape.size() != 1) throw input_error(ids.where, "has shape " + shape_text(ids.shape) + "; expected [n]");
  const TokenTensor samples = read_tokens(std::move(ids), trace->vocab_size(), false);
  if (sample.distributions.empty() && !samples.tokens.empty())
    throw input_error(path, "has samples but no row of the distribution; expected [G, V] with G of 1 or more");
  count_samples(sample, samples.tokens,
                groups_of_samples(trace->file(), samples.tokens.size(), sample.distributions.size()));
  sample.keeps = trace;
  return sample;
}

// --- Verification steps
// --------------------------------------------------------------------------------------------------

class EmissionReader {
 public:
  EmissionReader(const SafetensorsFile& file, StepSample& sample) : file_(file), sample_(sample) {}

  void read(std::int64_t vocab_size) {
    TensorView ids =
        required(file_, "output_tokens", "[B, K + 1] or [B, depth + 1], what each step emitted, padded with -1");
    const std::uint64_t requests = sample_.requests.size();
    if (ids.shape.size() != 2 || ids.shape[0] != requests)
      throw input_error(ids.where, "has shape " + shape_text(ids.shape) + "; expected [" + std::to_string(requests) +
                                       ", K + 1], what each step emitted (histories for penalties go into "
                                       "another file: --outputs)");
    const std::size_t width = ids.shape[1];
    const TokenTensor tokens = read_tokens(std::move(ids), vocab_size, true);
    const std::optional<TensorView> accepted = find_tensor(file_, "num_accepted", kIndexDTypes);
    if (accepted) require_shape(*accepted, {requests}, "[B]");
    sample_.begins = {0};
    for (std::size_t b = 0; b < requests; ++b) {
      const std::size_t count = check_row(tokens, b, tokens.tokens.subspan(b * width, width));
      if (accepted && integer_at(*accepted, b) + 1 != static_cast<std::int64_t>(count))
        throw input_error(accepted->where, entry_is(b, std::to_string(integer_at(*accepted, b))) + ", but request " +
                                               std::to_string(b) + " has " + std::to_string(count) +
                                               " output tokens; expected num_accepted + 1 of them");
      const auto row = tokens.tokens.subspan(b * width, count);
      sample_.tokens.insert(sample_.tokens.end(), row.begin(), row.end());
      sample_.begins.push_back(sample_.tokens.size());
    }
    if (const std::optional<TensorView> path = find_tensor(file_, "path", kIndexDTypes)) read_paths(*path);
  }

 private:
  // [B, D]: the accepted nodes of each request, padded with -1.
  void read_paths(const TensorView& tensor) {
    const std::uint64_t requests = sample_.requests.size();
    if (tensor.shape.size() != 2 || tensor.shape[0] != requests)
      throw input_error(tensor.where, "has shape " + shape_text(tensor.shape) + "; expected [" +
                                          std::to_string(requests) + ", D], the accepted nodes padded with -1");
    const std::size_t width = tensor.shape[1];
    sample_.path_nodes.emplace();
    for (std::size_t b = 0; b < requests; ++b) {
      const DraftTree& draft = sample_.requests[b].draft;
      const std::size_t accepted = sample_.emitted(b).size() - 1;
      std::int64_t above = kRootNode;
      for (std::size_t i = 0; i < std::max(width, accepted); ++i) {
        const std::int64_t node = i < width ? integer_at(tensor, b * width + i) : -1;
        const std::string entry =
            "request " + std::to_string(b) + ", entry " + std::to_string(i) + " is " + std::to_string(node);
        if (i >= accepted) {
          if (node != -1)
            throw input_error(tensor.where, entry + ", and the request has " + std::to_string(accepted) +
                                                " accepted tokens; expected -1 after them");
          continue;
        }
        if (node < 0 || node >= draft.size() || draft.parents[static_cast<std::size_t>(node)] != above)
          throw input_error(tensor.where, entry + "; expected a child of " +
                                              (above == kRootNode ? "the root" : "node " + std::to_string(above)) +
                                              ", as the request has " + std::to_string(accepted) + " accepted tokens");
        sample_.path_nodes->push_back(static_cast<std::int32_t>(node));
        above = node;
      }
    }
  }

  // How many tokens the row holds before its padding.
  std::size_t check_row(const TokenTensor& tokens, std::size_t b, std::span<const Token> row) const {
    const std::string request = "request " + std::to_string(b);
    const auto end = std::find(row.begin(), row.end(), kPaddingToken);
    const auto count = static_cast<std::size_t>(end - row.begin());
    if (std::any_of(end, row.end(), [](Token t) { return t != kPaddingToken; }))
      throw input_error(tokens.tensor.where, request + " has -1 (padding) at " + std::to_string(count) +
                                                 " and tokens after it; expected padding only at the end");
    const DraftTree& draft = sample_.requests[b].draft;
    const auto depth = static_cast<std::size_t>(draft.depth_max());
    if (count < 1 || count > depth + 1)
      throw input_error(
          tokens.tensor.where,
          request + " has " + std::to_string(count) + " tokens and " +
              (draft.is_chain() ? std::to_string(depth) + " drafts; expected 1 to K + 1 tokens"
                                : "a tree of depth " + std::to_string(depth) + "; expected 1 to depth + 1 tokens") +
              ", not cut at a stop token");
    const std::size_t matched = find_emitted_path(draft, row.first(count - 1)).nodes.size();
    if (matched + 1 < count)
      throw input_error(tokens.tensor.where,
                        request + ", entry " + std::to_string(matched) + " is " + std::to_string(row[matched]) +
                            (draft.is_chain() ? " and the draft there " + std::to_string(draft.tokens[matched])
                                              : ", and no draft node after the tokens before it holds that token") +
                            "; all tokens but the last are accepted drafts");
    return count;
  }

  const SafetensorsFile& file_;
  StepSample& sample_;
};

StepSample read_steps(const std::string& path, const AuditFileOptions& options) {
  TraceOptions trace_options = options.trace;
  trace_options.kind = TraceKind::emitted_steps;
  // Whether the verifier under audit takes the drafts is for audit_steps to say; naive sampling takes any.
  trace_options.overrides.push_back({"verifier", "naive", "audit"});
  const auto trace = std::make_shared<Trace>(Trace::open(path, trace_options));
  StepSample sample;
  sample.requests.assign(trace->requests().begin(), trace->requests().end());
  if (const std::optional<TensorView> group = find_tensor(trace->file(), "group", kIndexDTypes)) {
    require_shape(*group, {sample.requests.size()}, "[B]");
    sample.groups.emplace();
    for (std::size_t b = 0; b < sample.requests.size(); ++b) sample.groups->push_back(integer_at(*group, b));
  }
  if (options.outputs_path.empty()) {
    if (trace->file().contains("cu_output_tokens"))
      throw input_error(path + ": " + tensor_label("cu_output_tokens"),
                        "goes with a history named output_tokens, which here is what the steps emitted; put that into "
                        "another file and name it with --outputs");
    EmissionReader(trace->file(), sample).read(trace->vocab_size());
  } else {
    if (trace->file().contains("num_accepted"))
      throw usage_error("--outputs", "has no use: " + path + " says itself what the steps emitted");
    EmissionReader(SafetensorsFile::open(options.outputs_path), sample).read(trace->vocab_size());
  }
  sample.keeps = trace;
  return sample;
}

}  // namespace

AuditInput read_audit_file(const std::string& path, const AuditFileOptions& options) {
  if (is_csv(path)) {
    if (options.probs_path.empty())
      throw usage_error("--probs", "is missing; counts as CSV need PROBS.csv, 'group,token,prob'");
    if (!options.outputs_path.empty()) throw usage_error("--outputs", "has no use beside CSV");
    return read_audit_csv(path, options.probs_path);
  }
  if (!options.probs_path.empty())
    throw usage_error("--probs", "goes with counts as CSV; " + path + " does not end in .csv");
  if (SafetensorsFile::open(path).contains("samples")) return read_draws(path, options);
  return read_steps(path, options);
}

}  // namespace draftproof
