#include "gpu/regress/library_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/reference_executor/rows.hpp"

namespace draftproof::regress {
namespace {

using reference_executor::value_of;

constexpr float kPlusInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Adds a row of the call to a matrix of f32 rows. False, and nothing is added, where it holds a NaN or +infinity.
bool add_row(const draftproof_rows& rows, std::int64_t row, std::int64_t vocab_size, std::int64_t row_stride,
             std::vector<float>& to) {
  const std::vector<float> values = reference_executor::floats_of(reference_executor::row_view(rows, row, vocab_size));
  if (std::any_of(values.begin(), values.end(), [](float x) { return std::isnan(x) || x == kPlusInfinity; }))
    return false;
  to.insert(to.end(), values.begin(), values.end());
  to.insert(to.end(), static_cast<std::size_t>(row_stride - vocab_size), kNan);
  return true;
}

bool has_constraints(const draftproof_constraints& c) {
  return c.allowed_mask != nullptr || c.allowed_offsets != nullptr || c.history_offsets != nullptr ||
         c.row_draft_begin != nullptr || c.bad_word_sequences != nullptr || c.min_tokens != nullptr ||
         c.stop_offsets != nullptr || c.bias_offsets != nullptr;
}

bool has_edits(const draftproof_parameters& p) {
  return p.repetition_penalty != nullptr || p.frequency_penalty != nullptr || p.presence_penalty != nullptr ||
         p.guidance_scale != nullptr;
}

std::optional<LibraryInputs> inputs_of(const draftproof_sample_arguments& a) {
  if (has_constraints(a.constraints) || has_edits(a.parameters)) return std::nullopt;
  if (a.sampler == DRAFTPROOF_RACE) return std::nullopt;  // the rows of another case
  RowInputs in;
  in.vocab_size = a.vocab_size;
  in.row_stride = a.logits.row_stride;
  const draftproof_parameters& p = a.parameters;
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const std::int64_t request = reference_executor::request_of_row(a.row_request, row, a.requests);
    if (a.status[row] != DRAFTPROOF_ROW_OK) continue;
    // These rows say the same as those of the usual order, in which the library may choose.
    const auto is_set = [&](const std::uint8_t* values) { return value_of<std::uint8_t>(values, request, 0) != 0; };
    if (is_set(p.filter_order) || is_set(p.ties) || is_set(p.top_p_rule)) continue;
    if (!add_row(a.logits, row, a.vocab_size, in.row_stride, in.logits)) continue;
    in.temperature.push_back(value_of(p.temperature, request, 1.0f));
    in.top_k.push_back(value_of<std::int32_t>(p.top_k, request, 0));
    in.top_p.push_back(value_of(p.top_p, request, 1.0f));
    in.min_p.push_back(value_of(p.min_p, request, 0.0f));
    in.seeds.push_back(a.randomness.seed[request]);
    in.steps.push_back(a.randomness.step[request] + static_cast<std::uint32_t>(row) * 65536u);  // of its own
  }
  if (in.rows() == 0) return std::nullopt;
  return in;
}

std::optional<LibraryInputs> inputs_of(const draftproof_verify_arguments& a) {
  if (a.target_kind != DRAFTPROOF_PROBABILITIES || a.proposal_kind == DRAFTPROOF_LOGITS) return std::nullopt;
  DraftInputs in;
  in.vocab_size = a.vocab_size;
  in.is_tree = a.parents != nullptr;
  in.has_proposals =
      in.is_tree ? a.tree_rule == DRAFTPROOF_RRSW && a.proposal.data != nullptr : a.proposal_kind != DRAFTPROOF_ONE_HOT;
  in.row_stride = std::max(a.target.row_stride, in.has_proposals ? a.proposal.row_stride : 0);
  for (std::int64_t b = 0; b < a.requests; ++b) {
    if (a.status[b] != DRAFTPROOF_ROW_OK) continue;
    const std::size_t target_size = in.target_probs.size();
    const std::size_t draft_size = in.draft_probs.size();
    const std::int64_t begin = a.cu_num_draft_tokens[b];
    const std::int64_t end = a.cu_num_draft_tokens[b + 1];
    bool sound = true;
    for (std::int64_t row = begin + b; row <= end + b; ++row)
      sound = sound && add_row(a.target, row, a.vocab_size, in.row_stride, in.target_probs);
    const std::int64_t first = in.is_tree ? begin + b : begin;
    const std::int64_t last = in.is_tree ? end + b + 1 : end;
    for (std::int64_t row = first; row < last && in.has_proposals; ++row)
      sound = sound && add_row(a.proposal, row, a.vocab_size, in.row_stride, in.draft_probs);
    if (!sound) {  // in a row that its verification does not come to
      in.target_probs.resize(target_size);
      in.draft_probs.resize(draft_size);
      continue;
    }
    in.draft_tokens.insert(in.draft_tokens.end(), a.draft_tokens + begin, a.draft_tokens + end);
    if (in.is_tree) in.parents.insert(in.parents.end(), a.parents + begin, a.parents + end);
    in.cu_num_draft_tokens.push_back(static_cast<std::int32_t>(in.draft_tokens.size()));
    in.seeds.push_back(a.randomness.seed[b]);
    in.steps.push_back(a.randomness.step[b]);
  }
  if (in.requests() == 0) return std::nullopt;
  return in;
}

std::optional<LibraryInputs> inputs_of(const draftproof_guidance_arguments& a) {
  GuidanceInputs in;
  in.vocab_size = a.vocab_size;
  in.row_stride = std::max(a.conditional.row_stride, a.unconditional.row_stride);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    if (a.status[row] != DRAFTPROOF_ROW_OK) continue;
    const std::size_t size = in.conditional.size();
    if (add_row(a.conditional, row, a.vocab_size, in.row_stride, in.conditional) &&
        add_row(a.unconditional, row, a.vocab_size, in.row_stride, in.unconditional)) {
      in.scale.push_back(a.scale[row]);
    } else {
      in.conditional.resize(size);
    }
  }
  if (in.rows() == 0) return std::nullopt;
  return in;
}

