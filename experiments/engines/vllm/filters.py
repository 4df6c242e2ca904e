"""vLLM's top-k and top-p, which both runners call."""

import dataclasses

import numpy as np
import torch
from asked import cuts, requests, temperatures
from component import Component
from vllm.v1.sample.ops import topk_topp_triton
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p, apply_top_k_top_p_pytorch
from vllm.v1.sample.sampler import Sampler

from draftproof.callable.cases.filter_cases import filter_cases

choose = topk_topp_triton._topk_topp._dispatch_fn


def choose_for_gpu(*arguments):
    """The tiles that the kernel gets for a CUDA tensor."""
    grid, values = choose(*arguments)
    return grid, {**values, "BLOCK_SIZE": 8192, "BLOCK_SIZE_TRUNC": 4096}


topk_topp_triton._topk_topp._dispatch_fn = choose_for_gpu
ONE_PROGRAM = topk_topp_triton._SPLIT_MAX_BATCH + 1  # rows of a batch, from which on no other path is taken
TILES = "tiles of 8192 and 4096, as for a CUDA tensor"


def tempered(logits, params):
    asked = requests(params)
    return asked, Sampler.apply_temperature(torch.from_numpy(logits).clone(), temperatures(asked), False)


def one_program(logits, params):
    """Smaller batches are filled up with rows that have no cuts: on a GPU they would go another way."""
    size, vocab_size = logits.shape
    more = max(0, ONE_PROGRAM - size)
    asked, x = tempered(logits, params)
    padded = [None if value is None else torch.cat([value, value.new_full((more,), off)])
              for value, off in zip(cuts(asked, vocab_size), (vocab_size, 1.0))]
    return apply_top_k_top_p(torch.cat([x, x[:1].expand(more, -1)]), *padded)[:size].numpy()


def native(logits, params):
    asked, x = tempered(logits, params)
    return apply_top_k_top_p_pytorch(x, *cuts(asked, logits.shape[1])).numpy()


def split(logits, params):
    """Batches up to 64, as apply_top_k_top_p_triton sends them on a GPU."""
    asked, x = tempered(logits, params)
    p, most = torch.tensor([r.top_p for r in asked]), topk_topp_triton._SPLIT_MAX_BATCH
    for begin in range(0, len(x), most):
        topk_topp_triton._apply_topp_split(x[begin:begin + most], None, p[begin:begin + most], float("-inf"), 132)
    return x.numpy()


def components():
    file = "v1/sample/ops/topk_topp_triton.py"
    top_p_alone = [dataclasses.replace(case, params={**case.params, "top_k": np.zeros_like(case.params["top_k"])})
                   for case in filter_cases(False)]
    return [
        Component("top-k, top-p: PyTorch", "v1/sample/ops/topk_topp_sampler.py", "apply_top_k_top_p_pytorch", "filter",
                  native),
        Component("top-k, top-p: one program a row", file, "apply_top_k_top_p_triton, _topk_topp_kernel", "filter",
                  one_program,
                  note=f"batches below {ONE_PROGRAM} are filled up, since a GPU sends those another way; {TILES}"),
        Component("top-k, top-p: split rows", file, "_apply_topp_split", "filter", split,
                  options={"cases": top_p_alone},
                  note="called as apply_top_k_top_p_triton calls it on a GPU; top-k is off"),
    ]
