"""A trained head as the files that engines read.

    eagle3, dflash, mtp   `speculators`' folder (vLLM's): config.json, model.safetensors
    eagle1                EAGLE's own: config.json of a Llama, model.safetensors; embeddings and lm_head are the
    target's eagle1, mtp also      token_map.json, {"token_map": [ids]}: the program drafts from these rows of lm_head
    alone medusa                vLLM's names: blocks.{i}.layers.0, lm_heads.{i}, token_map
    eagle3 also           one GGUF file, as llama.cpp's converter writes it (d2t holds absolute ids there, q and k rows
    are
                          in the order of neighbours), in blocks of Q4_0 to Q8_0
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFWriter, quantize
from safetensors.torch import save_file

VERIFIER = "HuggingFaceTB/SmolLM2-135M-Instruct"
SPECULATORS = "0.9.0"


def transformer_config(head, model_type: str, layers: int, kv_heads: int) -> dict:
    target = head.target
    return {"model_type": model_type, "hidden_size": target.width, "intermediate_size": target.feed_forward,
            "num_hidden_layers": layers, "num_attention_heads": target.heads, "num_key_value_heads": kv_heads,
            "head_dim": target.head_size, "vocab_size": target.vocab, "rms_norm_eps": round(target.rms_epsilon, 12),
            "max_position_embeddings": target.context, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": target.rope_base}, "tie_word_embeddings": False}


def speculators_config(head, drafts: int) -> dict:
    name = head.format
    config = {
        "architectures": [{"eagle3": "Eagle3DraftModel", "dflash": "DFlashDraftModel", "mtp": "MTPDraftModel"}[name]],
        "speculators_model_type": name, "speculators_version": SPECULATORS, "tie_word_embeddings": False,
        "dtype": "bfloat16",
        "speculators_config": {
            "algorithm": name, "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": drafts, "verifier_accept_k": 1,
                                  "accept_tolerance": 0.0}],
            "verifier": {"name_or_path": VERIFIER, "architectures": ["LlamaForCausalLM"]}},
    }
    if name == "mtp":  # its config is the target's; the head's layer stands behind the target's last
        return {**config, "transformer_layer_config": transformer_config(head, "qwen3", head.target.layers,
                head.target.kv_heads), "num_nextn_predict_layers": 1}
    config |= {"draft_vocab_size": head.vocabulary.size, "target_hidden_size": head.target.width}
    if name == "eagle3":
        return {**config, "transformer_layer_config": transformer_config(head, "llama", 1, head.target.heads),
                "norm_before_residual": False, "norm_before_fc": False, "fc_norm": False, "norm_output": False,
                "embed_requires_grad": False, "eagle_aux_hidden_state_layer_ids": head.feature_layers}
    return {**config, "transformer_layer_config": transformer_config(head, "qwen3", len(head.layers),
            head.target.kv_heads),
            "block_size": drafts + 1, "aux_hidden_state_layer_ids": head.feature_layers,
            "mask_token_id": head.mask_token, "sample_from_anchor": False, "sliding_window_non_causal": False}


def vocabulary_map(head) -> dict[str, torch.Tensor]:
    ids = head.vocabulary.ids
    t2d = torch.zeros(head.target.vocab, dtype=torch.bool)
    t2d[ids] = True
    return {"d2t": ids - torch.arange(len(ids)), "t2d": t2d}


def write_folder(folder: Path, config: dict, tensors: dict[str, torch.Tensor]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file({name: (value.bfloat16() if value.is_floating_point() else value).contiguous()
               for name, value in tensors.items()}, folder / "model.safetensors")
    return [folder / "config.json", folder / "model.safetensors"]


def export(head, folder: Path) -> list[Path]:
    """Writes folder/exported, of EAGLE-3 also folder/eagle3.gguf. Returns the files."""
    tensors, drafts = head.tensors(), {"dflash": 7}.get(head.format, 3)
    out = folder / "exported"
    if head.format in ("eagle3", "dflash"):
        if head.format == "eagle3":
            # As the package saves it. Where it is missing, version 0.9.0 takes whatever its memory holds for the
            # embeddings,
            # unless that happens to have a NaN: one of three runs of `heads check` drafted nonsense.
            tensors["embed_tokens.weight"] = head.embeddings
        written = write_folder(out, speculators_config(head, drafts), tensors | vocabulary_map(head))
        if head.format == "eagle3":
            written.append(write_gguf(head, folder / "eagle3.gguf"))
        return written
    if head.format in ("mtp", "eagle1"):
        config = speculators_config(head, drafts) if head.format == "mtp" else {
            "architectures": ["LlamaForCausalLM"], **transformer_config(head, "llama", 1, head.target.kv_heads),
            "rope_theta": head.target.rope_base, "bias": False}
        if head.format == "mtp":  # speculators keeps the target's embeddings and lm_head in the file
            tensors |= {"embed_tokens.weight": head.embeddings, "lm_head.weight": head.embeddings.clone()}
        written = write_folder(out, config, tensors)
        written.append(out / "token_map.json")
        written[-1].write_text(json.dumps({"token_map": head.vocabulary.ids.tolist()}) + "\n", encoding="utf-8")
        return written
    config = {"model_type": "medusa", "architectures": ["MedusaModel"], "num_heads": len(head.blocks),
              "num_hidden_layers": 1, "hidden_size": head.target.width, "vocab_size": head.target.vocab,
              "truncated_vocab_size": head.vocabulary.size, "original_lm_head": False, "medusa_fc_bias": True}
    return write_folder(out, config, tensors | {"token_map": head.vocabulary.ids.clone()})


LAYER = "layers.0."
#: Tensors of llama.cpp's EAGLE-3 and ours.
GGUF_NAMES = {
    "fc.weight": "fc.weight", "output_norm.weight": "norm.weight", "output.weight": "lm_head.weight",
    "blk.0.attn_norm.weight": LAYER + "input_layernorm.weight",
    "blk.0.attn_norm_2.weight": LAYER + "hidden_norm.weight",
    "blk.0.attn_q.weight": LAYER + "self_attn.q_proj.weight", "blk.0.attn_k.weight": LAYER + "self_attn.k_proj.weight",
    "blk.0.attn_v.weight": LAYER + "self_attn.v_proj.weight",
    "blk.0.attn_output.weight": LAYER + "self_attn.o_proj.weight",
    "blk.0.ffn_norm.weight": LAYER + "post_attention_layernorm.weight",
    "blk.0.ffn_gate.weight": LAYER + "mlp.gate_proj.weight", "blk.0.ffn_up.weight": LAYER + "mlp.up_proj.weight",
    "blk.0.ffn_down.weight": LAYER + "mlp.down_proj.weight",
}


def neighbours(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Q or K rows in the order of GGUF, in which RoPE rotates neighbours."""
    return rows.view(heads, 2, -1, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def write_gguf(head, path: Path, kind: GGMLQuantizationType = GGMLQuantizationType.Q5_0,
               lm_head_kind: GGMLQuantizationType = GGMLQuantizationType.Q5_0) -> Path:
    target, tensors = head.target, head.tensors()
    writer = GGUFWriter(path, "eagle3")
    writer.add_name(f"{target.name} EAGLE-3")
    writer.add_license("apache-2.0")
    writer.add_block_count(1)
    writer.add_context_length(target.context)
    writer.add_embedding_length(target.width)
    writer.add_feed_forward_length(target.feed_forward)
    writer.add_head_count(target.heads)
    writer.add_head_count_kv(target.heads)
    writer.add_key_length(target.head_size)
    writer.add_value_length(target.head_size)
    writer.add_layer_norm_rms_eps(target.rms_epsilon)
    writer.add_rope_freq_base(target.rope_base)
    writer.add_rope_dimension_count(target.head_size)
    writer.add_vocab_size(target.vocab)
    for name in ("extract_layers", "target_layers"):  # as llama.cpp's converter called it first, and calls it now
        writer.add_array(f"eagle3.{name}", head.feature_layers)
    writer.add_uint32("eagle3.target_hidden_size", target.width)
    writer.add_bool("eagle3.norm_before_residual", False)
    for name, own in GGUF_NAMES.items():
        values = tensors[own].float()
        if name in ("blk.0.attn_q.weight", "blk.0.attn_k.weight"):
            values = neighbours(values, target.heads)
        if values.dim() == 1:
            writer.add_tensor(name, values.numpy())
        else:
            of = lm_head_kind if name == "output.weight" else kind
            writer.add_tensor(name, quantize(values.contiguous().numpy(), of), raw_dtype=of)
    writer.add_tensor("d2t", head.vocabulary.ids.numpy().astype(np.int64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
