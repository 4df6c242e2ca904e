#!/usr/bin/env python3
"""Compares the program's logits with those of PyTorch (transformers' Llama, float32) on the weights of the same file.

    python3 -m venv venv && venv/bin/pip install torch transformers gguf safetensors numpy
    venv/bin/python tests/engine/transformer/compare_with_torch.py ./draftproof build/models/SmolLM2-135M-Instruct.gguf

Every row of logits that the program verified (verified_rows.py) is computed again from its tokens. Weights are decoded
by the package gguf; of the program only tokens and rows are used. Prints the errors of both arithmetics, and fails
where those of f32 are not rounding. The bits of int8 are judged by compare_with_numpy.py.
"""

import sys

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from transformers import LlamaConfig, LlamaForCausalLM
from verified_rows import differences, verified_steps

MEAN_ERROR_MAX = 0.01  # of f32; keys and values are rounded to half precision
NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def halves(weight, heads):
    """GGUF rotates adjacent pairs (2i, 2i + 1) of a head, transformers i and i + half."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def load_model(path):
    reader = GGUFReader(path)
    def field(name):
        return reader.fields["llama." + name].contents()
    heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
    tensors = {t.name: dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
    embedding = tensors["token_embd.weight"]
    config = LlamaConfig(
        vocab_size=len(embedding), hidden_size=field("embedding_length"),
        intermediate_size=field("feed_forward_length"),
        num_hidden_layers=field("block_count"), num_attention_heads=heads, num_key_value_heads=kv_heads,
        rope_theta=field("rope.freq_base"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"), max_position_embeddings=field("context_length"),
        tie_word_embeddings="output.weight" not in tensors)
    if hasattr(config, "rope_parameters"):  # transformers 5 reads it there
        config.rope_parameters = {"rope_type": "default", "rope_theta": field("rope.freq_base")}
    state = {"model.embed_tokens.weight": embedding, "model.norm.weight": tensors["output_norm.weight"],
             "lm_head.weight": tensors.get("output.weight", embedding)}
    for name, tensor in tensors.items():
        if not name.startswith("blk."):
            continue
        _, layer, kind, _ = name.split(".")
        if kind in ("attn_q", "attn_k"):
            tensor = halves(tensor, heads if kind == "attn_q" else kv_heads)
        state[f"model.layers.{layer}.{NAMES[kind]}.weight"] = tensor
    model = LlamaForCausalLM(config).float().eval()
    missing = model.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(t)) for name, t in state.items()},
                                    strict=False)
    if missing.missing_keys or missing.unexpected_keys:
        sys.exit(f"tensors that do not fit: {missing}")
    return model


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.manual_seed(0)
    model = load_model(sys.argv[2])
    failed = False
    for arithmetic in ("f32", "int8"):
        compared = []
        for context, draft, rows in verified_steps(sys.argv[1], sys.argv[2], arithmetic):
            with torch.no_grad():
                expected = model(torch.tensor([[int(t) for t in context + draft]])).logits[0, -len(rows):].numpy()
            compared += zip(rows, expected)
        text, mean = differences(compared)
        print(f"{arithmetic}: {text}")
        failed |= arithmetic == "f32" and not mean <= MEAN_ERROR_MAX
    if failed:
        sys.exit(f"the mean difference of f32 is above {MEAN_ERROR_MAX}")


if __name__ == "__main__":
    main()
