"""Medusa-1 (arXiv 2401.10774): heads on the target's last state, each for a token further ahead, independent of each
other.

    head k (k = 0, 1, ...): logits = lm_heads[k](x + SiLU(W x + b)), x = f of token i, predicts token i + 2 + k

f is the state after the target's final norm, from which the target itself predicts token i + 1. W begins at 0 and the
matrix as the target's, so that a head begins as the target. No attention, no KV: the cheapest head to train and to
run."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from layers import soft_cross_entropy
from target import Batch, Corpus, DraftVocabulary, Target
from torch import nn

STEPS = 3
STEP_WEIGHT = 0.8


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width)])
        nn.init.zeros_(self.layers[0].weight)
        nn.init.zeros_(self.layers[0].bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.silu(self.layers[0](x))


class Medusa(nn.Module):
    format = "medusa"

    def __init__(self, target: Target, vocabulary: DraftVocabulary, corpus: Corpus):
        super().__init__()
        self.target, self.vocabulary = target, vocabulary
        self.final_index = corpus.feature_index(target.layers)
        self.blocks = nn.ModuleList([Block(target.width) for _ in range(STEPS)])
        self.lm_heads = nn.ModuleList([nn.Linear(target.width, vocabulary.size, bias=False) for _ in range(STEPS)])
        self.register_buffer("target_head", target.embeddings()[vocabulary.ids].clone(), persistent=False)
        self.register_buffer("target_norm", target.final_norm(), persistent=False)
        for lm_head in self.lm_heads:
            lm_head.weight.data.copy_(self.target_head)

    def finals(self, batch: Batch) -> torch.Tensor:
        return F.rms_norm(batch.features[:, :, self.final_index], (self.target.width,), self.target_norm,
                          self.target.rms_epsilon)

    def loss(self, batch: Batch, steps: int) -> tuple[torch.Tensor, int]:
        finals = self.finals(batch)
        total, visits = torch.zeros(()), 0
        for step in range(steps):
            wanted = batch.predicts(2 + step) & (self.vocabulary.inverse[batch.ahead(2 + step)] >= 0)
            rows, places = wanted.nonzero(as_tuple=True)
            logits = self.lm_heads[step](self.blocks[step](finals[rows, places]))
            target_logits = finals[rows, places + 1 + step] @ self.target_head.T
            total = total + STEP_WEIGHT**step * soft_cross_entropy(logits, target_logits).mean()
            visits = visits or len(rows)
        return total, visits

    def drafts(self, batch: Batch, depth: int) -> tuple[torch.Tensor, int]:
        finals = self.finals(batch)
        drafted = [self.vocabulary.ids[self.lm_heads[step](self.blocks[step](finals)).argmax(-1)]
                   for step in range(depth)]
        return torch.stack(drafted), 2

    def tensors(self) -> dict[str, torch.Tensor]:
        return dict(self.state_dict())
