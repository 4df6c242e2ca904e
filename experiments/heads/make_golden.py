"""Golden vectors from other people's code: tiny random heads made and run by the modules of the packages below, for
tests/engine/heads. Run in the environment that `./draftproof heads install` makes:

    build/engines/heads/bin/python experiments/heads/make_golden.py

tests/engine/heads/golden/
    target/config.json, model.safetensors    embeddings and final norm of a target of 4 layers, without its layers
    inputs.safetensors           tokens I32 [n], features F16 [n, 3, 64] (behind layers 1, 2, 3; the last also stands
    for the
                                 state behind the final norm)
    HEAD/config.json, model.safetensors      as the package saves them, in bfloat16
    HEAD/rows.safetensors        drafts I32: target ids of the greedy draft; logits F32, which they are the largest of:
        pairs     logits [steps, rows, R], drafts [rows, steps]: at row i behind the true pairs (feature j, token j +
        1), j <= i,
                  and the pairs (own output, draft) of the row's own chain
        blocks    logits [a, slots, R], drafts [a, slots] behind the context features of tokens before anchors I32 [a],
        whose
                  tokens the blocks begin with; of DSpark with the Markov bias of the draft before, and confidences F32
                  [a, slots]
        medusa    logits [heads, n, R], drafts [n, heads]

    eagle1-eagle          EAGLE-1 by its authors' package `eagle-llm` 1.2.1, drafted by its own generate()
    eagle3-speculators    speculators 0.9.0; norm_before_residual off
    peagle-speculators    speculators 0.9.0; the rows of all depths behind every row, of one forward(), which the
                          drafts before are no input of
    eagle3-specforge      SpecForge 0.2.0, a norm for each feature (fc_norm)
    mtp-speculators       speculators 0.9.0. Its training repeats positions and attends to one step at a time; here its
    layer
                          goes on behind the pairs before, as vLLM runs it
    mtp-qwen, mtp-glm     MTP with experts: decoder layers and mixtures of `transformers` 5.24 (Qwen3-MoE with a gated
                          network beside the experts, as Qwen3-Next has it; GLM-4.5, which routes as DeepSeek-V3) under
                          the names of Qwen's and DeepSeek's files, fused and recurrent as vLLM has them
    medusa-medusa         Medusa by its authors' package `medusa-llm` 0.1
    dflash-dflash         z-lab's `dflash` 0.1.0, 2 layers, block 16, logits by the target's matrix
    dflash-speculators    speculators 0.9.0, block 8, a reduced vocabulary
    dflash2-speculators   speculators 0.9.0, block 8, the best 16 of the target's matrix; other logits -inf
    dflash2-dflash        z-lab's `dflash` 0.1.0, block 8, the best 12
    dspark-speculators    speculators 0.9.0, block 7, a reduced vocabulary, confidences that read the Markov embedding
    dspark-specforge      SpecForge 0.2.0, block 7, logits by the target's matrix. Every slot drafts, as it is trained;
    the
                          package's own spec_generate() leaves out slot 0

All keys (behind RoPE) and values are rounded to binary16, as the engine's KV is, so that what is left is float
rounding.
"""

from __future__ import annotations

import os
import shutil
import sys
import types
from pathlib import Path

os.environ["TORCH_COMPILE_DISABLE"] = "1"
sys.path.pop(0)  # the heads of this folder have the names of packages
# The packages' loaders of training data need it; a head needs none.
sys.modules.setdefault("datasets", types.ModuleType("datasets")).load_from_disk = None

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import save_file
from transformers import LlamaConfig, Qwen3Config

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "engine" / "heads" / "golden"
WIDTH, VOCAB, DRAFT_VOCAB, TOKENS, ROWS, MASK = 64, 128, 64, 56, 52, 127
ANCHORS = (1, 2, 7, 16, 17, 31, 40, 48)
LAYERS = [1, 2, 3]


def shape(kind: type, layers: int, **more):
    return kind(hidden_size=WIDTH, intermediate_size=32, num_hidden_layers=layers, num_attention_heads=2,
                num_key_value_heads=1, head_dim=16, vocab_size=VOCAB, rms_norm_eps=1e-5, max_position_embeddings=256,
                rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, attn_implementation="eager", **more)


