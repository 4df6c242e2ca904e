"""LMDeploy's PyTorch engine on the CPU: its Triton kernels in the interpreter, the Python around them unedited."""

import asyncio
from types import SimpleNamespace

import history
import numpy as np
import strings
import torch
from component import COARSE, Component, by_length, mixed

from draftproof import triton_on_cpu

triton_on_cpu.install()

from lmdeploy.pytorch.backends.cuda.multinomial_sampling import TritonMultinomialSamplingImpl  # noqa: E402
from lmdeploy.pytorch.backends.cuda.rejection_sampling import CudaRejectionSamplingImpl  # noqa: E402
from lmdeploy.pytorch.backends.multinomial_sampling import MultinomialSamplingBuildSpec  # noqa: E402
from lmdeploy.pytorch.engine import logits_process  # noqa: E402
from lmdeploy.pytorch.messages import SamplingParam  # noqa: E402
from lmdeploy.pytorch.nn import multinomial_sampling  # noqa: E402
from lmdeploy.pytorch.spec_decode import reject_sampler, spec_agent  # noqa: E402
from lmdeploy.pytorch.spec_decode.guided_spec_helper import GuidedSpecHelper  # noqa: E402
from lmdeploy.pytorch.spec_decode.proposers import eagle3  # noqa: E402
from lmdeploy.pytorch.strategies.ar.sampling import ARSamplingStrategy  # noqa: E402

cuda = SimpleNamespace(build_op=lambda spec: TritonMultinomialSamplingImpl()
                       if isinstance(spec, MultinomialSamplingBuildSpec) else CudaRejectionSamplingImpl())
multinomial_sampling.get_backend = reject_sampler.get_backend = lambda *device: cuda  # the operators of a CUDA machine


def inputs_of(params, seeds=None, lengths=None, new_tokens=0, **more):
    """SamplingInputs of requests, by the engine's own strategy; temperature 0 is top_k 1, as its server makes it."""
    more = {"bad_words": [], "stop_words": [], **more}
    sequences = []
    for i, temperature in enumerate(params["temperature"]):
        param = SamplingParam(
            temperature=float(temperature) or 1.0, top_k=1 if temperature == 0.0 else int(params["top_k"][i]),
            top_p=float(params["top_p"][i]), min_p=float(params["min_p"][i]) if "min_p" in params else 0.0,
            random_seed=0 if seeds is None else int(seeds[i]), **more)
        sequences.append(SimpleNamespace(sampling_param=param, num_valid_ids=0 if lengths is None else int(lengths[i]),
                                         num_new_tokens=new_tokens, session=SimpleNamespace(session_id=i), seq_id=i))
    return ARSamplingStrategy(0).make_sampling_inputs(sequences)


def processed(inputs, logits):
    processor = logits_process.FusedLogitsProcessor(inputs)
    return processor, asyncio.run(processor(torch.from_numpy(logits).clone()))[0]


def constrained(logits, params):
    """What comes before top-k and top-p."""
    inputs = inputs_of(params, new_tokens=len(history.OUTPUT), bad_words=[3, 6], stop_words=[history.STOP],
                       min_new_tokens=history.MIN_TOKENS)
    return processed(inputs, history.before_constraints(logits, bias=0.0))[1].numpy()


def sample(logits, params, seeds, steps=None):
    processor, scores = processed(inputs_of(params, seeds, steps), logits)
    return processor.sampling(scores).numpy()


rejection_sampler = reject_sampler.RejectionSampler()


def verify(draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    """As SpecModelAgent._rejection_sampling calls it, with requests whose drafts have one length."""
    def run(chosen, drafts, probs, rows):
        torch.manual_seed(mixed(seeds[chosen[0]]))
        slots = rows.shape[1]
        inputs = inputs_of({name: value[chosen] for name, value in params.items()}, seeds[chosen])
        inputs = spec_agent._expand_sampling_inputs(inputs, slots)
        _, scores = processed(inputs, rows.reshape(-1, rows.shape[-1]))
        return rejection_sampler(scores.view(len(chosen), slots, -1), torch.from_numpy(drafts), inputs,
                                 None if probs is None else torch.from_numpy(probs))[0].numpy()

    return by_length(run, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens)


class Eagle3(eagle3.Eagle3):
    """The engine's proposer, whose layers are tables of strings."""

    def __init__(self, tables):
        self.draft_id_to_target_id = torch.from_numpy(strings.DRAFT_IDS)  # as the engine loads it
        self.guided_helper = GuidedSpecHelper(None)
        self.get_logits = lambda hidden: (torch.from_numpy(tables.head_rows(hidden[0].numpy(), strings.DRAFT_IDS)),)

    def drafts(self, requests, known, count):
        hidden, tokens = strings.states(requests, known), []
        for _ in range(count):
            given = torch.from_numpy(hidden)[None]
            drafted, _, after = asyncio.run(self.get_outputs({"hidden_states": given, "hidden_states_prenorm": given,
                                                              "model_metas": None}, None))
            tokens.append(drafted[:, 0].numpy())
            hidden = strings.read(after[0].numpy(), tokens[-1])
        return np.stack(tokens, axis=1)


def step(tables, requests, known, params, seeds):
    drafts = Eagle3(tables).drafts(requests, known, 2)
    strings.check_drafts(tables, requests, known, drafts, np.ones(len(known), bool), strings.DRAFT_IDS)
    rows = np.stack([tables.target(request, (*string, *map(int, row[:i]))) for request, string,
                     row in zip(requests, known, drafts) for i in range(3)])
    # an engine's generators go on from step to step
    seeds = seeds + np.array([len(string) << 40 for string in known], np.uint64)
    return [row[row >= 0] for row in verify(drafts.reshape(-1), None, rows, 2 * np.arange(1, len(known) + 1), params,
                                            seeds)]


def components():
    process = "pytorch/engine/logits_process.py"
    operators = "the CUDA operators are chosen without a GPU; Triton 3.8 where the package asks for 3.7 at most"
    return [
        Component("bad words and minimum length", process, "ARSamplingStrategy, FusedLogitsProcessor.__call__",
                  "filter", constrained, options=history.with_constraints(cuts=False), note="without top-k and top-p"),
        Component("sampling", process, "FusedLogitsProcessor.sampling after ARSamplingStrategy; multinomial_sampling",
                  "sample", sample, tv=COARSE, note=operators),
        Component("rejection sampling", "pytorch/spec_decode/reject_sampler.py", "RejectionSampler.forward", "verify",
                  verify, tv=COARSE, note=f"{operators}; PyTorch's generator is seeded at each call"),
        Component("EAGLE-3, rejection", "pytorch/spec_decode/proposers/eagle3.py, reject_sampler.py",
                  "Eagle3.get_outputs (d2t), RejectionSampler.forward",
                  "sample", strings.sampler_of(step), tv=COARSE, options=strings.options(),
                  note=f"{strings.DESCRIPTION}; a draft that is not the head's most probable token raises; "
                       f"{operators}"),
    ]
