#include "gpu/bench/kernel_cases.hpp"

#include <memory>
#include <numeric>

#include "base/error.hpp"
#include "gpu/api.hpp"
#include "gpu/bench/gpu_tensors.hpp"
#include "gpu/regress/inputs.hpp"

namespace draftproof::bench {
namespace {

constexpr float kLogitSpread = 3.0f;

draftproof_settings on_gpu() {
  draftproof_settings settings{};
  settings.executor = DRAFTPROOF_CUDA;
  return settings;
}

std::uint64_t element_bytes(std::int32_t dtype) {
  return dtype == DRAFTPROOF_F32 ? 4 : 2;
}

std::vector<std::int64_t> first_positions(std::int64_t count) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), std::int64_t{0});
  return positions;
}

std::string sizes_text(const KernelSizes& sizes) {
  return "B=" + std::to_string(sizes.requests) + " K=" + std::to_string(sizes.draft_len) +
         " V=" + std::to_string(sizes.vocab_size);
}

// The arguments of a call, and what they point to.
template <class Arguments>
struct Call {
  GpuTensors tensors;
  Arguments arguments{};
};
using VerifyCall = Call<draftproof_verify_arguments>;

// The call with its workspace, which moves so many bytes.
template <class Arguments>
KernelWork work_of(const std::shared_ptr<Call<Arguments>>& call, std::uint64_t bytes,
                   std::int64_t (*workspace_bytes)(const Arguments&),
                   void (*operation)(const Arguments&, const draftproof_settings&)) {
  Arguments& a = call->arguments;
  a.workspace_bytes = workspace_bytes(a);
  a.workspace = call->tensors.template output<std::byte>(a.workspace_bytes);
  return {bytes, [call, operation] { operation(call->arguments, on_gpu()); }};
}

// The drafts are the proposal's most probable tokens in turns, so that some are accepted and some are not.
std::shared_ptr<VerifyCall> verify_call(const KernelSizes& sizes, std::int32_t kind, std::int32_t dtype,
                                        const std::filesystem::path& write_inputs) {
  auto call = std::make_shared<VerifyCall>();
  GpuTensors& tensors = call->tensors;
  draftproof_verify_arguments& a = call->arguments;
  const std::int64_t total = sizes.requests * sizes.draft_len;
  const auto requests = static_cast<std::size_t>(sizes.requests);
  a.requests = sizes.requests;
  a.draft_tokens_total = total;
  a.draft_len_max = sizes.draft_len;
  a.vocab_size = sizes.vocab_size;
  a.target_kind = kind;
  a.proposal_kind = kind;
  std::vector<std::int64_t> judged;  // the positions of the target's rows: those of the drafts, then the bonus row
  std::vector<std::int64_t> proposed;
  for (std::int64_t row = 0; row < total + sizes.requests; ++row) {
    judged.push_back(row);
    if (row % (sizes.draft_len + 1) != sizes.draft_len) proposed.push_back(row);
  }
  const HostRows target = bench_rows(1, judged, sizes.vocab_size, kLogitSpread, kind, dtype);
  const HostRows proposal = bench_rows(2, proposed, sizes.vocab_size, kLogitSpread, kind, dtype);
  std::vector<std::int32_t> drafts;
  const regress::Noise noise(7);
  for (std::int64_t i = 0; i < total; ++i)
    drafts.push_back(
        static_cast<std::int32_t>(likely_token(proposal, i, noise.below(static_cast<std::uint64_t>(i), 4))));
  if (!write_inputs.empty()) {
    write_file(write_inputs / "target.bin", target.bytes);
    write_file(write_inputs / "proposal.bin", proposal.bytes);
    write_file(write_inputs / "drafts.bin", bytes_of(drafts));
  }
  a.target = tensors.rows(target);
  a.proposal = tensors.rows(proposal);
  a.draft_tokens = tensors.input(drafts);
  std::vector<std::int64_t> cu(requests + 1);
  for (std::size_t b = 0; b <= requests; ++b) cu[b] = static_cast<std::int64_t>(b) * sizes.draft_len;
  a.cu_num_draft_tokens = tensors.input(cu);
  std::vector<std::uint64_t> seeds(requests);
  for (std::size_t b = 0; b < requests; ++b) seeds[b] = b + 1;
  a.randomness.seed = tensors.input(seeds);
  a.randomness.step = tensors.input(std::vector<std::uint32_t>(requests, 0));
  a.num_accepted = tensors.output<std::int32_t>(sizes.requests);
  a.tokens = tensors.output<std::int32_t>(sizes.requests * (sizes.draft_len + 1));
  a.status = tensors.output<std::int32_t>(sizes.requests);
  return call;
}

KernelCase chain_probabilities(const KernelSizes& sizes) {
  KernelCase out{"verify_chain_probabilities", sizes_text(sizes) + " f32", 0.025, std::nullopt, {}};
  out.prepare = [sizes] {
    const auto call = verify_call(sizes, DRAFTPROOF_PROBABILITIES, DRAFTPROOF_F32, {});
    // One row of the target and one of the proposal a request: the rejected position.
    const auto bytes = static_cast<std::uint64_t>(sizes.requests * sizes.vocab_size) * 2 * 4;
    return work_of(call, bytes, device::verify_chain_workspace_bytes, device::verify_chain);
  };
  return out;
}

