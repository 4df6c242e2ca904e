"""How often is a sound sampler or verifier accused? Runs audit_callable again and again, each time with another seed.

python python/tests/false_alarms.py [--runs 10000] [--alpha 1e-6] [--seconds S] [--seed 0]

A run has one case of 1024 draws or steps, so that many fit into an hour: the level holds for any n. Ends with status 1 where
more runs accuse than the level lets with a probability of 1e-6.
"""

import argparse
import sys
import time

import numpy as np

import draftproof
from draftproof.callable.sample_cases import sample_cases
from draftproof.callable.verify_cases import verify_cases

N = 1024


def binomial_tail(k, n, p):
    """P(X >= k)."""
    log_p = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    i = np.arange(k, n + 1)
    return float(np.exp(log_p[n] - log_p[i] - log_p[n - i] + i * np.log(p) + (n - i) * np.log1p(-p)).sum())


def controls():
    """(name, kind, callable, cases); the callable has no state but the seeds that it is given."""
    samples = [case for case in sample_cases(False) if case.vocab_size <= 33 and case.batch == 256 and not case.may_raise]
    steps = [case for case in verify_cases() if case.vocab_size <= 5 and max(case.draft_lens) <= 3]
    return [("sample", "sample", draftproof.sample, samples),
            *((name, "verify", lambda *a, name=name: draftproof.verify(*a, verifier=name), steps)
              for name in ("chain", "block", "sampler_match"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--alpha", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    every = controls()
    rng = np.random.default_rng(given.seed)
    done, accused = 0, []
    while done < given.runs and time.monotonic() < end:
        name, kind, control, cases = every[done % len(every)]
        chosen = [cases[rng.integers(len(cases))]]
        seed = int(rng.integers(1 << 40))
        found = draftproof.audit_callable(control, kind=kind, tv=0.5, seed=seed, cases=chosen, alpha=given.alpha, n_max=N,
                                          failures_max=1)
        if found.verdict not in ("consistent", "inconclusive"):
            accused.append((name, [case.name for case in chosen], seed, found.sentence))
            print(f"accused: {accused[-1]}")
        done += 1
    print(f"{done} runs of {len(every)} sound controls at level {given.alpha:g}: {len(accused)} accused")
    return 1 if accused and binomial_tail(len(accused), done, given.alpha) < 1e-6 else 0


if __name__ == "__main__":
    sys.exit(main())
