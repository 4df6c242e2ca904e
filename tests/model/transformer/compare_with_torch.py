#!/usr/bin/env python3
"""Compares the program's logits with those of PyTorch (transformers' Llama, float32) on the weights of the same file.

    python3 -m venv venv && venv/bin/pip install torch transformers gguf safetensors numpy
    venv/bin/python tests/model/transformer/compare_with_torch.py ./draftproof build/models/SmolLM2-135M-Instruct.gguf

The program answers two prompts with speculation and writes every row of logits that it verified as a trace; here each
row is computed again from its tokens. Weights are decoded by the package gguf; of the program only tokens and rows are
used. Prints the errors of both arithmetics, and fails where those of f32 are not rounding.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from safetensors.numpy import load_file
from transformers import LlamaConfig, LlamaForCausalLM

PROMPTS = [
    "The ferry left the harbour an hour late, and by the time the island came into sight the ferry left the harbour",
    "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return total / len(values)\n\n\ndef mean(",
]
MEAN_ERROR_MAX = 0.01  # of f32; keys and values are rounded to half precision
NAMES = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}


def halves(weight, heads):
    """GGUF rotates adjacent pairs (2i, 2i + 1) of a head, transformers i and i + half."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def load_model(path):
    reader = GGUFReader(path)
    field = lambda name: reader.fields["llama." + name].contents()
    heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
    tensors = {t.name: dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
    embedding = tensors["token_embd.weight"]
    config = LlamaConfig(
        vocab_size=len(embedding), hidden_size=field("embedding_length"), intermediate_size=field("feed_forward_length"),
        num_hidden_layers=field("block_count"), num_attention_heads=heads, num_key_value_heads=kv_heads, rope_theta=field("rope.freq_base"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"), max_position_embeddings=field("context_length"), tie_word_embeddings="output.weight" not in tensors)
    if hasattr(config, "rope_parameters"):  # transformers 5 reads it there
        config.rope_parameters = {"rope_type": "default", "rope_theta": field("rope.freq_base")}
    state = {"model.embed_tokens.weight": embedding, "model.norm.weight": tensors["output_norm.weight"], "lm_head.weight": tensors.get("output.weight", embedding)}
    for name, tensor in tensors.items():
        if not name.startswith("blk."):
            continue
        _, layer, kind, _ = name.split(".")
        if kind in ("attn_q", "attn_k"):
            tensor = halves(tensor, heads if kind == "attn_q" else kv_heads)
        state[f"model.layers.{layer}.{NAMES[kind]}.weight"] = tensor
    model = LlamaForCausalLM(config).float().eval()
    missing = model.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(t)) for name, t in state.items()}, strict=False)
    if missing.missing_keys or missing.unexpected_keys:
        sys.exit(f"tensors that do not fit: {missing}")
    return model


def verified_rows(program, model_path, arithmetic):
    """Of every row in the traces of the prompts: the tokens before it, and the logits."""
    rows = []
    for prompt in PROMPTS:
        with tempfile.TemporaryDirectory() as folder:
            trace_path = str(pathlib.Path(folder) / "trace.safetensors")
            # A penalty makes the trace hold the histories; its rows are those before penalties.
            subprocess.run(
                [program, "generate", "--model", model_path, "--prompt", prompt, "--drafter", "suffix", "--policy", "fixed:4", "--max-tokens", "16",
                 "--repetition-penalty", "1.02", "--activations", arithmetic, "--trace", trace_path], check=True, stdout=subprocess.DEVNULL)
            trace = load_file(trace_path)
        ends = {name: np.concatenate([[0], trace[name]]) for name in ("cu_num_draft_tokens", "cu_prompt_tokens", "cu_output_tokens")}
        first_row = 0
        for step in range(len(trace["cu_num_draft_tokens"])):
            part = lambda name, cu: list(trace[name][ends[cu][step]:ends[cu][step + 1]]) if name in trace else []
            context = part("prompt_tokens", "cu_prompt_tokens") + part("output_tokens", "cu_output_tokens")
            draft = part("draft_tokens", "cu_num_draft_tokens")
            for i in range(len(draft) + 1):
                rows.append((context + draft[:i], trace["target_logits"][first_row + i]))
            first_row += len(draft) + 1
    return rows


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    torch.manual_seed(0)
    model = load_model(sys.argv[2])
    failed = False
    for arithmetic in ("f32", "int8"):
        errors, equal, divergences = [], 0, []
        rows = verified_rows(sys.argv[1], sys.argv[2], arithmetic)
        for tokens, logits in rows:
            with torch.no_grad():
                expected = model(torch.tensor([[int(t) for t in tokens]])).logits[0, -1].double()
            ours = torch.from_numpy(logits.astype(np.float64))
            errors.append((ours - expected).abs())
            equal += int(ours.argmax() == expected.argmax())
            p, q = expected.log_softmax(-1), ours.log_softmax(-1)
            divergences.append(float((p.exp() * (p - q)).sum()))
        error = torch.stack(errors)
        print(f"{arithmetic}: {len(rows)} rows, top-1 equal in {equal}, |difference| mean {float(error.mean()):.2g} max {float(error.max()):.2g}, KL {np.mean(divergences):.2g}")
        failed |= arithmetic == "f32" and not float(error.mean()) <= MEAN_ERROR_MAX
    if failed:
        sys.exit(f"the mean difference of f32 is above {MEAN_ERROR_MAX}")


if __name__ == "__main__":
    main()
