"""transformers on the CPU, nothing replaced: the warpers of `generate`, its draw, and assisted generation's verification."""

import numpy as np
import torch
from draftproof.callable.verify_cases import verify_cases
from transformers.generation import LogitsProcessorList
from transformers.generation.logits_process import (MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper,
                                                    TopPLogitsWarper)
from transformers.generation.utils import _speculative_sampling

from component import Component, mixed


def warpers(temperature, top_k, top_p, min_p=0.0):
    """In the order of `generate`; one that is off is not made."""
    made = [] if temperature in (0.0, 1.0) else [TemperatureLogitsWarper(float(temperature))]
    made += [TopKLogitsWarper(int(top_k))] if top_k > 0 else []
    made += [TopPLogitsWarper(float(top_p))] if top_p < 1.0 else []
    made += [MinPLogitsWarper(float(min_p))] if min_p > 0.0 else []
    return LogitsProcessorList(made)


def warped(logits, params):
    """One call of the warpers for all rows with the same parameters."""
    out = torch.empty(logits.shape)
    names = ("temperature", "top_k", "top_p", "min_p")
    columns = np.stack([np.asarray(params[name], np.float64) for name in names if name != "min_p"] +
                       [np.asarray(params.get("min_p", np.zeros(len(logits))), np.float64)], axis=1)
    for values in np.unique(columns, axis=0):
        rows = np.flatnonzero((columns == values).all(axis=1))
        out[rows] = warpers(*values)(None, torch.from_numpy(logits[rows]))
    return out


def filter_rows(logits, params):
    return warped(logits, params).numpy()


def sample(logits, params, seeds):
    """As `_sample` of `generate` ends: softmax and multinomial; argmax where sampling is off. A generator of each seed."""
    probs = torch.nn.functional.softmax(warped(logits, params), dim=-1)
    greedy = torch.argmax(torch.from_numpy(logits), dim=-1)
    drawn = [greedy[i] if params["temperature"][i] == 0.0 else
             torch.multinomial(row, 1, generator=torch.Generator().manual_seed(mixed(seeds[i])))[0]
             for i, row in enumerate(probs)]
    return torch.stack(drawn).numpy()


def verify(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    """`_speculative_sampling`, which takes one request with drafts; the others end with the plain draw."""
    ends = np.asarray(cu_num_draft_tokens)
    lens = np.diff(ends, prepend=0)
    out = np.full((len(ends), lens.max() + 1), -1, np.int64)
    each = {name: np.repeat(value, lens + 1) for name, value in params.items()}
    target = warped(target_logits, each)
    greedy = params["temperature"] == 0.0
    for b, (length, end) in enumerate(zip(lens, ends)):
        torch.manual_seed(mixed(seeds[b]))
        rows = target[end - length + b:end + b + 1]
        drafts = torch.from_numpy(draft_tokens[end - length:end].astype(np.int64))
        if greedy[b]:  # `generate` compares with the argmax where sampling is off
            best = torch.argmax(rows, dim=-1)
            n = int((~(drafts == best[:-1])).cumsum(dim=-1).lt(1).sum())
            tokens = torch.cat([drafts[:n], best[n:n + 1]])
        elif length == 0:
            tokens = torch.multinomial(rows.softmax(dim=-1), 1)[0]
        else:
            tokens = _speculative_sampling(drafts[None], torch.from_numpy(draft_probs[end - length:end]).log()[None],
                                           int(length), rows[None])[0][0]
        out[b, :len(tokens)] = tokens.numpy()
    return out


def components():
    process, utils = "generation/logits_process.py", "generation/utils.py"
    with_probs = [case for case in verify_cases() if case.drafter is not None]
    return [
        Component("logits warpers", process, "TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, MinPLogitsWarper",
                  "filter", filter_rows),
        Component("warpers and draw", process, "the warpers, then torch.multinomial", "sample", sample,
                  note="the two lines of `_sample` that draw are the adapter's"),
        Component("assisted verification", utils, "_speculative_sampling", "verify", verify, options={"cases": with_probs},
                  note="greedy requests and those without drafts are the adapter's; drafts without probabilities do not "
                  "come here"),
    ]