def randomise(model: torch.nn.Module) -> None:
    """Weights that bfloat16 holds exactly, norms away from 1."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                values = 0.3 * torch.randn(weight.shape)
            elif weight.dim() == 1:
                values = 1 + 0.2 * torch.randn(weight.shape)
            else:
                values = (0.3 if name == "lm_head.weight" else 1.5 *
                          weight.shape[-1] ** -0.5) * torch.randn(weight.shape)
            weight.copy_(values.bfloat16().float())


def round_keys_and_values(model: torch.nn.Module) -> None:
    """The model's values become binary16's, and the keys of every module imported by now."""
    for name, module in model.named_modules():
        if name.endswith("v_proj"):
            module.register_forward_hook(lambda _module, _input, output: output.half().float())
    for module in list(sys.modules.values()):
        rotate = vars(module).get("apply_rotary_pos_emb")
        if rotate is None or hasattr(rotate, "rounds"):
            continue

        def rounding(*arguments, rotate=rotate, **named):
            query, key = rotate(*arguments, **named)
            return query, key.half().float()

        rounding.rounds = True
        module.apply_rotary_pos_emb = rounding


def finish(model: torch.nn.Module) -> None:
    """Computes in float32 from here on, with frequencies that saving in bfloat16 did not round."""
    model.float().eval()
    for module in model.modules():
        if hasattr(module, "inv_freq"):
            size = 2 * len(module.inv_freq)
            module.inv_freq = 10000.0 ** (-torch.arange(0, size, 2).float() / size)
    round_keys_and_values(model)


def write_rows(folder: str, **tensors: torch.Tensor) -> None:
    save_file({name: values.detach().contiguous() for name, values in tensors.items()}, f"{folder}/rows.safetensors")


def fresh(folder: str) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def with_logits(model: torch.nn.Module, run) -> list[torch.Tensor]:
    """What lm_head puts out while `run` runs."""
    seen: list[torch.Tensor] = []
    hook = model.lm_head.register_forward_hook(lambda _module, _input, output: seen.append(output[0].detach().float()))
    run()
    hook.remove()
    return seen


class Inputs:
    """Tokens, features and embeddings, which all heads share, and the target ids of reduced vocabularies."""

    def __init__(self):
        self.features = (3 * torch.randn(TOKENS, len(LAYERS), WIDTH)).half().float()
        self.finals = self.features[:, 2]
        self.tokens = torch.randint(3, VOCAB - 1, (TOKENS,))
        self.embeddings = (0.5 * torch.randn(VOCAB, WIDTH)).bfloat16().float()
        self.embeddings[2] = 0.0  # EAGLE's generate() stops behind token 2: nobody drafts it
        self.ids = torch.randperm(VOCAB - 1)[:DRAFT_VOCAB].sort().values

    def write(self) -> None:
        save_file({"features": self.features.half(), "tokens": self.tokens.to(torch.int32)}, "inputs.safetensors")
        config = shape(LlamaConfig, 4)
        config.tie_word_embeddings = True
        config.save_pretrained(fresh("target"))
        save_file({"model.embed_tokens.weight": self.embeddings.bfloat16(),
                   "model.norm.weight": (1 + 0.2 * torch.randn(WIDTH)).bfloat16()}, "target/model.safetensors")

    def give(self, model: torch.nn.Module) -> None:
        """To a random head: the target's embeddings, and the reduced vocabulary where it has one."""
        randomise(model)
        with torch.no_grad():
            model.embed_tokens.weight.copy_(self.embeddings)
            if getattr(model, "t2d", None) is not None:
                model.t2d.copy_(torch.zeros(VOCAB, dtype=torch.bool).scatter(0, self.ids, True))
                model.d2t.copy_(self.ids - torch.arange(DRAFT_VOCAB))


# --- speculators
# ---------------------------------------------------------------------------------------------------------


def speculation(algorithm: str, drafts: int):
    from speculators.config import SpeculatorsConfig, VerifierConfig
    from speculators.proposals.greedy import GreedyTokenProposalConfig

    return SpeculatorsConfig(algorithm=algorithm, default_proposal_method="greedy",
                             proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=drafts)],
                             verifier=VerifierConfig(name_or_path="target", architectures=["LlamaForCausalLM"]))


