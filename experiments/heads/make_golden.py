"""Golden vectors from other people's code: tiny random heads made, saved and run by the package `speculators`, for
tests/engine/heads. Run in the environment that `./draftproof heads install` makes:

    build/engines/heads/bin/python experiments/heads/make_golden.py

tests/engine/heads/golden/
    target/config.json, model.safetensors    embeddings and final norm of a target of 4 layers, without its layers
    inputs.safetensors           tokens I32 [n], features F16 [n, 3, 64] (behind layers 1, 2, 3)
    eagle3/config.json, model.safetensors    as speculators saved them; d2t are offsets
    eagle3/rows.safetensors      logits F32 [3, rows, 64]: of step s at row i, behind the true pairs (feature j, token
                                 j + 1), j <= i, and the s pairs (own output, token i + 1 + s) of the row's own chain;
                                 drafts I32 [rows, 3]: target ids of the greedy chain at row i
    dflash/config.json, model.safetensors
    dflash/rows.safetensors      anchors I32 [a]; logits F32 [a, block, 64] of the slots, behind the context features of
                                 tokens before the anchor; drafts I32 [a, block - 1]: target ids of slots 1, 2, ...
"""

from __future__ import annotations

import os
import shutil
import sys
import types
from pathlib import Path

# The package's loaders of training data need these two; a head needs neither.
for name in ("datasets",):
    sys.modules.setdefault(name, types.ModuleType(name)).load_from_disk = None

import torch
from safetensors.torch import save_file
from speculators import SpeculatorModel
from speculators.config import SpeculatorsConfig, VerifierConfig
from speculators.models.dflash import DFlashDraftModel, DFlashSpeculatorConfig, core as dflash_core
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from speculators.proposals.greedy import GreedyTokenProposalConfig
from transformers import LlamaConfig, Qwen3Config

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "engine" / "heads" / "golden"
WIDTH, VOCAB, DRAFT_VOCAB, TOKENS, STEPS, BLOCK, MASK = 64, 320, 64, 56, 3, 8, 319
ANCHORS = (1, 2, 7, 16, 17, 31, 40, 48)
LAYERS = [1, 2, 3]


def shape(kind: type, layers: int):
    return kind(hidden_size=WIDTH, intermediate_size=32, num_hidden_layers=layers, num_attention_heads=2,
                num_key_value_heads=1, head_dim=16, vocab_size=VOCAB, rms_norm_eps=1e-5, max_position_embeddings=256,
                rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, attn_implementation="eager")


def speculation(algorithm: str, drafts: int) -> SpeculatorsConfig:
    return SpeculatorsConfig(algorithm=algorithm, default_proposal_method="greedy",
                             proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=drafts)],
                             verifier=VerifierConfig(name_or_path="target", architectures=["LlamaForCausalLM"]))


