"""SGLang's EAGLE workers without their models: the loop that drafts, rerank, tree, mask and eagle_sample. In the place
of target and head are tables of strings."""

from types import SimpleNamespace

import numpy as np
import strings
import torch
from component import COARSE, Component
from sglang.kernels.ops.sampling import renorm_triton
from sglang.kernels.ops.speculative import spec_tree
from sglang.srt.runtime_context import get_parallel
from sglang.srt.speculative import eagle_utils, eagle_worker_v2, spec_utils
from sglang.srt.speculative.eagle_info import EagleDraftInput, EagleVerifyInput

spec = SimpleNamespace(speculative_use_rejection_sampling=False, speculative_use_block_verification=False,
                       speculative_accept_threshold_single=1.0, speculative_accept_threshold_acc=1.0)
for module in (eagle_utils, eagle_worker_v2, spec_utils):
    module.get_spec = lambda: spec
eagle_utils.top_k_renorm_prob = renorm_triton.top_k_renorm_probs_triton  # as for ROCm
eagle_utils.top_p_renorm_prob = renorm_triton.top_p_renorm_probs_triton
get_parallel().override_permanently(tp_group=SimpleNamespace(world_size=1))
spec_tree._is_cpu, spec_tree._is_xpu = False, True  # the Triton kernels that trees have
TREE = {"topk": 2, "steps": 3, "nodes": 7}
CHAIN = {"topk": 1, "steps": 2, "nodes": 3}


class Head:
    """The draft runner of a worker."""

    canary_manager = None
    model_config = SimpleNamespace(hf_config=SimpleNamespace(architectures=["LlamaForCausalLMEagle3"]),
                                   model_is_mrope=False)

    def __init__(self, tables, ids):
        self.tables, self.ids = tables, ids

    def logits(self, hidden):
        return torch.from_numpy(self.tables.head_rows(hidden.numpy(), self.ids))

    def forward(self, batch):
        hidden = torch.from_numpy(strings.read(batch.spec_info.hidden_states.numpy(), batch.input_ids.numpy()))
        return SimpleNamespace(logits_output=SimpleNamespace(next_token_logits=self.logits(hidden),
                                                             hidden_states=hidden))


def sampling_info(params, seeds):
    """As SamplingBatchInfo.from_schedule_batch has it; temperature 0 is temperature 1 with top_k 1."""
    greedy = params["temperature"] < 1e-6
    top_k = np.where(greedy, 1, np.where(params["top_k"] < 1, 1 << 30, params["top_k"]))
    return SimpleNamespace(
        temperatures=torch.from_numpy(np.where(greedy, 1.0, params["temperature"]).astype(np.float32))[:, None],
        top_ks=torch.from_numpy(top_k.astype(np.int32)), top_ps=torch.from_numpy(params["top_p"].astype(np.float32)),
        sampling_seed=torch.from_numpy(seeds.astype(np.int64)), is_all_greedy=bool((top_k <= 1).all()),
        need_top_k_sampling=bool((top_k != 1 << 30).any()), need_top_p_sampling=bool((params["top_p"] != 1.0).any()),
        need_min_p_sampling=False, acc_additive_penalties=None, acc_scaling_penalties=None, logit_bias=None,
        has_watermark_candidates=False)


def drafted(head, shape, batch, known, requests):
    """Parents, indices, tokens and probabilities of drafts, by EagleDraftWorker.draft_forward."""
    size, topk, ids = len(known), shape["topk"], head.ids
    worker = object.__new__(eagle_worker_v2.EagleDraftWorker)
    worker.hot_token_id = None if len(ids) == strings.TOKENS else torch.from_numpy(ids)
    worker.topk, worker.speculative_num_steps, worker.speculative_num_draft_tokens = topk, shape["steps"], shape[
            "nodes"]
    worker.index_share_for_mtp_iteration = worker.seed_dsa_topk_from_draft_extend = False
    worker.draft_runner, worker.draft_attn_backend = head, SimpleNamespace(attn_backends=[None] * shape["steps"])
    worker._topk1_parents_prealloc = torch.arange(-1, shape["steps"] - 1).repeat(size, 1)
    worker._topk1_score_indices_prealloc = torch.arange(shape["steps"]).repeat(size, 1)
    hidden = torch.from_numpy(strings.states(requests, known))
    if spec.speculative_use_rejection_sampling:  # these lines are those of _draft_extend_for_decode
        probs, topk_p, topk_index = spec_utils.sample_draft_proposal(
            head.logits(hidden), batch.sampling_info.temperatures, batch.sampling_info.top_ks,
            sampling_seed=batch.sampling_info.sampling_seed, positions=batch.seq_lens)
    else:
        probs = spec_utils.renorm_draft_probs(head.logits(hidden), batch.sampling_info, False)
        topk_p, topk_index = spec_utils.fast_topk(probs, topk, dim=-1)
    given = EagleDraftInput(topk_p=topk_p, topk_index=topk_index, draft_probs=probs, hidden_states=hidden)
    return worker.draft_forward(SimpleNamespace(
        spec_info=given, forward_mode=batch.forward_mode, sampling_info=batch.sampling_info, batch_size=size,
        moe_num_token_non_padded=None, positions=batch.seq_lens.clone(),
        out_cache_loc=torch.zeros(size * topk * shape["steps"], dtype=torch.int64)))


