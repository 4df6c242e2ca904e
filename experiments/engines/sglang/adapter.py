"""SGLang on the CPU: its Triton kernels in the interpreter, the Python around them unedited."""

import os

import numpy as np
import torch
import triton_on_cpu
from component import Component, mixed
from draftproof.callable.verify_cases import verify_cases

triton_on_cpu.install()
os.environ["TORCHDYNAMO_DISABLE"] = "1"  # the same Python, not compiled

from sglang.kernels.ops.sampling import renorm_triton  # noqa: E402
from sglang.kernels.ops.speculative.reject_sampling import chain_speculative_sampling_triton  # noqa: E402
from sglang.kernels.ops.sampling.murmur_hash import murmur_hash32_kernel  # noqa: E402
from sglang.srt.layers import sampler  # noqa: E402

renorm_triton._prepare_probs = lambda probs: probs.float().contiguous()  # without its test for a CUDA tensor


def murmur_hash32(seed, positions, columns):
    """The engine's kernel, launched as it is on a GPU; of a CPU tensor it asks a compiled extension."""
    out = torch.empty((len(seed), len(columns)), dtype=torch.uint32)
    murmur_hash32_kernel[(len(seed), -(-len(columns) // 1024))](seed, positions, columns, out, len(seed), len(columns),
                                                                BLOCK_SIZE=1024)
    return out


sampler.murmur_hash32 = murmur_hash32


def probabilities(logits, params):
    """softmax(logits / temperature) and the cuts of every row, as SamplingParams normalizes them: temperature 0 is
    temperature 1 with top_k 1."""
    temperature, top_k = params["temperature"].copy(), params["top_k"].astype(np.int64)
    greedy = temperature < 1e-6
    temperature[greedy], top_k[greedy] = 1.0, 1
    top_k[top_k < 1] = 1 << 30
    probs = torch.softmax(torch.from_numpy(logits) / torch.from_numpy(temperature)[:, None], dim=-1)
    return probs, torch.from_numpy(top_k), torch.from_numpy(params["top_p"].astype(np.float32))


def renormalized(logits, params):
    probs, top_k, top_p = probabilities(logits, params)
    return renorm_triton.top_p_renorm_probs_triton(renorm_triton.top_k_renorm_probs_triton(probs, top_k), top_p)


def filter_rows(logits, params):
    return renormalized(logits, params).log().numpy()


def sample(logits, params, seeds, steps=None):
    """The native backend with a seed of each request."""
    probs, top_k, top_p = probabilities(logits, params)
    positions = torch.zeros(len(logits), dtype=torch.int64) if steps is None else torch.from_numpy(steps.astype(np.int64))
    return sampler.top_k_top_p_min_p_sampling_from_probs_torch(
        probs, top_k, top_p, torch.zeros(len(logits)), False, torch.from_numpy(seeds.astype(np.int64)), positions).numpy()


def verify(block, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    """Requests with drafts of one length at a time: a batch of the kernel has one."""
    ends = np.asarray(cu_num_draft_tokens)
    lens = np.diff(ends, prepend=0)
    vocab_size = target_logits.shape[1]
    probs = renormalized(target_logits, {name: np.repeat(value, lens + 1) for name, value in params.items()})
    out = np.full((len(ends), lens.max() + 1), -1, np.int64)
    for length in np.unique(lens):
        chosen = np.flatnonzero(lens == length)
        size, slots = len(chosen), int(length) + 1
        of_target = (ends - lens + np.arange(len(ends)))[chosen][:, None] + np.arange(slots)
        of_draft = (ends - lens)[chosen][:, None] + np.arange(length)
        coins = torch.stack([torch.rand(slots + 1, generator=torch.Generator().manual_seed(mixed(seeds[b]))) for b in chosen])
        candidates = torch.zeros(size, slots, dtype=torch.int64)
        candidates[:, 1:] = torch.from_numpy(draft_tokens[of_draft].astype(np.int64))
        index = torch.arange(size * slots).view(size, slots)
        predicts = torch.full((size * slots,), -1, dtype=torch.int32)
        accepted, count = torch.full((size, slots), -1, dtype=torch.int32), torch.zeros(size, dtype=torch.int32)
        chain_speculative_sampling_triton(
            predicts, accepted, count, candidates, index, None, None, coins[:, :slots].contiguous(), coins[:, slots].contiguous(),
            probs[of_target], torch.from_numpy(draft_probs[of_draft].reshape(size, slots - 1, vocab_size)), 1.0, 1.0, True,
            block_verification=block)
        for row, b in enumerate(chosen):
            kept = accepted[row, :count[row] + 1].long()
            out[b, :len(kept)] = predicts[kept].numpy()
    return out


def components():
    with_probs = [case for case in verify_cases() if case.drafter is not None]
    kernel = "kernels/ops/speculative/reject_sampling.py"
    note = "the rows are those of top_k_renorm_probs_triton and top_p_renorm_probs_triton; coins are PyTorch's"
    return [
        Component("top-k and top-p, renormalized", "kernels/ops/sampling/renorm_triton.py",
                  "top_k_renorm_probs_triton, top_p_renorm_probs_triton", "filter", filter_rows,
                  note="what SGLang has for ROCm (on CUDA it calls FlashInfer); its test for a CUDA tensor is replaced"),
        Component("native sampler with seeds", "srt/layers/sampler.py",
                  "top_k_top_p_min_p_sampling_from_probs_torch, multinomial_with_seed", "sample", sample, tv=0.1,
                  note="torch.compile is off; murmur_hash32 launches its Triton kernel, as on a GPU; min-p is off, which it refuses with "
                  "seeds"),
        Component("chain verification", kernel, "chain_speculative_sampling_triton", "verify",
                  lambda *a: verify(False, *a), tv=0.15, options={"cases": with_probs}, note=note),
        Component("block verification", kernel, "chain_speculative_sampling_triton with block_verification", "verify",
                  lambda *a: verify(True, *a), tv=0.15, options={"cases": with_probs}, note=note),
    ]
