"""Rows to distributions, tokens and verified drafts: the reference, bit for bit what the program gives."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any, Callable, Sequence

import numpy as np

from . import _core, _forms, _requests

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._types import Array, Lists, Params, RowOptions


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Distributions that rows of logits have after masks, penalties, temperature and filters.

    probabilities: float32 [B, V], 0 for dropped tokens.
    kept_mass: float32 [B], share of the unfiltered row's mass that the kept tokens have.
    kept_count: int64 [B].
    """

    probabilities: np.ndarray
    kept_mass: np.ndarray
    kept_count: np.ndarray

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.probabilities, dtype=dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Verified:
    """What verification emits.

    tokens: int32 [B, K + 1] (trees: [B, depth + 1]): accepted drafts, the recovered or bonus token, then -1.
    num_accepted: int32 [B].
    logprobs: float32, as tokens: natural log under the target's distribution, -inf where padded; or None.
    path: int32 [B, K]: the accepted nodes, then -1.
    token_id_logprobs: B arrays [ids, K + 1], as logprobs, of the request's logprob_token_ids in the rows of its tokens;
        or None.
    """

    tokens: np.ndarray
    num_accepted: np.ndarray
    logprobs: np.ndarray | None
    path: np.ndarray
    token_id_logprobs: list[np.ndarray] | None = None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.tokens, dtype=dtype)


#: Elements of rows from which another thread is worth starting.
ELEMENTS_A_THREAD = 1 << 18
CORES = os.cpu_count() or 1


