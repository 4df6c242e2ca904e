"""Types of arguments, for signatures: what type checkers and editors read."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Protocol, Sequence, TypedDict, Union

import numpy.typing as npt


class SupportsDLPack(Protocol):
    """Tensors of PyTorch, JAX and others."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


Array = Union[npt.ArrayLike, SupportsDLPack]
#: RowOptions as a dict; what its values are is looked at when it is used.
Params = Mapping[str, Any]
#: One list of token ids for each of B requests; where None is let, it stands for "none of them".
Lists = Sequence[Union[Array, None]]


class StepOptions(TypedDict, total=False):
    """What the pipeline does to rows of logits, by keyword or in `params`: process_rows says what each means. B
    requests (or rows, where each request has one); N rows in all."""

    temperature: Array  #: [B] or one number, like all up to guidance_scale
    top_k: Array
    top_p: Array
    min_p: Array
    repetition_penalty: Array
    frequency_penalty: Array
    presence_penalty: Array
    min_tokens: Array
    guidance_scale: Array
    smoothing_factor: Array  #: further samplers, [B] or one number: docs/trace.md
    smoothing_curve: Array
    top_n_sigma: Array
    typical_p: Array
    epsilon_cutoff: Array
    eta_cutoff: Array
    xtc_threshold: Array
    xtc_probability: Array
    xtc_uniform: Array
    mirostat: Array
    mirostat_mu: Array
    dry_multiplier: Array
    dry_base: Array
    dry_allowed_length: Array
    dry_range: Array
    penalty_last_n: Array
    no_repeat_ngram_size: Array
    min_tokens_to_keep: Array
    p_less: Array
    top_h: Array
    top_p_rule: Array
    adaptive_target: Array
    adaptive_mean: Array
    uncond_logits: Array  #: [N, V]
    allowed: Array  #: bool [N, V]
    bitmask: Array  #: int32 or uint32 [N, ceil(V / 32)]
    allowed_ids: Lists  #: B lists of ids
    stop_ids: Lists
    dry_breakers: Lists
    prompt_tokens: Lists
    bad_words: Sequence[Union[Sequence[Array], None]]  #: B lists of sequences of ids
    logit_bias: Union[Mapping[int, float], Sequence[Union[Mapping[int, float], None]]]  #: B dicts, or one for all
    filter_order: Literal["joint", "top_k_first"]
    ties: Literal["exact_k", "keep_all"]
    penalty_window: Literal["whole_prompt", "alike", "output", "joint"]
    guidance_form: Literal["logits", "probabilities"]
    nan_policy: Literal["error", "as_minus_inf"]


class RowOptions(StepOptions, total=False):
    output_tokens: Lists


class Places(TypedDict, total=False):
    """Where draws or steps were made, for tests of independence: [n] each."""

    draw_seed: Array
    draw_step: Array
    draw_row: Array
    draw_position: Array


class DrawAuditOptions(RowOptions, Places, total=False):
    """Keywords of audit_draws."""


class StepAuditOptions(StepOptions, Places, total=False):
    """Keywords of audit_steps, whose first argument is output_tokens: the history is in its params."""