def seen(tree, b, node, known):
    """The string that a node of the tree comes after with its own token, by mask and positions."""
    count, start = tree.draft_token_num, int(tree.seq_lens[:b].sum() + b * tree.draft_token_num) * tree.draft_token_num
    width = int(tree.seq_lens[b]) + count
    row = tree.custom_mask[start + node * width:start + (node + 1) * width]
    assert row[:-count].all(), f"request {b}: the mask of node {node} hides the context"
    visible = [j for j in range(count) if row[-count:][j]]
    place = tree.positions.view(-1, count)[b]
    visible.sort(key=lambda j: int(place[j]))
    return (*known, *(int(tree.draft_token[b * count + j]) for j in visible if j > 0))


def best_tree(head, request, known, shape):
    """Nodes of EAGLE-2's tree (arXiv 2406.16858, section 4) as strings: layers of the topk best children, then the best
    of all."""
    pool, frontier = {}, {(): 1.0}
    for _ in range(shape["steps"]):
        layer = {}
        for string, score in frontier.items():
            x = head.tables.head(request, (*known, *string), head.ids).astype(np.float64)
            p = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
            for i in np.argsort(-p)[:shape["topk"]]:
                layer[(*string, int(head.ids[i]))] = score * p[i]
        pool.update(layer)
        frontier = dict(sorted(layer.items(), key=lambda item: -item[1])[:shape["topk"]])
    return {(*known, *string) for string, _ in sorted(pool.items(), key=lambda item: -item[1])[:shape["nodes"] - 1]}


def step_with(shape, ids, rejects=False, on_cpu=False, reranked=False):
    def step(tables, requests, known, params, seeds):
        spec.speculative_use_rejection_sampling, eagle_utils._is_cpu = rejects, on_cpu
        head, size = Head(tables, ids), len(known)
        batch = SimpleNamespace(device="cpu", forward_mode=SimpleNamespace(is_idle=lambda: False),
                                sampling_info=sampling_info(params, seeds),
                                seq_lens=torch.tensor([strings.PROMPT + len(string) for string in known]))
        parents, indices, tokens, probs = drafted(head, shape, batch, known, requests)
        root = torch.tensor([string[-1] if string else 0 for string in known])
        mask, positions, index, child, sibling, tokens = eagle_utils.build_tree_kernel_efficient(
            root, parents, indices, tokens, batch.seq_lens, int(batch.seq_lens.sum()), shape["topk"], shape["steps"],
            shape["nodes"])
        tree = EagleVerifyInput(
            draft_token=tokens, custom_mask=mask, positions=positions, retrieve_index=index, retrieve_next_token=child,
            retrieve_next_sibling=sibling, retrieve_cum_len=None, spec_steps=shape["steps"], topk=shape["topk"],
            draft_token_num=shape["nodes"],
            capture_hidden_mode=None, seq_lens_sum=None, seq_lens_cpu=None, draft_probs=probs)
        tree.seq_lens = batch.seq_lens
        nodes = [[seen(tree, b, node, known[b]) for node in range(shape["nodes"])] for b in range(size)]
        for b, request in enumerate(requests) if reranked else ():
            expected = best_tree(head, request, known[b], shape)
            assert (set(nodes[b][1:]) ==
                    expected), f"request {b}: the tree is {sorted(set(nodes[b][1:]))}; EAGLE-2's is {sorted(expected)}"
        if shape["topk"] == 1:
            strings.check_drafts(tables, requests, known, tokens.view(size, -1)[:, 1:], params["temperature"] == 0.0,
                                 ids)
        rows = torch.from_numpy(np.stack([tables.target(request, string) for b,
                                          request in enumerate(requests) for string in nodes[b]]))
        predict, lens, accepted = eagle_utils.eagle_sample(tree, batch, SimpleNamespace(next_token_logits=rows))
        return [predict[accepted[b, :lens[b]].long()].tolist() for b in range(size)]
    return strings.sampler_of(step)


def components():
    worker = "srt/speculative/eagle_worker_v2.py, eagle_utils.py"
    tree = ("EagleDraftWorker.draft_forward with select_top_k_tokens, organize_draft_results; "
            "build_tree_kernel_efficient; eagle_sample")
    every_case = strings.options()
    every, some = np.arange(strings.TOKENS), strings.DRAFT_IDS
    note = f"{strings.DESCRIPTION}; a target row's context is what mask and positions of the node show"
    return [
        Component("EAGLE tree, greedy", worker, f"{tree} with verify_tree_greedy", "sample",
                  step_with(TREE, some, reranked=True), tv=COARSE, options=strings.options(greedy_alone=True),
                  note=f"{note}; a tree that is not EAGLE-2's, by a search in numpy, raises; the Triton kernels of the "
                       "tree are those for XPU"),
        Component("EAGLE chain, rejection", worker,
                  "EagleDraftWorker.draft_forward with sample_draft_proposal; eagle_sample with "
                  "chain_speculative_sampling_triton", "sample", step_with(CHAIN, every, rejects=True), tv=0.2,
                  options=every_case,
                  note=f"{note}; a draft of temperature 0 that is not the head's raises; the head has all tokens, "
                       "since SGLang refuses fewer with rejection sampling; the filters are those for ROCm"),
        Component("EAGLE on CPU and XPU", worker, f"{tree} as where is_cpu() or is_xpu()", "sample",
                  step_with(TREE, some, on_cpu=True), tv=COARSE,
                  options={**every_case, "cases": every_case["cases"][:2]},
                  note=f"{note}; random requests of one kind, and greedy ones"),
    ]
