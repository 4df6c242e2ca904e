"""DFlash (arXiv 2602.06036): a block of drafts in one pass. The target's features are the context, as keys and values
of every layer; the block is the newest token and masks, which see the context and each other both ways.

    c_i = hidden_norm(fc(features behind three layers))        of tokens before the anchor
    x = [emb anchor, emb mask, emb mask, ...]                  8 slots at the anchor's position and behind it
    in each layer  q from input_layernorm(x); k, v from [c | input_layernorm(x)]; norms of q and k; SwiGLU
    logits = lm_head(norm(x)): slot j predicts the token at its own place; slot 0, the anchor, is not used

A block costs one pass of two layers whatever its length: drafts behind the first are nearly free."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from layers import Attention, FeedForward, RMSNorm, Rope, soft_cross_entropy
from target import Batch, Corpus, DraftVocabulary, Target
from torch import nn

LAYERS = 2
BLOCK = 8
DECAY = 4.0    # loss of slot j counts exp(-(j - 1) / DECAY)
ANCHORS = 12   # of a text in one pass of training
STEPS = BLOCK - 1


class Layer(nn.Module):
    def __init__(self, target: Target):
        super().__init__()
        width, epsilon = target.width, target.rms_epsilon
        self.input_layernorm = RMSNorm(width, epsilon)
        self.self_attn = Attention(width, width, target.heads, target.kv_heads, target.head_size, epsilon)
        self.post_attention_layernorm = RMSNorm(width, epsilon)
        self.mlp = FeedForward(width, target.feed_forward)

    def begin_from(self, weights: dict[str, torch.Tensor]) -> None:
        self.input_layernorm.weight.data.copy_(weights["input_layernorm"])
        self.post_attention_layernorm.weight.data.copy_(weights["post_attention_layernorm"])
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            getattr(self.self_attn, name).weight.data.copy_(weights[f"self_attn.{name}"])
        for name in ("gate_proj", "up_proj", "down_proj"):
            getattr(self.mlp, name).weight.data.copy_(weights[f"mlp.{name}"])


class DFlash(nn.Module):
    format = "dflash"

    def __init__(self, target: Target, vocabulary: DraftVocabulary, corpus: Corpus):
        super().__init__()
        self.target, self.vocabulary = target, vocabulary
        self.feature_layers = [2, target.layers // 2, target.layers - 3]
        self.feature_indices = [corpus.feature_index(layer) for layer in self.feature_layers]
        self.final_index = corpus.feature_index(target.layers)
        self.mask_token = (target.tokens.index("<empty_output>") if "<empty_output>" in target.tokens
                           else target.vocab - 1)
        width, epsilon = target.width, target.rms_epsilon
        self.fc = nn.Linear(len(self.feature_layers) * width, width, bias=False)
        self.hidden_norm = RMSNorm(width, epsilon)
        self.layers = nn.ModuleList([Layer(target) for _ in range(LAYERS)])
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
        for i, layer in enumerate(self.layers):
            layer.begin_from(target.layer(target.layers - LAYERS + i))
        self.fc.weight.data.normal_(std=0.01)
        self.fc.weight.data[:, -width:] += torch.eye(width)
        self.hidden_norm.weight.data.copy_(self.layers[-1].input_layernorm.weight.data)
        self.norm.weight.data.copy_(self.target_norm)
        self.lm_head.weight.data.copy_(self.target_head)
        self.draw = torch.Generator().manual_seed(1)

    def block_states(self, batch: Batch, anchors: torch.Tensor) -> torch.Tensor:
        """anchors [b, a], places of the newest tokens; returns x after the last layer and norm, [b, a, BLOCK,
        width]."""
        b, a = anchors.shape
        n = batch.tokens.shape[1]
        features = batch.features[:, :, self.feature_indices] / self.sizes[:, None]
        context = self.hidden_norm(self.fc(features.flatten(2)))
        block = torch.full((b, a, BLOCK), self.mask_token)
        block[:, :, 0] = batch.tokens.gather(1, anchors)
        x = self.embeddings[block.view(b, -1)]
        context_places = torch.arange(n)
        places = (anchors[:, :, None] + torch.arange(BLOCK)).view(b, -1)
        owner = torch.arange(a).repeat_interleave(BLOCK)
        sees = torch.cat((context_places[None, None] < anchors.repeat_interleave(BLOCK, 1)[:, :, None],
                          (owner[:, None] == owner[None])[None].expand(b, -1, -1)), dim=-1)[:, None]
        for layer in self.layers:
            attention = layer.self_attn
            z = layer.input_layernorm(x)
            keys = torch.cat((self.rope(attention.key(context), context_places), self.rope(attention.key(z), places)),
                             dim=2)
            values = torch.cat((attention.value(context), attention.value(z)), dim=2)
            attended = F.scaled_dot_product_attention(self.rope(attention.query(z), places), keys, values,
                                                      attn_mask=sees)
            x = x + attention.output(attended)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return self.norm(x).view(b, a, BLOCK, -1)

    def loss(self, batch: Batch, steps: int) -> tuple[torch.Tensor, int]:
        finals = F.rms_norm(batch.features[:, :, self.final_index], (self.target.width,), self.target_norm,
                            self.target.rms_epsilon)
        span = (batch.lengths - 1 - batch.prompt_len).clamp(min=1)
        chosen = torch.rand(len(span), ANCHORS, generator=self.draw) * span[:, None]
        anchors = batch.prompt_len[:, None] + chosen.long()  # places of answers
        states = self.block_states(batch, anchors)
        offsets = torch.arange(1, steps + 1)
        places = (anchors[:, :, None] + offsets).clamp(max=batch.tokens.shape[1] - 1)
        rows = torch.arange(len(span))[:, None, None].expand_as(places)
        inside = anchors[:, :, None] + offsets < batch.lengths[:, None, None]
        wanted = inside & (self.vocabulary.inverse[batch.tokens[rows, places]] >= 0)
        logits = self.lm_head(states[:, :, 1:steps + 1][wanted])
        target_logits = finals[rows, places - 1][wanted] @ self.target_head.T
        weights = torch.exp(-(offsets - 1) / DECAY).expand_as(places)[wanted]
        losses = soft_cross_entropy(logits, target_logits)
        return (losses * weights).sum() / weights.sum(), int(inside[:, :, 0].sum())

    def drafts(self, batch: Batch, depth: int) -> tuple[torch.Tensor, int]:
        b, n = batch.tokens.shape
        drafted = torch.zeros(depth, b, n, dtype=torch.long)
        for begin in range(0, n - 1, 64):  # anchors i + 1 of the places i
            anchors = torch.arange(begin + 1, min(begin + 65, n))
            states = self.block_states(batch, anchors.expand(b, -1))
            ids = self.vocabulary.ids[self.lm_head(states[:, :, 1:depth + 1]).argmax(-1)]
            drafted[:, :, anchors - 1] = ids.permute(2, 0, 1)
        return drafted, 2

    def tensors(self) -> dict[str, torch.Tensor]:
        tensors = {name: value for name, value in self.state_dict().items() if name != "sizes"}
        blocks = self.fc.weight.data.view(self.target.width, len(self.feature_layers), self.target.width)
        # hidden_norm takes any scale, so this one is as good as another.
        tensors["fc.weight"] = (self.sizes[-1] * blocks / self.sizes[:, None]).flatten(1)
        return tensors
