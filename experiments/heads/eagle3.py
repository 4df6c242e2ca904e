"""EAGLE-3 (arXiv 2503.01840): one layer over (features of token i, token i + 1) that predicts token i + 2, and goes on
from its own output.

    g = fc(features behind three layers)                       only where the target has run
    a = g + Attn(concat[input_layernorm(emb t), hidden_norm(g)])
    o = a + MLP(post_attention_layernorm(a))                   the next step's g
    logits = lm_head(norm(o))                                  over the draft vocabulary

What makes it learn fast here: features are divided by their usual size (folded into fc at export); the layer begins as
the target's last one, fc as the last of the three features, norm and lm_head as the target's; the token reaches the
residual stream through the values alone, so keys and values have as many heads as queries, of which six begin by
looking at the token; and training-time test begins with one step.
"""

from __future__ import annotations

import torch
from layers import Attention, FeedForward, RMSNorm, Rope, predictions, soft_cross_entropy, unroll
from target import Batch, Corpus, DraftVocabulary, Target
from torch import nn

STEPS = 3          # drafts that are trained for
STEP_WEIGHT = 0.8  # loss of step s counts 0.8^s
SELF_HEADS = 6     # of attention, that begin with a look at the token itself


class Layer(nn.Module):
    def __init__(self, target: Target):
        super().__init__()
        width, epsilon = target.width, target.rms_epsilon
        self.input_layernorm = RMSNorm(width, epsilon)
        self.hidden_norm = RMSNorm(width, epsilon)
        self.self_attn = Attention(2 * width, width, target.heads, target.heads, target.head_size)
        self.post_attention_layernorm = RMSNorm(width, epsilon)
        self.mlp = FeedForward(width, target.feed_forward)

    def begin_from(self, weights: dict[str, torch.Tensor], group: int) -> None:
        """From a layer of the target: what read its residual stream reads g, and nothing reads the embedding yet."""
        width = len(weights["input_layernorm"])
        self.hidden_norm.weight.data.copy_(weights["input_layernorm"])
        for name in ("q_proj", "k_proj", "v_proj"):
            rows = weights[f"self_attn.{name}"]
            if name != "q_proj":  # one head of keys and values for each of queries
                rows = rows.view(-1, self.self_attn.head_size, width).repeat_interleave(group, 0).reshape(-1, width)
            own = getattr(self.self_attn, name).weight.data
            own[:, width:] = rows
            own[:, :width] = 0.1 * torch.randn(own.shape[0], width) * rows.std()
        self.self_attn.o_proj.weight.data.copy_(weights["self_attn.o_proj"])
        self.attend_to_token(SELF_HEADS)
        self.post_attention_layernorm.weight.data.copy_(weights["post_attention_layernorm"])
        for name in ("gate_proj", "up_proj", "down_proj"):
            getattr(self.mlp, name).weight.data.copy_(weights[f"mlp.{name}"])


    def attend_to_token(self, heads: int) -> None:
        """The first `heads` heads begin as ones that look where the token is the same, above all at their own place,
        and that
        pass its embedding on: a random orthonormal projection of it as query, key and value, and back."""
        rows = heads * self.self_attn.head_size
        width = self.hidden_norm.weight.numel()
        projection = torch.linalg.qr(torch.randn(width, rows)).Q.T
        for name, scale in (("q_proj", 1.5), ("k_proj", 1.5), ("v_proj", 1.0)):
            own = getattr(self.self_attn, name).weight.data
            own[:rows] = 0.01 * torch.randn(rows, 2 * width)
            own[:rows, :width] += scale * projection
        self.self_attn.o_proj.weight.data[:, :rows] = 5.0 * projection.T


class Eagle3(nn.Module):
    format = "eagle3"

    def __init__(self, target: Target, vocabulary: DraftVocabulary, corpus: Corpus):
        super().__init__()
        self.target, self.vocabulary = target, vocabulary
        self.feature_layers = [2, target.layers // 2, target.layers - 3]
        self.feature_indices = [corpus.feature_index(layer) for layer in self.feature_layers]
        self.final_index = corpus.feature_index(target.layers)
        width, epsilon = target.width, target.rms_epsilon
        self.fc = nn.Linear(len(self.feature_layers) * width, width, bias=False)
        self.layers = nn.ModuleList([Layer(target)])
        self.norm = RMSNorm(width, epsilon)
        self.lm_head = nn.Linear(width, vocabulary.size, bias=False)
        self.rope = Rope(target.head_size, target.rope_base)

        embeddings = target.embeddings()
        self.register_buffer("embeddings", embeddings, persistent=False)
        self.register_buffer("target_head", embeddings[vocabulary.ids].clone(), persistent=False)
        self.register_buffer("target_norm", target.final_norm(), persistent=False)
        sample = torch.cat([text.features[1:] for text in corpus.texts[:64]]).float()
        sizes = sample.pow(2).mean(-1).sqrt().median(0).values
        self.register_buffer("sizes", sizes[self.feature_indices])

        self.layers[0].begin_from(target.layer(target.layers - 1), target.heads // target.kv_heads)
        self.fc.weight.data.zero_()
        self.fc.weight.data[:, -width:] = torch.eye(width)
        self.norm.weight.data.copy_(self.target_norm)
        self.lm_head.weight.data.copy_(self.target_head)

    def true_g(self, batch: Batch) -> torch.Tensor:
        features = batch.features[:, :, self.feature_indices] / self.sizes[:, None]
        return self.sizes[-1] * self.fc(features.flatten(2))

    @property
    def layer(self) -> Layer:
        return self.layers[0]

    def pair(self, embedded: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return g, torch.cat((self.layer.input_layernorm(embedded), self.layer.hidden_norm(g)), dim=-1)

    def next_state(self, a: torch.Tensor) -> torch.Tensor:
        return a + self.layer.mlp(self.layer.post_attention_layernorm(a))

    def loss(self, batch: Batch, steps: int) -> tuple[torch.Tensor, int]:
        """Soft cross-entropy against the target, at places whose token is in the draft vocabulary. Returns the number
        of places too, from which the first step predicts."""
        finals = torch.nn.functional.rms_norm(batch.features[:, :, self.final_index], (self.target.width,),
                                              self.target_norm, self.target.rms_epsilon)
        total, visits = torch.zeros(()), 0
        for step, o, places in predictions(batch, self.vocabulary, unroll(self, batch, self.true_g(batch), steps)):
            with torch.no_grad():
                target_logits = finals[places] @ self.target_head.T
            losses = soft_cross_entropy(self.lm_head(self.norm(o)), target_logits)
            total = total + STEP_WEIGHT**step * losses.mean()
            visits = visits or len(o)
        return total, visits

    def drafts(self, batch: Batch, depth: int) -> tuple[torch.Tensor, int]:
        """[depth, b, n] target ids: of the draft behind place i, the drafts before it being the text; and how far ahead
        of i the first one is. For held-out texts, which are greedy, an accepted draft is the text."""
        drafted = [self.vocabulary.ids[self.lm_head(self.norm(o)).argmax(-1)]
                   for o in unroll(self, batch, self.true_g(batch), depth)]
        return torch.stack(drafted), 2

    def tensors(self) -> dict[str, torch.Tensor]:
        """As engines read them: raw features, so the sizes go into fc."""
        tensors = {name: value for name, value in self.state_dict().items() if name != "sizes"}
        blocks = self.fc.weight.data.view(self.target.width, len(self.feature_layers), self.target.width)
        tensors["fc.weight"] = (self.sizes[-1] * blocks / self.sizes[:, None]).flatten(1)
        return tensors
