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
import re
import sys
from fractions import Fraction

from verifier_rules import RULES, Invalid, Replay, bounded, require

#: Numbers of a certificate at most: bytes of the file, digits of a numerator or denominator, tokens, drafts, decisions
#: of an outcome.
BYTES, DIGITS, VOCAB, DRAFT, DECISIONS = 1 << 30, 1000, 1 << 12, 64, 400
CLAIMS = ("lossless", "lossy", "biased")
FRACTION = re.compile(r"([0-9]{1,%d})(?:/([0-9]{1,%d}))?" % (DIGITS, DIGITS))


class Unreadable(Exception):
    """What the file holds is no certificate."""


def readable(holds, message):
    if not holds:
        raise Unreadable(message)


def fraction(text):
    found = FRACTION.fullmatch(text) if isinstance(text, str) else None
    readable(found and (found[2] is None or int(found[2])),
             f"{shown(text)} is no fraction; expected '3/7' in {DIGITS} digits at most")
    return Fraction(int(found[1]), int(found[2] or 1))


def whole(value, least, most, what):
    readable(type(value) is int and least <= value <= most,
             f"{what} is {shown(value)}; expected a whole number in [{least}, {most}]")
    return value


def list_of(value, what, least=0):
    readable(isinstance(value, list), f"{what} is {shown(value)}; expected a list")
    require(len(value) >= least, f"{what} is empty")
    return value


def string_of(value, vocab, what):
    return tuple(whole(token, 0, vocab - 1, f"a token of {what}") for token in list_of(value, what))


def field(value, name):
    readable(isinstance(value, dict) and name in value, f"'{name}' is missing in {shown(value)}")
    return value[name]


def shown(value):
    """A value of the file, for people: short, and without characters that a terminal obeys."""
    text = value if isinstance(value, str) else repr(value) if isinstance(value, (int, float, bool, type(None))) and (
        type(value) is not int or value.bit_length() < 200) else f"a {type(value).__name__}"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:80]) + ("..." if len(text) > 80 else "")


def total(masses):
    """Their sum, of which no part may grow beyond what a check can bear."""
    sum_so_far = Fraction(0)
    for mass in masses:
        sum_so_far = bounded(sum_so_far + mass)
    return sum_so_far


class Rows(dict):
    def __missing__(self, prefix):
        raise Invalid(f"the rows after {list(prefix)} are missing")


def read_rows(instance, vocab):
    """{prefix: (p, q)}, each a distribution over `vocab` tokens."""
    rows = Rows()
    for row in list_of(field(instance, "rows"), "rows", 1):
        prefix = string_of(field(row, "prefix"), vocab, "a prefix")
        require(prefix not in rows, f"the rows after {list(prefix)} stand twice")
        rows[prefix] = masses = [[fraction(text) for text in list_of(field(row, name), name)] for name in "pq"]
        for name, m in zip("pq", masses):
            require(len(m) == vocab and total(m) == 1,
                    f"{name} after {list(prefix)} is no distribution over {vocab} tokens")
    return rows


def read_decision(decision):
    readable(isinstance(decision, list) and len(decision) == 5 and isinstance(decision[0], str),
             f"a decision is {shown(decision)}; expected [purpose, row, index, outcome, share]")
    purpose, row, index, outcome, share = decision
    row, index, outcome = (whole(value, 0, (1 << 32) - 1, "a number of a decision") for value in (row, index, outcome))
    return (shown(purpose), row, index), outcome, fraction(share)


def read_outcomes(instance, vocab):
    """[(decisions, emitted)]; a decision is (address, outcome, share)."""
    outcomes = []
    for one in list_of(field(instance, "outcomes"), "outcomes", 1):
        decisions = [read_decision(decision) for decision in list_of(field(one, "decisions"), "decisions")]
        readable(len(decisions) <= DECISIONS,
                 f"an outcome has {len(decisions)} decisions; expected {DECISIONS} at most")
        emitted = string_of(field(one, "emitted"), vocab, "an emitted string")
        require(emitted, "an outcome emits nothing")
        outcomes.append((decisions, emitted))
    return outcomes


def read_emitted(instance, vocab):
    stated = {}
    for entry in list_of(field(instance, "emitted"), "emitted", 1):
        string = string_of(field(entry, "string"), vocab, "an emitted string")
        require(string not in stated, f"the string {list(string)} stands twice in the stated distribution")
        stated[string] = fraction(field(entry, "probability"))
    return stated


def check_complete(outcomes, depth=0):
    """The outcomes are the leaves of one tree, whose branches share their parent's probability."""
    if any(len(outcome[0]) == depth for outcome in outcomes):
        return require(len(outcomes) == 1, "two outcomes have the same decisions")
    addresses = {decisions[depth][0] for decisions, _ in outcomes}
    require(len(addresses) == 1, f"after {depth} equal decisions two different ones follow: {sorted(addresses)}")
    branches = {}
    for outcome in outcomes:
        branches.setdefault(outcome[0][depth][1], []).append(outcome)
    every = []
    for branch in branches.values():
        shares = {decisions[depth][2] for decisions, _ in branch}
        require(len(shares) == 1 and min(shares) > 0, "a branch has two shares, or none")
        every.append(shares.pop())
        check_complete(branch, depth + 1)
    require(total(every) == 1, f"the shares of decision {addresses.pop()} sum to {total(every)}")


def distribution_of(outcomes):
    emitted = {}
    for decisions, string in outcomes:
        probability = Fraction(1)
        for _, _, share in decisions:
            probability = bounded(probability * share)
        emitted[string] = bounded(emitted.get(string, 0) + probability)
    return emitted


