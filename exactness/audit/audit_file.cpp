#include "exactness/audit/audit_file.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "exactness/audit/audit_csv.hpp"
#include "reference/step/verify_step.hpp"
#include "reference/trace/emitted_row.hpp"
#include "reference/trace/result_comparison.hpp"
#include "reference/trace/trace_reader.hpp"
#include "reference/trace/trace_tensors.hpp"
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

// Where draws, or steps, were made: those of the tensors seed, step, row and position that are there, [n] each.
DrawCoordinates read_coordinates(const SafetensorsFile& file, std::uint64_t n, const char* shape) {
  DrawCoordinates at;
  if (const std::optional<TensorView> seeds = find_tensor(file, "seed", {DType::u64, DType::i64})) {
    require_shape(*seeds, {n}, shape);
    for (std::uint64_t i = 0; i < n; ++i)
      at.seed.push_back(seeds->dtype == DType::u64 ? seeds->as<std::uint64_t>()[i]
                                                   : static_cast<std::uint64_t>(seeds->as<std::int64_t>()[i]));
  }
  for (const auto& [name, values] :
       {std::pair("step", &at.step), std::pair("row", &at.row), std::pair("position", &at.position)}) {
    const std::optional<TensorView> tensor = find_tensor(file, name, kIndexDTypes);
    if (!tensor) continue;
    require_shape(*tensor, {n}, shape);
    for (std::uint64_t i = 0; i < n; ++i) values->push_back(integer_at(*tensor, i));
  }
  return at;
}

// Coordinates of the entries that are kept.
DrawCoordinates selected(const DrawCoordinates& all, const std::vector<std::size_t>& kept) {
  DrawCoordinates at;
  const auto take = [&](const auto& values, auto& into) {
    if (values.empty()) return;
    for (const std::size_t i : kept) into.push_back(values[i]);
  };
  take(all.seed, at.seed);
  take(all.step, at.step);
  take(all.row, at.row);
  take(all.position, at.position);
  return at;
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
  const TensorView ids = required(trace->file(), "samples", "[n]");
  if (ids.shape.size() != 1) throw input_error(ids.where, "has shape " + shape_text(ids.shape) + "; expected [n]");
  const std::size_t n = ids.shape[0];
  if (sample.distributions.empty() && n > 0)
    throw input_error(path, "has samples but no row of the distribution; expected [G, V] with G of 1 or more");
  const std::vector<std::uint32_t> groups = groups_of_samples(trace->file(), n, sample.distributions.size());
  OrderedDraws draws;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t id = integer_at(ids, i);
    if (id < 0 || id >= trace->vocab_size()) {
      sample.malformed.add(static_cast<std::int64_t>(i), ids.where + ": " + entry_is(i, std::to_string(id)) +
                                                             "; expected ids in [0, " +
                                                             std::to_string(trace->vocab_size()) + ")");
      continue;
    }
    draws.tokens.push_back(static_cast<Token>(id));
    draws.groups.push_back(groups[i]);
    kept.push_back(i);
  }
  count_samples(sample, draws.tokens, draws.groups);
  draws.at = selected(read_coordinates(trace->file(), n, "[n]"), kept);
  if (draws.at.any()) sample.ordered = std::move(draws);
  sample.keeps = trace;
  return sample;
}

// --- Verification steps

class EmissionReader {
 public:
  EmissionReader(const SafetensorsFile& file, StepSample& sample) : file_(file), sample_(sample) {}

  void read(std::int64_t vocab_size) {
    const TensorView ids =
        required(file_, "output_tokens",
                 "[B, K + 1] or [B, depth + 1], what each step emitted, padded with -1, here or in a file that "
                 "--outputs names");
    const std::uint64_t requests = sample_.requests.size();
    if (ids.shape.size() != 2 || ids.shape[0] != requests)
      throw input_error(ids.where, "has shape " + shape_text(ids.shape) + "; expected [" + std::to_string(requests) +
                                       ", K + 1], what each step emitted (histories for penalties go into "
                                       "another file: --outputs)");
    const std::size_t width = ids.shape[1];
    const std::optional<TensorView> accepted = find_tensor(file_, "num_accepted", kIndexDTypes);
    if (accepted) require_shape(*accepted, {requests}, "[B]");
    sample_.begins = {0};
    std::vector<std::int64_t> row(width);
    for (std::size_t b = 0; b < requests; ++b) {
      for (std::size_t i = 0; i < width; ++i) row[i] = integer_at(ids, b * width + i);
      EmittedRow emitted = read_emitted_row(row, sample_.requests[b].draft, vocab_size);
      if (emitted.wrong.empty() && accepted && integer_at(*accepted, b) + 1 != static_cast<std::int64_t>(emitted.count))
        emitted.wrong = "has num_accepted " + std::to_string(integer_at(*accepted, b)) + " and " +
                        std::to_string(emitted.count) + " output tokens; expected num_accepted + 1 of them";
      if (!emitted.wrong.empty()) {
        sample_.malformed.add(static_cast<std::int64_t>(b),
                              ids.where + ": request " + std::to_string(b) + " " + emitted.wrong);
        continue;
      }
      for (std::size_t i = 0; i < emitted.count; ++i) sample_.tokens.push_back(static_cast<Token>(row[i]));
      sample_.begins.push_back(sample_.tokens.size());
      kept_.push_back(b);
    }
    if (const std::optional<TensorView> path = find_tensor(file_, "path", kIndexDTypes)) read_paths(*path);
    keep_well_formed();
  }

