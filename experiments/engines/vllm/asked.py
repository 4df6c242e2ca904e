"""vLLM without a GPU, and requests as its front end makes them."""

import logging

import numpy as np
import torch

from draftproof import triton_on_cpu

triton_on_cpu.install()

from vllm.platforms import current_platform  # noqa: E402

logging.getLogger("vllm").setLevel(logging.ERROR)
current_platform.device_type = "cpu"
current_platform.is_pin_memory_available = lambda: False
current_platform.num_compute_units = lambda device=0: 132  # programs that share the rows: an H100's

from vllm import SamplingParams  # noqa: E402


def requests(params, seeds=None, min_p=None, **more):
    """SamplingParams of every request; above its limit the temperature is set afterwards."""
    made = []
    for i, temperature in enumerate(params["temperature"]):
        made.append(SamplingParams(
            temperature=min(float(temperature), 2.0), top_k=int(params["top_k"][i]), top_p=float(params["top_p"][i]),
            min_p=0.0 if min_p is None else float(min_p[i]), seed=None if seeds is None else int(np.int64(seeds[i])),
            **more))
        if temperature > 2.0:
            made[-1].temperature = float(temperature)
    return made


def temperatures(asked):
    return torch.tensor([request.temperature for request in asked])


def cuts(asked, vocab_size):
    """k [B] and p [B], None where no request has one, as both runners hand them on."""
    k = torch.tensor([r.top_k if 0 < r.top_k < vocab_size else vocab_size for r in asked], dtype=torch.int32)
    p = torch.tensor([r.top_p for r in asked], dtype=torch.float32)
    return (k if (k < vocab_size).any() else None), (p if (p < 1.0).any() else None)