def first_difference(emitted, rows, vocab):
    """The shortest string, and of those the first, whose completed probability is not the product of p."""
    level = {(): (Fraction(0), Fraction(1))}  # string: completed so far from shorter ones, product of p
    require(total(emitted.values()) == 1, "the emitted strings' probabilities do not sum to 1")
    for length in range(1, max(map(len, emitted)) + 1):
        passing = {}
        for string, probability in emitted.items():
            if len(string) >= length:
                passing[string[:length]] = bounded(passing.get(string[:length], 0) + probability)
        following = {}
        for prefix, token in itertools.product(sorted(level), range(vocab)):
            completed, product = level[prefix]
            share = rows[prefix][0][token]
            string = prefix + (token,)
            carried = bounded((completed + emitted.get(prefix, 0)) * share)
            following[string] = carried, bounded(product * share)
            if passing.get(string, 0) + carried != product * share:
                return string, passing.get(string, 0) + carried, product * share
        level = following
    return None


def check_instance(verifier, vocab, draft, instance):
    """(Whether the emitted distribution differs from p's, what tells the pair of models from others)."""
    rows, outcomes = read_rows(instance, vocab), read_outcomes(instance, vocab)
    check_complete(outcomes)
    emitted = distribution_of(outcomes)
    require(emitted == read_emitted(instance, vocab), "the outcomes do not add up to the stated distribution")
    for decisions, string in outcomes if verifier in RULES else []:
        chance = Replay(decisions)
        by_rule = RULES[verifier](chance, rows, draft)
        require(by_rule == string and not chance.left, f"{string} is emitted; the rule gives {by_rule}")
    found = first_difference(emitted, rows, vocab)
    claimed = field(instance, "difference")
    if claimed is not None:
        claimed = (string_of(field(claimed, "string"), vocab, "the difference"), fraction(field(claimed, "emitted")),
                   fraction(field(claimed, "expected")))
    require(found == claimed, f"the first difference is {found}; the file says {claimed}")
    return found is not None, tuple(sorted((prefix, tuple(map(tuple, row))) for prefix, row in rows.items()))


def check_proof(proof, seen):
    """The sentence of a proof that holds. seen: pairs of models of each verifier so far."""
    verifier, claim = field(proof, "verifier"), field(proof, "claim")
    readable(isinstance(verifier, str) and verifier, f"'verifier' is {shown(verifier)}; expected a name")
    readable(claim in CLAIMS, f"the claim of {shown(verifier)} is {shown(claim)}; expected one of {', '.join(CLAIMS)}")
    vocab, draft = whole(field(proof, "vocab"), 1, VOCAB, "'vocab'"), whole(field(proof, "draft"), 0, DRAFT, "'draft'")
    differing, pairs, listed = 0, seen.setdefault((verifier, vocab, draft), set()), list_of(field(proof, "instances"),
            "instances")
    require(listed, f"{shown(verifier)}: no pair of models")
    before = len(pairs)
    for number, instance in enumerate(listed, start=1):
        try:
            differs, pair = check_instance(verifier, vocab, draft, instance)
        except Invalid as error:
            models = shown(instance.get("models", "")) if isinstance(instance, dict) else ""
            raise Invalid(f"{shown(verifier)}, pair of models {number} ({models}): {error}") from None
        differing += differs and pair not in pairs
        pairs.add(pair)
    new = len(pairs) - before
    require(new, f"{shown(verifier)}: every pair of models stands in a proof before")
    if claim == "lossless":
        require(differing == 0, f"{shown(verifier)} is claimed to be lossless and is refuted")
    else:
        require(differing > 0, f"{shown(verifier)} is claimed to be {claim} and is not refuted")
    return (f"{shown(verifier)}: {claim}, as stated, on {new} pair{'s' * (new > 1)} of models" +
            (f", refuted on {differing}" if differing else "")
            + (", every decision by the paper's rule" if verifier in RULES else "")
            + (f"; {len(listed) - new} that repeat others are not counted" if len(listed) > new else ""))


def check(certificate):
    """The sentences of its proofs, each of which holds."""
    proofs, seen = list_of(field(certificate, "proofs"), "proofs", 1), {}
    return [check_proof(proof, seen) for proof in proofs]


def unique(pairs):
    found = {}
    for key, value in pairs:
        readable(key not in found, f"'{shown(key)}' stands twice in an object")
        found[key] = value
    return found


def no_number(text):
    raise Unreadable(f"{shown(text)} is no number of a certificate; expected whole numbers, and fractions as texts")


def read(path):
    with open(path, "rb") as file:
        text = file.read(BYTES + 1)
    readable(len(text) <= BYTES, f"it has more than {BYTES} bytes")
    return json.loads(text.decode(), object_pairs_hook=unique, parse_float=no_number, parse_constant=no_number,
                      parse_int=lambda text: int(text) if len(text) <= 20 else no_number(text))


def main(arguments):
    if len(arguments) != 1:
        print("usage: check_certificate.py FILE", file=sys.stderr)
        return 2
    try:
        sentences = check(read(arguments[0]))
    except (Invalid, ZeroDivisionError) as error:  # a rule divides by what a draft was not drawn from
        print(f"invalid: {error}", file=sys.stderr)
        return 1
    except (Unreadable, OSError, ValueError, RecursionError, MemoryError) as error:
        print(f"{shown(arguments[0])}: cannot be read as a certificate: {str(error) or type(error).__name__}",
              file=sys.stderr)
        return 2
    print("\n".join(sentences))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
