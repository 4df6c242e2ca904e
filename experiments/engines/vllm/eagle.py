"""vLLM's EAGLE-3 drafters without their layers: what both runners do around a head, its d2t scatter, then rejection. In
the place of target and head are tables of strings."""

import contextlib
from types import SimpleNamespace

import numpy as np
import runner_v1
import runner_v2
import strings
import torch
from asked import requests as asked_of
from component import COARSE, Component
from vllm.config.compilation import CUDAGraphMode
from vllm.model_executor.models.llama_eagle3 import Eagle3LlamaForCausalLM
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.spec_decode import llm_base_proposer
from vllm.v1.spec_decode.eagle import EagleProposer
from vllm.v1.worker.gpu.input_batch import InputBuffers
from vllm.v1.worker.gpu.spec_decode.eagle.speculator import EagleSpeculator
from vllm.v1.worker.gpu.spec_decode.target_dependent_ar import speculator as loop

DRAFTS, MOST, LENGTH_MOST = 2, 128, 64  # drafts of a step; requests of a call; tokens of a request
for module in (llm_base_proposer, loop):
    module.set_forward_context = lambda *a, **k: contextlib.nullcontext()
loop.build_slot_mappings_by_layer = lambda *a: None


class Head(Eagle3LlamaForCausalLM):
    """The engine's class, whose layers are a table: `compute_logits` is its own."""

    def __init__(self, tables):
        torch.nn.Module.__init__(self)
        ids = strings.DRAFT_IDS
        self.config = SimpleNamespace(vocab_size=strings.TOKENS, draft_vocab_size=len(ids))
        self.model, self.lm_head = SimpleNamespace(use_aux_hidden_state=False), None
        self.draft_id_to_target_id = torch.from_numpy(ids - np.arange(len(ids)))
        self.logits_processor = lambda _, hidden: torch.from_numpy(tables.head_rows(hidden.numpy(), ids))

    def forward(self, input_ids, positions, hidden_states, inputs_embeds=None):
        hidden = torch.from_numpy(strings.read(hidden_states.numpy(), input_ids.numpy()))
        return hidden, hidden


class Queries:
    """What the target read in the step before: the last token of each request and the drafts behind it, then what
    came."""

    def __init__(self, tables, requests, known):
        before = getattr(tables, "before", None)
        tokens, hidden, positions, self.lens, self.emitted, self.last = [], [], [], [], [], []
        for request, string in zip(requests, known):
            if before is None:  # the prompt but for its last token, which counts as the one that came
                tokens += [0] * (strings.PROMPT - 1)
                hidden += [(request, None)] * (strings.PROMPT - 1)
                positions += range(strings.PROMPT - 1)
                self.lens.append(strings.PROMPT - 1)
                self.emitted.append(1)
            else:
                context, drafts = before[request]
                tokens += [context[-1] if context else 0, *drafts]
                hidden += [(request, (*context, *drafts[:i])) for i in range(len(drafts) + 1)]
                positions += range(strings.PROMPT - 1 + len(context), strings.PROMPT + len(context) + len(drafts))
                self.lens.append(len(drafts) + 1)
                self.emitted.append(len(string) - len(context))
            self.last.append(string[-1] if string else 0)
        self.lens, self.emitted = np.array(self.lens), np.array(self.emitted)
        self.rejected = np.where([before is None] * len(known), 0, self.lens - self.emitted)
        self.tokens, self.positions = torch.tensor(tokens), torch.tensor(positions)
        self.hidden = torch.from_numpy(strings.states(*zip(*hidden)))
        self.starts = torch.from_numpy(np.concatenate([[0], np.cumsum(self.lens)]).astype(np.int32))
        self.seq_lens = self.positions[self.starts[1:].long() - 1].int() + 1


def target_rows(tables, requests, known, drafts):
    """[B * (K + 1), TOKENS]; what was drafted is kept for the next step."""
    tables.before = {request: (string, tuple(map(int, row))) for request, string, row in zip(requests, known, drafts)}
    return np.stack([tables.target(request, (*string, *map(int, row[:i]))) for request, string,
                     row in zip(requests, known, drafts)
                     for i in range(len(row) + 1)])


def emitted(found):
    return [row[row >= 0].tolist() for row in found]