def save_speculator(model, folder: str) -> None:
    """Saves by the package's own function, and looks whether its own from_pretrained() opens the same."""
    from speculators import SpeculatorModel

    model.bfloat16().save_pretrained(fresh(folder))
    for code in Path(folder).glob("*.py"):  # the package's sources, which it puts beside them
        code.unlink()
    opened = SpeculatorModel.from_pretrained(folder, torch_dtype=torch.bfloat16).state_dict()
    for name, values in model.state_dict().items():
        if not name.startswith("verifier_"):
            assert torch.equal(values, opened[name]), name
    finish(model)


def eagle3_speculators(inputs: Inputs, steps: int = 3) -> None:
    from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig

    model = Eagle3DraftModel(Eagle3SpeculatorConfig(
        transformer_layer_config=shape(LlamaConfig, 1), draft_vocab_size=DRAFT_VOCAB, target_hidden_size=WIDTH,
        eagle_aux_hidden_state_layer_ids=LAYERS, speculators_config=speculation("eagle3", steps)))
    inputs.give(model)
    save_speculator(model, "eagle3-speculators")
    rows = TOKENS - 1
    flat = inputs.features.flatten(1)[None, :rows]
    documents = torch.zeros(1, rows, dtype=torch.long)
    positions = torch.arange(rows)[None]  # the package begins with 1, where a key's binary16 is another number
    logits, drafts = torch.zeros(steps, ROWS, DRAFT_VOCAB), torch.zeros(ROWS, steps, dtype=torch.int32)
    for i in range(ROWS):
        chain = inputs.tokens[1:].clone()
        for step in range(steps):  # the package takes a text's tokens for the drafts before
            seen = with_logits(model,
                               lambda: model(flat, chain[None], documents, ttt_steps=steps, position_ids=positions))
            logits[step, i] = seen[step][i]
            drafts[i, step] = inputs.ids[logits[step, i].argmax()]
            if i + step + 1 < rows:
                chain[i + step + 1] = drafts[i, step]
    write_rows("eagle3-speculators", logits=logits, drafts=drafts)


def peagle_speculators(inputs: Inputs, steps: int = 4) -> None:
    from speculators.models.peagle import PEagleSpeculatorConfig, core

    torch.manual_seed(20261130)
    model = core.PEagleDraftModel(PEagleSpeculatorConfig(
        transformer_layer_config=shape(LlamaConfig, 2), draft_vocab_size=DRAFT_VOCAB, target_hidden_size=WIDTH,
        eagle_aux_hidden_state_layer_ids=LAYERS, mask_token_id=MASK,
        speculators_config=speculation("peagle", steps)))
    inputs.give(model)
    save_speculator(model, "peagle-speculators")
    rows = TOKENS - 1
    anchors = torch.cat((torch.arange(rows), torch.arange(ROWS).repeat(steps - 1)))
    depths = torch.cat((torch.zeros(rows, dtype=torch.long), torch.arange(1, steps).repeat_interleave(ROWS)))
    core.generate_cod_sample_indices = lambda **_: (anchors, depths)  # every place instead of random ones
    core.compute_metrics = lambda **_: (None, {})
    seen = with_logits(model, lambda: model(
        inputs.features.flatten(1)[None, :rows], inputs.tokens[None, 1:], torch.zeros(1, rows, dtype=torch.long),
        verifier_last_hidden_states=torch.zeros(1, rows, WIDTH)))[0]
    logits = torch.stack([seen[:ROWS], *seen[rows:].split(ROWS)])
    write_rows("peagle-speculators", logits=logits, drafts=inputs.ids[logits.argmax(-1)].T.to(torch.int32))


