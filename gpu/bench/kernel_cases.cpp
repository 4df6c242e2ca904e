#include "gpu/bench/kernel_cases.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/error.hpp"
#include "gpu/api.hpp"
#include "gpu/bench/gpu_tensors.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/random_trees.hpp"

namespace draftproof::bench {
namespace {

draftproof_settings on_gpu(void* stream) {
  draftproof_settings settings{};
  settings.executor = DRAFTPROOF_CUDA;
  settings.stream = stream;
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
  return {bytes, [call, operation](void* stream) { operation(call->arguments, on_gpu(stream)); }};
}

// Rows, drafts and outputs of a verification.
void put(VerifyCall& call, const HostRows& target, const HostRows& proposal, const std::vector<std::int32_t>& drafts,
         const std::vector<std::int64_t>& cu_num_draft_tokens, std::int64_t draft_len_max) {
  GpuTensors& tensors = call.tensors;
  draftproof_verify_arguments& a = call.arguments;
  const std::size_t requests = cu_num_draft_tokens.size() - 1;
  a.requests = static_cast<std::int64_t>(requests);
  a.draft_tokens_total = static_cast<std::int64_t>(drafts.size());
  a.draft_len_max = draft_len_max;
  a.vocab_size = target.vocab_size;
  a.target = tensors.rows(target);
  a.proposal = tensors.rows(proposal);
  a.draft_tokens = tensors.input(drafts);
  a.cu_num_draft_tokens = tensors.input(cu_num_draft_tokens);
  std::vector<std::uint64_t> seeds(requests);
  std::iota(seeds.begin(), seeds.end(), std::uint64_t{1});
  a.randomness.seed = tensors.input(seeds);
  a.randomness.step = tensors.input(std::vector<std::uint32_t>(requests, 0));
  a.num_accepted = tensors.output<std::int32_t>(a.requests);
  a.tokens = tensors.output<std::int32_t>(a.requests * (draft_len_max + 1));
  a.status = tensors.output<std::int32_t>(a.requests);
}

// The drafts are the proposal's most probable tokens in turns, so that some are accepted and some are not.
std::shared_ptr<VerifyCall> verify_call(const KernelSizes& sizes, std::int32_t kind, std::int32_t dtype,
                                        const std::filesystem::path& write_inputs) {
  auto call = std::make_shared<VerifyCall>();
  call->arguments.target_kind = kind;
  call->arguments.proposal_kind = kind;
  const std::int64_t total = sizes.requests * sizes.draft_len;
  std::vector<std::int64_t> judged;  // the positions of the target's rows: those of the drafts, then the bonus row
  std::vector<std::int64_t> proposed;
  for (std::int64_t row = 0; row < total + sizes.requests; ++row) {
    judged.push_back(row);
    if (row % (sizes.draft_len + 1) != sizes.draft_len) proposed.push_back(row);
  }
  const HostRows target = bench_rows(1, judged, sizes.vocab_size, kind, dtype);
  const HostRows proposal = bench_rows(2, proposed, sizes.vocab_size, kind, dtype);
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
  std::vector<std::int64_t> cu(static_cast<std::size_t>(sizes.requests) + 1);
  for (std::size_t b = 0; b < cu.size(); ++b) cu[b] = static_cast<std::int64_t>(b) * sizes.draft_len;
  put(*call, target, proposal, drafts, cu, sizes.draft_len);
  return call;
}

// Gives the call what the drafter kept of its rows.
void give_proposal_sums(VerifyCall& call) {
  draftproof_verify_arguments& v = call.arguments;
  draftproof_mass_pass_arguments a{};
  a.rows = v.draft_tokens_total;
  a.vocab_size = v.vocab_size;
  a.logits = v.proposal;
  const std::int64_t tiles = (a.vocab_size + 4095) / 4096;
  a.tile_sum = call.tensors.output<std::uint64_t>(a.rows * tiles);
  a.tile_exponent = call.tensors.output<std::int32_t>(a.rows * tiles);
  a.row_exponent = call.tensors.output<std::int32_t>(a.rows);
  a.row_total = call.tensors.output<std::uint64_t>(a.rows);
  a.status = call.tensors.output<std::int32_t>(a.rows);
  a.workspace_bytes = device::mass_pass_workspace_bytes(a);
  a.workspace = call.tensors.output<std::byte>(a.workspace_bytes);
  device::mass_pass(a, on_gpu(nullptr));
  static_cast<void>(call.tensors.values(a.status, a.rows));  // waits for it
  v.proposal_sums = {a.row_exponent, a.row_total, a.status};
}

KernelCase chain_probabilities(const KernelSizes& sizes) {
  KernelCase out{"verify_chain_probabilities", sizes_text(sizes) + " f32", 0.025, {}};
  out.prepare = [sizes] {
    const auto call = verify_call(sizes, DRAFTPROOF_PROBABILITIES, DRAFTPROOF_F32, {});
    // One row of the target and one of the proposal a request: the rejected position.
    const auto bytes = static_cast<std::uint64_t>(sizes.requests * sizes.vocab_size) * 2 * 4;
    return work_of(call, bytes, device::verify_chain_workspace_bytes, device::verify_chain);
  };
  return out;
}

using VerifierBytes = std::int64_t (*)(const draftproof_verify_arguments&);
using Verifier = void (*)(const draftproof_verify_arguments&, const draftproof_settings&);

// All rows of the target and, where their sums are not given, of the proposal.
KernelCase on_logits(const char* name, const KernelSizes& sizes, bool gives_sums, std::optional<double> goal_ms,
                     VerifierBytes workspace_bytes, Verifier verifier, const std::filesystem::path& write_inputs) {
  const char* const what = gives_sums ? " bf16, the drafter's sums given" : " bf16, target and draft";
  return {name, sizes_text(sizes) + what, goal_ms, [=] {
            const auto call = verify_call(sizes, DRAFTPROOF_LOGITS, DRAFTPROOF_BF16, write_inputs);
            if (gives_sums) give_proposal_sums(*call);
            const std::int64_t rows = sizes.requests * ((gives_sums ? 1 : 2) * sizes.draft_len + 1);
            return work_of(call, static_cast<std::uint64_t>(rows * sizes.vocab_size) * 2, workspace_bytes, verifier);
          }};
}

KernelCase chain_logits(const KernelSizes& sizes, bool gives_sums, const std::filesystem::path& write_inputs) {
  return on_logits("verify_chain_logits", sizes, gives_sums, gives_sums ? 0.045 : 0.065,
                   device::verify_chain_workspace_bytes, device::verify_chain, write_inputs);
}

KernelCase block_logits(const KernelSizes& sizes, bool gives_sums) {
  return on_logits("verify_block_logits", sizes, gives_sums, 0.1, device::verify_block_workspace_bytes,
                   device::verify_block, {});
}

KernelCase mass_pass(const KernelSizes& sizes, std::int32_t dtype) {
  const std::int64_t rows = sizes.requests * (sizes.draft_len + 1);
  KernelCase out{"mass_pass_" + regress::dtype_text(dtype),
                 std::to_string(rows) + " rows V=" + std::to_string(sizes.vocab_size),
                 dtype == DRAFTPROOF_F32 ? 0.052 : 0.03,
                 {}};
  out.prepare = [sizes, rows, dtype] {
    auto call = std::make_shared<Call<draftproof_mass_pass_arguments>>();
    draftproof_mass_pass_arguments& a = call->arguments;
    const std::int64_t tiles = (sizes.vocab_size + 4095) / 4096;
    a.rows = rows;
    a.vocab_size = sizes.vocab_size;
    a.logits = call->tensors.rows(bench_rows(3, first_positions(rows), sizes.vocab_size, DRAFTPROOF_LOGITS, dtype));
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

KernelCase guidance(const KernelSizes& sizes, std::int32_t dtype) {
  const std::int64_t rows = sizes.requests * (sizes.draft_len + 1);
  return {"guidance_" + regress::dtype_text(dtype),
          std::to_string(rows) + " rows V=" + std::to_string(sizes.vocab_size), dtype == DRAFTPROOF_F32 ? 0.15 : 0.11,
          [sizes, rows, dtype] {
            const auto call = std::make_shared<Call<draftproof_guidance_arguments>>();
            draftproof_guidance_arguments& a = call->arguments;
            const auto logits = [&](std::uint64_t seed) {
              return call->tensors.rows(
                  bench_rows(seed, first_positions(rows), sizes.vocab_size, DRAFTPROOF_LOGITS, dtype));
            };
            a.rows = rows;
            a.vocab_size = sizes.vocab_size;
            a.conditional = logits(3);
            a.unconditional = logits(4);
            a.scale = call->tensors.input(std::vector<float>(static_cast<std::size_t>(rows), 1.5f));
            a.out = call->tensors.output<float>(rows * sizes.vocab_size);
            a.out_stride = sizes.vocab_size;
            a.status = call->tensors.output<std::int32_t>(rows);
            const auto bytes = static_cast<std::uint64_t>(rows * sizes.vocab_size) * (2 * element_bytes(dtype) + 4);
            return KernelWork{bytes, [call](void* stream) { device::guidance(call->arguments, on_gpu(stream)); }};
          }};
}

KernelCase logprobs(std::int64_t rows, std::int64_t vocab_size, RowShape shape = RowShape::normal) {
  constexpr std::int32_t kReported = 20;
  return {"logprobs",
          std::to_string(rows) + " rows V=" + std::to_string(vocab_size) + " bf16, 20 reported" +
              (shape == RowShape::model ? ", peaked" : ""),
          rows == 384 ? std::optional(0.08) : std::nullopt, [rows, vocab_size, shape] {
            const auto call = std::make_shared<Call<draftproof_logprobs_arguments>>();
            draftproof_logprobs_arguments& a = call->arguments;
            a.rows = rows;
            a.requests = rows;
            a.vocab_size = vocab_size;
            a.logits = call->tensors.rows(
                bench_rows(5, first_positions(rows), vocab_size, DRAFTPROOF_LOGITS, DRAFTPROOF_BF16, shape));
            a.n = kReported;
            a.sampled = call->tensors.input(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 7));
            a.tokens = call->tensors.output<std::int32_t>(rows * (kReported + 1));
            a.logprobs = call->tensors.output<float>(rows * (kReported + 1));
            a.ranks = call->tensors.output<std::int64_t>(rows * (kReported + 1));
            a.status = call->tensors.output<std::int32_t>(rows);
            return work_of(call, static_cast<std::uint64_t>(rows * vocab_size) * 2, device::logprobs_workspace_bytes,
                           device::logprobs);
          }};
}

// Trees of 15 nodes; the children of a node are its row's most probable tokens.
regress::RandomTrees bench_trees(const KernelSizes& sizes) {
  return regress::random_trees(1, std::vector<std::int64_t>(static_cast<std::size_t>(sizes.requests), 15), 3);
}

KernelCase verify_tree(const KernelSizes& sizes, draftproof_tree_rule rule) {
  const bool from_logits = rule == DRAFTPROOF_TARGET_ONLY;
  const std::int32_t kind = from_logits ? DRAFTPROOF_LOGITS : DRAFTPROOF_PROBABILITIES;
  const std::int32_t dtype = from_logits ? DRAFTPROOF_BF16 : DRAFTPROOF_F32;
  return {from_logits ? "verify_tree_logits" : "verify_tree_probabilities",
          "B=" + std::to_string(sizes.requests) + " nodes=15 V=" + std::to_string(sizes.vocab_size) +
              (from_logits ? " bf16, target only" : " f32, rrsw"),
          from_logits ? 0.09 : 0.12, [sizes, rule, from_logits, kind, dtype] {
            const regress::RandomTrees trees = bench_trees(sizes);
            const auto rows_of = [&](std::uint64_t seed) {
              return bench_rows(seed, first_positions(trees.rows()), sizes.vocab_size, kind, dtype);
            };
            const HostRows target = rows_of(1);
            const HostRows proposal = rows_of(2);
            std::vector<std::int32_t> drafts;
            for (std::size_t b = 0; b + 1 < trees.cu_num_draft_tokens.size(); ++b) {
              const std::int64_t begin = trees.cu_num_draft_tokens[b];
              const std::int32_t* const parents = trees.parents.data() + begin;
              for (std::int64_t node = 0; node < trees.cu_num_draft_tokens[b + 1] - begin; ++node) {
                const std::int64_t row = begin + static_cast<std::int64_t>(b) + parents[node] + 1;
                drafts.push_back(static_cast<std::int32_t>(
                    likely_token(proposal, row, std::count(parents, parents + node, parents[node]))));
              }
            }
            const auto call = std::make_shared<VerifyCall>();
            draftproof_verify_arguments& a = call->arguments;
            a.target_kind = kind;
            a.proposal_kind = from_logits ? static_cast<std::int32_t>(DRAFTPROOF_ONE_HOT) : kind;
            a.tree_rule = rule;
            put(*call, target, proposal, drafts, trees.cu_num_draft_tokens, trees.draft_len_max);
            a.parents = call->tensors.input(trees.parents);
            if (from_logits)
              return work_of(call, static_cast<std::uint64_t>(trees.rows() * sizes.vocab_size) * 2,
                             device::verify_tree_workspace_bytes, device::verify_tree);
            // The rows on the accepted path, the last one's included.
            KernelWork work = work_of(call, 0, device::verify_tree_workspace_bytes, device::verify_tree);
            work.start(nullptr);
            for (const std::int32_t accepted : call->tensors.values(a.num_accepted, a.requests))
              work.bytes += static_cast<std::uint64_t>((accepted + 1) * sizes.vocab_size) * 2 * 4;
            return work;
          }};
}

KernelCase tree_mask(const KernelSizes& sizes) {
  return {"tree_mask", "B=" + std::to_string(sizes.requests) + " nodes=15", std::nullopt, [sizes] {
            const regress::RandomTrees trees = bench_trees(sizes);
            const auto call = std::make_shared<Call<draftproof_tree_mask_arguments>>();
            draftproof_tree_mask_arguments& a = call->arguments;
            a.requests = trees.requests();
            a.draft_tokens_total = trees.draft_tokens();
            a.draft_len_max = trees.draft_len_max;
            a.cu_num_draft_tokens = call->tensors.input(trees.cu_num_draft_tokens);
            a.parents = call->tensors.input(trees.parents);
            a.words_per_row = trees.draft_len_max / 32 + 1;
            a.depths = call->tensors.output<std::int32_t>(trees.rows());
            a.mask = call->tensors.output<std::uint32_t>(trees.rows() * a.words_per_row);
            a.status = call->tensors.output<std::int32_t>(a.requests);
            const auto bytes = static_cast<std::uint64_t>(trees.rows() * (2 + a.words_per_row)) * 4;
            return KernelWork{bytes, [call](void* stream) { device::tree_mask(call->arguments, on_gpu(stream)); }};
          }};
}

// The cache of a model with 32 layers, 8 KV heads of 128 elements and 16 bits each; every request's path ends in its
// last node.
KernelCase kv_commit(const KernelSizes& sizes) {
  constexpr std::int64_t kLayers = 32;
  constexpr std::int64_t kSlotBytes = 2 * 8 * 128 * 2;
  return {
      "kv_commit", "B=" + std::to_string(sizes.requests) + " nodes=15, 32 layers, 4096 bytes a slot", std::nullopt,
      [sizes] {
        const regress::RandomTrees trees = bench_trees(sizes);
        std::vector<std::int32_t> num_accepted;
        std::vector<std::int32_t> path;
        std::uint64_t moved = 0;
        for (std::size_t b = 0; b + 1 < trees.cu_num_draft_tokens.size(); ++b) {
          const std::int32_t* const parents = trees.parents.data() + trees.cu_num_draft_tokens[b];
          std::vector<std::int32_t> nodes;
          for (auto at = static_cast<std::int32_t>(trees.cu_num_draft_tokens[b + 1] - trees.cu_num_draft_tokens[b]) - 1;
               at >= 0; at = parents[at])
            nodes.insert(nodes.begin(), at);
          for (std::size_t i = 0; i < nodes.size(); ++i) moved += nodes[i] == static_cast<std::int32_t>(i) ? 0 : 1;
          num_accepted.push_back(static_cast<std::int32_t>(nodes.size()));
          nodes.resize(static_cast<std::size_t>(trees.draft_len_max), -1);
          path.insert(path.end(), nodes.begin(), nodes.end());
        }
        const auto call = std::make_shared<Call<draftproof_kv_commit_arguments>>();
        draftproof_kv_commit_arguments& a = call->arguments;
        a.requests = trees.requests();
        a.draft_tokens_total = trees.draft_tokens();
        a.draft_len_max = trees.draft_len_max;
        a.cu_num_draft_tokens = call->tensors.input(trees.cu_num_draft_tokens);
        a.num_accepted = call->tensors.input(num_accepted);
        a.path = call->tensors.input(path);
        a.slots = call->tensors.input(first_positions(trees.rows()));
        a.num_slots = trees.rows();
        a.layers = kLayers;
        a.slot_bytes = a.slot_stride_bytes = kSlotBytes;
        a.layer_stride_bytes = a.num_slots * kSlotBytes;
        a.cache = call->tensors.output<std::byte>(kLayers * a.layer_stride_bytes);
        const std::vector<std::int64_t> none(static_cast<std::size_t>(a.requests), 0);
        a.kv_len = const_cast<std::int64_t*>(call->tensors.input(none));
        a.freed_slots = call->tensors.output<std::int64_t>(trees.rows());
        a.status = call->tensors.output<std::int32_t>(a.requests);
        return KernelWork{moved * 2 * kLayers * kSlotBytes,
                          [call](void* stream) { device::kv_commit(call->arguments, on_gpu(stream)); }};
      }};
}

// Rows that are sampled, and how; 0 and 1 switch a filter off.
struct Sampling {
  std::int64_t rows;
  std::int64_t vocab_size;
  RowShape shape = RowShape::normal;
  std::int32_t sampler = DRAFTPROOF_INVERSE;
  std::int32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
};

std::string text_of(const Sampling& how) {
  std::string text = "B=" + std::to_string(how.rows) + " V=" + std::to_string(how.vocab_size) + " bf16";
  if (how.shape == RowShape::model) text += ", peaked";
  if (how.top_k != 0) text += ", top_k 50";
  if (how.top_p != 1.0f) text += ", top_p 0.9";
  if (how.min_p != 0.0f) text += ", min_p 0.1";
  return text;
}

KernelCase sample_rows(const std::string& name, const Sampling& how, std::optional<double> goal_ms = std::nullopt) {
  return {name, text_of(how), goal_ms, [how] {
            auto call = std::make_shared<Call<draftproof_sample_arguments>>();
            draftproof_sample_arguments& a = call->arguments;
            const auto rows = static_cast<std::size_t>(how.rows);
            a.rows = a.requests = how.rows;
            a.vocab_size = how.vocab_size;
            a.logits = call->tensors.rows(
                bench_rows(5, first_positions(a.rows), how.vocab_size, DRAFTPROOF_LOGITS, DRAFTPROOF_BF16, how.shape));
            if (how.top_k != 0) a.parameters.top_k = call->tensors.input(std::vector<std::int32_t>(rows, how.top_k));
            if (how.top_p != 1.0f) a.parameters.top_p = call->tensors.input(std::vector<float>(rows, how.top_p));
            if (how.min_p != 0.0f) a.parameters.min_p = call->tensors.input(std::vector<float>(rows, how.min_p));
            std::vector<std::uint64_t> seeds(rows);
            for (std::size_t r = 0; r < rows; ++r) seeds[r] = r + 1;
            a.randomness.seed = call->tensors.input(seeds);
            a.randomness.step = call->tensors.input(std::vector<std::uint32_t>(rows, 0));
            a.sampler = how.sampler;
            a.purpose = DRAFTPROOF_TARGET_SAMPLE;
            a.tokens = call->tensors.output<std::int32_t>(a.rows);
            a.status = call->tensors.output<std::int32_t>(a.rows);
            return work_of(call, static_cast<std::uint64_t>(a.rows * a.vocab_size) * 2, device::sample_workspace_bytes,
                           device::sample);
          }};
}

// The sizes at which samplers are published (FlashInfer, vLLM, Qrita): B = 1, 64, 256.
void add_published(std::vector<KernelCase>& cases, std::int64_t vocab_size) {
  for (const RowShape shape : {RowShape::normal, RowShape::model}) {
    for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{64}, std::int64_t{256}}) {
      const Sampling plain{rows, vocab_size, shape};
      const auto with = [&](auto change) {
        Sampling how = plain;
        change(how);
        return how;
      };
      cases.push_back(sample_rows("sample", plain));
      cases.push_back(sample_rows("sample_race", with([](Sampling& s) { s.sampler = DRAFTPROOF_RACE; })));
      cases.push_back(sample_rows("sample", with([](Sampling& s) { s.top_k = 50; })));
      cases.push_back(sample_rows("sample", with([](Sampling& s) { s.top_p = 0.9f; })));
      cases.push_back(sample_rows("sample", with([](Sampling& s) {
                                    s.top_k = 50;
                                    s.top_p = 0.9f;
                                  })));
      cases.push_back(sample_rows("sample", with([](Sampling& s) { s.min_p = 0.1f; })));
      cases.push_back(logprobs(rows, vocab_size, shape));
    }
  }
}

}  // namespace