// All rows of the target and of the proposal.
KernelWork work_on_logits(const KernelSizes& sizes, const std::filesystem::path& write_inputs,
                          std::int64_t (*workspace_bytes)(const draftproof_verify_arguments&),
                          void (*verifier)(const draftproof_verify_arguments&, const draftproof_settings&)) {
  const auto call = verify_call(sizes, DRAFTPROOF_LOGITS, DRAFTPROOF_BF16, write_inputs);
  const std::int64_t rows = sizes.requests * (2 * sizes.draft_len + 1);
  return work_of(call, static_cast<std::uint64_t>(rows * sizes.vocab_size) * 2, workspace_bytes, verifier);
}

KernelCase chain_logits(const KernelSizes& sizes, const std::filesystem::path& write_inputs) {
  return {"verify_chain_logits", sizes_text(sizes) + " bf16, target and draft", 0.055, std::nullopt,
          [sizes, write_inputs] {
            return work_on_logits(sizes, write_inputs, device::verify_chain_workspace_bytes, device::verify_chain);
          }};
}

KernelCase block_logits(const KernelSizes& sizes) {
  return {"verify_block_logits", sizes_text(sizes) + " bf16, target and draft", std::nullopt, std::nullopt,
          [sizes] { return work_on_logits(sizes, {}, device::verify_block_workspace_bytes, device::verify_block); }};
}

KernelCase mass_pass(const KernelSizes& sizes, std::int32_t dtype) {
  const std::int64_t rows = sizes.requests * (sizes.draft_len + 1);
  KernelCase out{"mass_pass_" + regress::dtype_text(dtype),
                 std::to_string(rows) + " rows V=" + std::to_string(sizes.vocab_size),
                 std::nullopt,
                 0.85,
                 {}};
  out.prepare = [sizes, rows, dtype] {
    auto call = std::make_shared<Call<draftproof_mass_pass_arguments>>();
    draftproof_mass_pass_arguments& a = call->arguments;
    const std::int64_t tiles = (sizes.vocab_size + 4095) / 4096;
    a.rows = rows;
    a.vocab_size = sizes.vocab_size;
    a.logits = call->tensors.rows(
        bench_rows(3, first_positions(rows), sizes.vocab_size, kLogitSpread, DRAFTPROOF_LOGITS, dtype));
    a.tile_sum = call->tensors.output<std::uint64_t>(rows * tiles);
    a.tile_exponent = call->tensors.output<std::int32_t>(rows * tiles);
    a.row_exponent = call->tensors.output<std::int32_t>(rows);
    a.row_total = call->tensors.output<std::uint64_t>(rows);
    a.status = call->tensors.output<std::int32_t>(rows);
    const std::uint64_t bytes = static_cast<std::uint64_t>(rows * sizes.vocab_size) * element_bytes(dtype) +
                                static_cast<std::uint64_t>(rows * tiles) * 12;
    return work_of(call, bytes, device::mass_pass_workspace_bytes, device::mass_pass);
  };
  return out;
}

KernelCase sample_rows(const KernelSizes& sizes, const std::string& name, bool top_p, std::int32_t sampler) {
  KernelCase out{name,
                 "B=" + std::to_string(sizes.sample_rows) + " V=" + std::to_string(sizes.sample_vocab_size) + " bf16" +
                     (top_p ? ", top_p 0.9" : ""),
                 std::nullopt,
                 top_p ? std::optional(0.6) : std::nullopt,
                 {}};
  out.prepare = [sizes, top_p, sampler] {
    auto call = std::make_shared<Call<draftproof_sample_arguments>>();
    draftproof_sample_arguments& a = call->arguments;
    const auto rows = static_cast<std::size_t>(sizes.sample_rows);
    a.rows = sizes.sample_rows;
    a.requests = sizes.sample_rows;
    a.vocab_size = sizes.sample_vocab_size;
    a.logits = call->tensors.rows(bench_rows(5, first_positions(a.rows), sizes.sample_vocab_size, kLogitSpread,
                                             DRAFTPROOF_LOGITS, DRAFTPROOF_BF16));
    if (top_p) a.parameters.top_p = call->tensors.input(std::vector<float>(rows, 0.9f));
    std::vector<std::uint64_t> seeds(rows);
    for (std::size_t r = 0; r < rows; ++r) seeds[r] = r + 1;
    a.randomness.seed = call->tensors.input(seeds);
    a.randomness.step = call->tensors.input(std::vector<std::uint32_t>(rows, 0));
    a.sampler = sampler;
    a.purpose = DRAFTPROOF_TARGET_SAMPLE;
    a.tokens = call->tensors.output<std::int32_t>(a.rows);
    a.status = call->tensors.output<std::int32_t>(a.rows);
    return work_of(call, static_cast<std::uint64_t>(a.rows * a.vocab_size) * 2, device::sample_workspace_bytes,
                   device::sample);
  };
  return out;
}

}  // namespace

std::vector<KernelCase> kernel_cases(const KernelSizes& sizes, const std::filesystem::path& write_inputs) {
  return {mass_pass(sizes, DRAFTPROOF_F32),
          mass_pass(sizes, DRAFTPROOF_BF16),
          chain_probabilities(sizes),
          chain_logits(sizes, write_inputs),
          block_logits(sizes),
          sample_rows(sizes, "sample_inverse", false, DRAFTPROOF_INVERSE),
          sample_rows(sizes, "sample_race", false, DRAFTPROOF_RACE),
          sample_rows(sizes, "sample_top_p", true, DRAFTPROOF_INVERSE)};
}

}  // namespace draftproof::bench
