"""vLLM on the CPU: its Triton kernels in the interpreter, the Python around them unedited. V1 is the runner with
vllm/v1/sample, V2 the one with vllm/v1/worker/gpu."""

import dataclasses
import logging

import draftproof
import numpy as np
import torch
import triton_on_cpu
from draftproof.callable.filter_cases import filter_cases
from draftproof.callable.sample_cases import sample_cases
from component import Component, mixed

triton_on_cpu.install()

from vllm.platforms import current_platform  # noqa: E402

logging.getLogger("vllm").setLevel(logging.ERROR)
current_platform.device_type = "cpu"
current_platform.is_pin_memory_available = lambda: False
current_platform.num_compute_units = lambda device=0: 132  # programs that share the rows: an H100's

from vllm import SamplingParams  # noqa: E402
from vllm.v1.sample.logits_processor import LogitsProcessors  # noqa: E402
from vllm.v1.sample.metadata import SamplingMetadata  # noqa: E402
from vllm.v1.sample.ops import topk_topp_triton  # noqa: E402
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p, apply_top_k_top_p_pytorch  # noqa: E402
from vllm.v1.sample.rejection_sampler import RejectionSampler  # noqa: E402
from vllm.v1.sample.sampler import Sampler  # noqa: E402
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata  # noqa: E402
from vllm.v1.worker.gpu.sample.gumbel import gumbel_sample  # noqa: E402
from vllm.v1.worker.gpu.sample.penalties import apply_penalties, bincount  # noqa: E402
from vllm.v1.worker.gpu.sample.states import SamplingStates  # noqa: E402
from vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils import rejection_sample  # noqa: E402

ONE_PROGRAM = topk_topp_triton._SPLIT_MAX_BATCH + 1  # rows of a batch, from which on no other path is taken


def requests(params, seeds=None, min_p=None):
    """SamplingParams of every request, as the front end makes them; above its limit the temperature is set afterwards."""
    made = []
    for i, temperature in enumerate(params["temperature"]):
        made.append(SamplingParams(
            temperature=min(float(temperature), 2.0), top_k=int(params["top_k"][i]), top_p=float(params["top_p"][i]),
            min_p=0.0 if min_p is None else float(min_p[i]), seed=None if seeds is None else int(np.int64(seeds[i]))))
        if temperature > 2.0:
            made[-1].temperature = float(temperature)
    return made


def cuts(asked, vocab_size):
    """k [B] and p [B], None where no request has one, as both runners hand them on."""
    k = torch.tensor([r.top_k if 0 < r.top_k < vocab_size else vocab_size for r in asked], dtype=torch.int32)
    p = torch.tensor([r.top_p for r in asked], dtype=torch.float32)
    return (k if (k < vocab_size).any() else None), (p if (p < 1.0).any() else None)


def filter_one_program(logits, params):
    """Smaller batches are filled up with rows that have no cuts: on a GPU they would go another way."""
    size, vocab_size = logits.shape
    more = max(0, ONE_PROGRAM - size)
    asked = requests(params)
    temperature = torch.tensor([r.temperature for r in asked])
    k, p = cuts(asked, vocab_size)
    x = Sampler.apply_temperature(torch.from_numpy(logits).clone(), temperature, False)
    padded = [None if value is None else torch.cat([value, value.new_full((more,), off)])
              for value, off in ((k, vocab_size), (p, 1.0))]
    return apply_top_k_top_p(torch.cat([x, x[:1].expand(more, -1)]), *padded)[:size].numpy()


def filter_native(logits, params):
    asked = requests(params)
    temperature = torch.tensor([r.temperature for r in asked])
    x = Sampler.apply_temperature(torch.from_numpy(logits).clone(), temperature, False)
    return apply_top_k_top_p_pytorch(x, *cuts(asked, logits.shape[1])).numpy()


def filter_split(logits, params):
    """Batches up to 64, as apply_top_k_top_p_triton sends them on a GPU."""
    asked = requests(params)
    temperature, p = torch.tensor([r.temperature for r in asked]), torch.tensor([r.top_p for r in asked])
    x = Sampler.apply_temperature(torch.from_numpy(logits).clone(), temperature, False)
    for part in x.split(topk_topp_triton._SPLIT_MAX_BATCH):
        begin = (part.data_ptr() - x.data_ptr()) // (4 * x.stride(0))
        topk_topp_triton._apply_topp_split(part, None, p[begin:begin + len(part)], float("-inf"), 132)
    return x.numpy()


PROMPT, OUTPUT = [0, 1, 2], [4, 1, 1]  # of every request, where there are penalties
REPETITION, FREQUENCY, PRESENCE = 1.3, 0.4, 0.3
BAD_WORDS = [[3], [1, 6]]  # 6 only after 1


