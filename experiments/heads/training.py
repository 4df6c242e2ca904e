"""The loop: AdamW with a cosine over the time that is left; each minute acceptance on every third held-out text, at the
end on all; a checkpoint a minute, from which it goes on."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from prompts import WORKS
from target import Batch, Corpus, batch_of, batches

DEPTH = 3  # K of the acceptance that is printed


@torch.no_grad()
def acceptance(head: torch.nn.Module, held_out: Corpus, works: list[str], depth: int = DEPTH) -> dict:
    """At temperature 0: the target's token is the text's, since held-out texts are greedy. From every place of an
    answer whose `depth` next tokens are in the text: conditional acceptance by position, and acceptance length, the
    bonus token included."""
    head.eval()
    matches, kinds = [], []
    for begin in range(0, len(held_out.texts), 8):
        batch = batch_of(sorted(held_out.texts, key=lambda text: len(text.tokens))[begin:begin + 8])
        drafted, first = head.drafts(batch, depth)
        places = batch.predicts(first) & batch.predicts(first + depth - 1)
        texts = torch.stack([batch.ahead(first + step) for step in range(depth)])
        matches.append((drafted == texts)[:, places].cumprod(0).bool())
        kinds.append(batch.works[:, None].expand_as(places)[places])
    head.train()
    accepted, kind = torch.cat(matches, 1), torch.cat(kinds)
    counts = [accepted.shape[1], *accepted.sum(1).tolist()]
    result = {"length": round(1 + accepted.float().sum(0).mean().item(), 4), "places": counts[0],
              "conditional": [round(counts[i + 1] / max(counts[i], 1), 4) for i in range(depth)]}
    for work in WORKS:
        of_work = torch.tensor([works[int(i)] == work for i in kind])
        result[work] = round(1 + accepted[:, of_work].float().sum(0).mean().item(), 4)
    return result


def rate(progress: float, warm: float = 0.02) -> float:
    return min(1.0, progress / warm) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0))))


def train(head: torch.nn.Module, corpus: Corpus, held_out: Corpus, works: list[str], folder: Path, minutes: float,
          peak_rate: float, steps_at: Callable[[float], int], tokens_per_batch: int = 2048, seed: int = 1) -> None:
    """Trains for `minutes` in sum, those of interrupted runs included. Prints and keeps (curve.jsonl) one line a
    minute."""
    folder.mkdir(parents=True, exist_ok=True)
    matrices = [weight for weight in head.parameters() if weight.dim() > 1]
    vectors = [weight for weight in head.parameters() if weight.dim() == 1]
    optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01},
                                   {"params": vectors, "weight_decay": 0.0}],
                                  lr=peak_rate, betas=(0.9, 0.95), fused=True)
    state = {"seconds": 0.0, "steps": 0, "visits": 0, "cpu_seconds": 0.0}
    checkpoint = folder / "checkpoint.pt"
    if checkpoint.is_file():
        saved = torch.load(checkpoint, weights_only=True)
        head.load_state_dict(saved["head"])
        optimiser.load_state_dict(saved["optimiser"])
        state = saved["state"]
    draw = torch.Generator().manual_seed(seed + state["steps"])
    stream = batches(corpus, tokens_per_batch, draw)
    seconds, begin, begin_cpu = state["seconds"], time.monotonic(), time.process_time()
    cpu_seconds = state["cpu_seconds"]
    next_report, losses = seconds, []

    def save() -> None:
        partial = checkpoint.with_suffix(".part")
        torch.save({"head": head.state_dict(), "optimiser": optimiser.state_dict(), "state": state}, partial)
        os.replace(partial, checkpoint)

    every_third = Corpus(held_out.texts[::3], held_out.layers)

    def report(of: Corpus) -> None:
        line = {"minutes": round(state["seconds"] / 60, 2), "cpu_minutes": round(state["cpu_seconds"] / 60, 2),
                "steps": state["steps"], "visits": state["visits"],
                "loss": round(sum(losses) / max(len(losses), 1), 4), **acceptance(head, of, works)}
        with (folder / "curve.jsonl").open("a", encoding="utf-8") as curve:
            curve.write(json.dumps(line) + "\n")
        positions = " ".join(f"{value:.3f}" for value in line["conditional"])
        kinds = " ".join(f"{work} {line[work]:.2f}" for work in WORKS)
        print(f"{line['minutes']:6.1f} of {minutes:g} min  {line['steps']:6d} steps  {line['visits']:9d} visits  loss "
              f"{line['loss']:.3f}  "
              f"acceptance {positions}  length {line['length']:.3f}  ({kinds})", flush=True)
        losses.clear()

    while True:
        progress = state["seconds"] / (60 * minutes)
        if state["seconds"] >= next_report or progress >= 1:
            paused = time.monotonic(), time.process_time()
            report(held_out if progress >= 1 else every_third)
            save()
            begin += time.monotonic() - paused[0]  # training alone is timed
            begin_cpu += time.process_time() - paused[1]
            next_report = state["seconds"] + 60
        if progress >= 1:
            return
        for group in optimiser.param_groups:
            group["lr"] = peak_rate * rate(progress)
        batch: Batch = batch_of(next(stream))
        loss, visits = head.loss(batch, steps_at(progress))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
        state["steps"] += 1
        state["visits"] += visits
        state["seconds"] = seconds + time.monotonic() - begin
        state["cpu_seconds"] = cpu_seconds + time.process_time() - begin_cpu
