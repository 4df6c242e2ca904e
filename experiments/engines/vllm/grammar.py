"""vLLM's structured output under speculation: masks along drafts by its manager, laid over the rows by its runner,
judged by its rejection sampler. The grammar behind is a toy automaton of the audit, in the place of XGrammar's
matcher."""

from types import SimpleNamespace

import asked  # noqa: F401  # before vLLM
import numpy as np
import runner_v1
import torch
import xgrammar
from component import COARSE, Component
from vllm.v1.core.sched.output import GrammarOutput
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar
from vllm.v1.structured_output.utils import apply_grammar_bitmask


class ToyGrammar(StructuredOutputGrammar):
    """A Matcher of the audit as a backend's grammar."""

    def __init__(self, matcher):
        self.matcher = matcher

    def accept_tokens(self, request_id, tokens):
        return all(not self.matcher.is_terminated() and self.matcher.accept(token) for token in tokens)

    def validate_tokens(self, tokens):
        accepted = 0
        while accepted < len(tokens) and not self.is_terminated() and self.matcher.accept(tokens[accepted]):
            accepted += 1
        self.matcher.rollback(accepted)
        return tokens[:accepted]

    def rollback(self, num_tokens):
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask, batch_index):
        bitmask[batch_index] = torch.from_numpy(self.matcher.bitmask())

    def is_terminated(self):
        return self.matcher.is_terminated()

    def reset(self):
        self.matcher.rollback(len(self.matcher.tokens))


def manager_of(batch, longest, vocab_size):
    config = SimpleNamespace(
        parallel_config=SimpleNamespace(distributed_executor_backend="mp"),
        scheduler_config=SimpleNamespace(max_num_seqs=batch),
        model_config=SimpleNamespace(skip_tokenizer_init=True, is_diffusion=False),
        structured_outputs_config=SimpleNamespace(enable_in_reasoning=False), num_speculative_tokens=longest)
    manager = StructuredOutputManager(config)
    manager.backend = SimpleNamespace(allocate_token_bitmask=lambda rows: xgrammar.allocate_token_bitmask(rows,
            vocab_size))
    return manager


def step(cuts, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, matchers):
    """cuts: as Scheduler.update_draft_token_ids, which drops what its manager does not validate; else as
    update_draft_token_ids_in_output, which puts -1 in its place for the masks, and the runner keeps its drafts."""
    lens = np.diff(cu_num_draft_tokens, prepend=0)
    starts, vocab_size = cu_num_draft_tokens - lens, target_logits.shape[1]
    names = [f"request {b}" for b in range(len(lens))]
    requests = {name: SimpleNamespace(request_id=name, use_structured_output=True,
                                      structured_output_request=SimpleNamespace(
        grammar=ToyGrammar(matcher), reasoner=None, reasoning_ended=None)) for name, matcher in zip(names, matchers)}
    manager = manager_of(len(lens), int(lens.max(initial=0)), vocab_size)
    scheduled, left = {}, lens.copy()
    for b, name in enumerate(names):
        drafts = draft_tokens[starts[b]:starts[b] + lens[b]].tolist()
        valid = manager.validate_tokens(requests[name], drafts)
        left[b] = len(valid) if cuts else lens[b]
        if left[b]:
            scheduled[name] = valid + [-1] * (left[b] - len(valid))
    shuffled = names[::-1]  # the scheduler's order is not the runner's
    masks = manager.grammar_bitmask(requests, shuffled, scheduled)
    drafts = np.concatenate([np.arange(start, start + count) for start, count in zip(starts, left)])
    rows = np.concatenate([np.arange(start + b, start + b + count + 1) for b,
                           (start, count) in enumerate(zip(starts, left))])
    logits = torch.from_numpy(np.ascontiguousarray(target_logits[rows]))
    apply_grammar_bitmask(SimpleNamespace(scheduled_spec_decode_tokens=scheduled), GrammarOutput(shuffled, masks),
                          SimpleNamespace(req_ids=names), logits)
    if len(drafts):
        found = runner_v1.verify(draft_tokens[drafts], None if draft_probs is None else draft_probs[drafts],
                                 logits.numpy(), np.cumsum(left), params, seeds)
    else:
        found = runner_v1.sample(logits.numpy(), params, seeds)[:, None]
    out = np.full((len(lens), int(lens.max(initial=0)) + 1), -1, np.int64)
    out[:, :found.shape[1]] = found
    for b, name in enumerate(names):
        ends = np.flatnonzero(out[b] == matchers[b].grammar.end)
        if ends.size:  # the scheduler stops a request there
            out[b, ends[0] + 1:] = -1
        requests[name].structured_output_request.grammar.accept_tokens(name, out[b][out[b] >= 0].tolist())
    return out


def components():
    about = ("the grammar is the audit's automaton as a StructuredOutputGrammar; requests are taken by the manager in "
             "another order than "
             "by the runner; tokens behind the end token are dropped, as the scheduler does; a request's generator is "
             "PyTorch's for the CPU")
    file, function = "v1/structured_output/__init__.py", ("StructuredOutputManager.grammar_bitmask and "
                                                          "validate_tokens, apply_grammar_bitmask, "
                                                          "RejectionSampler.forward")
    return [
        Component("V1 grammar, drafts padded", file, function, "constrained", lambda *a: step(False, *a), tv=COARSE,
                  note="drafts from the first forbidden one on are -1 for the masks and stay in the runner, as with "
                       f"asynchronous scheduling; {about}"),
        Component("V1 grammar, drafts cut", file, function, "constrained", lambda *a: step(True, *a), tv=COARSE,
                  note="drafts from the first forbidden one on are dropped, as Scheduler.update_draft_token_ids does; "
                       "the probabilities of those "
                       f"that stay are passed on, as GPUModelRunner does where the drafter keeps them; {about}"),
    ]
