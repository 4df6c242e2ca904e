"""The target as heads see it: its texts with features (shards of `draftproof features`), and of its weights the
embeddings, the final norm and the layers that heads begin from, read from its GGUF file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from safetensors import safe_open


@dataclasses.dataclass
class Target:
    """Shapes as in the file; q and k rows in the order of Hugging Face (RoPE rotates the halves of a head)."""

    name: str
    layers: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    vocab: int
    rms_epsilon: float
    rope_base: float
    context: int
    tokens: list[str]
    reader: GGUFReader

    @property
    def head_size(self) -> int:
        return self.width // self.heads

    def tensor(self, name: str) -> torch.Tensor:
        found = next(tensor for tensor in self.reader.tensors if tensor.name == name)
        return torch.from_numpy(np.array(dequantize(found.data, found.tensor_type), dtype=np.float32))

    def rotated_halves(self, name: str, heads: int) -> torch.Tensor:
        """Q or K: GGUF stores rows so that RoPE rotates neighbours."""
        rows = self.tensor(name)
        return rows.view(heads, self.head_size // 2, 2, self.width).transpose(1, 2).reshape(-1, self.width).contiguous()

    def embeddings(self) -> torch.Tensor:
        return self.tensor("token_embd.weight")

    def final_norm(self) -> torch.Tensor:
        return self.tensor("output_norm.weight")

    def layer(self, index: int) -> dict[str, torch.Tensor]:
        """The weights of a layer, counted from 0, by the names of Hugging Face."""
        name = f"blk.{index}."
        return {
            "input_layernorm": self.tensor(name + "attn_norm.weight"),
            "self_attn.q_proj": self.rotated_halves(name + "attn_q.weight", self.heads),
            "self_attn.k_proj": self.rotated_halves(name + "attn_k.weight", self.kv_heads),
            "self_attn.v_proj": self.tensor(name + "attn_v.weight"),
            "self_attn.o_proj": self.tensor(name + "attn_output.weight"),
            "post_attention_layernorm": self.tensor(name + "ffn_norm.weight"),
            "mlp.gate_proj": self.tensor(name + "ffn_gate.weight"),
            "mlp.up_proj": self.tensor(name + "ffn_up.weight"),
            "mlp.down_proj": self.tensor(name + "ffn_down.weight"),
        }


def open_target(path: Path) -> Target:
    reader = GGUFReader(path)

    def value(key: str):
        return reader.fields[key].contents()

    kind = value("general.architecture")
    return Target(name=path.stem, layers=value(f"{kind}.block_count"), width=value(f"{kind}.embedding_length"),
                  feed_forward=value(f"{kind}.feed_forward_length"), heads=value(f"{kind}.attention.head_count"),
                  kv_heads=value(f"{kind}.attention.head_count_kv"), vocab=len(value("tokenizer.ggml.tokens")),
                  rms_epsilon=value(f"{kind}.attention.layer_norm_rms_epsilon"),
                  rope_base=value(f"{kind}.rope.freq_base"),
                  context=value(f"{kind}.context_length"), tokens=value("tokenizer.ggml.tokens"), reader=reader)


@dataclasses.dataclass
class Text:
    tokens: torch.Tensor    # [n] prompt and answer
    features: torch.Tensor  # [n, layers, width] in binary16, behind Corpus.layers
    prompt_len: int
    prompt_index: int


@dataclasses.dataclass
class Corpus:
    texts: list[Text]
    layers: list[int]  # counted from 1

    @property
    def num_tokens(self) -> int:
        return sum(len(text.tokens) for text in self.texts)

    def feature_index(self, layer: int) -> int:
        if layer not in self.layers:
            raise SystemExit(f"draftproof: error: the texts have features of layers {self.layers}; expected {layer} "
                             "among them")
        return self.layers.index(layer)

    def answers(self) -> torch.Tensor:
        return torch.cat([text.tokens[text.prompt_len:] for text in self.texts])


def read_corpus(folder: Path) -> Corpus:
    texts: list[Text] = []
    layers: list[int] = []
    for path in sorted(folder.glob("shard-*.safetensors")):
        with safe_open(path, "pt") as file:
            layers = file.get_tensor("layers").tolist()
            tokens, features = file.get_tensor("tokens").long(), file.get_tensor("features")
            begin = 0
            for end, prompt_len, index in zip(file.get_tensor("cu_tokens").tolist(),
                                              file.get_tensor("prompt_len").tolist(),
                                              file.get_tensor("prompt_index").tolist(), strict=True):
                texts.append(Text(tokens[begin:end], features[begin:end], prompt_len, index))
                begin = end
    if not texts:
        raise SystemExit(f"draftproof: error: {folder}: has no shards; expected those that `draftproof features` "
                         "writes")
    return Corpus(texts, layers)


@dataclasses.dataclass
class Batch:
    """Texts beside each other, those of about one length; padded on the right."""

    tokens: torch.Tensor    # [b, n]
    features: torch.Tensor  # [b, n, layers, width]
    lengths: torch.Tensor   # [b]
    prompt_len: torch.Tensor  # [b]
    works: torch.Tensor     # [b] prompt_index

    def predicts(self, ahead: int) -> torch.Tensor:
        """[b, n] places i from which the token i + ahead is one of the answer."""
        places = torch.arange(self.tokens.shape[1])[None] + ahead
        return (places >= self.prompt_len[:, None]) & (places < self.lengths[:, None])

    def ahead(self, by: int) -> torch.Tensor:
        """[b, n] the token i + by at place i; 0 behind the end."""
        moved = torch.zeros_like(self.tokens)
        moved[:, : self.tokens.shape[1] - by] = self.tokens[:, by:]
        return moved


def batch_of(texts: list[Text]) -> Batch:
    lengths = torch.tensor([len(text.tokens) for text in texts])
    n = int(lengths.max())
    tokens = torch.zeros(len(texts), n, dtype=torch.long)
    features = torch.zeros(len(texts), n, *texts[0].features.shape[1:])
    for i, text in enumerate(texts):
        tokens[i, : lengths[i]] = text.tokens
        features[i, : lengths[i]] = text.features
    return Batch(tokens, features, lengths, torch.tensor([text.prompt_len for text in texts]),
                 torch.tensor([text.prompt_index for text in texts]))


def batches(corpus: Corpus, tokens_per_batch: int, draw: torch.Generator) -> Iterator[list[Text]]:
    """Endless: each epoch anew, texts of about one length together, the batches in random order."""
    while True:
        jitter = torch.rand(len(corpus.texts), generator=draw) * 16
        order = sorted(range(len(corpus.texts)), key=lambda i: len(corpus.texts[i].tokens) + float(jitter[i]))
        groups: list[list[Text]] = [[]]
        for i in order:
            text = corpus.texts[i]
            if groups[-1] and (len(groups[-1]) + 1) * len(text.tokens) > tokens_per_batch:
                groups.append([])
            groups[-1].append(text)
        for i in torch.randperm(len(groups), generator=draw).tolist():
            yield groups[i]


@dataclasses.dataclass
class DraftVocabulary:
    """The target ids that a head can draft, ascending: the most frequent of the target's own answers."""

    ids: torch.Tensor      # [V_d]
    inverse: torch.Tensor  # [V] draft id, or -1

    @property
    def size(self) -> int:
        return len(self.ids)

    def coverage(self, tokens: torch.Tensor) -> float:
        return float((self.inverse[tokens] >= 0).float().mean())


def draft_vocabulary(corpus: Corpus, vocab: int, size: int) -> DraftVocabulary:
    """By frequency in answers, then in prompts, then by id, which in byte-level BPE is the order of the merges."""
    answers = torch.bincount(corpus.answers(), minlength=vocab).double()
    everything = torch.bincount(torch.cat([text.tokens for text in corpus.texts]), minlength=vocab).double()
    score = answers + 1e-3 * everything - 1e-9 * torch.arange(vocab, dtype=torch.double)
    ids = score.topk(min(size, vocab)).indices.sort().values
    inverse = torch.full((vocab,), -1)
    inverse[ids] = torch.arange(len(ids))
    return DraftVocabulary(ids, inverse)


def describe(corpus: Corpus, vocabulary: DraftVocabulary, held_out: Corpus) -> str:
    answers, unseen = corpus.answers(), held_out.answers()
    return json.dumps({"tokens": corpus.num_tokens, "answer_tokens": len(answers), "draft_vocabulary": vocabulary.size,
                       "coverage": round(vocabulary.coverage(answers), 4), "held_out_tokens": len(unseen),
                       "held_out_coverage": round(vocabulary.coverage(unseen), 4)})
