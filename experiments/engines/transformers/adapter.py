"""transformers on the CPU, nothing replaced: the warpers of `generate`, its draw, assisted generation and its
verification."""

import history
import mtp
import numpy as np
import torch
from component import COARSE, WITH_PROBABILITIES, Component, mixed, padded
from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.generation import LogitsProcessorList
from transformers.generation.logits_process import (
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation.utils import _speculative_sampling
from transformers.modeling_outputs import CausalLMOutputWithPast

from draftproof.callable.cases.sample_cases import sample_cases


def warpers(temperature, top_k, top_p, min_p):
    """In the order of `generate`; one that is off is not made."""
    made = [] if temperature in (0.0, 1.0) else [TemperatureLogitsWarper(float(temperature))]
    made += [TopKLogitsWarper(int(top_k))] if top_k > 0 else []
    made += [TopPLogitsWarper(float(top_p))] if top_p < 1.0 else []
    return LogitsProcessorList(made + ([MinPLogitsWarper(float(min_p))] if min_p > 0.0 else []))


def warped(logits, params):
    """One call of the warpers for all rows with the same parameters."""
    min_p = params["min_p"] if params.get("min_p") is not None else np.zeros(len(logits))
    columns = np.stack([params["temperature"], params["top_k"], params["top_p"], min_p], axis=1).astype(np.float64)
    out = torch.empty(logits.shape)
    for values in np.unique(columns, axis=0):
        rows = np.flatnonzero((columns == values).all(axis=1))
        out[rows] = warpers(*values)(None, torch.from_numpy(logits[rows]))
    return out


def constrained(logits, params):
    """The processors of `generate` for requests with a history, then the warpers."""
    processors = LogitsProcessorList([
        SequenceBiasLogitsProcessor({(history.BIASED,): history.BIAS}), NoBadWordsLogitsProcessor(history.BAD_WORDS),
        MinNewTokensLengthLogitsProcessor(len(history.PROMPT), history.MIN_TOKENS, history.STOP)])
    tokens = torch.tensor([history.PROMPT + history.OUTPUT] * len(logits))
    return warped(processors(tokens, torch.from_numpy(history.before_constraints(logits))).numpy(), params).numpy()


def sample(logits, params, seeds):
    """As `_sample` of `generate` ends: softmax and multinomial; argmax where sampling is off. A generator of each
    seed."""
    probs = torch.nn.functional.softmax(warped(logits, params), dim=-1)
    greedy = torch.argmax(torch.from_numpy(logits), dim=-1)
    return np.array([int(greedy[i]) if params["temperature"][i] == 0.0 else
                     int(torch.multinomial(row, 1, generator=torch.Generator().manual_seed(mixed(seeds[i]))))
                     for i, row in enumerate(probs)])


def verify(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    """`_speculative_sampling`, which takes one request with drafts; the others end with the plain draw."""
    emitted, lens = [], np.diff(cu_num_draft_tokens, prepend=0)
    target = warped(target_logits, {name: np.repeat(value, lens + 1) for name, value in params.items()})
    for b, (length, end) in enumerate(zip(lens, cu_num_draft_tokens)):
        torch.manual_seed(mixed(seeds[b]))
        rows = target[end - length + b:end + b + 1]
        drafts = torch.from_numpy(draft_tokens[end - length:end].astype(np.int64))
        if params["temperature"][b] == 0.0:  # `generate` compares with the argmax where sampling is off
            best = torch.argmax(rows, dim=-1)
            n = int((~(drafts == best[:-1])).cumsum(dim=-1).lt(1).sum())
            tokens = torch.cat([drafts[:n], best[n:n + 1]])
        elif length == 0:
            tokens = torch.multinomial(rows.softmax(dim=-1), 1)[0]
        else:
            tokens = _speculative_sampling(drafts[None], torch.from_numpy(draft_probs[end - length:end]).log()[None],
                                           int(length), rows[None])[0][0]
        emitted.append(tokens.numpy())
    return padded(emitted, lens.max() + 1)


class Row(PreTrainedModel, GenerationMixin):
    """A model whose logits are one row, whatever it reads."""

    config_class = PretrainedConfig

    def __init__(self, row):
        super().__init__(PretrainedConfig(vocab_size=len(row), num_hidden_layers=1, eos_token_id=None,
                                          is_encoder_decoder=False))
        self.row = torch.nn.Parameter(torch.tensor(row)[None, None], requires_grad=False)

    def prepare_inputs_for_generation(self, input_ids, cache=None, **keywords):
        return {"input_ids": input_ids, "cache": cache}

    def forward(self, input_ids, cache=None, **keywords):
        return CausalLMOutputWithPast(logits=self.row.expand(*input_ids.shape, -1).clone(), cache=cache)


def generate(logits, params, seeds):
    """Tokens of `generate` whose assistant has another row: requests with equal rows get those of one sequence in
    turn."""
    given = [params[name] for name in ("temperature", "top_k", "top_p")]
    _, sequence_of = np.unique(np.column_stack([logits, *given]), axis=0, return_inverse=True)
    tokens = np.zeros(len(logits), np.int64)
    for sequence in np.unique(sequence_of):
        rows = np.flatnonzero(sequence_of == sequence)
        torch.manual_seed(mixed(seeds[rows[0]]))
        temperature, top_k, top_p = (value[rows[0]].item() for value in given)
        sampled = {"temperature": temperature, "top_k": top_k, "top_p": top_p} if temperature > 0.0 else {}
        config = GenerationConfig(do_sample=bool(sampled), max_new_tokens=len(rows) + 1, pad_token_id=0, **sampled)
        assistant = Row(np.roll(logits[rows[0]], 1))
        assistant.generation_config = GenerationConfig(num_assistant_tokens=3, num_assistant_tokens_schedule="constant",
                                                       assistant_confidence_threshold=0.0)
        tokens[rows] = Row(logits[rows[0]]).generate(torch.zeros((1, 1), dtype=torch.long), generation_config=config,
                                                     assistant_model=assistant)[0, 1:1 + len(rows)].numpy()
    return tokens


def components():
    process, utils = "generation/logits_process.py", "generation/utils.py"
    small = [case for case in sample_cases(False) if 2 < case.vocab_size <= 33 and not case.readings
             and not case.may_raise]
    return [
        Component("logits warpers", process,
                  "TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, MinPLogitsWarper",
                  "filter", lambda *a: warped(*a).numpy()),
        Component("bias, bad words, minimum length", process,
                  "SequenceBias-, NoBadWords- and MinNewTokensLengthLogitsProcessor, then the warpers", "filter",
                  constrained, options=history.with_constraints(), note=history.DESCRIPTION),
        Component("warpers and draw", process, "the warpers, then torch.multinomial", "sample", sample,
                  note="the two lines of `_sample` that draw are the adapter's"),
        Component("assisted verification", utils, "_speculative_sampling", "verify", verify, options=WITH_PROBABILITIES,
                  note="greedy requests and those without drafts are the adapter's"),
        Component("assisted generation", utils, "GenerationMixin.generate with assistant_model", "sample", generate,
                  tv=COARSE,
                  options={"cases": small}, note="models of one row that is given; requests with equal rows get the "
                  "tokens of one sequence"),
        *mtp.components(),
    ]
