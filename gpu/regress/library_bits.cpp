// Outputs of a library beside those of the reference on the same inputs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/api.hpp"
#include "gpu/regress/library_regression.hpp"

namespace draftproof::regress {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

const draftproof_settings& on_reference() {
  static const draftproof_settings settings{DRAFTPROOF_REFERENCE, nullptr, 0, 0, 0};
  return settings;
}

template <class T>
Output output_of(const std::string& name, const std::vector<T>& values) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  return {name, sizeof(T), {bytes, bytes + values.size() * sizeof(T)}, element_kind<T>()};
}

LibraryJudgement compare(const std::vector<Output>& expected, const std::vector<Output>& found) {
  return {first_difference(expected, found), difference_of(expected, found)};
}

struct ReferenceRows {
  std::vector<Token> tokens;         // [rows]
  std::vector<float> probabilities;  // [rows, row_stride]
};

ReferenceRows reference_rows(const RowInputs& in) {
  ReferenceRows out{std::vector<Token>(in.temperature.size()), std::vector<float>(in.logits.size())};
  std::vector<std::int32_t> status(in.temperature.size());
  draftproof_sample_arguments a{};
  a.rows = a.requests = in.rows();
  a.vocab_size = in.vocab_size;
  a.logits = {in.logits.data(), in.row_stride, DRAFTPROOF_F32};
  a.parameters.temperature = in.temperature.data();
  a.parameters.top_k = in.top_k.data();
  a.parameters.top_p = in.top_p.data();
  a.parameters.min_p = in.min_p.data();
  a.randomness = {in.seeds.data(), in.steps.data()};
  a.sampler = DRAFTPROOF_INVERSE;
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = out.tokens.data();
  a.probabilities = out.probabilities.data();
  a.probabilities_stride = in.row_stride;
  a.status = status.data();
  device::sample(a, on_reference());
  return out;
}

LibraryJudgement judge_filter(const KernelLibrary& library, const RowInputs& in) {
  constexpr float kVanishingNats = 31.0f;
  const std::vector<float> probabilities = reference_rows(in).probabilities;
  const std::vector<float> found = library.filter(in);
  std::vector<float> expected = found;  // padding, which the call has left alone
  for (std::int64_t row = 0; row < in.rows(); ++row) {
    const auto begin = static_cast<std::size_t>(row * in.row_stride);
    const float temperature = in.temperature[static_cast<std::size_t>(row)];
    const auto value = [&](std::size_t i) { return temperature == 0.0f ? in.logits[i] : in.logits[i] / temperature; };
    float largest = kMasked;
    for (std::size_t i = begin; i < begin + static_cast<std::size_t>(in.vocab_size); ++i)
      largest = std::max(largest, value(i));
    for (std::size_t i = begin; i < begin + static_cast<std::size_t>(in.vocab_size); ++i) {
      if (probabilities[i] > 0.0f) {
        expected[i] = value(i);
      } else if (!(found[i] == value(i) && value(i) < largest - kVanishingNats)) {
        expected[i] = kMasked;
      }
    }
  }
  return compare({output_of("filtered", expected)}, {output_of("filtered", found)});
}

LibraryJudgement judge_sample(const KernelLibrary& library, const RowInputs& in) {
  std::vector<double> uniforms(in.temperature.size(), 0.5);
  const std::vector<Token> found = library.sample(in, uniforms);
  return compare({output_of("tokens", reference_rows(in).tokens)}, {output_of("tokens", found)});
}

LibraryJudgement judge_verify(const KernelLibrary& library, const std::string& call, const DraftInputs& in) {
  std::vector<double> coins(static_cast<std::size_t>(in.is_tree ? in.rows() : in.drafts()), 0.5);
  std::vector<double> draws(in.seeds.size(), 0.5);
  const DraftOutputs found = library.verify(call, in, coins, draws);
  const std::vector<std::int64_t> cu_num_draft_tokens(in.cu_num_draft_tokens.begin(), in.cu_num_draft_tokens.end());
  DraftOutputs expected{std::vector<Token>(found.tokens.size()), std::vector<std::int32_t>(in.seeds.size()),
                        std::vector<std::int32_t>(found.path.size())};
  std::vector<std::int32_t> status(in.seeds.size());
  draftproof_verify_arguments a{};
  a.requests = in.requests();
  a.draft_tokens_total = in.drafts();
  a.draft_len_max = in.draft_len_max();
  a.vocab_size = in.vocab_size;
  a.draft_tokens = in.draft_tokens.data();
  a.cu_num_draft_tokens = cu_num_draft_tokens.data();
  a.target_kind = DRAFTPROOF_PROBABILITIES;
  a.target = {in.target_probs.data(), in.row_stride, DRAFTPROOF_F32};
  a.proposal_kind = in.has_proposals ? DRAFTPROOF_PROBABILITIES : DRAFTPROOF_ONE_HOT;
  if (in.has_proposals) a.proposal = {in.draft_probs.data(), in.row_stride, DRAFTPROOF_F32};
  a.randomness = {in.seeds.data(), in.steps.data()};
  a.tokens = expected.tokens.data();
  a.num_accepted = expected.num_accepted.data();
  a.status = status.data();
  if (in.is_tree) {
    a.parents = in.parents.data();
    a.tree_rule = in.has_proposals ? DRAFTPROOF_RRSW : DRAFTPROOF_TARGET_ONLY;
    a.path = expected.path.data();
    device::verify_tree(a, on_reference());
  } else {
    (call == "verify_block" ? device::verify_block : device::verify_chain)(a, on_reference());
  }
  const auto outputs = [](const DraftOutputs& of) {
    return std::vector<Output>{output_of("num_accepted", of.num_accepted), output_of("tokens", of.tokens),
                               output_of("path", of.path)};
  };
  return compare(outputs(expected), outputs(found));
}