def threads_of(threads: int | None, target: Any) -> int:
    """What the caller wants, or as many as the work is worth and the machine has."""
    rows = max(1, target.shape[0])
    if threads is None:
        return min(CORES, rows, 1 + target.shape[0] * target.shape[1] // ELEMENTS_A_THREAD)
    return min(threads, rows) if isinstance(threads, int) else threads


def row_arguments(logits: Any, params: Any, given: Any, threads: int | None, name: str = "logits") -> dict[str, Any]:
    """Of B requests of one row each."""
    target = _forms.rows(logits, name)
    size, vocab_size = target.shape
    return {"target": target, "threads": threads_of(threads, target),
            **_requests.row_arguments(params, given, size, size, vocab_size)}


def process_rows(logits: Array, params: Params | None = None, *, threads: int | None = None,
                 **given: Unpack[RowOptions]) -> Rows:
    """The distribution of every row of logits.

    logits: [B, V] float32, float16 or bfloat16 (float64 is rounded): numpy, or anything with DLPack.
    params, keywords: the same names, keywords win. Of every row, [B] or one number: temperature (0: greedy), top_k (0:
        off), top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, min_tokens, guidance_scale. Lists
        of
        ids, one a row: prompt_tokens and output_tokens, the history of penalties, bad words and min_tokens; stop_ids,
        not drawn before min_tokens were; allowed_ids, None for all; dry_breakers, which no repetition of DRY goes
        across. bad_words: B lists of sequences of ids. logit_bias: B dicts of id and bias, or one for all. allowed:
        bool [B, V], or bitmask: int32 [B, ceil(V / 32)], bit j of word w allows token 32 w + j. Further samplers, [B]
        or one number: typical_p, top_n_sigma, epsilon_cutoff, eta_cutoff, smoothing_factor, xtc_threshold with
        xtc_probability, mirostat, dry_multiplier, p_less, top_h, adaptive_target, no_repeat_ngram_size,
        min_tokens_to_keep, top_p_rule and others (docs/trace.md); XTC by chance needs xtc_uniform, Mirostat its
        mirostat_mu, adaptive-p its adaptive_mean, and none of these three holds for requests with drafts. top_p is
        compared as the float32 that it becomes (0.8 as 13421773 / 2^24, above 0.8); as a Fraction or Decimal, exactly.
        penalty_last_n: the last tokens that penalties look at (-1: all), of the output (penalty_window 'whole_prompt':
        and a repetition penalty at the whole prompt; 'output': not at it) or of prompt and output ('joint'; 'alike':
        which all penalties count alike).
        uncond_logits: [B, V], l_u of l_u + guidance_scale (l - l_u), l logits or, with guidance_form 'probabilities',
        log(p + 1e-10). Of the call: filter_order 'joint' or 'top_k_first'; ties 'exact_k' or 'keep_all';
        penalty_window; guidance_form; nan_policy 'error' or 'as_minus_inf'.
    threads: as many as there are cores where the rows are large; results do not depend on it.
    Arrays are copied first (but those of JAX and TensorFlow, which cannot change), and other Python threads run
    meanwhile. Raises Error naming the row, the column and what was expected.
    """
    return Rows(**_core.process_rows(row_arguments(logits, params, given, threads)))


def usual_readings(logits: Array, params: Params | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Which tokens every usual reading of the parameters keeps, and which some keep: bool [B, V] each
    (check_filter)."""
    found = _core.usual_readings(row_arguments(logits, params, {}, None))
    return found["must"].view(bool), found["may"].view(bool)


def sample(logits: Array, params: Params | None = None, seeds: Array = 0, *, steps: Array = 0,
           sampler: str = "inverse", threads: int | None = None, **given: Unpack[RowOptions]) -> np.ndarray:
    """One token of every row: int32 [B].

    logits, params, keywords: as process_rows.
    seeds: [B] or one number, 64 bits; steps: [B] or one number, tokens that the seed has drawn before. A seed must not
        meet the same step twice.
    sampler: 'inverse' or 'race'.
    """
    arguments = row_arguments(logits, params, given, threads)
    size = arguments["target"].shape[0]
    arguments["seeds"] = _forms.integers(seeds, "seeds", np.uint64, size)
    arguments["steps"] = _forms.integers(steps, "steps", np.uint32, size)
    return _core.sample({**arguments, "sampler": sampler})


def sample_shards(logits_parts: Sequence[Array], params: Params | None = None, seeds: Array = 0, *, steps: Array = 0,
                  sampler: str = "inverse", rank: int | None = None, sizes: Sequence[int] | None = None,
                  all_reduce: Callable[[np.ndarray, str], Any] | None = None,
                  **given: Unpack[RowOptions]) -> np.ndarray:
    """One token of every row whose vocabulary lies in parts, as devices hold it: int32 [B], those of `sample`, whatever
    the split (docs/shards.md).

    logits_parts: [B, V_d] of each device, in the order of the tokens; V is the sum of V_d, which may be 0.
    params, keywords, seeds, steps, sampler: as sample, over the whole vocabulary; no uncond_logits, and of the samplers
        temperature, penalties, DRY, top_k, top_p and min_p.
    rank, sizes, all_reduce: where each process holds one part: logits_parts is [its own part], sizes all V_d, and
        all_reduce(array, op) makes an int64 or int32 array the "sum" or "max" over all processes, in place. Every
        process gets all tokens.
    Raises Error as sample, in every process.
    """
    parts = [np.asarray(part) if 0 in np.shape(part) else _forms.rows(part, f"logits_parts[{i}]")
             for i, part in enumerate(logits_parts)]
    if all_reduce is None:
        sizes = [part.shape[1] for part in parts]
    elif rank is None or sizes is None or not 0 <= rank < len(sizes) or len(parts) != 1:
        raise _forms.Error(f"rank: is {rank}, with {len(parts)} parts; expected one part, its rank and the sizes of "
                           "all")
    if not parts or sum(sizes) < 1:
        raise _forms.Error("logits_parts: hold no tokens; expected a part or more with a vocabulary of 1 token or more")
    if "uncond_logits" in given or "uncond_logits" in (params or {}):
        raise _forms.Error("uncond_logits: does not go with parts; expected guided logits")
    size = parts[0].shape[0]
    shape_alone = np.broadcast_to(np.zeros((1, sum(sizes)), np.float32), (size, sum(sizes)))
    arguments = {"target": shape_alone, "threads": 1,
                 **_requests.row_arguments(params, given, size, size, sum(sizes)),
                 **{f"part_{i}": part for i, part in enumerate(parts) if part.shape[1] > 0},
                 "seeds": _forms.integers(seeds, "seeds", np.uint64, size),
                 "steps": _forms.integers(steps, "steps", np.uint32, size),
                 "sizes": np.asarray(sizes, np.int64), "sampler": sampler}
    if all_reduce is not None:
        arguments.update(rank=rank, all_reduce=all_reduce)
    return _core.sample_shards(arguments)


def verify(draft_tokens: Array, draft_probs: Array | None, target_logits: Array | None, cu_num_draft_tokens: Array,
           params: Params | None = None, seeds: Array = 0, *, draft_logits: Array | None = None,
           draft_processed: bool = True, target_probs: Array | None = None, draft_parents: Array | None = None,
           verifier: str = "chain", steps: Array = 0, positions: Array | None = None, sampler: str = "inverse",
           logprobs: bool = True, logprob_token_ids: Lists | None = None, convention: str = "draftproof",
           uniforms: Array | None = None, draw_uniforms: Array | None = None, exponential_noise: Array | None = None,
           gumbel_noise: Array | None = None,
           recovered_tokens: Array | None = None, bonus_tokens: Array | None = None, threads: int | None = None,
           **given: Unpack[RowOptions]) -> Verified:
    """One verification step of every request, by any verifier of `verifiers()`.

    B requests with M drafts in all; request b has K_b. N = M + B rows: of each request its drafts' rows, then its bonus
    row.
    draft_tokens: [M]. draft_probs: [M, V] (trees: [N, V]), what the drafts were drawn from; or None with draft_logits,
        of the same shape; or neither: one-hot. draft_processed: the drafts were drawn from the softmax of draft_logits;
        False: after the request's temperature, top_k, top_p and min_p.
    target_logits: [N, V]; or None with target_probs, final. cu_num_draft_tokens: [B], inclusive sums of K_b, or [B + 1]
        from 0. draft_parents: [M], the draft of its request that a draft follows, -1 for the context: trees.
    params, keywords: as process_rows, by request; allowed, bitmask and uncond_logits by row, [N, ...].
    seeds, steps: [B] or one number; positions: [B], of coupled verifiers, absent: the length of output_tokens.
    logprob_token_ids: B lists of at most 128 ids, whose log-probabilities are given besides.
    verifier: a name, with parameters where it takes some ('synthetic:rate=0.8'). convention: whose acceptance rule,
        'draftproof', 'vllm_v1', 'flashinfer' and others.
    Random numbers that an engine recorded, in place of seeds and sampler; compared exactly (docs/trace.md, "Recorded
    randomness"): uniforms [M], the coins of the drafts ([N], of target_only and thresholds); and for each draw one of
    recovered_tokens [M] with bonus_tokens [B], draw_uniforms [N] or [B], exponential_noise or gumbel_noise [N, V] or
    [B, V]. Uniform numbers are float32, float64, or words of uint32.
    """
    arguments = _requests.draft_arguments(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, given,
                                          requests=None, draft_logits=draft_logits, draft_processed=draft_processed,
                                          target_probs=target_probs, draft_parents=draft_parents)
    size = arguments["cu_num_draft_tokens"].size - 1
    arguments["seeds"] = _forms.integers(seeds, "seeds", np.uint64, size)
    arguments["steps"] = _forms.integers(steps, "steps", np.uint32, size)
    if positions is not None:
        arguments["positions"] = _forms.integers(positions, "positions", np.uint32, size)
    arguments.update(_requests.recorded_arguments(
        {"uniforms": uniforms, "draw_uniforms": draw_uniforms, "exponential_noise": exponential_noise,
         "gumbel_noise": gumbel_noise, "recovered_tokens": recovered_tokens, "bonus_tokens": bonus_tokens},
        arguments["draft_tokens"].size, size, arguments["target"].shape[1]))
    if logprob_token_ids is not None:
        if logprobs is False:
            raise _forms.Error("logprob_token_ids: has no use without logprobs")
        arguments.update(_requests.ids(logprob_token_ids, "logprob_token_ids", size))
    found = _core.verify({**arguments, "verifier": verifier, "convention": convention, "sampler": sampler,
                          "logprobs": logprobs, "threads": threads_of(threads, arguments["target"])})
    rows = found.pop("token_id_logprobs")
    if logprob_token_ids is not None:
        found["token_id_logprobs"] = np.split(rows, arguments["cu_logprob_token_ids"][1:-1])[:size]
    return Verified(**found)


@dataclasses.dataclass(frozen=True)
class Verifier:
    """A verifier of the registry: its name, the drafts that it takes and how they must be drawn, and its traits.

    coins, noise: what it draws, and what a recording can stand for ('none': it draws no such). decisions: how they show
    in
        what a step emits. recovered: tokens that may be drawn at a node after its coins failed. joint: it judges a
        draft by the probability of its path, so that completed strings follow the target and a node's token alone does
        not.
        keeps_support: it emits no token of target probability 0. takes_first_of_equals: of siblings with one token it
        accepts the first alone. replayable: recorded random numbers can stand for all that it draws.
    """

    name: str
    draft: str
    drafts_drawn: str
    lossless: bool
    guarantee: str
    source: str
    parameters: tuple[str, ...]
    coins: str
    noise: str
    decisions: str
    recovered: str
    joint: bool
    keeps_support: bool
    takes_first_of_equals: bool
    replayable: bool


def verifiers() -> list[Verifier]:
    """Every verifier by name, as `draftproof verifiers` lists them."""
    return [Verifier(**row) for row in _core.verifiers()]
