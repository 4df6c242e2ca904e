"""Does the package `speculators` open what export.py wrote, and do its modules draft the same tokens from it? Does the
program open it for its target?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

# The package's loaders of training data need it; a head needs none.
sys.modules.setdefault("datasets", types.ModuleType("datasets")).load_from_disk = None


def write_verifier(target, folder: Path) -> None:
    """What the package reads of a target: configuration, embeddings, final norm."""
    from transformers import LlamaConfig

    LlamaConfig(hidden_size=target.width, intermediate_size=target.feed_forward, num_hidden_layers=target.layers,
                num_attention_heads=target.heads, num_key_value_heads=target.kv_heads, vocab_size=target.vocab,
                rms_norm_eps=target.rms_epsilon, max_position_embeddings=target.context, tie_word_embeddings=True,
                rope_parameters={"rope_type": "default", "rope_theta": target.rope_base}).save_pretrained(folder)
    save_file({"model.embed_tokens.weight": target.embeddings(), "model.norm.weight": target.final_norm()},
              folder / "model.safetensors")


def opened(exported: Path, verifier: Path, scratch: Path):
    """The head, its config naming a folder here instead of a hub."""
    shutil.copytree(exported, scratch)
    config = json.loads((scratch / "config.json").read_text(encoding="utf-8"))
    config["speculators_config"]["verifier"]["name_or_path"] = str(verifier)
    (scratch / "config.json").write_text(json.dumps(config), encoding="utf-8")
    from speculators import SpeculatorModel

    return SpeculatorModel.from_pretrained(scratch)


def drafts_of(model, kind: str, text, layers: list[int], corpus_layers: list[int]) -> torch.Tensor:
    """[rows, drafts] argmax of each step from every place of a text, by the package's modules, teacher-forced."""
    features = text.features[:, [corpus_layers.index(layer) for layer in layers]].float().flatten(1)[None]
    seen: list[torch.Tensor] = []
    model.lm_head.register_forward_hook(lambda _module, _input, output: seen.append(output[0]))
    config = model.config.transformer_layer_config
    config._attn_implementation = model._attn_impl = "eager"
    from speculators.models.attention import create_float_mask

    model._create_mask_fn = create_float_mask
    n = len(text.tokens)
    with torch.no_grad():
        if kind == "eagle3":
            model(features[:, :-1], text.tokens[None, 1:], torch.zeros(1, n - 1, dtype=torch.long), ttt_steps=3)
            logits = torch.stack(seen, 1)
        else:
            from speculators.models.dflash import core

            anchors = torch.arange(1, n - 8)
            core.select_anchors = lambda *_: (anchors, torch.ones(len(anchors), dtype=torch.bool))
            ones = torch.ones(1, n, dtype=torch.long)
            model._backbone_forward(features, text.tokens[None], ones, torch.zeros(1, n, config.hidden_size), ones - 1,
                                    max_anchors=len(anchors))
            logits = seen[0].view(len(anchors), 8, -1)[:, 1:]
    ids = logits.argmax(-1)
    return ids + model.d2t[ids]


