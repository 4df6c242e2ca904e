"""vLLM's runner with vllm/v1/worker/gpu."""

from types import SimpleNamespace

import history
import numpy as np
import torch
from asked import requests
from component import COARSE, Component
from vllm.v1.worker.gpu.sample.bad_words import BadWordsState
from vllm.v1.worker.gpu.sample.gumbel import gumbel_sample
from vllm.v1.worker.gpu.sample.logit_bias import LogitBiasState
from vllm.v1.worker.gpu.sample.penalties import apply_penalties, bincount
from vllm.v1.worker.gpu.sample.states import SamplingStates
from vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils import rejection_sample


def states_of(params, seeds, vocab_size):
    states = SamplingStates(len(params["temperature"]), vocab_size)
    for i, request in enumerate(requests(params, seeds, params.get("min_p"))):
        states.add_request(i, request)
    states.apply_staged_writes()
    return states


def processed(states, logits, row_of):
    """What Sampler.apply_sampling_params does for requests without a history."""
    x = torch.from_numpy(logits).clone()
    mapping, host = torch.from_numpy(row_of.astype(np.int32)), np.arange(row_of.max() + 1)
    states.apply_temperature(x, mapping, host)
    states.apply_min_p(x, mapping, host)
    return states.apply_top_k_top_p(x, mapping, host), mapping


def history_of(size):
    """Tokens [B, L] and the lengths [B] of prompts and of all, as the runner keeps them of its requests."""
    tokens = history.PROMPT + history.OUTPUT
    lengths = [torch.full((size,), n, dtype=torch.int32) for n in (len(history.PROMPT), len(tokens))]
    return torch.tensor([tokens] * size, dtype=torch.int32), *lengths


def with_states(kinds, x, params, **more):
    """The rows x after the engine's processors of these kinds."""
    size, (tokens, prompt, total) = len(x), history_of(len(x))
    each = torch.arange(size, dtype=torch.int32)
    state = SimpleNamespace(max_num_reqs=size, device=torch.device("cpu"), all_token_ids=SimpleNamespace(gpu=tokens),
                            prompt_len=SimpleNamespace(gpu=prompt, np=prompt.numpy()),
                            total_len=SimpleNamespace(gpu=total))
    context = SimpleNamespace(idx_mapping_np=np.arange(size), expanded_idx_mapping=each,
                              expanded_local_pos=torch.zeros_like(each), input_ids=tokens[:, -1], pos=total.long() - 1)
    for kind in kinds:
        processor = kind(None, state)
        for i, request in enumerate(requests(params, **more)):
            request._bad_words_token_ids = history.BAD_WORDS
            processor.add_request(i, request)
        processor.apply_staged_writes()
        x = processor.apply(x, context)
    return x


def constrained(logits, params):
    x = with_states((LogitBiasState, BadWordsState), torch.from_numpy(history.before_constraints(logits)), params,
                    logit_bias={history.BIASED: history.BIAS}, min_tokens=history.MIN_TOKENS,
                    stop_token_ids=[history.STOP])
    states = states_of(params, np.zeros(len(logits), np.uint64), logits.shape[1])
    return processed(states, x.numpy(), np.arange(len(logits)))[0].numpy()


def sample(logits, params, seeds, steps=None):
    states = states_of(params, seeds, logits.shape[1])
    x, mapping = processed(states, logits, np.arange(len(logits)))
    positions = torch.zeros(len(logits),
                            dtype=torch.int64) if steps is None else torch.from_numpy(steps.astype(np.int64))
    return gumbel_sample(x, mapping, states.temperature.gpu, states.seeds.gpu, positions, apply_temperature=False,
                         is_drafting=False).numpy()