  // Numbers of the requests that are left.
  const std::vector<std::size_t>& kept() const { return kept_; }

 private:
  void keep_well_formed() {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] == i) continue;
      sample_.requests[i] = std::move(sample_.requests[kept_[i]]);
      if (sample_.groups) (*sample_.groups)[i] = (*sample_.groups)[kept_[i]];
    }
    sample_.requests.resize(kept_.size());
    if (sample_.groups) sample_.groups->resize(kept_.size());
  }

  // [B, D]: the accepted nodes of each request, padded with -1.
  void read_paths(const TensorView& tensor) {
    const std::uint64_t requests = sample_.requests.size();
    if (tensor.shape.size() != 2 || tensor.shape[0] != requests)
      throw input_error(tensor.where, "has shape " + shape_text(tensor.shape) + "; expected [" +
                                          std::to_string(requests) + ", D], the accepted nodes padded with -1");
    const std::size_t width = tensor.shape[1];
    sample_.path_nodes.emplace();
    for (std::size_t at = 0; at < kept_.size(); ++at) {
      const std::size_t b = kept_[at];
      const DraftTree& draft = sample_.requests[b].draft;
      const std::size_t accepted = sample_.emitted(at).size() - 1;
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

  const SafetensorsFile& file_;
  StepSample& sample_;
  std::vector<std::size_t> kept_;
};

// Checks the file's numbers on its tokens (log-probabilities, kept masses and counts, accepted drafts), where it
// has any: numbers that are not those of the rows are the engine's fault. Their steps are audited all the same.
void check_numbers(const SafetensorsFile& outputs, StepSample& sample, int threads) {
  constexpr std::array kNumbers = {"accepted",   "logprob",          "raw_logprob",         "kept_mass",
                                   "kept_count", "token_id_logprob", "raw_token_id_logprob"};
  if (sample.malformed.count > 0 ||
      std::none_of(kNumbers.begin(), kNumbers.end(), [&](const char* name) { return outputs.contains(name); }))
    return;
  std::vector<Emission> emissions(sample.requests.size());
  std::vector<StepWorkspace> workspaces(static_cast<std::size_t>(threads));
  VerifyOptions options;
  options.all_rows = true;
  parallel_for(std::ssize(emissions), threads, [&](std::int64_t i, int thread) {
    const auto b = static_cast<std::size_t>(i);
    const VerifyRequest& request = sample.requests[b];
    const std::span<const Token> tokens = sample.emitted(b);
    const std::vector<std::int32_t> found = find_emitted_path(request.draft, tokens.first(tokens.size() - 1)).nodes;
    const std::span<const std::int32_t> path = sample.path_nodes ? sample.reported_path(b) : std::span(found);
    try {
      emissions[b] =
          emission_along(request, path, tokens.back(), options, workspaces[static_cast<std::size_t>(thread)]);
    } catch (const RowError& error) {
      throw error_in_request(request, i, error);
    }
  });
  const ResultComparison comparison = compare_result(collect_result(sample.requests, emissions), outputs);
  if (!comparison.first) return;
  sample.malformed.add(comparison.first->request, comparison.sentence());
  sample.malformed.count += comparison.differing_requests - 1;
  sample.malformed.kept = comparison.differing_requests;
}

StepSample read_steps(const std::string& path, const AuditFileOptions& options) {
  TraceOptions trace_options = options.trace;
  trace_options.kind = TraceKind::emitted_steps;
  // Whether the verifier under audit takes the drafts is for audit_steps to say; naive sampling takes any.
  trace_options.overrides.push_back({"verifier", "naive", "audit"});
  const auto trace = std::make_shared<Trace>(Trace::open(path, trace_options));
  StepSample sample;
  sample.requests.assign(trace->requests().begin(), trace->requests().end());
  sample.convention = trace->settings().convention;
  if (const std::optional<TensorView> group = find_tensor(trace->file(), "group", kIndexDTypes)) {
    require_shape(*group, {sample.requests.size()}, "[B]");
    sample.groups.emplace();
    for (std::size_t b = 0; b < sample.requests.size(); ++b) sample.groups->push_back(integer_at(*group, b));
  }
  const std::uint64_t steps = sample.requests.size();
  const bool in_this_file = options.outputs_path.empty();
  if (in_this_file && trace->file().contains("cu_output_tokens"))
    throw input_error(path + ": " + tensor_label("cu_output_tokens"),
                      "goes with a history named output_tokens, which here is what the steps emitted; put that into "
                      "another file and name it with --outputs");
  if (!in_this_file && trace->file().contains("num_accepted"))
    throw usage_error("--outputs", "has no use: " + path + " says itself what the steps emitted");
  const SafetensorsFile outputs = in_this_file ? trace->file() : SafetensorsFile::open(options.outputs_path);
  require_known_tensors(outputs, TraceKind::emitted_steps);
  for (const SafetensorsFile* file : {&outputs, &trace->file()})  // who emitted knows best
    if (const auto found = file->metadata().find("verifier");
        sample.verifier.empty() && found != file->metadata().end())
      sample.verifier = found->second;
  EmissionReader reader(outputs, sample);
  reader.read(trace->vocab_size());
  check_numbers(outputs, sample, trace_options.threads);
  DrawCoordinates at = selected(read_coordinates(trace->file(), steps, "[B]"), reader.kept());
  at.position.clear();  // of a step it is where its tokens stand in the text, which the step says already
  if (at.any()) sample.at = std::move(at);
  sample.keeps = trace;
  return sample;
}

// --- Filters

FilterSample read_filters(const std::string& path, const AuditFileOptions& options) {
  if (!options.outputs_path.empty())
    throw usage_error("--outputs", "has no use: " + path + " holds rows that were filtered");
  TraceOptions trace_options = options.trace;
  trace_options.kind = TraceKind::filtered;
  const auto trace = std::make_shared<Trace>(Trace::open(path, trace_options));
  const SafetensorsFile& file = trace->file();
  if (file.contains("target_probs"))
    throw input_error(path + ": " + tensor_label("target_probs"),
                      "is not what filters are applied to; expected target_logits [G, V]");
  FilterSample sample;
  sample.rows.assign(trace->requests().begin(), trace->requests().end());
  const auto rows = static_cast<std::uint64_t>(sample.rows.size());
  const std::vector<std::uint64_t> shape{rows, static_cast<std::uint64_t>(trace->vocab_size())};
  std::optional<TensorView> filtered = find_tensor(file, "filtered_logits", kRowDTypes);
  if (filtered) filtered = with_rows_of_binary32(std::move(*filtered));
  const std::optional<TensorView> kept = find_tensor(file, "kept", {DType::boolean, DType::u8});
  if (filtered.has_value() == kept.has_value())
    throw input_error(path, "has both filtered_logits and kept; expected one of them");
  require_shape(filtered ? *filtered : *kept, shape, "[G, V], the shape of target_logits");
  const auto views =
      std::make_shared<std::pair<std::shared_ptr<const Trace>, std::optional<TensorView>>>(trace, filtered);
  if (filtered) {
    sample.filtered = {filtered->dtype, views->second->bytes.data(), std::ssize(sample.rows), trace->vocab_size(),
                       trace->vocab_size()};
  } else {
    const std::span<const std::uint8_t> all = kept->as<std::uint8_t>();
    const auto bad = std::find_if(all.begin(), all.end(), [](std::uint8_t x) { return x > 1; });
    if (bad != all.end())
      throw input_error(kept->where, entry_is(static_cast<std::uint64_t>(bad - all.begin()), std::to_string(*bad)) +
                                         "; expected 0 (dropped) or 1 (kept)");
    sample.kept.assign(all.begin(), all.end());
  }
  sample.keeps = views;
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
  const SafetensorsFile file = SafetensorsFile::open(path);
  if (file.contains("samples")) return read_draws(path, options);
  if (file.contains("filtered_logits") || file.contains("kept")) return read_filters(path, options);
  return read_steps(path, options);
}

}  // namespace draftproof
