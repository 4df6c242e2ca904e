"""vLLM's runner with vllm/v1/sample."""

import dataclasses
from types import SimpleNamespace

import history
import numpy as np
import torch
from asked import cuts, requests, temperatures
from component import COARSE, Component, mixed
from filters import TILES
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessors
from vllm.v1.sample.logits_processor.builtin import (
    LogitBiasLogitsProcessor,
    MinPLogitsProcessor,
    MinTokensLogitsProcessor,
)
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p_pytorch
from vllm.v1.sample.rejection_sampler import RejectionSampler
from vllm.v1.sample.sampler import Sampler
from vllm.v1.spec_decode.metadata import SpecDecodeMetadata


def metadata(asked, vocab_size, seeds=None, **more):
    """What GPUModelRunner makes of a batch of requests, which have no history but for what `more` says."""
    temperature, none = temperatures(asked), torch.zeros(len(asked))
    greedy = temperature < 1e-5
    k, p = cuts(asked, vocab_size)
    generators = {} if seeds is None else {i: torch.Generator().manual_seed(mixed(seed))
                                           for i, seed in enumerate(seeds) if not greedy[i]}
    plain = SamplingMetadata(
        temperature=temperature, all_greedy=bool(greedy.all()), all_random=not greedy.any(), top_p=p, top_k=k,
        generators=generators, max_num_logprobs=None, no_penalties=True, prompt_token_ids=None,
        frequency_penalties=none,
        presence_penalties=none, repetition_penalties=none + 1.0, output_token_ids=[[] for _ in asked],
        allowed_token_ids_mask=None, bad_words_token_ids={}, logitsprocs=LogitsProcessors())
    return dataclasses.replace(plain, **more)


sampler = Sampler()
rejection_sampler = RejectionSampler(sampler)


def constrained(logits, params):
    """The steps of Sampler.sample up to the filters, of which PyTorch's are taken."""
    size, vocab_size = logits.shape
    asked = requests(params, logit_bias={history.BIASED: history.BIAS}, min_tokens=history.MIN_TOKENS,
                     stop_token_ids=[history.STOP])
    config = SimpleNamespace(scheduler_config=SimpleNamespace(max_num_seqs=size))
    processors = LogitsProcessors([processor(config, torch.device("cpu"), False) for processor in (
        LogitBiasLogitsProcessor, MinTokensLogitsProcessor, MinPLogitsProcessor)])
    added = [(i, request, history.PROMPT, history.OUTPUT) for i, request in enumerate(asked)]
    for processor in processors.all:
        processor.update_state(BatchUpdate(size, removed=[], added=added, moved=[]))
    given = metadata(asked, vocab_size, output_token_ids=[history.OUTPUT] * size, logitsprocs=processors,
                     bad_words_token_ids={i: history.BAD_WORDS for i in range(size)})
    x = torch.from_numpy(history.before_constraints(logits))
    x = sampler.apply_logits_processors(x, given, False)
    x = sampler.apply_temperature(x, given.temperature, given.all_random)
    for processor in processors.argmax_invariant:
        x = processor.apply(x)
    return apply_top_k_top_p_pytorch(x, given.top_k, given.top_p).numpy()


def sample(logits, params, seeds, **more):
    given = metadata(requests(params), logits.shape[1], seeds, **more)
    return sampler(torch.from_numpy(logits).clone(), given).sampled_token_ids[:, 0].numpy()


def sample_penalized(logits, params, seeds):
    size, ones = len(logits), torch.ones(len(logits))
    return sample(
        logits, params, seeds, no_penalties=False, prompt_token_ids=torch.tensor([history.PROMPT] * size),
        output_token_ids=[history.OUTPUT] * size, frequency_penalties=history.FREQUENCY * ones,
        presence_penalties=history.PRESENCE * ones, repetition_penalties=history.REPETITION * ones,
        bad_words_token_ids={i: history.BAD_WORDS for i in range(size)})


def verify(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
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
    found = rejection_sampler(drafts, None if draft_probs is None else torch.from_numpy(draft_probs),
                              torch.from_numpy(target_logits).clone(),
                              metadata(requests(params), target_logits.shape[1], seeds))
    return found.sampled_token_ids.numpy()


def components():
    file, seeds = "v1/sample/sampler.py", "a request's generator is PyTorch's for the CPU, from a mixed seed"
    return [
        Component("V1 bias, minimum length, bad words", "v1/sample/logits_processor/builtin.py",
                  "LogitBias-, MinTokens- and MinPLogitsProcessor; Sampler.apply_logits_processors with bad words",
                  "filter", constrained, options=history.with_constraints(),
                  note=f"{history.DESCRIPTION}; then apply_top_k_top_p_pytorch"),
        Component("V1 sampler", file, "Sampler.forward", "sample", sample, tv=COARSE, note=f"{seeds}; {TILES}"),
        Component("V1 penalties and bad words", file, "Sampler.forward with penalties, apply_bad_words", "sample",
                  sample_penalized, tv=COARSE, options=history.with_penalties(),
                  note=f"{history.DESCRIPTION}; {seeds}"),
        Component("V1 rejection sampler", "v1/sample/rejection_sampler.py", "RejectionSampler.forward", "verify",
                  verify, tv=COARSE, note=seeds),
    ]