std::optional<LibraryInputs> inputs_of(const draftproof_tree_mask_arguments& a) {
  TreeInputs in;
  in.words_per_row = a.words_per_row;
  for (std::int64_t b = 0; b < a.requests; ++b) {
    if (a.status[b] != DRAFTPROOF_ROW_OK) continue;
    in.parents.insert(in.parents.end(), a.parents + a.cu_num_draft_tokens[b], a.parents + a.cu_num_draft_tokens[b + 1]);
    in.cu_num_draft_tokens.push_back(static_cast<std::int32_t>(in.parents.size()));
  }
  if (in.requests() == 0) return std::nullopt;
  return in;
}

template <class Arguments>
std::optional<LibraryInputs> inputs_of(const Arguments&) {
  return std::nullopt;
}

std::int64_t longest(const std::vector<std::int32_t>& offsets) {
  std::int64_t most = 0;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) most = std::max<std::int64_t>(most, offsets[b + 1] - offsets[b]);
  return most;
}

}  // namespace

void RowInputs::add(const RowInputs& from, std::int64_t row, std::uint64_t seed, std::uint32_t step) {
  const auto at = static_cast<std::size_t>(row);
  const auto first = from.logits.begin() + row * from.row_stride;
  logits.insert(logits.end(), first, first + from.row_stride);
  temperature.push_back(from.temperature[at]);
  top_k.push_back(from.top_k[at]);
  top_p.push_back(from.top_p[at]);
  min_p.push_back(from.min_p[at]);
  seeds.push_back(seed);
  steps.push_back(step);
}

std::int64_t DraftInputs::draft_len_max() const {
  return longest(cu_num_draft_tokens);
}

DraftInputs DraftInputs::none() const {
  DraftInputs empty;
  empty.vocab_size = vocab_size;
  empty.row_stride = row_stride;
  empty.is_tree = is_tree;
  empty.has_proposals = has_proposals;
  return empty;
}

void DraftInputs::add(const DraftInputs& from, std::int64_t request, const std::vector<Token>& drafts,
                      std::uint64_t seed, std::uint32_t step, const std::vector<std::int64_t>& rows) {
  draft_tokens.insert(draft_tokens.end(), drafts.begin(), drafts.end());
  if (is_tree) {
    const auto first = from.parents.begin() + from.begin(request);
    parents.insert(parents.end(), first, first + from.draft_len(request));
  }
  cu_num_draft_tokens.push_back(static_cast<std::int32_t>(draft_tokens.size()));
  const auto row_of = [&](std::int64_t row) { return rows.empty() ? row : rows[static_cast<std::size_t>(row)]; };
  for (std::int64_t row = 0; row <= from.draft_len(request); ++row) {
    const float* const p = from.target(request, row_of(row));
    target_probs.insert(target_probs.end(), p, p + row_stride);
  }
  for (std::int64_t row = 0; row < from.proposal_rows(request) && has_proposals; ++row) {
    const float* const q = from.draft(request, row_of(row));
    draft_probs.insert(draft_probs.end(), q, q + row_stride);
  }
  seeds.push_back(seed);
  steps.push_back(step);
}

std::int64_t TreeInputs::draft_len_max() const {
  return longest(cu_num_draft_tokens);
}

std::optional<LibraryInputs> library_inputs(const RegressCase& one) {
  if (one.host_only) return std::nullopt;  // more than fits into memory
  draftproof_settings settings{};
  settings.executor = DRAFTPROOF_REFERENCE;
  const auto memory = device::memory_of(DRAFTPROOF_REFERENCE);
  std::optional<LibraryInputs> inputs;
  CaseRun run(*memory, settings, [&](const MadeCall& call) {
    std::visit([&](const auto* arguments) { inputs = inputs_of(*arguments); }, call);
  });
  one.run(run);
  return inputs;
}

std::vector<std::string> parameters_set(const LibraryInputs& inputs) {
  std::vector<std::string> set;
  const auto note = [&](const char* name, const auto& values, const auto& is_set) {
    if (std::any_of(values.begin(), values.end(), is_set)) set.emplace_back(name);
  };
  if (const auto* const rows = std::get_if<RowInputs>(&inputs)) {
    note("temperature", rows->temperature, [](float t) { return t != 1.0f; });
    note("top_k", rows->top_k, [&](std::int32_t k) { return k > 0 && k < rows->vocab_size; });
    note("top_p", rows->top_p, [](float p) { return p < 1.0f; });
    note("min_p", rows->min_p, [](float p) { return p > 0.0f; });
  } else if (const auto* const drafts = std::get_if<DraftInputs>(&inputs)) {
    if (drafts->drafts() == 0) return set;
    if (drafts->is_tree) return {drafts->has_proposals ? "rrsw" : "target_only"};
    set.emplace_back(drafts->has_proposals ? "draft_probs" : "no_draft_probs");
  } else if (const auto* const guidance = std::get_if<GuidanceInputs>(&inputs)) {
    note("scale", guidance->scale, [](float s) { return s != 1.0f; });
  } else {
    set.emplace_back("parents");
  }
  return set;
}

}  // namespace draftproof::regress
