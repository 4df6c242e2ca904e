"""Times the usual vectorised PyTorch sampler and rejection sampler, for `draftproof bench`.

Reads the tensors that the program wrote as raw files into FOLDER, and prints one JSON document: the fastest of the
repeats of each measurement, by the program's names. Recovered tokens can be drawn from the residuals of all draft
positions or from the row of the first rejection alone; both are timed, and the faster one stands for PyTorch.
"""

import argparse
import json
import time

import torch


def read(folder, name, dtype, *shape):
    count = 1
    for size in shape:
        count *= size
    path = f"{folder}/{name}"
    # A copy in ordinary memory, so that no page of the file is read while the clock runs.
    return torch.from_file(path, shared=False, size=count, dtype=dtype).reshape(shape).clone()


def accepted_len(target_probs, draft_probs, drafts):
    """Drafts before the first rejection [B]; accept iff u < p / q."""
    draft_len = drafts.shape[1]
    p = target_probs[:, :draft_len].gather(2, drafts.unsqueeze(-1)).squeeze(-1)
    q = draft_probs.gather(2, drafts.unsqueeze(-1)).squeeze(-1)
    accepted = torch.rand_like(p) < p / q
    return accepted.long().cumprod(dim=1).sum(dim=1)


def emit(drafts, tau, last_token):
    """Accepted drafts, then the recovered or bonus token, then -1: [B, K + 1]."""
    batch, draft_len = drafts.shape
    positions = torch.arange(draft_len + 1).expand(batch, -1)
    padded = torch.cat([drafts, torch.full((batch, 1), -1)], dim=1)
    tokens = torch.where(positions < tau.unsqueeze(1), padded, torch.full_like(padded, -1))
    return tokens.scatter_(1, tau.unsqueeze(1), last_token.unsqueeze(1))


def verify_all_positions(target_probs, draft_probs, drafts):
    """Residuals and recovered tokens of every position, one of which is then selected."""
    draft_len = drafts.shape[1]
    tau = accepted_len(target_probs, draft_probs, drafts)
    residual = (target_probs[:, :draft_len] - draft_probs).clamp_(min=0)
    residual /= residual.sum(dim=-1, keepdim=True)
    noise = torch.empty_like(residual).exponential_()
    recovered = residual.div_(noise).argmax(dim=-1)
    bonus = torch.multinomial(target_probs[:, draft_len], 1)
    last_token = torch.cat([recovered, bonus], dim=1).gather(1, tau.unsqueeze(1)).squeeze(1)
    return emit(drafts, tau, last_token)


def verify_selected_position(target_probs, draft_probs, drafts):
    """The residual of the first rejection alone; the bonus row counts as one with q = 0."""
    batch, draft_len = drafts.shape
    tau = accepted_len(target_probs, draft_probs, drafts)
    request = torch.arange(batch)
    residual = target_probs[request, tau]
    q = draft_probs[request, tau.clamp(max=draft_len - 1)]
    residual -= q * (tau < draft_len).unsqueeze(1)
    residual.clamp_(min=0)
    residual /= residual.sum(dim=-1, keepdim=True)
    return emit(drafts, tau, torch.multinomial(residual, 1).squeeze(1))


def draw(logits):
    return torch.multinomial(logits.softmax(dim=-1), 1)


def draw_race(logits):
    probs = logits.softmax(dim=-1)
    return probs.div_(torch.empty_like(probs).exponential_()).argmax(dim=-1)


def top_k(logits, k=50):
    least = logits.topk(k).values[..., -1:]
    return logits.masked_fill(logits < least, -float("inf"))


def top_p(logits, share=0.9):
    ordered, index = logits.sort(dim=-1, descending=True)
    probs = ordered.softmax(dim=-1)
    ordered = ordered.masked_fill(probs.cumsum(dim=-1) - probs >= share, -float("inf"))
    return torch.empty_like(logits).scatter_(-1, index, ordered)


def min_p(logits, share=0.05):
    probs = logits.softmax(dim=-1)
    return logits.masked_fill(probs < share * probs.max(dim=-1, keepdim=True).values, -float("inf"))


def fastest_ms(work, repeat):
    work()
    best = float("inf")
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    for name in ("batch", "draft-len", "vocab-size", "row-vocab-size", "repeat"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--threads", type=int, nargs="+", required=True)
    args = parser.parse_args()

    batch, draft_len, vocab = args.batch, args.draft_len, args.vocab_size
    logits = read(args.folder, "target_logits.f32", torch.float32, batch, draft_len + 1, vocab)
    target_probs = read(args.folder, "target_probs.f32", torch.float32, batch, draft_len + 1, vocab)
    draft_probs = read(args.folder, "draft_probs.f32", torch.float32, batch, draft_len, vocab)
    drafts = read(args.folder, "drafts.i32", torch.int32, batch, draft_len).long()
    row = read(args.folder, "row.f32", torch.float32, 1, args.row_vocab_size)

    row_work = {
        "row_mass": lambda: row.softmax(dim=-1),
        "row_greedy": lambda: row.argmax(dim=-1),
        "row_sample_inverse": lambda: draw(row),
        "row_sample_race": lambda: draw_race(row),
        "row_sample_inverse_t0.7": lambda: draw(row / 0.7),
        "row_top_k": lambda: draw(top_k(row)),
        "row_top_p": lambda: draw(top_p(row)),
        "row_min_p": lambda: draw(min_p(row)),
        "row_top_k_top_p": lambda: draw(top_p(top_k(row))),
    }
    variants = {"all_positions": verify_all_positions, "selected_position": verify_selected_position}
    verify_work = {
        "chain_verify_probabilities": lambda verify: verify(target_probs, draft_probs, drafts),
        "chain_verify_logits_f32": lambda verify: verify(logits.softmax(dim=-1), draft_probs, drafts),
    }

    results = []
    with torch.no_grad():
        torch.set_num_threads(1)
        for name, work in row_work.items():
            results.append({"name": name, "threads": 1, "ms": fastest_ms(work, 10 * args.repeat)})
        for threads in args.threads:
            torch.set_num_threads(threads)
            for name, work in verify_work.items():
                by_variant = {v: fastest_ms(lambda: work(f), args.repeat) for v, f in variants.items()}
                results.append({"name": name, "threads": threads, "ms": min(by_variant.values()), **by_variant})
    print(json.dumps({"version": torch.__version__, "results": results}, indent=1))


if __name__ == "__main__":
    main()
