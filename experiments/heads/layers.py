"""Parts that heads are made of, under the names of Hugging Face, so that a state_dict is the file that engines read."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width: int, epsilon: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.epsilon)


class Rope(nn.Module):
    """RoFormer's rotation (arXiv 2104.09864) of the two halves of a head."""

    def __init__(self, head_size: int, base: float, positions: int = 4096):
        super().__init__()
        rates = base ** (-torch.arange(0, head_size, 2).double() / head_size)
        angles = torch.arange(positions).double()[:, None] * rates[None]
        self.register_buffer("cosines", angles.cos().float().repeat(1, 2), persistent=False)
        self.register_buffer("sines", angles.sin().float().repeat(1, 2), persistent=False)

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x [b, heads, n, d]; positions [n], or [b, n]."""
        shape = (1, 1, -1, x.shape[-1]) if positions.dim() == 1 else (positions.shape[0], 1, -1, x.shape[-1])
        cosines, sines = self.cosines[positions].view(shape), self.sines[positions].view(shape)
        first, second = x.chunk(2, dim=-1)
        return x * cosines + torch.cat((-second, first), dim=-1) * sines


class Attention(nn.Module):
    def __init__(self, columns: int, width: int, heads: int, kv_heads: int, head_size: int,
                 norm_epsilon: float | None = None):
        """norm_epsilon: heads of q and k are normed, as Qwen3's."""
        super().__init__()
        self.heads, self.kv_heads, self.head_size = heads, kv_heads, head_size
        self.q_proj = nn.Linear(columns, heads * head_size, bias=False)
        self.k_proj = nn.Linear(columns, kv_heads * head_size, bias=False)
        self.v_proj = nn.Linear(columns, kv_heads * head_size, bias=False)
        self.o_proj = nn.Linear(heads * head_size, width, bias=False)
        if norm_epsilon is not None:
            self.q_norm, self.k_norm = RMSNorm(head_size, norm_epsilon), RMSNorm(head_size, norm_epsilon)

    def split(self, x: torch.Tensor, heads: int) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], heads, self.head_size)

    def query(self, x: torch.Tensor) -> torch.Tensor:
        q = self.split(self.q_proj(x), self.heads)
        return (self.q_norm(q) if hasattr(self, "q_norm") else q).transpose(1, 2)

    def key(self, x: torch.Tensor) -> torch.Tensor:
        k = self.split(self.k_proj(x), self.kv_heads)
        return self.wide((self.k_norm(k) if hasattr(self, "k_norm") else k).transpose(1, 2))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return self.wide(self.split(self.v_proj(x), self.kv_heads).transpose(1, 2))

    def wide(self, x: torch.Tensor) -> torch.Tensor:
        """A head of keys or values for each head of queries."""
        return x if self.kv_heads == self.heads else x.repeat_interleave(self.heads // self.kv_heads, dim=1)

    def output(self, attended: torch.Tensor) -> torch.Tensor:
        b, _, n, _ = attended.shape
        return self.o_proj(attended.transpose(1, 2).reshape(b, n, -1))


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, width: int, feed_forward: int):
        super().__init__()
        self.gate_proj = nn.Linear(width, feed_forward, bias=False)
        self.up_proj = nn.Linear(width, feed_forward, bias=False)
        self.down_proj = nn.Linear(feed_forward, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def chain_attention(q: torch.Tensor, keys: list[torch.Tensor], values: list[torch.Tensor]) -> torch.Tensor:
    """Attention of step s of training-time test (EAGLE-3, arXiv 2503.01840, section 3): row i sees keys[0] of all rows
    up to i, which are made of true features, and of its own chain keys[1..s], the diagonals. All [b, heads, n, d]."""
    if len(keys) == 1:
        return F.scaled_dot_product_attention(q, keys[0], values[0], is_causal=True)
    n, scale = q.shape[2], q.shape[3] ** -0.5
    future = torch.ones(n, n, dtype=torch.bool).triu(1)
    scores = (q @ keys[0].transpose(2, 3) * scale).masked_fill(future, -torch.inf)
    own = torch.stack([(q * key).sum(-1) * scale for key in keys[1:]], dim=-1)  # [b, heads, n, s]
    weights = torch.cat((scores, own), dim=-1).softmax(-1)
    attended = weights[..., :n] @ values[0]
    for step, value in enumerate(values[1:]):
        attended = attended + weights[..., n + step, None] * value
    return attended


def unroll(head: nn.Module, batch, state: torch.Tensor, steps: int):
    """Yields the next state [b, n, width] of each step of a chain head; step s at place i reads token i + 1 + s and
    predicts token i + 2 + s. Of the head: layer, embeddings, rope; pair(embedding, state) -> (residual stream, what
    attention reads); next_state(residual stream behind attention)."""
    attention = head.layer.self_attn
    positions = torch.arange(batch.tokens.shape[1])
    keys, values = [], []
    for step in range(steps):
        residual, z = head.pair(head.embeddings[batch.ahead(1 + step)], state)
        keys.append(head.rope(attention.key(z), positions + step))
        values.append(attention.value(z))
        attended = chain_attention(head.rope(attention.query(z), positions + step), keys, values)
        state = head.next_state(residual + attention.output(attended))
        yield state


def predictions(batch, vocabulary, states):
    """Of each step's states those at places whose token is in the draft vocabulary: (step, states [rows, width],
    (texts, places) of the target's states that say what follows)."""
    for step, state in enumerate(states):
        wanted = batch.predicts(2 + step) & (vocabulary.inverse[batch.ahead(2 + step)] >= 0)
        rows, places = wanted.nonzero(as_tuple=True)
        yield step, state[rows, places], (rows, places + 1 + step)


def soft_cross_entropy(logits: torch.Tensor, target_logits: torch.Tensor) -> torch.Tensor:
    """[rows] cross-entropy of softmax(logits) against softmax(target_logits), which no gradient crosses."""
    with torch.no_grad():
        target = target_logits.softmax(-1)
    return -(target * logits.log_softmax(-1)).sum(-1)
