"""Rows of logits that the program computed, with the tokens before them: what the comparisons beside this file
judge."""

import pathlib
import subprocess
import tempfile

import numpy as np
from safetensors.numpy import load_file

PROMPTS = [
    "The ferry left the harbour an hour late, and by the time the island came into sight the ferry left the harbour",
    "def mean(values):\n    total = 0\n    for value in values:\n        total += value\n    return total / "
    "len(values)\n\n\ndef mean(",
]


def verified_steps(program, model_path, arithmetic):
    """Of every verification step in the traces of the prompts: context, draft, and the logits behind each of its
    tokens.

    The program answers two prompts with speculation and writes every row of logits that it verified as a trace.
    """
    for prompt in PROMPTS:
        with tempfile.TemporaryDirectory() as folder:
            trace_path = str(pathlib.Path(folder) / "trace.safetensors")
            # A penalty makes the trace hold the histories; its rows are those before penalties.
            subprocess.run(
                [program, "generate", "--model", model_path, "--prompt", prompt, "--drafter", "suffix", "--policy",
                 "fixed:4", "--max-tokens", "16",
                 "--repetition-penalty", "1.02", "--activations", arithmetic, "--trace", trace_path], check=True,
                stdout=subprocess.DEVNULL)
            trace = load_file(trace_path)
        ends = {name: np.concatenate([[0], trace[name]])
                for name in ("cu_num_draft_tokens", "cu_prompt_tokens", "cu_output_tokens")}
        first_row = 0
        for step in range(len(trace["cu_num_draft_tokens"])):
            def part(name, cu):
                return list(trace[name][ends[cu][step]:ends[cu][step + 1]]) if name in trace else []
            context = part("prompt_tokens", "cu_prompt_tokens") + part("output_tokens", "cu_output_tokens")
            draft = part("draft_tokens", "cu_num_draft_tokens")
            yield context, draft, trace["target_logits"][first_row:first_row + len(draft) + 1]
            first_row += len(draft) + 1


def differences(compared):
    """Of pairs of rows (logits, those expected): in words, and their mean."""
    errors, equal, divergences = [], 0, []
    for logits, expected in compared:
        ours, theirs = logits.astype(np.float64), expected.astype(np.float64)
        errors.append(np.abs(ours - theirs))
        equal += int(ours.argmax() == theirs.argmax())
        log_q, log_p = (x - x.max() - np.log(np.exp(x - x.max()).sum()) for x in (ours, theirs))
        divergences.append(float((np.exp(log_p) * (log_p - log_q)).sum()))
    error = np.stack(errors)
    text = (f"{len(errors)} rows, top-1 equal in {equal}, |difference| mean {error.mean():.2g} max {error.max():.2g}, "
            f"KL {np.mean(divergences):.2g}")
    return text, float(error.mean())
