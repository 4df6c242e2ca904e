"""`generate` with MTP layers and with Gemma 4's assistant: tiny models with random weights, whole: forward passes,
caches, drafts, verification.

A row of a case names one of the prompts; the string that follows is judged by the probabilities that the model gives
without drafts."""

import numpy as np
import strings
import torch
from component import Component, mixed
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Gemma4AssistantConfig,
    Gemma4AssistantForCausalLM,
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    GenerationConfig,
    Glm4MoeConfig,
    Glm4MoeForCausalLM,
)
from transformers.modeling_layers import MtpModel

SIZE = {"vocab_size": strings.TOKENS, "hidden_size": 32, "intermediate_size": 32, "moe_intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "first_k_dense_replace": 4, "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1, "topk_group": 1, "max_position_embeddings": 128, "bos_token_id": None, "eos_token_id": None,
        "pad_token_id": 0}
DEEPSEEK = {"kv_lora_rank": 16, "q_lora_rank": None, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
GEMMA = {"vocab_size": strings.TOKENS, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 2,
         "num_key_value_heads": 2, "head_dim": 16, "layer_types": ["sliding_attention", "full_attention"],
         "sliding_window": 64,
         "max_position_embeddings": 128, "vocab_size_per_layer_input": 0, "hidden_size_per_layer_input": 0,
         "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
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
    """A model, and its head: what of `generate`'s arguments calls for it."""

    def __init__(self, model, drafts):
        self.model, self.drafts, self.rows = model, drafts, {}

    def arguments(self):
        raise NotImplementedError

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
        tokens = []
        for row, seed, temperature, top_k, top_p in zip(logits, seeds, params["temperature"], params["top_k"],
                                                        params["top_p"]):
            sampled = {"temperature": float(temperature), "top_k": int(top_k),
                       "top_p": float(top_p)} if temperature > 0.0 else {}
            torch.manual_seed(mixed(seed))
            prompt, (more, given) = self.prompt(row), self.arguments()
            config = GenerationConfig(do_sample=bool(sampled), max_new_tokens=strings.LENGTH + self.drafts,
                                      pad_token_id=0, **sampled, **more)
            out = self.model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=config,
                                      **given)[0, strings.PROMPT:]
            tokens.append(strings.at(tuple(out[:strings.LENGTH].tolist())))
        return np.array(tokens)


class WithLayers(Speculation):
    """A draft of each MTP layer."""

    def __init__(self, kind, config, layers):
        config.num_mtp_layers = layers
        super().__init__(with_weights(kind(config), 2.0), layers)
        self.mtp = with_weights(MtpModel(self.model, layers), 2.0)
        self.mtp.tie_with_main_model(self.model)

    def arguments(self):
        MtpModel.from_pretrained = lambda *a, **k: self.mtp  # there is no checkpoint
        return {"use_mtp": True}, {}


class WithAssistant(Speculation):
    """Gemma 4, whose assistant reads the model's keys and values."""

    def __init__(self):
        super().__init__(with_weights(Gemma4ForCausalLM(Gemma4TextConfig(**GEMMA)), 1.0), 2)
        own = Gemma4TextConfig(**GEMMA, num_kv_shared_layers=GEMMA["num_hidden_layers"])
        self.assistant = with_weights(Gemma4AssistantForCausalLM(Gemma4AssistantConfig(text_config=own,
                backbone_hidden_size=own.hidden_size)), 1.0)
        self.assistant.generation_config = GenerationConfig(num_assistant_tokens=self.drafts,
                                                            num_assistant_tokens_schedule="constant")

    def arguments(self):
        return {}, {"assistant_model": self.assistant}


def components():
    file, generate = "generation/candidate_generator.py", "GenerationMixin.generate with"
    note = (f"models of one or two layers without experts, width 32 and {strings.TOKENS} tokens with random weights, "
            "whose rows are those of a forward pass without "
            f"cache; a draw is the first {strings.LENGTH} tokens of `generate`")
    layers = f"{generate} use_mtp: MTPCandidateGenerator, MtpModel, _speculative_sampling"
    assistant = f"{generate} assistant_model: SinglePositionMultiTokenCandidateGenerator, _speculative_sampling"
    for name, where, function, run in (
            ("MTP: GLM 4, two layers", f"{file}, modeling_layers.py", layers,
             WithLayers(Glm4MoeForCausalLM, Glm4MoeConfig(**SIZE), 2)),
            ("MTP: DeepSeek V3, one layer", f"{file}, modeling_layers.py", layers,
             WithLayers(DeepseekV3ForCausalLM, DeepseekV3Config(**SIZE, **DEEPSEEK), 1)),
            ("Gemma 4 with its assistant", file, assistant, WithAssistant())):
        yield Component(name, where, function, "sample", run, tv=0.2,
                        options=strings.options_of_prompts(run.distribution, PROMPTS), note=note)
