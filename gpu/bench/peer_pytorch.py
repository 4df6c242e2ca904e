"""The work of the kernels as others do it: in PyTorch, eager and as torch.compile fuses it with Triton; samplers also
by FlashInfer and by vLLM's Triton kernel for top-k and top-p (Qrita), where python3 has them.

    python3 gpu/bench/peer_pytorch.py FOLDER

verify_chain_logits: softmax of bf16 target and draft logits in f32, ratio test, residual, and a draw by the exponential
race, on the tensors that `draftproof bench --device cuda --write-inputs FOLDER` wrote (B = 64, K = 5, V = 128256).
sample_race, sample_top_p: softmax, and a draw by the exponential race; before it a sort and a cumulative sum for top-p
0.9, on normal bf16 logits of standard deviation 3 (B = 1024, V = 200000). Random numbers are made in the measured time.

sample: the sizes of `bench` (B = 1, 64, 256, V = 128256; deviation 3, and the peaked rows that `bench` wrote), a draw
behind each filter.

Prints one JSON object with milliseconds: median and best of 100 (of 20 where one takes above 5), L2 flushed before
each.
"""
import json
import pathlib
import statistics
import sys

import torch

B, K, V = 64, 5, 128256
SAMPLE_B, SAMPLE_V, TOP_P = 1024, 200000, 0.9


def load(folder, name, dtype, shape):
    data = bytearray((pathlib.Path(folder) / name).read_bytes())
    return torch.frombuffer(data, dtype=dtype).reshape(shape).cuda()


def verify(target_logits, draft_logits, drafts):
    """target_logits [B, K + 1, V], draft_logits [B, K, V], drafts [B, K]."""
    p = torch.softmax(target_logits.float(), dim=-1)
    q = torch.softmax(draft_logits.float(), dim=-1)
    p_draft = p[:, :K].gather(2, drafts.unsqueeze(2)).squeeze(2)
    q_draft = q.gather(2, drafts.unsqueeze(2)).squeeze(2)
    accepted = torch.rand_like(p_draft) * q_draft < p_draft
    num_accepted = accepted.int().cumprod(dim=1).sum(dim=1)
    rows = torch.arange(p.shape[0], device=p.device)
    p_row = p[rows, num_accepted]
    q_row = q[rows, num_accepted.clamp(max=K - 1)]
    residual = torch.where((num_accepted < K).unsqueeze(1), (p_row - q_row).clamp(min=0), p_row)
    token = (residual / torch.empty_like(residual).exponential_()).argmax(dim=1)
    return num_accepted, token


def draw(probabilities):
    return (probabilities / torch.empty_like(probabilities).exponential_()).argmax(dim=-1)


def sample_race(logits):
    return draw(torch.softmax(logits.float(), dim=-1))


def sample_top_p(logits):
    ordered, tokens = logits.float().sort(dim=-1)
    dropped = torch.softmax(ordered, dim=-1).cumsum(dim=-1) <= 1 - TOP_P
    dropped[..., -1] = False
    kept = ordered.masked_fill(dropped, -float("inf"))
    return draw(torch.softmax(torch.empty_like(kept).scatter_(-1, tokens, kept), dim=-1))


def filtered(logits, top_k=0, top_p=1.0, min_p=0.0):
    """Logits with -infinity for what the filters drop, as engines that sort have it."""
    logits = logits.float()
    if min_p > 0:
        p = torch.softmax(logits, dim=-1)
        logits = logits.masked_fill(p < min_p * p.amax(dim=-1, keepdim=True), -float("inf"))
    if top_k > 0:
        logits = logits.masked_fill(logits < logits.topk(top_k, dim=-1).values[..., -1:], -float("inf"))
    if top_p < 1:
        ordered, tokens = logits.sort(dim=-1)
        dropped = torch.softmax(ordered, dim=-1).cumsum(dim=-1) <= 1 - top_p
        dropped[..., -1] = False
        logits = torch.empty_like(logits).scatter_(-1, tokens, ordered.masked_fill(dropped, -float("inf")))
    return logits