def mtp_speculators(inputs: Inputs, steps: int = 3) -> None:
    from speculators.models.mtp import MTPDraftModel, MTPSpeculatorConfig

    model = MTPDraftModel(MTPSpeculatorConfig(transformer_layer_config=shape(Qwen3Config, 4),
                                              speculators_config=speculation("mtp", steps)))
    inputs.give(model)
    model.load_verifier_weights()
    assert torch.equal(model.lm_head.weight, inputs.embeddings)
    save_speculator(model, "mtp-speculators")
    first = with_logits(model, lambda: model(inputs.tokens[None], inputs.finals[None]))[0]
    logits, drafts = torch.zeros(steps, ROWS, VOCAB), torch.zeros(ROWS, steps, dtype=torch.int32)
    for i in range(ROWS):
        states, tokens = inputs.finals[None, : i + 1], inputs.tokens[1 : i + 2]
        for step in range(steps):
            n = i + 1 + step
            positions = torch.arange(n)[None]
            out = model.mtp_layers[0](
                hidden_states=states, token_embeddings=model.embed_tokens(tokens)[None],
                attention_mask=torch.full((n, n), -torch.inf).triu(1)[None, None], position_ids=positions,
                position_embeddings=model.rotary_emb(states, positions))
            logits[step, i] = model.lm_head(out[0, -1])
            drafts[i, step] = logits[step, i].argmax()
            states, tokens = torch.cat((states, out[:, -1:]), 1), torch.cat((tokens, drafts[i, step : step + 1]))
        assert torch.allclose(logits[0, i], first[i], atol=1e-4), "the package's own forward() of step 0 is another"
    write_rows("mtp-speculators", logits=logits, drafts=drafts)


# --- transformers
# ----------------------------------------------------------------------------------------------------------