def penalized(logits, params):
    """What both runners mean, by the reference pipeline: masks, then penalties, temperature and filters."""
    allowed = np.ones(logits.shape, bool)
    allowed[:, [3, 6]] = False
    return draftproof.process_rows(
        logits, params, allowed=allowed, repetition_penalty=REPETITION, frequency_penalty=FREQUENCY, presence_penalty=PRESENCE,
        prompt_tokens=[PROMPT] * len(logits), output_tokens=[OUTPUT] * len(logits)).probabilities


def metadata(params, seeds, vocab_size):
    asked = requests(params, seeds)
    temperature = torch.tensor([r.temperature for r in asked])
    greedy = temperature < 1e-5
    k, p = cuts(asked, vocab_size)
    none = torch.zeros(len(asked))
    generators = {i: torch.Generator().manual_seed(mixed(seed)) for i, seed in enumerate(seeds) if not greedy[i]}
    return SamplingMetadata(
        temperature=temperature, all_greedy=bool(greedy.all()), all_random=not greedy.any(), top_p=p, top_k=k,
        generators=generators, max_num_logprobs=None, no_penalties=True, prompt_token_ids=None, frequency_penalties=none,
        presence_penalties=none, repetition_penalties=none + 1.0, output_token_ids=[[] for _ in asked],
        allowed_token_ids_mask=None, bad_words_token_ids={}, logitsprocs=LogitsProcessors())


sampler_v1 = Sampler()
rejection_sampler_v1 = RejectionSampler(sampler_v1)


def sample_v1(logits, params, seeds):
    found = sampler_v1(torch.from_numpy(logits).clone(), metadata(params, seeds, logits.shape[1]))
    return found.sampled_token_ids[:, 0].numpy()


def sample_v1_penalties(logits, params, seeds):
    size, vocab_size = logits.shape
    plain, ones = metadata(params, seeds, vocab_size), torch.ones(size)
    given = dataclasses.replace(
        plain, no_penalties=False, prompt_token_ids=torch.tensor([PROMPT] * size), output_token_ids=[OUTPUT] * size,
        frequency_penalties=FREQUENCY * ones, presence_penalties=PRESENCE * ones, repetition_penalties=REPETITION * ones,
        bad_words_token_ids={i: BAD_WORDS for i in range(size)})
    return sampler_v1(torch.from_numpy(logits).clone(), given).sampled_token_ids[:, 0].numpy()


