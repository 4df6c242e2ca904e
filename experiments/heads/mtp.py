"""MTP (DeepSeek-V3, arXiv 2412.19437, section 2.2), in the form of `speculators`: one full layer over (f of token i,
token i + 1), applied again to its own output.

    u = input_proj(concat[token_layernorm(emb t), hidden_layernorm(f)])
    f' = final_layernorm(layer(u))                             a Qwen3 layer, norms of q and k included; the next step's
    f logits = lm_head(f')                                       the target's; drafted are the rows of the draft
    vocabulary alone

f is the state after the target's final norm. Loss: sum of 0.6^s times the cross-entropy of step s (FastMTP, arXiv
2509.18362). The softmax runs over the draft vocabulary, in training and where a token map is read (FR-Spec, arXiv
2502.14856)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from layers import Attention, FeedForward, RMSNorm, Rope, predictions, soft_cross_entropy, unroll
from target import Batch, Corpus, DraftVocabulary, Target
from torch import nn

STEPS = 3
STEP_WEIGHT = 0.6


class Layer(nn.Module):
    def __init__(self, target: Target):
        super().__init__()
        width, epsilon = target.width, target.rms_epsilon
        self.token_layernorm, self.hidden_layernorm = RMSNorm(width, epsilon), RMSNorm(width, epsilon)
        self.input_proj = nn.Linear(2 * width, width, bias=False)
        self.input_layernorm = RMSNorm(width, epsilon)
        self.self_attn = Attention(width, width, target.heads, target.kv_heads, target.head_size, epsilon)
        self.post_attention_layernorm = RMSNorm(width, epsilon)
        self.mlp = FeedForward(width, target.feed_forward)
        self.final_layernorm = RMSNorm(width, epsilon)


class Mtp(nn.Module):
    format = "mtp"

    def __init__(self, target: Target, vocabulary: DraftVocabulary, corpus: Corpus):
        super().__init__()
        self.target, self.vocabulary = target, vocabulary
        self.final_index = corpus.feature_index(target.layers)
        width = target.width
        self.mtp_layers = nn.ModuleList([Layer(target)])
        self.rope = Rope(target.head_size, target.rope_base)
        embeddings = target.embeddings()
        self.register_buffer("embeddings", embeddings, persistent=False)
        self.register_buffer("target_head", embeddings[vocabulary.ids].clone(), persistent=False)
        self.register_buffer("target_norm", target.final_norm(), persistent=False)
        layer, begin = self.mtp_layers[0], target.layer(target.layers - 1)
        layer.input_proj.weight.data.normal_(std=0.02)
        layer.input_proj.weight.data[:, width:] += torch.eye(width)
        layer.input_layernorm.weight.data.copy_(begin["input_layernorm"])
        layer.post_attention_layernorm.weight.data.copy_(begin["post_attention_layernorm"])
        layer.final_layernorm.weight.data.copy_(self.target_norm)
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            getattr(layer.self_attn, name).weight.data.copy_(begin[f"self_attn.{name}"])
        for name in ("gate_proj", "up_proj", "down_proj"):
            getattr(layer.mlp, name).weight.data.copy_(begin[f"mlp.{name}"])
        # A layer's output is large beside a normed state: it begins as a small correction.
        layer.self_attn.o_proj.weight.data *= 0.1
        layer.mlp.down_proj.weight.data *= 0.1

    def finals(self, batch: Batch) -> torch.Tensor:
        return F.rms_norm(batch.features[:, :, self.final_index], (self.target.width,), self.target_norm,
                          self.target.rms_epsilon)

    @property
    def layer(self) -> Layer:
        return self.mtp_layers[0]

    def pair(self, embedded: torch.Tensor, f: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        layer = self.layer
        u = layer.input_proj(torch.cat((layer.token_layernorm(embedded), layer.hidden_layernorm(f)), dim=-1))
        return u, layer.input_layernorm(u)

    def next_state(self, a: torch.Tensor) -> torch.Tensor:
        return self.layer.final_layernorm(a + self.layer.mlp(self.layer.post_attention_layernorm(a)))

    def loss(self, batch: Batch, steps: int) -> tuple[torch.Tensor, int]:
        finals = self.finals(batch)
        total, visits = torch.zeros(()), 0
        for step, f, places in predictions(batch, self.vocabulary, unroll(self, batch, finals, steps)):
            target_logits = finals[places] @ self.target_head.T
            total = total + STEP_WEIGHT**step * soft_cross_entropy(f @ self.target_head.T, target_logits).mean()
            visits = visits or len(f)
        return total, visits

    def drafts(self, batch: Batch, depth: int) -> tuple[torch.Tensor, int]:
        drafted = [self.vocabulary.ids[(f @ self.target_head.T).argmax(-1)]
                   for f in unroll(self, batch, self.finals(batch), depth)]
        return torch.stack(drafted), 2

    def tensors(self) -> dict[str, torch.Tensor]:
        return dict(self.state_dict())