std::vector<KernelCase> kernel_cases(const KernelSizes& sizes, const std::filesystem::path& write_inputs) {
  const Sampling sampled{sizes.sample_rows, sizes.sample_vocab_size};
  Sampling race = sampled;
  race.sampler = DRAFTPROOF_RACE;
  Sampling nucleus = sampled;
  nucleus.top_p = 0.9f;
  std::vector<KernelCase> cases = {mass_pass(sizes, DRAFTPROOF_F32),
                                   mass_pass(sizes, DRAFTPROOF_BF16),
                                   chain_probabilities(sizes),
                                   chain_logits(sizes, false, write_inputs),
                                   chain_logits(sizes, true, {}),
                                   block_logits(sizes, false),
                                   block_logits(sizes, true),
                                   verify_tree(sizes, DRAFTPROOF_TARGET_ONLY),
                                   verify_tree(sizes, DRAFTPROOF_RRSW),
                                   sample_rows("sample_inverse", sampled, 0.12),
                                   sample_rows("sample_race", race, 0.25),
                                   sample_rows("sample_top_p", nucleus, 0.3),
                                   logprobs(sizes.requests * (sizes.draft_len + 1), sizes.vocab_size),
                                   guidance(sizes, DRAFTPROOF_F32),
                                   guidance(sizes, DRAFTPROOF_BF16),
                                   tree_mask(sizes),
                                   kv_commit(sizes)};
  add_published(cases, sizes.vocab_size);
  if (!write_inputs.empty())
    write_file(write_inputs / "peaked.bin",
               bench_rows(5, first_positions(32), sizes.vocab_size, DRAFTPROOF_LOGITS, DRAFTPROOF_BF16, RowShape::model)
                   .bytes);
  return cases;
}

}  // namespace draftproof::bench