std::vector<float> reference_guidance(const GuidanceInputs& in, std::vector<float> out) {
  std::vector<std::int32_t> status(in.scale.size());
  draftproof_guidance_arguments a{};
  a.rows = in.rows();
  a.vocab_size = in.vocab_size;
  a.conditional = {in.conditional.data(), in.row_stride, DRAFTPROOF_F32};
  a.unconditional = {in.unconditional.data(), in.row_stride, DRAFTPROOF_F32};
  a.scale = in.scale.data();
  a.out = out.data();
  a.out_stride = in.row_stride;
  a.status = status.data();
  device::guidance(a, on_reference());
  return out;
}

LibraryJudgement judge_tree_mask(const KernelLibrary& library, const TreeInputs& in) {
  const std::vector<std::uint32_t> found = library.tree_mask(in);
  const std::vector<std::int64_t> cu_num_draft_tokens(in.cu_num_draft_tokens.begin(), in.cu_num_draft_tokens.end());
  std::vector<std::uint32_t> mask(found.size());
  std::vector<std::int32_t> depths(in.parents.size() + cu_num_draft_tokens.size() - 1);
  std::vector<std::int32_t> status(cu_num_draft_tokens.size() - 1);
  draftproof_tree_mask_arguments a{};
  a.requests = in.requests();
  a.draft_tokens_total = static_cast<std::int64_t>(in.parents.size());
  a.draft_len_max = in.draft_len_max();
  a.cu_num_draft_tokens = cu_num_draft_tokens.data();
  a.parents = in.parents.data();
  a.depths = depths.data();
  a.mask = mask.data();
  a.words_per_row = in.words_per_row;
  a.status = status.data();
  device::tree_mask(a, on_reference());
  return compare({output_of("mask", mask)}, {output_of("mask", found)});
}

}  // namespace

LibraryJudgement judge_bits(const KernelLibrary& library, const LibraryCase& one, const LibraryInputs& inputs) {
  if (const auto* const rows = std::get_if<RowInputs>(&inputs))
    return one.call == "filter" ? judge_filter(library, *rows) : judge_sample(library, *rows);
  if (const auto* const drafts = std::get_if<DraftInputs>(&inputs)) return judge_verify(library, one.call, *drafts);
  if (const auto* const trees = std::get_if<TreeInputs>(&inputs)) return judge_tree_mask(library, *trees);
  const auto& in = std::get<GuidanceInputs>(inputs);
  const std::vector<float> found = library.guidance(in);
  return compare({output_of("out", reference_guidance(in, found))}, {output_of("out", found)});
}

LibraryJudgement judge_guidance(const KernelLibrary& library, const GuidanceInputs& in) {
  const std::vector<float> found = library.guidance(in);
  const std::vector<float> expected = reference_guidance(in, found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (static_cast<std::int64_t>(i) % in.row_stride >= in.vocab_size || found[i] == expected[i]) continue;
    const double s = in.scale[i / static_cast<std::size_t>(in.row_stride)];
    const double c = in.conditional[i];
    const double u = in.unconditional[i];
    const double tolerance = 0x1p-21 * (std::abs(u) + std::abs(s) * (std::abs(c) + std::abs(u)));
    if (std::abs(static_cast<double>(found[i]) - (u + s * (c - u))) <= tolerance) continue;  // false for a NaN
    std::vector<float> only = found;  // so that the first difference is this one
    only[i] = expected[i];
    std::vector<float> wrong = only;
    wrong[i] = found[i];
    return compare({output_of("out", only)}, {output_of("out", wrong)});
  }
  return {};
}

}  // namespace draftproof::regress
