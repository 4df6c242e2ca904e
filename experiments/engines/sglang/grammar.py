"""SGLang's masks along drafts (its walk over the tree of a step), then its chain verification. The grammar behind is a
toy automaton of the audit, in the place of XGrammar's matcher."""

from types import SimpleNamespace

import numpy as np
import torch
from component import mixed
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject
from sglang.srt.speculative.spec_utils import generate_token_bitmask

from draftproof.callable.cases.constrained import constrained_cases


class ToyGrammar(BaseGrammarObject):
    """A Matcher of the audit as a grammar of a request."""

    def __init__(self, matcher):
        super().__init__()
        self.matcher = matcher

    def accept_token(self, token):
        if not self.matcher.accept(token):
            raise ValueError(f"token {token} is not accepted")

    def rollback(self, k):
        self.matcher.rollback(k)

    def is_terminated(self):
        return self.matcher.is_terminated()

    def allocate_vocab_mask(self, vocab_size, batch_size, device):
        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask, idx):
        vocab_mask[idx] = torch.from_numpy(self.matcher.bitmask())


def links(parents):
    """(first child, next sibling) of each node, the committed token first, as the tree of a step is laid out; -1:
    none."""
    child, sibling = np.full(len(parents) + 1, -1), np.full(len(parents) + 1, -1)
    for node in range(len(parents), 0, -1):
        up = parents[node - 1] + 1
        sibling[node], child[up] = child[up], node
    return torch.from_numpy(child), torch.from_numpy(sibling)


def masked_rows(matcher, drafts, parents, rows):
    """[K + 1, V]: the rows of one request, masked."""
    child, sibling = links(parents)
    tokens = torch.from_numpy(np.concatenate([[0], drafts]).astype(np.int64))
    mask, _ = generate_token_bitmask([SimpleNamespace(grammar=ToyGrammar(matcher))], child[None], sibling[None],
                                     tokens[None], rows.shape[1])
    bits = mask.numpy().view(np.uint32)[:, np.arange(rows.shape[1]) // 32] >> (np.arange(rows.shape[1]) % 32).astype(
            np.uint32)
    return np.where(bits & 1, rows, -np.inf).astype(np.float32)


def step_with(verify, renormalized):
    """verify: chain verification of the adapter; renormalized: its target rows."""
    def step(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds, matchers, parents=None):
        lens = np.diff(cu_num_draft_tokens, prepend=0)
        starts, rows = cu_num_draft_tokens - lens, target_logits.copy()
        for b, (start, count) in enumerate(zip(starts, lens)):
            up = np.arange(count) - 1 if parents is None else parents[start:start + count]
            here = slice(start + b, start + b + count + 1)
            rows[here] = masked_rows(matchers[b], draft_tokens[start:start + count], up, target_logits[here])
        if parents is None:
            out = verify(draft_tokens, draft_probs, rows, cu_num_draft_tokens, params, seeds)
        else:
            out = np.full((len(lens), 3), -1, np.int64)
            each = {name: np.repeat(value, lens + 1) for name, value in params.items()}
            target = renormalized(rows, each)
            for b, (start, count) in enumerate(zip(starts, lens)):
                generator, node = torch.Generator().manual_seed(mixed(seeds[b])), -1
                for place in range(3):
                    out[b, place] = torch.multinomial(target[start + b + node + 1], 1, generator=generator)
                    children = [i for i in range(count) if parents[start + i] == node
                                and draft_tokens[start + i] == out[b, place]]
                    if not children:
                        break
                    node = children[0]
        for b, matcher in enumerate(matchers):
            ends = np.flatnonzero(out[b] == matcher.grammar.end)
            if ends.size:  # a request ends there
                out[b, ends[0] + 1:] = -1
            for token in out[b][out[b] >= 0]:
                if not matcher.accept(int(token)):
                    break
        return out
    return step


def cases():
    """Chains with draft probabilities, which the chain kernel needs, and trees."""
    return [case for case in constrained_cases(True) if case.drafter is not None or case.trees]
