"""The work of the kernels as engines write it in PyTorch, eager and as torch.compile fuses it with Triton.

    python3 gpu/bench/peer_pytorch.py FOLDER

verify_chain_logits: softmax of bf16 target and draft logits in f32, ratio test, residual, and a draw by the exponential
race, on the tensors that `draftproof bench --device cuda --write-inputs FOLDER` wrote (B = 64, K = 5, V = 128256).
sample_race, sample_top_p: softmax, and a draw by the exponential race; before it a sort and a cumulative sum for top-p
0.9, on normal bf16 logits of standard deviation 3 (B = 1024, V = 200000). Random numbers are made in the measured time.

Prints one JSON object with milliseconds: median and best of 100 (of 20 where one takes above 5), L2 flushed before each.
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
    print(json.dumps({"available": True, "torch": torch.__version__, "results": results}))


if __name__ == "__main__":
    main()
