"""How often is a sound sampler or verifier accused? Runs audit_callable again and again, each time with another seed.

python python/tests/false_alarms.py [--sweep | --whole] [--runs 10000] [--first N] [--alpha 1e-6] [--seconds S] [--seed
0] [--json FILE]

A run audits one control with one small case, up to 2048 draws or steps in two looks, so that many fit into an hour: the
level holds for any n. With --sweep a run is one entry of the sweep with its own draws, of at most so many logits that
it takes less than half a second; with --whole a `quick` audit as users run it, of a minute. Run i is the same whatever
ran before it: --first goes on where another ended. Ends with status 1 where more runs accuse than the level lets with a
probability of 1e-6. --json appends what was run to FILE.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import draftproof
from draftproof.callable.cases.request_cases import RequestEntry, request_cases
from draftproof.callable.cases.request_params import FACTORS
from draftproof.callable.cases.sample_cases import sample_cases
from draftproof.callable.cases.sample_sweep import sample_sweep
from draftproof.callable.cases.verify_cases import verify_cases
from draftproof.callable.cases.verify_sweep import verify_sweep
from draftproof.callable.drive.drive import Driver
from draftproof.callable.drive.schedule import run_of
from draftproof.planted.sound import Filter, Sampler, Verifier

N = 2048


def binomial_tail(k, n, p):
    """P(X >= k)."""
    log_p = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    i = np.arange(k, n + 1)
    return float(np.exp(log_p[n] - log_p[i] - log_p[n - i] + i * np.log(p) + (n - i) * np.log1p(-p)).sum())


def controls():
    """(name, kind, callable, cases); the callable has no state but the seeds that it is given."""
    samples = [case for case in sample_cases(False) if case.vocab_size <= 33 and case.batch == 256
               and not case.may_raise]
    steps = [case for case in verify_cases() if case.vocab_size <= 5 and max(case.draft_lens) <= 3]
    return [("sample", "sample", draftproof.sample, samples),
            ("sample by race", "sample", lambda *a: draftproof.sample(*a, sampler="race"), samples),
            *((name, "verify", lambda *a, name=name: draftproof.verify(*a, verifier=name), steps)
              for name in ("chain", "block", "sampler_match")),
            ("chain in numpy", "verify", Verifier(), steps)]


def swept():
    """(name, callable, entry) of every sound control and every entry of the sweep that is quick."""
    samplers = [("sample", draftproof.sample), ("sample by race", lambda *a: draftproof.sample(*a, sampler="race")),
                ("sampler in numpy", Sampler())]
    verifiers = [*((name, lambda *a, name=name: draftproof.verify(*a, verifier=name))
                   for name in ("chain", "block", "sampler_match")),
                 ("verifier in numpy", Verifier())]
    draws = [entry for entry in sample_sweep(True) if entry.size < 1 << 19]
    steps = [entry for entry in verify_sweep(True) if not entry.name.startswith("V = ") and entry.n < 3000]
    requests = [(kind, getattr(draftproof, kind), RequestEntry(case.name, min(case.n_max, 144), lambda case=case: case))
                for kind in ("sample", "verify") for case in request_cases(kind,
                        tuple(name for name in FACTORS if name not in ("penalty_last_n", "bitmask")), True, True)
                if case.batch <= 24 and case.vocab_size < 100]
    return requests + [(name, control, entry) for group, entries in ((samplers, draws), (verifiers, steps)) for name,
                       control in group
                       for entry in entries]


def whole():
    """(name, kind, callable) of every sound control."""
    return [("sample", "sample", draftproof.sample),
            ("sample by race", "sample", lambda *a: draftproof.sample(*a, sampler="race")),
            ("sampler in numpy", "sample", Sampler()), ("filter in numpy", "filter", Filter()),
            *((name, "verify", lambda *a, name=name: draftproof.verify(*a, verifier=name))
              for name in ("chain", "block", "sampler_match")),
            ("verifier in numpy", "verify", Verifier())]


def run_swept(control, entry, seed, alpha):
    """What an audit would say of one entry: '' or the failure's sentence."""
    case = entry.make()
    run = run_of(Driver(control, 60.0), case, seed)
    run.draw(entry.n)
    judgement = run.judge(alpha)
    return f"{case.name}: {judgement.name}: {judgement.sentence}" if judgement.biased else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--alpha", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    every = swept() if given.sweep else whole() if given.whole else controls()
    run, accused = given.first, 0
    while run < given.first + given.runs and time.monotonic() < end:
        rng = np.random.default_rng([given.seed, run])
        if given.sweep:
            name, control, entry = every[rng.integers(len(every))]
            if sentence := run_swept(control, entry, int(rng.integers(1 << 40)), given.alpha):
                accused += 1
                print(f"run {run}, {name}, {sentence}", flush=True)
            run += 1
            continue
        if given.whole:
            name, kind, control = every[run % len(every)]
            seed = int(rng.integers(1 << 40))
            found = draftproof.audit_callable(control, kind=kind, seed=seed, alpha=given.alpha, profile="quick")
            if found.verdict in ("biased", "error"):
                accused += 1
                print(f"run {run}, {name}, seed {seed}: {found.sentence}", flush=True)
            run += 1
            continue
        name, kind, control, cases = every[run % len(every)]
        case, seed = cases[rng.integers(len(cases))], int(rng.integers(1 << 40))
        found = draftproof.audit_callable(control, kind=kind, tv=0.5 if rng.random() < 0.5 else 0.05, seed=seed,
                                          cases=[case], alpha=given.alpha, n_max=N, failures_max=1)
        if found.verdict not in ("consistent", "inconclusive"):
            accused += 1
            print(f"run {run}, {name}, {case.name}, seed {seed}: {found.sentence}", flush=True)
        run += 1
        if run % 1000 == 0:
            print(f"run {run}: {accused} accused", flush=True)
    done = run - given.first
    print(f"{done} runs of {len({row[0] for row in every})} sound "
          f"controls{' over the sweep' if given.sweep else ', whole,' if given.whole else ''} at level "
          f"{given.alpha:g}: {accused} accused")
    if given.json:
        with open(given.json, "a", encoding="utf-8") as out:
            out.write(json.dumps({"runs": done, "first": given.first, "seed": given.seed, "alpha": given.alpha,
                                  "accused": accused}) + "\n")
    return 1 if accused and binomial_tail(accused, done, given.alpha) < 1e-6 else 0


if __name__ == "__main__":
    sys.exit(main())
