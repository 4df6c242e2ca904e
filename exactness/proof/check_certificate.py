#!/usr/bin/env python3
"""Checks a file of `draftproof prove --certificate FILE` with fractions and nothing of the project.

    check_certificate.py FILE        exit code 0: every statement of it holds; 1: one does not; 2: it cannot be read

Of every pair of models it checks that
  1. all distributions sum to 1,
  2. the outcomes are complete: at every decision the shares of the branches sum to 1,
  3. the outcomes add up to the stated distribution of emitted strings,
  4. completed by draws from p, that distribution is p's, string by string; or first differs where the file says so,
  5. of the cases in verifier_rules.py, beside this file: every outcome is what the paper's rule, written there again,
     does with these decisions, and every share is the one that the rule gives,
and that a lossless claim has no difference while another has one.
"""

import itertools
import json
import sys
from fractions import Fraction

from verifier_rules import RULES, Invalid, Replay, require


def read_rows(instance, vocab):
    """{prefix: (p, q)}, each a distribution over `vocab` tokens."""
    rows = {}
    for row in instance["rows"]:
        rows[tuple(row["prefix"])] = masses = [[Fraction(text) for text in row[name]] for name in "pq"]
        for name, m in zip("pq", masses):
            require(len(m) == vocab and min(m) >= 0 and sum(m) == 1,
                    f"{name} after {row['prefix']} is no distribution over {vocab} tokens")
    return rows


def read_outcomes(instance):
    """[(decisions, emitted)]; a decision is (address, outcome, share)."""
    return [([((purpose, row, index), outcome, Fraction(share))
              for purpose, row, index, outcome, share in outcome_of_step["decisions"]],
             tuple(outcome_of_step["emitted"])) for outcome_of_step in instance["outcomes"]]


def check_complete(outcomes, depth=0):
    """The outcomes are the leaves of one tree, whose branches share their parent's probability."""
    if any(len(outcome[0]) == depth for outcome in outcomes):
        return require(len(outcomes) == 1, "two outcomes have the same decisions")
    addresses = {decisions[depth][0] for decisions, _ in outcomes}
    require(len(addresses) == 1, f"after {depth} equal decisions two different ones follow: {sorted(addresses)}")
    branches = {}
    for outcome in outcomes:
        branches.setdefault(outcome[0][depth][1], []).append(outcome)
    total = Fraction(0)
    for branch in branches.values():
        shares = {decisions[depth][2] for decisions, _ in branch}
        require(len(shares) == 1 and min(shares) > 0, "a branch has two shares, or none")
        total += shares.pop()
        check_complete(branch, depth + 1)
    require(total == 1, f"the shares of decision {addresses.pop()} sum to {total}")


def distribution_of(outcomes):
    emitted = {}
    for decisions, string in outcomes:
        probability = Fraction(1)
        for _, _, share in decisions:
            probability *= share
        emitted[string] = emitted.get(string, 0) + probability
    return emitted


def first_difference(emitted, rows, vocab):
    """The shortest string, and of those the first, whose completed probability is not the product of p."""
    level = {(): (Fraction(0), Fraction(1))}  # string: completed so far from shorter ones, product of p
    require(sum(emitted.values()) == 1, "the emitted strings' probabilities do not sum to 1")
    for length in range(1, max(map(len, emitted)) + 1):
        passing = {}
        for string, probability in emitted.items():
            if len(string) >= length:
                passing[string[:length]] = passing.get(string[:length], 0) + probability
        following = {}
        for prefix, token in itertools.product(sorted(level), range(vocab)):
            completed, product = level[prefix]
            share = rows[prefix][0][token]
            string = prefix + (token,)
            carried = (completed + emitted.get(prefix, 0)) * share
            following[string] = carried, product * share
            if passing.get(string, 0) + carried != product * share:
                return string, passing.get(string, 0) + carried, product * share
        level = following
    return None


def check_instance(proof, instance):
    """Whether the emitted distribution differs from p's."""
    rows, outcomes = read_rows(instance, proof["vocab"]), read_outcomes(instance)
    check_complete(outcomes)
    emitted = distribution_of(outcomes)
    stated = {tuple(entry["string"]): Fraction(entry["probability"]) for entry in instance["emitted"]}
    require(emitted == stated, "the outcomes do not add up to the stated distribution")
    for decisions, string in outcomes if proof["verifier"] in RULES else []:
        chance = Replay(decisions)
        by_rule = RULES[proof["verifier"]](chance, rows, proof["draft"])
        require(by_rule == string and not chance.left, f"{string} is emitted; the rule gives {by_rule}")
    found = first_difference(emitted, rows, proof["vocab"])
    claimed = instance["difference"]
    if claimed is not None:
        claimed = tuple(claimed["string"]), Fraction(claimed["emitted"]), Fraction(claimed["expected"])
    require(found == claimed, f"the first difference is {found}; the file says {claimed}")
    return found is not None


def check(certificate):
    for proof in certificate["proofs"]:
        differing = 0
        for number, instance in enumerate(proof["instances"], start=1):
            try:
                differing += check_instance(proof, instance)
            except Invalid as error:
                raise Invalid(f"{proof['verifier']}, pair of models {number} ({instance['models']}): {error}") from None
        require(proof["instances"], f"{proof['verifier']}: no pair of models")
        if proof["claim"] == "lossless":
            require(differing == 0, f"{proof['verifier']} is claimed to be lossless and is refuted")
        else:
            require(differing > 0, f"{proof['verifier']} is claimed to be {proof['claim']} and is not refuted")
        print(f"{proof['verifier']}: {proof['claim']}, as stated, on {len(proof['instances'])} pairs of models"
              + (f", refuted on {differing}" if differing else "")
              + (", every decision by the paper's rule" if proof["verifier"] in RULES else ""))


def main(arguments):
    if len(arguments) != 1:
        print("usage: check_certificate.py FILE", file=sys.stderr)
        return 2
    try:
        with open(arguments[0], encoding="utf-8") as file:
            certificate = json.load(file)
        check(certificate)
    except Invalid as error:
        print(f"invalid: {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError, KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        print(f"{arguments[0]}: cannot be read as a certificate: {error!r}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