def check(path: Path, build: Path) -> int:
    """Prints a line a head. Returns the exit code: 1 where a tensor or a draft differs."""
    from target import batch_of, open_target, read_corpus

    target = open_target(path)
    held_out = read_corpus(build / target.name / "held_out")
    text = held_out.texts[0]
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        write_verifier(target, scratch / "verifier")
        for exported in sorted((build / target.name).glob("*/exported")):
            kind = json.loads((exported / "config.json").read_text(encoding="utf-8")).get("speculators_model_type")
            served, is_served = acceptance_served(exported, path)
            bad += not is_served
            if kind is None:
                print(f"{exported.parent.name}: not a format of speculators; {served}")
                continue
            model = opened(exported, scratch / "verifier", scratch / exported.parent.name).float().eval()
            state, file = model.state_dict(), load_file(exported / "model.safetensors")
            same = all(torch.equal(state[key].float(), value.float()) for key, value in file.items())
            line = f"{kind}: opened by speculators, {len(file)} tensors {'equal' if same else 'DIFFERENT'}"
            if kind in ("eagle3", "dflash"):
                layers = model.config.eagle_aux_hidden_state_layer_ids if kind == "eagle3" else model.target_layer_ids
                theirs = drafts_of(model, kind, text, layers, held_out.layers)
                ours = own_drafts(exported, kind, target, held_out, batch_of([text]), theirs.shape[1])[: len(theirs)]
                share = float((theirs == ours).float().mean())
                same = same and share > 0.99
                line += f"; {theirs.numel()} drafts, of which {share:.4f} are ours"
            print(f"{line}; {served}")
            bad += not same
        gguf = build / target.name / "eagle3" / "eagle3.gguf"
        if gguf.is_file():
            print(f"{gguf.name}: {gguf.stat().st_size} bytes; {acceptance_of_gguf(gguf, target, held_out)}")
    return 1 if bad else 0


def acceptance_served(exported: Path, target: Path) -> tuple[str, bool]:
    """(what `draftproof acceptance` says of the folder, did it open it): three drafts, two prompts of each kind of
    work."""
    program = Path(__file__).parents[2] / "build" / "release" / "draftproof"
    run = subprocess.run([program, "acceptance", f"head:{exported}", "--model", target, "--per-work", "2", "-k", "3",
                          "--json"],
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return f"NOT OPENED by the program: {run.stderr.strip()}", False
    return f"acceptance length served: {json.loads(run.stdout)['works'][0]['acceptance_length']:.3f}", True


def acceptance_of_gguf(path: Path, target, held_out) -> dict:
    """Held-out acceptance with the weights as their blocks hold them."""
    import numpy as np
    import prompts
    from eagle3 import Eagle3
    from export import GGUF_NAMES
    from gguf import GGUFReader, dequantize
    from target import DraftVocabulary
    from training import acceptance

    tensors = {tensor.name: tensor for tensor in GGUFReader(path).tensors}
    ids = torch.from_numpy(np.array(tensors["d2t"].data))
    inverse = torch.full((target.vocab,), -1)
    inverse[ids] = torch.arange(len(ids))
    head = Eagle3(target, DraftVocabulary(ids, inverse), held_out)
    state = head.state_dict()
    for name, own in GGUF_NAMES.items():
        values = torch.from_numpy(np.array(dequantize(tensors[name].data, tensors[name].tensor_type), dtype=np.float32))
        if name in ("blk.0.attn_q.weight", "blk.0.attn_k.weight"):  # back from the order of neighbours
            values = values.view(target.heads, -1, 2, values.shape[1]).transpose(1, 2).reshape(values.shape)
        state[own] = values
    state["sizes"] = torch.ones_like(head.sizes)
    head.load_state_dict(state)
    return acceptance(head, held_out, [line["work"] for line in prompts.held_out_prompts()])


def own_drafts(exported: Path, kind: str, target, corpus, batch, depth: int) -> torch.Tensor:
    """The same drafts by the head's own file, from the exported weights."""
    import importlib

    from target import DraftVocabulary

    file = load_file(exported / "model.safetensors")
    ids = file.pop("d2t") + torch.arange(len(file["lm_head.weight"]))
    inverse = torch.full((target.vocab,), -1)
    inverse[ids] = torch.arange(len(ids))
    file.pop("t2d")
    file.pop("embed_tokens.weight", None)
    head = getattr(importlib.import_module(kind), {"eagle3": "Eagle3", "dflash": "DFlash"}[kind])(
        target, DraftVocabulary(ids, inverse), corpus)
    state = head.state_dict() | {name: value.float() for name, value in file.items()}
    state["sizes"] = torch.ones_like(head.sizes)  # they are in fc
    head.load_state_dict(state)
    with torch.no_grad():
        drafted, _ = head.eval().drafts(batch, depth)
    return drafted[:, 0].T