def sample_penalized(logits, params, seeds):
    size, vocab_size = logits.shape
    each, (tokens, prompt, total) = torch.arange(size, dtype=torch.int32), history_of(size)
    prompts = torch.zeros(size, -(-vocab_size // 32), dtype=torch.int32)
    outputs = torch.zeros(size, vocab_size, dtype=torch.int32)
    bincount(each.long(), tokens, prompt, total, prompts, outputs, tokens.shape[1])
    x, first = torch.from_numpy(logits).clone(), torch.zeros(size, dtype=torch.int32)
    values = [torch.full((size,), value) for value in (history.REPETITION, history.FREQUENCY, history.PRESENCE)]
    apply_penalties(x, each, first, first, *values, prompts, outputs)
    return sample(with_states((BadWordsState,), x, params).numpy(), params, seeds)


def rejected(block, states, x, draft_logits, inputs, positions, lens, slots):
    """Tokens of each request [B, longest + 1], -1 after the last. x: processed target rows; inputs, positions: [rows]
    of the tokens that these rows come after; lens: drafts of each request; slots: where its state is."""
    row_of = np.repeat(np.arange(len(lens)), lens + 1)
    starts = np.concatenate([[0], np.cumsum(lens + 1)])
    local = (np.arange(len(row_of)) - starts[row_of]).astype(np.int32)
    found, count = rejection_sample(
        x, draft_logits, torch.from_numpy(inputs), torch.from_numpy(starts.astype(np.int32)),
        torch.from_numpy(positions),
        torch.from_numpy(slots.astype(np.int32)), torch.from_numpy(slots[row_of].astype(np.int32)),
        torch.from_numpy(local),
        states.temperature.gpu, states.seeds.gpu, int(lens.max()), use_block_verification=block)
    out = found.numpy().astype(np.int64)
    out[np.arange(out.shape[1])[None, :] >= count.numpy()[:, None]] = -1
    return out


def verify(block, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    lens = np.diff(cu_num_draft_tokens, prepend=0)
    size, vocab_size = len(lens), target_logits.shape[1]
    states = states_of(params, seeds, vocab_size)
    row_of = np.repeat(np.arange(size), lens + 1)
    local = np.arange(len(row_of)) - np.concatenate([[0], np.cumsum(lens + 1)])[row_of]
    inputs = np.zeros(len(row_of), np.int64)  # the last token, then the drafts
    inputs[local > 0] = draft_tokens
    draft_logits = None
    if draft_probs is not None:  # before the temperature, as the drafter's cache has them
        draft_logits = torch.zeros(size, max(int(lens.max()), 1), vocab_size)
        at = row_of[local > 0], local[local > 0] - 1
        temperature = torch.from_numpy(params["temperature"])[at[0]].clamp(min=1e-3)
        draft_logits[at] = torch.from_numpy(draft_probs).log() * temperature[:, None]
    x, _ = processed(states, target_logits, row_of)
    return rejected(block, states, x, draft_logits, inputs, local + 7, lens, np.arange(size))


def components():
    gpu = "v1/worker/gpu"
    return [
        Component("V2 bias, minimum length, bad words", f"{gpu}/sample/logit_bias.py, bad_words.py",
                  "LogitBiasState, BadWordsState, then SamplingStates", "filter", constrained,
                  options=history.with_constraints(cuts=False), note=f"{history.DESCRIPTION}; top-k and top-p are off"),
        Component("V2 Gumbel sampling", f"{gpu}/sample/gumbel.py", "gumbel_sample after SamplingStates", "sample",
                  sample, tv=COARSE),
        Component("V2 penalties and bad words", f"{gpu}/sample/penalties.py, bad_words.py",
                  "bincount, apply_penalties, BadWordsState, then gumbel_sample", "sample", sample_penalized, tv=COARSE,
                  options=history.with_penalties(), note=f"{history.DESCRIPTION}; bad words after the penalties"),
        Component("V2 rejection sampling", f"{gpu}/spec_decode/rejection_sampler_utils.py", "rejection_sample",
                  "verify", lambda *a: verify(False, *a), tv=0.2),
        Component("V2 block verification", f"{gpu}/spec_decode/rejection_sampler_utils.py",
                  "rejection_sample with use_block_verification", "verify", lambda *a: verify(True, *a), tv=0.2),
    ]