def verify_v1(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    lens = np.diff(cu_num_draft_tokens, prepend=0)
    ends = torch.from_numpy(cu_num_draft_tokens + np.arange(len(lens)))  # of each request the bonus row
    is_bonus = torch.zeros(len(target_logits), dtype=torch.bool)
    is_bonus[ends] = True
    drafts = SpecDecodeMetadata(
        draft_token_ids=torch.from_numpy(draft_tokens), num_draft_tokens=lens.tolist(),
        cu_num_draft_tokens=torch.from_numpy(cu_num_draft_tokens.astype(np.int32)),
        cu_num_sampled_tokens=torch.from_numpy(np.cumsum(lens + 1).astype(np.int32)),
        target_logits_indices=torch.nonzero(~is_bonus)[:, 0], bonus_logits_indices=ends,
        logits_indices=torch.arange(len(target_logits)))
    found = rejection_sampler_v1(drafts, None if draft_probs is None else torch.from_numpy(draft_probs),
                                 torch.from_numpy(target_logits).clone(), metadata(params, seeds, target_logits.shape[1]))
    return found.sampled_token_ids.numpy()


def states_of(params, seeds, vocab_size):
    asked = requests(params, seeds, params.get("min_p"))
    states = SamplingStates(len(asked), vocab_size)
    for i, request in enumerate(asked):
        states.add_request(i, request)
    states.apply_staged_writes()
    return states


def processed_v2(states, logits, row_of):
    """What Sampler.apply_sampling_params of V2 does for requests without penalties."""
    x = torch.from_numpy(logits).clone()
    mapping, host = torch.from_numpy(row_of.astype(np.int32)), np.arange(row_of.max() + 1)
    states.apply_temperature(x, mapping, host)
    states.apply_min_p(x, mapping, host)
    return states.apply_top_k_top_p(x, mapping, host), mapping


def sample_v2(logits, params, seeds, steps=None):
    states = states_of(params, seeds, logits.shape[1])
    x, mapping = processed_v2(states, logits, np.arange(len(logits)))
    positions = torch.zeros(len(logits), dtype=torch.int64) if steps is None else torch.from_numpy(steps.astype(np.int64))
    return gumbel_sample(x, mapping, states.temperature.gpu, states.seeds.gpu, positions, apply_temperature=False,
                         is_drafting=False).numpy()


def sample_v2_penalties(logits, params, seeds):
    size, vocab_size = logits.shape
    x, each = torch.from_numpy(logits).clone(), torch.arange(size, dtype=torch.int32)
    x[:, [3, 6]] = -torch.inf
    tokens = torch.tensor([PROMPT + OUTPUT] * size, dtype=torch.int32)
    prompts = torch.zeros(size, -(-vocab_size // 32), dtype=torch.int32)
    outputs = torch.zeros(size, vocab_size, dtype=torch.int32)
    lengths = [torch.full((size,), n, dtype=torch.int32) for n in (len(PROMPT), len(PROMPT + OUTPUT))]
    bincount(each.long(), tokens, *lengths, prompts, outputs, tokens.shape[1])
    values = [torch.full((size,), value) for value in (REPETITION, FREQUENCY, PRESENCE)]
    apply_penalties(x, each, torch.zeros(size, dtype=torch.int32), torch.zeros(size, dtype=torch.int32), *values, prompts, outputs)
    return sample_v2(x.numpy(), params, seeds)


def verify_v2(block, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    lens = np.diff(cu_num_draft_tokens, prepend=0)
    size, longest, vocab_size = len(lens), int(lens.max()), target_logits.shape[1]
    states = states_of(params, seeds, vocab_size)
    row_of = np.repeat(np.arange(size), lens + 1)
    starts = np.concatenate([[0], np.cumsum(lens + 1)])
    local = np.arange(len(row_of)) - starts[row_of]
    inputs = np.zeros(len(row_of), np.int64)  # the tokens that these rows come after: the last one, then the drafts
    inputs[local > 0] = draft_tokens
    draft_logits = None
    if draft_probs is not None:  # before the temperature, as the drafter's cache has them
        draft_logits = torch.zeros(size, max(longest, 1), vocab_size)
        kept = torch.from_numpy(draft_probs).log()
        at = row_of[local > 0], local[local > 0] - 1
        draft_logits[at] = kept * torch.from_numpy(params["temperature"])[at[0]].clamp(min=1e-3)[:, None]
    x, mapping = processed_v2(states, target_logits, row_of)
    found, count = rejection_sample(
        x, draft_logits, torch.from_numpy(inputs), torch.from_numpy(starts.astype(np.int32)), torch.from_numpy(local + 7),
        torch.arange(size, dtype=torch.int32), mapping, torch.from_numpy(local.astype(np.int32)), states.temperature.gpu,
        states.seeds.gpu, longest, use_block_verification=block)
    out = found.numpy().astype(np.int64)
    out[np.arange(out.shape[1])[None, :] >= count.numpy()[:, None]] = -1
    return out


def components():
    filters, gpu = "v1/sample/ops/topk_topp_triton.py", "v1/worker/gpu"
    tiles = "tiles of 256, vLLM's own choice for a CPU, not 8192"
    top_p_alone = [dataclasses.replace(case, params={**case.params, "top_k": np.zeros_like(case.params["top_k"])})
                   for case in filter_cases(False)]
    seeds = "a request's generator is PyTorch's for the CPU, from a mixed seed"
    with_history = {"distribution": penalized, "cases": [
        case for case in sample_cases(False) if 8 <= case.vocab_size <= 33 and not case.readings and not case.may_raise]}
    history = f"every request has the prompt {PROMPT} and the output {OUTPUT}"
    return [
        Component("top-k, top-p: PyTorch", "v1/sample/ops/topk_topp_sampler.py", "apply_top_k_top_p_pytorch", "filter", filter_native),
        Component("top-k, top-p: one program a row", filters, "apply_top_k_top_p_triton, _topk_topp_kernel", "filter",
                  filter_one_program, note=f"batches below {ONE_PROGRAM} are filled up, since a GPU sends those another "
                  f"way; {tiles}"),
        Component("top-k, top-p: split rows", filters, "_apply_topp_split", "filter", filter_split,
                  options={"cases": top_p_alone}, note="called as apply_top_k_top_p_triton calls it on a GPU; top-k is off"),
        Component("V1 sampler", "v1/sample/sampler.py", "Sampler.forward", "sample", sample_v1, tv=0.1, note=seeds),
        Component("V1 penalties and bad words", "v1/sample/sampler.py", "Sampler.forward with penalties, apply_bad_words", "sample",
                  sample_v1_penalties, tv=0.1, options=with_history, note=f"{history}; {seeds}"),
        Component("V1 rejection sampler", "v1/sample/rejection_sampler.py", "RejectionSampler.forward", "verify", verify_v1,
                  tv=0.1, note=seeds),
        Component("V2 Gumbel sampling", f"{gpu}/sample/gumbel.py", "gumbel_sample after SamplingStates", "sample", sample_v2,
                  tv=0.1),
        Component("V2 penalties", f"{gpu}/sample/penalties.py", "bincount, apply_penalties, then gumbel_sample", "sample",
                  sample_v2_penalties, tv=0.1, options=with_history, note=f"{history}; two tokens are masked by the adapter"),
        Component("V2 rejection sampling", f"{gpu}/spec_decode/rejection_sampler_utils.py", "rejection_sample", "verify",
                  lambda *a: verify_v2(False, *a), tv=0.1),
        Component("V2 block verification", f"{gpu}/spec_decode/rejection_sampler_utils.py",
                  "rejection_sample with use_block_verification", "verify", lambda *a: verify_v2(True, *a), tv=0.1),
    ]
