"""`generate` with a model's own MTP layers: tiny models with random weights, whole: forward passes, caches, drafts, verification.

A row of a case names one of the prompts; the string that follows is judged by the probabilities that the model gives without drafts."""

import numpy as np
import strings
import torch
from component import Component, mixed
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, GenerationConfig, Glm4MoeConfig, Glm4MoeForCausalLM
from transformers.modeling_layers import MtpModel

SIZE = {"vocab_size": strings.TOKENS, "hidden_size": 32, "intermediate_size": 32, "moe_intermediate_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "first_k_dense_replace": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
        "n_group": 1, "topk_group": 1, "max_position_embeddings": 128, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
DEEPSEEK = {"kv_lora_rank": 16, "q_lora_rank": None, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
PROMPTS = 8


def with_weights(model, scale):
    """Random weights large enough for rows that are far from flat."""
    generator = torch.Generator().manual_seed(64)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, scale / parameter.shape[-1] ** 0.5, generator=generator)
    return model.eval()


class Speculation:
    """A model and its MTP layers; steps of `layers` drafts."""

    def __init__(self, kind, config, layers):
        config.num_mtp_layers = layers
        self.model, self.layers, self.rows = with_weights(kind(config), 2.0), layers, {}
        self.mtp = with_weights(MtpModel(self.model, layers), 2.0)
        self.mtp.tie_with_main_model(self.model)

    def prompt(self, row):
        """[1, PROMPT]: of a row that names it by its first number."""
        return torch.randint(strings.TOKENS, (1, strings.PROMPT), generator=torch.Generator().manual_seed(int(row[0])))

    def target(self, row, string):
        """Logits [TOKENS] after prompt and string, by a forward pass of its own."""
        key = (int(row[0]), string)
        if key not in self.rows:
            with torch.no_grad():
                tokens = torch.cat([self.prompt(row), torch.tensor([string], dtype=torch.long)], dim=1)
                self.rows[key] = self.model(tokens, use_cache=False).logits[0, -1].float().numpy()
        return self.rows[key]

    def distribution(self, logits, params):
        return strings.distribution(logits, params, self.target)

    def __call__(self, logits, params, seeds):
        assert logits.shape[1] == strings.TOKENS ** strings.LENGTH, "no row of strings"
        MtpModel.from_pretrained = lambda *a, **k: self.mtp  # there is no checkpoint
        tokens = []
        for row, seed, temperature, top_k, top_p in zip(logits, seeds, params["temperature"], params["top_k"], params["top_p"]):
            sampled = {"temperature": float(temperature), "top_k": int(top_k), "top_p": float(top_p)} if temperature > 0.0 else {}
            torch.manual_seed(mixed(seed))
            config = GenerationConfig(do_sample=bool(sampled), max_new_tokens=strings.LENGTH + self.layers, use_mtp=True, pad_token_id=0, **sampled)
            prompt = self.prompt(row)
            out = self.model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=config)[0, strings.PROMPT:]
            tokens.append(strings.at(tuple(out[:strings.LENGTH].tolist())))
        return np.array(tokens)


def components():
    file = "generation/candidate_generator.py, modeling_layers.py"
    note = (f"models of one layer without experts, width 32 and {strings.TOKENS} tokens with random weights, whose rows are those of a forward pass without cache; a draw is "
            f"the first {strings.LENGTH} tokens of `generate`")
    made = (("GLM 4, two MTP layers", Glm4MoeForCausalLM, Glm4MoeConfig(**SIZE), 2),
            ("DeepSeek V3, one MTP layer", DeepseekV3ForCausalLM, DeepseekV3Config(**SIZE, **DEEPSEEK), 1))
    for name, kind, config, layers in made:
        run = Speculation(kind, config, layers)
        yield Component(f"MTP: {name}", file, "GenerationMixin.generate with use_mtp: MTPCandidateGenerator, MtpModel, _speculative_sampling", "sample", run,
                        tv=0.2, options=strings.options_of_prompts(run.distribution, PROMPTS), note=note)