def sample(logits, **filters):
    return draw(torch.softmax(filtered(logits, **filters), dim=-1))


def flashinfer_sampler(logits, top_k=0, top_p=1.0, min_p=0.0):
    from flashinfer import sampling
    logits = logits.float()
    if top_k and top_p < 1:
        return sampling.top_k_top_p_sampling_from_logits(logits, top_k, top_p, filter_apply_order="joint")
    p = torch.softmax(logits, dim=-1)
    if top_k:
        return sampling.top_k_sampling_from_probs(p, top_k)
    if top_p < 1:
        return sampling.top_p_sampling_from_probs(p, top_p)
    return sampling.min_p_sampling_from_probs(p, min_p) if min_p else sampling.sampling_from_probs(p)


def triton_sampler(logits, top_k=0, top_p=1.0, min_p=0.0):
    from vllm.v1.sample.ops.topk_topp_triton import apply_top_k_top_p_triton
    if min_p or not (top_k or top_p < 1):
        raise NotImplementedError("it filters by top_k and top_p alone")
    rows, device = logits.shape[0], logits.device
    k = torch.full((rows,), top_k, dtype=torch.int32, device=device) if top_k else None
    p = torch.full((rows,), top_p, dtype=torch.float32, device=device) if top_p < 1 else None
    return draw(torch.softmax(apply_top_k_top_p_triton(logits.float(), k, p), dim=-1))


def published(logits, shape):
    """Every filter by everybody who is here; whoever cannot says why."""
    for filters in ({}, {"top_k": 50}, {"top_p": TOP_P}, {"top_k": 50, "top_p": TOP_P}, {"min_p": 0.1}):
        result = {"name": "sample", "rows": len(logits), "shape": shape, **filters}
        for name, sampler in (("eager", sample), ("flashinfer", flashinfer_sampler), ("triton", triton_sampler)):
            try:
                result[name] = time_ms(lambda x: sampler(x, **filters), (logits,))
            except Exception as problem:  # another version's interface, or a kernel that does not compile here
                result[name] = f"{type(problem).__name__}: {problem}"[:200]
        yield result


def time_ms(function, arguments):
    flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
    times = []
    for repeat in range(105):
        if repeat >= 25 and statistics.median(times) > 5:
            break
        flush.fill_(repeat & 1)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function(*arguments)
        end.record()
        end.synchronize()
        if repeat >= 5:
            times.append(begin.elapsed_time(end))
    return {"ms_median": statistics.median(times), "ms_best": min(times)}


def timed(name, function, arguments):
    compiled = torch.compile(function, dynamic=False)
    return {"name": name, "eager": time_ms(function, arguments), "compiled": time_ms(compiled, arguments)}


def main():
    folder = sys.argv[1]
    target = load(folder, "target.bin", torch.bfloat16, (B, K + 1, V))
    draft = load(folder, "proposal.bin", torch.bfloat16, (B, K, V))
    drafts = load(folder, "drafts.bin", torch.int32, (B, K)).long()
    torch.manual_seed(1)
    results = [timed("verify_chain_logits", verify, (target, draft, drafts))]
    logits = (3 * torch.randn(SAMPLE_B, SAMPLE_V, device="cuda")).bfloat16()
    results += [timed("sample_race", sample_race, (logits,)), timed("sample_top_p", sample_top_p, (logits,))]
    peaked = load(folder, "peaked.bin", torch.bfloat16, (-1, V))
    for rows in (1, 64, 256):
        results += published((3 * torch.randn(rows, V, device="cuda")).bfloat16(), "normal")
        results += published(peaked[torch.arange(rows) % len(peaked)], "model")
    print(json.dumps({"available": True, "torch": torch.__version__, "results": results}))


if __name__ == "__main__":
    main()