class Mtp(torch.nn.Module):
    """Two norms, a matrix and a decoder layer, saved under the names of a published file's MTP layer."""

    def __init__(self, layer: torch.nn.Module, rotary: torch.nn.Module):
        super().__init__()
        self.embed_norm, self.hidden_norm, self.out_norm = (torch.nn.RMSNorm(WIDTH, eps=1e-5) for _ in range(3))
        self.fuse = torch.nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.layer, self.rotary = layer, rotary

    def forward(self, embeddings: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        n = states.shape[1]
        fused = self.fuse(torch.cat((self.embed_norm(embeddings), self.hidden_norm(states)), -1))
        positions = torch.arange(n)[None]
        return self.layer(fused, attention_mask=torch.full((n, n), -torch.inf).triu(1)[None, None],
                          position_ids=positions, position_embeddings=self.rotary(fused, positions))

    def save(self, folder: str, config, names: dict[str, str], layer: str) -> None:
        config.save_pretrained(fresh(folder))
        tensors = {names[key]: self.get_parameter(f"{key}.weight") for key in names}
        for name, values in self.layer.state_dict().items():
            if name == "mlp.experts.gate_up_proj":
                for i, both in enumerate(values):
                    for part, rows in zip(("gate", "up"), both.chunk(2), strict=True):
                        tensors[f"{layer}.mlp.experts.{i}.{part}_proj.weight"] = rows
            elif name == "mlp.experts.down_proj":
                for i, rows in enumerate(values):
                    tensors[f"{layer}.{name[:-9]}{i}.down_proj.weight"] = rows
            else:
                tensors[f"{layer}.{name}"] = values
        save_file({name: values.detach().bfloat16().contiguous() for name, values in tensors.items()},
                  f"{folder}/model.safetensors")


def mtp_transformers(inputs: Inputs, kind: str, steps: int = 2) -> None:
    from transformers.models.glm4_moe import modeling_glm4_moe as glm
    from transformers.models.qwen3_moe import modeling_qwen3_moe as qwen
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextSparseMoeBlock

    is_qwen = kind == "qwen"
    experts = dict(moe_intermediate_size=32, norm_topk_prob=True, num_experts_per_tok=3)
    if is_qwen:
        config = shape(qwen.Qwen3MoeConfig, 4, num_experts=5, shared_expert_intermediate_size=64,
                       mtp_num_hidden_layers=1, **experts)
        layer, rotary = qwen.Qwen3MoeDecoderLayer(config, 0), qwen.Qwen3MoeRotaryEmbedding(config)
        layer.mlp = Qwen3NextSparseMoeBlock(config)
        names = {"embed_norm": "mtp.pre_fc_norm_embedding.weight", "hidden_norm": "mtp.pre_fc_norm_hidden.weight",
                 "fuse": "mtp.fc.weight", "out_norm": "mtp.norm.weight"}
        prefix = "mtp.layers.0"
    else:
        config = shape(glm.Glm4MoeConfig, 4, n_routed_experts=8, n_shared_experts=2, n_group=4, topk_group=2,
                       routed_scaling_factor=2.5, first_k_dense_replace=0, use_qk_norm=True,
                       num_nextn_predict_layers=1, **experts)
        config.rope_parameters["partial_rotary_factor"] = 1.0
        layer, rotary = glm.Glm4MoeDecoderLayer(config, 0), glm.Glm4MoeRotaryEmbedding(config)
        prefix = "model.layers.4"
        names = {"embed_norm": f"{prefix}.enorm.weight", "hidden_norm": f"{prefix}.hnorm.weight",
                 "fuse": f"{prefix}.eh_proj.weight", "out_norm": f"{prefix}.shared_head.norm.weight"}
    model = Mtp(layer, rotary)
    randomise(model)
    if not is_qwen:  # a buffer, which balances the experts
        layer.mlp.gate.e_score_correction_bias.copy_((0.3 * torch.randn(8)).bfloat16().float())
    model.save(f"mtp-{kind}", config, names, prefix)
    finish(model)
    logits, drafts = torch.zeros(steps, ROWS, VOCAB), torch.zeros(ROWS, steps, dtype=torch.int32)
    for i in range(ROWS):
        states, tokens = inputs.finals[None, : i + 1], inputs.tokens[1 : i + 2]
        for step in range(steps):
            embeddings = F.embedding(tokens, inputs.embeddings)[None]
            if not is_qwen:
                embeddings[:, 0] = 0.0  # of the pair at position 0
            out = model(embeddings, states)
            normed = model.out_norm(out)
            logits[step, i] = normed[0, -1] @ inputs.embeddings.T
            drafts[i, step] = logits[step, i].argmax()
            states = torch.cat((states, (normed if is_qwen else out)[:, -1:]), 1)
            tokens = torch.cat((tokens, drafts[i, step : step + 1]))
    write_rows(f"mtp-{kind}", logits=logits, drafts=drafts)


def blocks_speculators(inputs: Inputs, algorithm: str, block: int) -> None:
    from speculators.models.dflash import DFlashDraftModel, DFlashSpeculatorConfig, core
    from speculators.models.dspark import DSparkDraftModel, DSparkSpeculatorConfig

    is_dspark = algorithm == "dspark"
    more = {"markov_rank": 32} if is_dspark else {}
    config = (DSparkSpeculatorConfig if is_dspark else DFlashSpeculatorConfig)(
        transformer_layer_config=shape(Qwen3Config, 2), draft_vocab_size=DRAFT_VOCAB, block_size=block,
        target_hidden_size=WIDTH, aux_hidden_state_layer_ids=LAYERS[:2], mask_token_id=MASK,
        speculators_config=speculation(algorithm, block - (not is_dspark)), **more)
    model = (DSparkDraftModel if is_dspark else DFlashDraftModel)(config)
    inputs.give(model)
    folder = f"{algorithm}-speculators"
    save_speculator(model, folder)
    anchors = torch.tensor(ANCHORS)
    core.select_anchors = lambda *_: (anchors, torch.ones(len(anchors), dtype=torch.bool))  # instead of random ones
    ones = torch.ones(1, TOKENS, dtype=torch.long)
    hidden, logits, *_ = model._backbone_forward(
        inputs.features[:, :2].flatten(1)[None], inputs.tokens[None], ones, torch.zeros(1, TOKENS, WIDTH), ones - 1,
        max_anchors=len(anchors))
    logits, hidden = logits.view(len(anchors), block, -1), hidden.view(len(anchors), block, -1)
    if not is_dspark:
        logits = logits[:, 1:]
        drafts = inputs.ids[logits.argmax(-1)].to(torch.int32)
        write_rows(folder, anchors=anchors.to(torch.int32), logits=logits, drafts=drafts)
        return
    before, rows, drafts, confidences = inputs.tokens[anchors], [], [], []
    for slot in range(block):
        state = hidden[:, slot : slot + 1]
        bias = model.markov_head.block_bias(prev_token_ids=before[:, None], hidden_states=state)
        embedded = model.markov_head.prev_embeddings(before)[:, None]
        confidences.append(model.confidence_head(torch.cat((state, embedded), -1)).sigmoid())
        rows.append(logits[:, slot] + bias[:, 0])
        before = inputs.ids[rows[-1].argmax(-1)]
        drafts.append(before.to(torch.int32))
    write_rows(folder, anchors=anchors.to(torch.int32), logits=torch.stack(rows, 1), drafts=torch.stack(drafts, 1),
               confidences=torch.cat(confidences, 1))


# --- SpecForge
# -----------------------------------------------------------------------------------------------------------


def eagle3_specforge(inputs: Inputs, steps: int = 5) -> None:
    from specforge.modeling.draft.llama3_eagle import LlamaForCausalLMEagle3

    model = LlamaForCausalLMEagle3(shape(LlamaConfig, 1, draft_vocab_size=DRAFT_VOCAB, fc_norm=True, eagle_config={
        "eagle_aux_hidden_state_layer_ids": LAYERS}, architectures=["LlamaForCausalLMEagle3"]))
    inputs.give(model)
    model.bfloat16().save_pretrained(fresh("eagle3-specforge"))
    finish(model)
    for module in model.modules():  # sines and cosines of rounded frequencies
        if hasattr(module, "_set_cos_sin_cache"):
            module._set_cos_sin_cache(256, torch.device("cpu"), torch.float32)
    cache: list[list[torch.Tensor]] = [[], []]
    hidden = model.project_hidden_states(inputs.features.flatten(1)[None, :ROWS])
    tokens, positions = inputs.tokens[None, 1 : ROWS + 1], torch.arange(ROWS)[None]
    mask = model.prepare_decoder_attention_mask(torch.ones(1, ROWS, dtype=torch.bool), hidden, 1, ROWS, 0)
    logits, drafts = [], []
    for _ in range(steps):  # every place goes on with its own draft
        hidden = model.backbone(model.embed_input_ids(tokens), hidden, cache, mask, positions)
        logits.append(model.compute_logits(hidden)[0])
        tokens = inputs.ids[logits[-1].argmax(-1)][None]
        drafts.append(tokens[0].to(torch.int32))
    write_rows("eagle3-specforge", logits=torch.stack(logits), drafts=torch.stack(drafts, 1))


def dspark_specforge(inputs: Inputs, block: int = 7) -> None:
    from specforge.modeling.draft.dspark import DSparkDraftModel

    model = DSparkDraftModel(shape(Qwen3Config, 2, block_size=block, num_target_layers=4, dflash_config={
        "mask_token_id": MASK, "target_layer_ids": [0, 1], "markov_rank": 32, "enable_confidence_head": True,
        "confidence_head_with_markov": False}))
    randomise(model)
    model.bfloat16().save_pretrained(fresh("dspark-specforge"))
    finish(model)
    rows, drafts, confidences = [], [], []
    for anchor in ANCHORS:
        hidden = block_states(model, inputs, anchor, block, is_causal=False)
        tokens, logits = model.markov_head.sample_block_tokens(
            hidden @ inputs.embeddings.T, first_prev_token_ids=inputs.tokens[anchor][None], hidden_states=hidden)
        rows.append(logits[0])
        drafts.append(tokens[0].to(torch.int32))
        confidences.append(model.predict_confidence(hidden).sigmoid()[0])
    write_rows("dspark-specforge", anchors=torch.tensor(ANCHORS, dtype=torch.int32), logits=torch.stack(rows),
               drafts=torch.stack(drafts), confidences=torch.stack(confidences))


# --- DFlash, EAGLE-1 and Medusa of their authors
# ---------------------------------------------------------------------------


def block_states(model, inputs: Inputs, anchor: int, block: int, **more) -> torch.Tensor:
    """[1, block, width] of z-lab's and SpecForge's forward(): the anchor's token and masks behind all states before
    it."""
    tokens = torch.full((1, block), MASK)
    tokens[0, 0] = inputs.tokens[anchor]
    return model(position_ids=torch.arange(anchor + block)[None],
                 noise_embedding=F.embedding(tokens, inputs.embeddings),
                 target_hidden=inputs.features[None, :anchor, :2].flatten(2), **more)


def dflash_dflash(inputs: Inputs, block: int = 16) -> None:
    from dflash.model import DFlashDraftModel

    model = DFlashDraftModel(shape(Qwen3Config, 2, block_size=block, num_target_layers=4,
                                   dflash_config={"mask_token_id": MASK, "target_layer_ids": [0, 1]}))
    randomise(model)
    model.bfloat16().save_pretrained(fresh("dflash-dflash"))
    finish(model)
    head = torch.nn.Linear(WIDTH, VOCAB, bias=False)
    head.weight.data.copy_(inputs.embeddings)
    logits = torch.stack([model.compute_logits(block_states(model, inputs, anchor, block), head)[0, 1:]
                          for anchor in ANCHORS])
    write_rows("dflash-dflash", anchors=torch.tensor(ANCHORS, dtype=torch.int32), logits=logits,
               drafts=logits.argmax(-1).to(torch.int32))


def selected(scores: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    """Scores [a, k] of candidates [a, k] as rows [a, VOCAB], -inf elsewhere."""
    return torch.full((len(scores), VOCAB), -torch.inf).scatter(-1, candidates, scores)


def dflash2_speculators(inputs: Inputs, block: int = 8) -> None:
    from speculators.models.dflash import core
    from speculators.models.dflash2 import DFlash2DraftModel, DFlash2SpeculatorConfig

    model = DFlash2DraftModel(DFlash2SpeculatorConfig(
        transformer_layer_config=shape(Qwen3Config, 2), draft_vocab_size=VOCAB, block_size=block,
        target_hidden_size=WIDTH, aux_hidden_state_layer_ids=LAYERS[:2], mask_token_id=MASK, selector_rank=32,
        speculators_config=speculation("dflash2", block - 1)))
    inputs.give(model)
    model.load_verifier_weights()
    assert torch.equal(model.lm_head.weight, inputs.embeddings)
    save_speculator(model, "dflash2-speculators")
    anchors = torch.tensor(ANCHORS)
    core.select_anchors = lambda *_: (anchors, torch.ones(len(anchors), dtype=torch.bool))
    ones = torch.ones(1, TOKENS, dtype=torch.long)
    hidden, logits, *_ = model._backbone_forward(
        inputs.features[:, :2].flatten(1)[None], inputs.tokens[None], ones, torch.zeros(1, TOKENS, WIDTH), ones - 1,
        max_anchors=len(anchors))
    logits, hidden = logits.view(len(anchors), block, -1), hidden.view(len(anchors), block, -1)
    before, rows, drafts = inputs.tokens[anchors], [], []
    for slot in range(1, block):
        candidates, scores = model.candidate_selector.select(logits[:, slot], hidden[:, slot], before)
        rows.append(selected(scores, candidates))
        before = rows[-1].argmax(-1)
        drafts.append(before.to(torch.int32))
    write_rows("dflash2-speculators", anchors=anchors.to(torch.int32), logits=torch.stack(rows, 1),
               drafts=torch.stack(drafts, 1))


def dflash2_dflash(inputs: Inputs, block: int = 8) -> None:
    from dflash.model import DFlash2DraftModel

    model = DFlash2DraftModel(shape(Qwen3Config, 2, block_size=block, num_target_layers=4, dflash_config={
        "mask_token_id": MASK, "target_layer_ids": [0, 1], "conv_kernel_size": 3, "conv_group_size": 8,
        "selector_rank": 32, "selector_top_k": 12}))
    randomise(model)
    model.bfloat16().save_pretrained(fresh("dflash2-dflash"))
    finish(model)
    head = torch.nn.Linear(WIDTH, VOCAB, bias=False)
    head.weight.data.copy_(inputs.embeddings)
    selector, rows, drafts = model.candidate_selector, [], []
    for anchor in ANCHORS:
        hidden = block_states(model, inputs, anchor, block)[:, 1:]
        before = inputs.tokens[anchor][None]
        tokens, candidates, _ = model.propose(hidden, before, head, 0.0)
        logits, projected = model.compute_logits(hidden, head), selector.hidden_projection(hidden)
        for slot, token in enumerate(tokens[0]):  # the scores that it ranks by, which propose() keeps to itself
            successors = selector.successor_codebook(candidates[0, slot])
            scores = logits[0, slot, candidates[0, slot]] + successors @ (
                selector.predecessor_codebook(before)[0] * projected[0, slot])
            rows.append(selected(scores[None], candidates[:, slot])[0])
            assert rows[-1].argmax() == token
            before = token[None]
        drafts.append(tokens[0].to(torch.int32))
    write_rows("dflash2-dflash", anchors=torch.tensor(ANCHORS, dtype=torch.int32),
               logits=torch.stack(rows).view(len(ANCHORS), block - 1, VOCAB), drafts=torch.stack(drafts))


def eagle1_eagle(inputs: Inputs, steps: int = 4) -> None:
    # of the library's time, which nothing here calls
    if not hasattr(transformers.pytorch_utils, "ALL_LAYERNORM_LAYERS"):
        transformers.pytorch_utils.ALL_LAYERNORM_LAYERS = []
    from eagle.model.cnets import Model
    from eagle.model.configs import EConfig

    config = EConfig(vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=32, num_hidden_layers=1,
                     num_attention_heads=4,
                     num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5, bias=True)
    # The library's configurations of today no longer say None for RoPE without scaling.
    model = Model(types.SimpleNamespace(**{**config.to_dict(), "rope_scaling": None}), bias=True)
    inputs.give(model)
    config.save_pretrained(fresh("eagle1-eagle"))
    save_file(model.bfloat16().state_dict(), "eagle1-eagle/model.safetensors")
    finish(model)
    model.reset()
    for module in model.modules():
        if hasattr(module, "_set_cos_sin_cache"):
            module._set_cos_sin_cache(256, torch.device("cpu"), torch.float32)
    logits, drafts = torch.zeros(steps, ROWS, VOCAB), torch.zeros(ROWS, steps, dtype=torch.int32)
    for i in range(ROWS):
        seen: list[torch.Tensor] = []

        def head(state: torch.Tensor) -> torch.Tensor:
            seen.append(state[0] @ inputs.embeddings.T)
            return seen[-1]

        written = model.generate(inputs.finals[None, : i + 1], inputs.tokens[None, : i + 2], head, steps,
                                 use_cache=True)
        logits[:, i] = torch.stack(seen)
        drafts[i] = torch.tensor(written[i + 2 :])
    write_rows("eagle1-eagle", logits=logits, drafts=drafts)


def medusa_medusa(inputs: Inputs, heads: int = 3) -> None:
    from medusa.model import medusa_model

    class Base(torch.nn.Module):
        """A target whose states are those given."""

        def __init__(self):
            super().__init__()
            self.lm_head = torch.nn.Linear(WIDTH, VOCAB, bias=False)
            self.config, self.dtype, self.device = None, torch.float32, torch.device("cpu")
            self.model = lambda **_: (inputs.finals,)

    medusa_model.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda _path: None)
    model = medusa_model.MedusaModel(Base(), medusa_num_heads=heads)
    randomise(model.medusa_head)
    medusa_model.MedusaConfig(medusa_num_heads=heads, base_model_name_or_path="target").save_pretrained(
        fresh("medusa-medusa"))
    save_file({name: values.bfloat16() for name, values in model.medusa_head.state_dict().items()},
              "medusa-medusa/model.safetensors")
    logits = model()
    write_rows("medusa-medusa", logits=logits.clone(), drafts=logits.argmax(-1).T.to(torch.int32))


def main() -> None:
    torch.manual_seed(20261124)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir(parents=True)
    os.chdir(GOLDEN)  # "target" in the heads' configurations is relative
    inputs = Inputs()
    inputs.write()
    with torch.no_grad():
        eagle3_speculators(inputs)
        blocks_speculators(inputs, "dflash", 8)
        blocks_speculators(inputs, "dspark", 7)
        mtp_speculators(inputs)
        eagle3_specforge(inputs)
        dspark_specforge(inputs)
        dflash_dflash(inputs)
        eagle1_eagle(inputs)
        medusa_medusa(inputs)
        mtp_transformers(inputs, "qwen")
        mtp_transformers(inputs, "glm")
        peagle_speculators(inputs)  # this and those behind it have seeds of their own
        for head in (dflash2_speculators, dflash2_dflash):
            torch.manual_seed(3 if head is dflash2_speculators else 2)
            head(inputs)
    files = [path for path in sorted(GOLDEN.rglob("*")) if path.is_file()]
    for path in files:
        print(f"{path.stat().st_size:8d}  {path.relative_to(GOLDEN)}")
    print(f"{sum(path.stat().st_size for path in files):8d}  in all")


if __name__ == "__main__":
    main()
