"""SGLang on the CPU: its Triton kernels in the interpreter, the Python around them unedited."""

import os
from types import SimpleNamespace

import history
import numpy as np
import torch
from component import COARSE, WITH_PROBABILITIES, Component, by_length, mixed

from draftproof import triton_on_cpu

triton_on_cpu.install()
os.environ["TORCHDYNAMO_DISABLE"] = "1"  # the same Python, not compiled

import eagle  # noqa: E402
import grammar  # noqa: E402
from sglang.kernels.ops.sampling import murmur_hash, renorm_triton  # noqa: E402
from sglang.kernels.ops.speculative.reject_sampling import chain_speculative_sampling_triton  # noqa: E402
from sglang.srt.layers import sampler  # noqa: E402
from sglang.srt.sampling.penaltylib import BatchedMinNewTokensPenalizer, BatchedPenalizerOrchestrator  # noqa: E402
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo  # noqa: E402

renorm_triton._prepare_probs = lambda probs: probs.float().contiguous()  # without its test for a CUDA tensor


def murmur_hash32(seed, positions, columns):
    """The engine's kernel, launched as it is on a GPU; of a CPU tensor it asks a compiled extension."""
    out = torch.empty((len(seed), len(columns)), dtype=torch.uint32)
    murmur_hash.murmur_hash32_kernel[(len(seed), -(-len(columns) // 1024))](seed, positions, columns, out, len(seed),
            len(columns),
                                                                BLOCK_SIZE=1024)
    return out


sampler.murmur_hash32 = murmur_hash.murmur_hash32 = murmur_hash32


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


class Batch:
    """What the penalizers read of a ScheduleBatch."""

    device = "cpu"

    def __init__(self, size):
        given = SimpleNamespace(min_new_tokens=history.MIN_TOKENS, stop_token_ids={history.STOP})
        tokenizer = SimpleNamespace(additional_stop_token_ids=None, eos_token_id=None)
        self.reqs = [SimpleNamespace(sampling_params=given, eos_token_ids=None, tokenizer=tokenizer)] * size


def constrained(logits, params):
    """Bias and minimum length as a batch keeps them; SGLang has no bad words, which get a bias of -infinity."""
    size, vocab_size = logits.shape
    batch, bias = Batch(size), torch.zeros(size, vocab_size)
    bias[:, history.BIASED], bias[:, [3, 6]] = history.BIAS, -torch.inf
    penalizers = BatchedPenalizerOrchestrator(vocab_size, batch, {BatchedMinNewTokensPenalizer})
    for token in history.OUTPUT:
        penalizers.cumulate_output_tokens(torch.full((size,), token))
    off = dict.fromkeys(("temperatures", "top_ps", "top_ks", "min_ps"))
    info = SamplingBatchInfo(**off, is_all_greedy=False, is_any_greedy=False, need_top_p_sampling=True,
                             need_top_k_sampling=True,
                             need_min_p_sampling=False, vocab_size=vocab_size, penalizer_orchestrator=penalizers,
                             logit_bias=bias)
    x = torch.from_numpy(history.before_constraints(logits))
    info.apply_logits_bias(x)
    return filter_rows(x.numpy(), params)


def sample(logits, params, seeds, steps=None):
    """The native backend with a seed of each request; a batch of greedy ones takes the argmax, as Sampler.forward
    does."""
    if (params["temperature"] < 1e-6).all():
        return torch.from_numpy(logits).argmax(dim=-1).numpy()
    probs, top_k, top_p = probabilities(logits, params)
    positions = torch.zeros(len(logits),
                            dtype=torch.int64) if steps is None else torch.from_numpy(steps.astype(np.int64))
    return sampler.top_k_top_p_min_p_sampling_from_probs_torch(
        probs, top_k, top_p, torch.zeros(len(logits)), False, torch.from_numpy(seeds.astype(np.int64)),
        positions).numpy()


def verify(block, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, uniforms=None):
    def run(chosen, drafts, probs, rows):
        size, slots, vocab_size = rows.shape
        each = {name: np.repeat(value[chosen], slots) for name, value in params.items()}
        target = renormalized(rows.reshape(-1, vocab_size), each).view(size, slots, vocab_size)
        coins = torch.stack([torch.rand(slots, generator=torch.Generator().manual_seed(mixed(seeds[b])))
                             for b in chosen])
        if uniforms is not None:
            coins = torch.from_numpy(uniforms[chosen, :slots])
        candidates = torch.zeros(size, slots, dtype=torch.int64)
        candidates[:, 1:] = torch.from_numpy(drafts)
        index = torch.arange(size * slots).view(size, slots)
        predicts = torch.full((size * slots,), -1, dtype=torch.int32)
        accepted, count = torch.full((size, slots), -1, dtype=torch.int32), torch.zeros(size, dtype=torch.int32)
        chain_speculative_sampling_triton(
            predicts, accepted, count, candidates, index, None, None, coins, coins[:, -1].contiguous(),
            target, torch.from_numpy(probs), 1.0, 1.0, True, block_verification=block)
        kept = torch.arange(slots)[None, :] <= count[:, None]
        return torch.where(kept, predicts[accepted.clamp(min=0).long()], -1).numpy()

    return by_length(run, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens)


def components():
    kernel = "kernels/ops/speculative/reject_sampling.py"
    note = "the rows are those of top_k_renorm_probs_triton and top_p_renorm_probs_triton; coins are PyTorch's"
    return [
        Component("top-k and top-p, renormalized", "kernels/ops/sampling/renorm_triton.py",
                  "top_k_renorm_probs_triton, top_p_renorm_probs_triton", "filter", filter_rows,
                  note="what SGLang has for ROCm (on CUDA it calls FlashInfer); its test for a CUDA tensor is "
                       "replaced"),
        Component("bias and minimum length", "srt/sampling/sampling_batch_info.py",
                  "SamplingBatchInfo.apply_logits_bias with BatchedMinNewTokensPenalizer", "filter", constrained,
                  options=history.with_constraints(), note=f"{history.DESCRIPTION}; then the filters above"),
        Component("native sampler with seeds", "srt/layers/sampler.py",
                  "top_k_top_p_min_p_sampling_from_probs_torch, multinomial_with_seed", "sample", sample, tv=COARSE,
                  note="torch.compile is off; murmur_hash32 launches its Triton kernel, as on a GPU; min-p is off, "
                       "which it refuses with "
                  "seeds"),
        Component("chain verification", kernel, "chain_speculative_sampling_triton", "verify",
                  lambda *a, uniforms=None: verify(False, *a, uniforms), tv=COARSE, options=WITH_PROBABILITIES,
                  note=note),
        Component("block verification", kernel, "chain_speculative_sampling_triton with block_verification", "verify",
                  lambda *a, uniforms=None: verify(True, *a, uniforms), tv=COARSE, options=WITH_PROBABILITIES,
                  note=note),
        Component("grammar, masks along drafts", "srt/speculative/spec_utils.py",
                  "generate_token_bitmask, traverse_tree, chain_speculative_sampling_triton", "constrained",
                  grammar.step_with(lambda *a: verify(False, *a), renormalized), tv=COARSE,
                  options={"cases": grammar.cases()},
                  note=f"{note}; the grammar is the audit's automaton as a BaseGrammarObject; the mask is laid over "
                       "the rows here; a tree's tokens are drawn "
                  "from its rows here, as its kernel for trees needs a GPU; tokens behind the end token are dropped, "
                  "as the scheduler does"),
        *eagle.components(),
    ]