def randomise(model: torch.nn.Module, embeddings: torch.Tensor, ids: torch.Tensor) -> None:
    """Weights that bfloat16 holds exactly, norms away from 1, and a draft vocabulary of these target ids."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            scale = 0.3 if name == "lm_head.weight" else 1.5 * weight.shape[-1] ** -0.5
            values = 1 + 0.2 * torch.randn(weight.shape) if weight.dim() == 1 else scale * torch.randn(weight.shape)
            weight.copy_(values.bfloat16().float())
        model.embed_tokens.weight.copy_(embeddings)
        if model.t2d is not None:
            model.t2d.copy_(torch.zeros(VOCAB, dtype=torch.bool).scatter(0, ids, True))
            model.d2t.copy_(ids - torch.arange(DRAFT_VOCAB))


def save(model: SpeculatorModel, folder: str) -> None:
    """Saves in bfloat16 by the package's own function, and looks whether its own from_pretrained() opens the same. Computes
    in float32 from here on."""
    shutil.rmtree(folder, ignore_errors=True)
    model.bfloat16().save_pretrained(folder)
    for code in Path(folder).glob("*.py"):  # the package's sources, which it puts beside them
        code.unlink()
    opened = SpeculatorModel.from_pretrained(folder, torch_dtype=torch.bfloat16).state_dict()
    for name, values in model.state_dict().items():
        if not name.startswith("verifier_"):
            assert torch.equal(values, opened[name]), name
    model.float().eval()
    model.rotary_emb.inv_freq = 10000.0 ** (-torch.arange(0, 16, 2).float() / 16)  # which bfloat16() has rounded too


def write_target(embeddings: torch.Tensor) -> None:
    """What the package reads of a target: its configuration, embeddings and final norm."""
    shutil.rmtree("target", ignore_errors=True)
    config = shape(LlamaConfig, 4)
    config.tie_word_embeddings = True
    config.save_pretrained("target")
    save_file({"model.embed_tokens.weight": embeddings.bfloat16(),
               "model.norm.weight": (1 + 0.2 * torch.randn(WIDTH)).bfloat16()}, "target/model.safetensors")


def with_logits(model: torch.nn.Module, run) -> list[torch.Tensor]:
    """What lm_head puts out while `run` runs."""
    seen: list[torch.Tensor] = []
    hook = model.lm_head.register_forward_hook(lambda _module, _input, output: seen.append(output[0].detach().float()))
    with torch.no_grad():
        run()
    hook.remove()
    return seen


def eagle3(features: torch.Tensor, tokens: torch.Tensor, embeddings: torch.Tensor, ids: torch.Tensor) -> None:
    config = Eagle3SpeculatorConfig(
        transformer_layer_config=shape(LlamaConfig, 1), draft_vocab_size=DRAFT_VOCAB, target_hidden_size=WIDTH,
        eagle_aux_hidden_state_layer_ids=LAYERS, speculators_config=speculation("eagle3", STEPS))
    model = Eagle3DraftModel(config)
    randomise(model, embeddings, ids)
    save(model, "eagle3")
    rows = TOKENS - 1
    flat = features.flatten(1)[None, :rows]
    documents = torch.zeros(1, rows, dtype=torch.long)

    def logits_of(pair_tokens: torch.Tensor) -> torch.Tensor:
        return torch.stack(with_logits(model, lambda: model(flat, pair_tokens[None], documents, ttt_steps=STEPS)))

    forced = logits_of(tokens[1:])
    drafts = torch.zeros(rows, STEPS, dtype=torch.int32)
    for i in range(rows):
        chain = tokens[1:].clone()
        for step in range(STEPS):
            token = int(ids[logits_of(chain)[step, i].argmax()])
            drafts[i, step] = token
            if i + step + 1 < rows:
                chain[i + step + 1] = token
    # The chain of a row near the end would need tokens behind it.
    rows -= STEPS
    save_file({"logits": forced[:, :rows].contiguous(), "drafts": drafts[:rows].contiguous()},
              "eagle3/rows.safetensors")


def dflash(features: torch.Tensor, tokens: torch.Tensor, embeddings: torch.Tensor, ids: torch.Tensor) -> None:
    config = DFlashSpeculatorConfig(
        transformer_layer_config=shape(Qwen3Config, 2), draft_vocab_size=DRAFT_VOCAB, block_size=BLOCK,
        target_hidden_size=WIDTH, aux_hidden_state_layer_ids=LAYERS[:2], mask_token_id=MASK,
        speculators_config=speculation("dflash", BLOCK - 1))
    model = DFlashDraftModel(config)
    randomise(model, embeddings, ids)
    save(model, "dflash")
    anchors = torch.tensor(ANCHORS)
    dflash_core.select_anchors = lambda *_: (anchors, torch.ones(len(anchors), dtype=torch.bool))  # instead of random ones
    ones = torch.ones(1, TOKENS, dtype=torch.long)
    (logits,) = with_logits(model, lambda: model._backbone_forward(
        features[:, :2].flatten(1)[None], tokens[None], ones, torch.zeros(1, TOKENS, WIDTH), ones - 1,
        max_anchors=len(anchors)))
    logits = logits.view(len(anchors), BLOCK, DRAFT_VOCAB)
    drafts = ids[logits[:, 1:].argmax(-1)].to(torch.int32)
    save_file({"anchors": anchors.to(torch.int32), "logits": logits.contiguous(), "drafts": drafts.contiguous()},
              "dflash/rows.safetensors")


def main() -> None:
    torch.manual_seed(20261124)
    GOLDEN.mkdir(parents=True, exist_ok=True)
    os.chdir(GOLDEN)  # "target" in the heads' configurations is relative
    features = (3 * torch.randn(TOKENS, len(LAYERS), WIDTH)).half()
    tokens = torch.randint(0, VOCAB - 1, (TOKENS,))
    embeddings = torch.randn(VOCAB, WIDTH).bfloat16()
    ids = torch.randperm(VOCAB - 1)[:DRAFT_VOCAB].sort().values
    save_file({"features": features, "tokens": tokens.to(torch.int32)}, "inputs.safetensors")
    write_target(embeddings)
    eagle3(features.float(), tokens, embeddings.float(), ids)
    dflash(features.float(), tokens, embeddings.float(), ids)
    for path in sorted(GOLDEN.rglob("*")):
        if path.is_file():
            print(f"{path.stat().st_size:8d}  {path.relative_to(GOLDEN)}")


if __name__ == "__main__":
    main()