def step_v1(tables, requests, known, params, seeds):
    size, queries = len(known), Queries(tables, requests, known)
    proposer = object.__new__(EagleProposer)
    tokens = size * max(strings.PROMPT, DRAFTS + 1)
    vars(proposer).update(
        method="eagle3", model=Head(tables), hidden_size=strings.WIDTH, uses_mrope=False, supports_mm_inputs=False,
        needs_extra_input_slots=False,
        pass_hidden_states_to_model=True, parallel_drafting=False, constant_draft_positions=False,
        use_heterogeneous_vocab=False,
        use_local_argmax_reduction=False, use_fp64_gumbel=False, _enable_probabilistic_draft_probs=True,
        _share_mtp_indices=False, eplb_state=None,
        allowed_attn_types=None, draft_attn_groups=[], _draft_attn_layer_names=[], block_size=16,
        max_model_len=LENGTH_MOST,
        vllm_config=SimpleNamespace(model_config=SimpleNamespace(uses_mrope=False)),
        input_ids=torch.zeros(tokens, dtype=torch.int32),
        positions=torch.zeros(tokens, dtype=torch.int64), hidden_states=torch.zeros(tokens, strings.WIDTH),
        arange=torch.arange(MOST + 1, dtype=torch.int32),
        token_arange_np=np.arange(MOST + 1, dtype=np.int32),
        _slot_mapping_buffer=torch.zeros(tokens, dtype=torch.int64),
        _determine_batch_execution_and_padding=lambda count: (CUDAGraphMode.NONE, count, None))
    metadata = CommonAttentionMetadata(
        query_start_loc=queries.starts, query_start_loc_cpu=queries.starts.clone(), seq_lens=queries.seq_lens,
        num_reqs=size,
        num_actual_tokens=len(queries.tokens), max_query_len=int(queries.lens.max()),
        max_seq_len=int(queries.seq_lens.max()),
        block_table_tensor=torch.zeros(size, LENGTH_MOST // 16, dtype=torch.int32),
        slot_mapping=torch.zeros(len(queries.tokens), dtype=torch.int64))
    at, rejected = None, None
    if hasattr(tables, "before"):  # as the runner pads what was rejected
        drafted = SimpleNamespace(cu_num_draft_tokens=torch.from_numpy(np.cumsum(queries.lens - 1).astype(np.int32)))
        metadata, at, rejected = proposer.prepare_inputs_padded(metadata, drafted,
                                                                torch.from_numpy(queries.emitted.astype(np.int32)))
    rounds = tables.rounds = getattr(tables, "rounds", 0) + 1
    # an engine's generators go on from step to step
    now = seeds ^ np.uint64(rounds * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    torch.manual_seed(~runner_v1.mixed(now[0]) & 0xFFFFFFFF)  # drafts have none of the requests' numbers
    drafts = proposer.propose(
        DRAFTS, queries.tokens, queries.positions, queries.hidden, torch.tensor(queries.last, dtype=torch.int32), at,
        metadata, runner_v1.metadata(asked_of(params), strings.TOKENS, now), num_rejected_tokens_gpu=rejected)
    strings.check_drafts(tables, requests, known, drafts, params["temperature"] < 1e-5, strings.DRAFT_IDS)
    probs = proposer.take_last_draft_probs()
    rows = target_rows(tables, requests, known, drafts.numpy())
    return emitted(runner_v1.verify(drafts.flatten().int().numpy(),
                                    None if probs is None else probs.flatten(0, 1).numpy(), rows,
                                    DRAFTS * np.arange(1, size + 1), params, now))


def step_v2(block, tables, requests, known, params, seeds):
    size, queries = len(known), Queries(tables, requests, known)
    slots = np.arange(size)[::-1].copy()  # where the state of each request is
    states = runner_v2.states_of({name: value[slots] for name, value in params.items()}, seeds[slots], strings.TOKENS)
    speculator, tokens = object.__new__(EagleSpeculator), len(queries.tokens)
    cpu, by_slot = torch.device("cpu"), torch.zeros(size, dtype=torch.int64)
    by_slot[slots] = torch.tensor(queries.last)
    vars(speculator).update(
        method="eagle3", device=cpu, model=Head(tables), dtype=torch.float32, hidden_size=strings.WIDTH,
        num_speculative_steps=DRAFTS, max_num_reqs=size,
        max_num_tokens=tokens, dp_size=1, dp_rank=0, use_fp64_gumbel=False, use_local_argmax_reduction=False,
        draft_watermarker=None, pcp_manager=None,
        supports_mm_inputs=False, supports_decode_metadata_update=False, acceptance_estimator=None, eplb_state=None,
        kv_cache_config=None,
        vllm_config=SimpleNamespace(model_config=SimpleNamespace(max_model_len=LENGTH_MOST)),
        prefill_cudagraph_manager=None,
        decode_cudagraph_manager=None, input_buffers=InputBuffers(size, tokens, cpu),
        idx_mapping=torch.zeros(size, dtype=torch.int64),
        temperature=torch.zeros(size), seeds=torch.zeros(size, dtype=torch.int64),
        draft_tokens=torch.zeros(size, DRAFTS, dtype=torch.int64),
        draft_logits=torch.zeros(size, DRAFTS, strings.TOKENS), hidden_states=torch.zeros(tokens, strings.WIDTH),
        current_draft_step=torch.tensor(0), last_token_indices=torch.zeros(size, dtype=torch.int64),
        sample_src_positions=torch.zeros(size, dtype=torch.int64),
        block_tables=SimpleNamespace(compute_slot_mappings=lambda *a: None),
        _build_uniform_attn_metadata=lambda **k: None)
    batch = SimpleNamespace(
        num_reqs=size, num_tokens=tokens, num_tokens_after_padding=tokens, num_scheduled_tokens=queries.lens,
        seq_lens_cpu_upper_bound=queries.seq_lens,
        seq_lens=queries.seq_lens, idx_mapping=torch.from_numpy(slots), input_ids=queries.tokens.int(),
        positions=queries.positions, query_start_loc=queries.starts, decode_graph_eligible=False)
    drafts = speculator.propose(
        batch, {}, {}, queries.hidden, [queries.hidden], torch.from_numpy(queries.emitted),
        torch.from_numpy(queries.rejected), by_slot,
        torch.zeros(size, dtype=torch.int64), states.temperature.gpu, states.seeds.gpu, is_profile=True).numpy()
    strings.check_drafts(tables, requests, known, drafts, params["temperature"] == 0.0, strings.DRAFT_IDS)
    rows, lens = target_rows(tables, requests, known, drafts), np.full(size, DRAFTS)
    inputs = np.column_stack([queries.last, drafts]).reshape(-1)
    positions = (strings.PROMPT - 1 +
                 np.array([[len(string) + i for i in range(DRAFTS + 1)] for string in known])).reshape(-1)
    x, _ = runner_v2.processed(states, rows, np.repeat(slots, lens + 1))
    return emitted(runner_v2.rejected(block, states, x, speculator.draft_logits, inputs, positions, lens, slots))


def components():
    head, gpu = "model_executor/models/llama_eagle3.py", "v1/worker/gpu/spec_decode"
    scatter, note = "Eagle3LlamaForCausalLM.compute_logits (d2t)", (
        f"{strings.DESCRIPTION}; a draft of temperature 0 that is not the head's raises; no attention, no KV cache")
    v2 = f"{scatter}, EagleSpeculator.propose, rejection_sample"
    return [
        Component("V1 EAGLE-3, rejection", f"{head}, v1/spec_decode/llm_base_proposer.py",
                  f"{scatter}, EagleProposer.propose and prepare_inputs_padded, RejectionSampler.forward", "sample",
                  strings.sampler_of(step_v1), tv=COARSE, options=strings.options(),
                  note=f"{note}; generators are seeded at each step"),
        Component("V2 EAGLE-3, rejection", f"{head}, {gpu}/target_dependent_ar/speculator.py", v2, "sample",
                  strings.sampler_of(lambda *a: step_v2(False, *a)), tv=0.2, options=strings.options(),
                  note=f"{note}; without graphs, as in a profiling run; draft logits in float32"),
        Component("V2 EAGLE-3, block verification", f"{head}, {gpu}/target_dependent_ar/speculator.py",
                  f"{v2} with use_block_verification",
                  "sample", strings.sampler_of(lambda *a: step_v2(True, *a)), tv=0.2, options=strings.options(),
                  note="as the one above"),
    ]
