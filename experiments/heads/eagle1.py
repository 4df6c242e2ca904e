"""EAGLE-1 (arXiv 2401.15077): one layer over (f of token i, token i + 1), where f is the target's state after its final
norm, that predicts the next f, which the target's own lm_head reads.

    u = fc(concat[emb t, f])
    a = u + Attn(u)                                            no norm before it
    f' = a + MLP(post_attention_layernorm(a))                  the next step's f
    logits = lm_head(f')                                       the target's; drafted are the rows of the draft
    vocabulary alone

Loss: SmoothL1(f', f) and 0.1 times the soft cross-entropy in the paper. Here the cross-entropy counts in full and steps
are unrolled as in EAGLE-3: with 10^3 times less text the tokens matter more than the features. Inside, f is divided by
its usual size, since the layer has no norm before it; tensors() undoes that."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from layers import Attention, FeedForward, RMSNorm, Rope, predictions, soft_cross_entropy, unroll
from target import Batch, Corpus, DraftVocabulary, Target
from torch import nn

STEPS = 3
STEP_WEIGHT = 0.8
FEATURE_WEIGHT = 0.1


class Layer(nn.Module):
    def __init__(self, target: Target):
        super().__init__()
        self.self_attn = Attention(target.width, target.width, target.heads, target.kv_heads, target.head_size)
        self.post_attention_layernorm = RMSNorm(target.width, target.rms_epsilon)
        self.mlp = FeedForward(target.width, target.feed_forward)


class Eagle1(nn.Module):
    format = "eagle1"

    def __init__(self, target: Target, vocabulary: DraftVocabulary, corpus: Corpus):
        super().__init__()
        self.target, self.vocabulary = target, vocabulary
        self.final_index = corpus.feature_index(target.layers)
        width = target.width
        self.fc = nn.Linear(2 * width, width, bias=False)
        self.layers = nn.ModuleList([Layer(target)])
        self.rope = Rope(target.head_size, target.rope_base)
        embeddings = target.embeddings()
        self.register_buffer("embeddings", embeddings, persistent=False)
        self.register_buffer("target_head", embeddings[vocabulary.ids].clone(), persistent=False)
        self.register_buffer("target_norm", target.final_norm(), persistent=False)
        sample = torch.cat([text.features[1:, self.final_index] for text in corpus.texts[:64]]).float()
        finals = F.rms_norm(sample, (width,), self.target_norm, target.rms_epsilon)
        self.register_buffer("size", finals.pow(2).mean(-1).sqrt().median())
        # f' begins as f. The target's layers are no beginning: they read states that no final norm has weighted.
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                nn.init.zeros_(weight) if name.endswith(("o_proj.weight",
                                                         "down_proj.weight")) else nn.init.normal_(weight, std=0.02)
        self.fc.weight.data[:, width:] += torch.eye(width)

    def finals(self, batch: Batch) -> torch.Tensor:
        """f, divided by its usual size."""
        return F.rms_norm(batch.features[:, :, self.final_index], (self.target.width,), self.target_norm,
                          self.target.rms_epsilon) / self.size

    def logits(self, f: torch.Tensor) -> torch.Tensor:
        """Over the draft vocabulary, in training and where a token map is read (FR-Spec, arXiv 2502.14856)."""
        return (self.size * f) @ self.target_head.T

    @property
    def layer(self) -> Layer:
        return self.layers[0]

    def pair(self, embedded: torch.Tensor, f: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        u = self.fc(torch.cat((embedded, f), dim=-1))
        return u, u

    def next_state(self, a: torch.Tensor) -> torch.Tensor:
        return a + self.layer.mlp(self.layer.post_attention_layernorm(a))

    def loss(self, batch: Batch, steps: int) -> tuple[torch.Tensor, int]:
        finals = self.finals(batch)
        total, visits = torch.zeros(()), 0
        for step, f, places in predictions(batch, self.vocabulary, unroll(self, batch, finals, steps)):
            true = finals[places]
            losses = soft_cross_entropy(self.logits(f), self.logits(true))
            total = total + STEP_WEIGHT**step * (losses.mean() + FEATURE_WEIGHT * F.smooth_l1_loss(f, true))
            visits = visits or len(f)
        return total, visits

    def drafts(self, batch: Batch, depth: int) -> tuple[torch.Tensor, int]:
        drafted = [self.vocabulary.ids[self.logits(f).argmax(-1)]
                   for f in unroll(self, batch, self.finals(batch), depth)]
        return torch.stack(drafted), 2

    def tensors(self) -> dict[str, torch.Tensor]:
        """As engines read them, which know no size of f."""
        tensors = {name: value.clone() for name, value in self.state_dict().items() if name != "size"}
        tensors["fc.weight"][:, : self.target.width] *= self.size
        for name in ("q_proj", "k_proj", "v_proj"):
            tensors[f"layers.0.self_attn.{name}.weight"] /= self.size
        tensors["layers.0.self_attn.o_proj.weight"] *= self.size
        tensors["layers.0.mlp.down_proj.weight"] *= self.size
        return tensors
