"""The chain verifier as engines write it in PyTorch, on the tensors that `draftproof bench --device cuda --write-inputs
FOLDER` wrote: softmax of bf16 target and draft logits in f32, ratio test, residual, and a draw by the exponential race,
as one function that torch.compile fuses with Triton.

    python3 gpu/bench/peer_pytorch.py FOLDER

Prints one JSON object: milliseconds (median and best of 100, L2 flushed before each) of the eager and of the compiled
function, and the mean acceptance length of both. B = 64, K = 5, V = 128256.
"""
import json
import pathlib
import statistics
import sys

import torch

B, K, V = 64, 5, 128256
REPEATS = 100


def load(folder, name, dtype, shape):
    data = bytearray((pathlib.Path(folder) / name).read_bytes())
    return torch.frombuffer(data, dtype=dtype).reshape(shape).cuda()


def verify(target_logits, draft_logits, drafts, uniforms, exponentials):
    """target_logits [B, K + 1, V], draft_logits [B, K, V], drafts [B, K], uniforms [B, K], exponentials [B, V]."""
    p = torch.softmax(target_logits.float(), dim=-1)
    q = torch.softmax(draft_logits.float(), dim=-1)
    p_draft = p[:, :K].gather(2, drafts.unsqueeze(2)).squeeze(2)
    q_draft = q.gather(2, drafts.unsqueeze(2)).squeeze(2)
    accepted = uniforms * q_draft < p_draft
    num_accepted = accepted.int().cumprod(dim=1).sum(dim=1)
    rows = torch.arange(p.shape[0], device=p.device)
    p_row = p[rows, num_accepted]
    q_row = q[rows, num_accepted.clamp(max=K - 1)]
    residual = torch.where((num_accepted < K).unsqueeze(1), (p_row - q_row).clamp(min=0), p_row)
    token = (residual / exponentials).argmax(dim=1)
    return num_accepted, token


def time_ms(function, arguments):
    flush = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
    times = []
    for repeat in range(REPEATS + 5):
        flush.fill_(repeat & 1)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function(*arguments)
        end.record()
        end.synchronize()
        if repeat >= 5:
            times.append(begin.elapsed_time(end))
    return {"ms_median": statistics.median(times), "ms_best": min(times)}


def main():
    folder = sys.argv[1]
    target = load(folder, "target.bin", torch.bfloat16, (B, K + 1, V))
    draft = load(folder, "proposal.bin", torch.bfloat16, (B, K, V))
    drafts = load(folder, "drafts.bin", torch.int32, (B, K)).long()
    torch.manual_seed(1)
    uniforms = torch.rand(B, K, device="cuda")
    exponentials = torch.empty(B, V, device="cuda").exponential_()
    arguments = (target, draft, drafts, uniforms, exponentials)
    result = {"available": True, "torch": torch.__version__, "name": "verify_chain_logits"}
    compiled = torch.compile(verify, dynamic=False)
    for name, function in (("eager", verify), ("compiled", compiled)):
        result[name] = time_ms(function, arguments)
        accepted = function(*arguments)[0].float().mean().item()
        result[name]["acceptance_length"] = accepted + 1
    print(json.dumps(result))


if __name__ == "__main__":
    main()
