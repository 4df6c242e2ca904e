"""draftproof.prove of a rule in Python: what the prover in C++ says of the same rules, on the same models, and what it
refuses."""

import random
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import draftproof

ROOT = Path(__file__).resolve().parents[2]


def example():
    """The rule of docs/exactness.md."""
    names = {}
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs/exactness.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    exec(code.partition("\nprint(")[0], names)
    return names["chain"]


def student(draft, p, q, chance):
    """Draws the recovered token from p: what was drafted and rejected comes out too rarely elsewhere."""
    for i, x in enumerate(draft):
        if not chance.accept(p[i][x] / q[i][x]):
            return draft[:i] + [chance.draw(p[i])]
    return draft + [chance.draw(p[len(draft)])]


def minus(p, q, weight=1):
    return [max(weight * a - b, Fraction(0)) for a, b in zip(p, q)]


def normed(masses):
    return [mass / sum(masses) for mass in masses] if any(masses) else masses


def block(draft, p, q, chance):
    kept, weight, accepted = 0, Fraction(1), Fraction(1)
    for i, x in enumerate(draft, start=1):
        weight = min(Fraction(1), weight * p[i - 1][x] / q[i - 1][x])
        rest = sum(minus(p[i], q[i], weight))
        if chance.accept(weight if i == len(draft) else rest / (rest + 1 - weight) if rest + 1 > weight else 1):
            kept, accepted = i, weight
    return draft[:kept] + [chance.draw(p[kept] if kept == len(draft) else minus(p[kept], q[kept], accepted))]


def sampler_match(draft, p, q, chance):
    for i in range(len(draft) + 1):
        y = chance.draw(p[i])
        if i == len(draft) or y != draft[i]:
            return [*draft[:i], y]


def rejection(replaced):
    def rule(draft, p, q, chance):
        path = ()
        while True:
            target, proposal = p[path], q[path]
            for x in draft.children(path):
                if chance.accept(target[x] / proposal[x]):
                    path += (x,)
                    break
                target = normed(minus(target, proposal))
                if not replaced:
                    proposal = normed([0 if y == x else mass for y, mass in enumerate(proposal)])
            else:
                return [*path, chance.draw(target)]
    return rule


def target_only(draft, p, q, chance):
    path = ()
    while siblings := draft.children(path):
        rest = [0 if x in siblings else mass for x, mass in enumerate(p[path])]
        chosen = chance.draw([p[path][x] for x in siblings] + [sum(rest)])
        if chosen == len(siblings):
            return [*path, chance.draw(rest)]
        path += (siblings[chosen],)
    return [*path, chance.draw(p[path])]


def traversal(draft, p, q, chance):
    stack, untried = [((), Fraction(1), p[()], q[()])], {}
    while True:
        path, weight, target, proposal = stack[-1]
        siblings = untried.setdefault(path, draft.children(path))
        if siblings:
            x = siblings[0]
            child = (*path, x)
            stack.append((child, min(Fraction(1), weight * target[x] / proposal[x]), p[child], q[child]))
        elif not path or chance.accept(weight):
            return [*path, chance.draw(target)]
        else:
            stack.pop()
            parent, weight, target, proposal = stack.pop()
            residual = minus(target, proposal, weight)
            x, s = untried[parent].pop(0), sum(residual)
            stack.append((parent, s / (s + 1 - weight) if s + 1 > weight else Fraction(1),
                          normed(residual) if s else target,
                          normed([0 if y == x else mass for y, mass in enumerate(proposal)])))


def typical(draft, p, q, chance):
    for i, x in enumerate(draft):
        if p[i][x] <= Fraction(1, 4):
            return draft[:i] + [chance.draw(p[i])]
    return draft + [chance.draw(p[len(draft)])]


def top_1_resample(draft, p, q, chance):
    for i, x in enumerate(draft):
        if not chance.accept(p[i][x] / q[i][x]):
            return draft[:i] + [p[i].index(max(p[i]))]
    return draft + [chance.draw(p[len(draft)])]


RULES = {"chain": (example(), "chain"), "block": (block, "chain"), "sampler_match": (sampler_match, "chain"),
         "tree_rrs": (rejection(True), "iid"), "tree_rrsw": (rejection(False), "distinct"),
         "rrsw_merged": (rejection(False), "paths"),
         "tree_target_only": (target_only, "distinct"), "traversal_merged": (traversal, "paths"),
         "typical_acceptance": (typical, "chain"), "top_k_resample": (top_1_resample, "chain")}


def available():
    try:
        return subprocess.run([draftproof.program(), "prove", "--help"], capture_output=True).returncode == 0
    except (draftproof.Error, OSError):
        return False


@pytest.mark.skipif(not available(), reason="the program is not built: ./draftproof test builds it")
@pytest.mark.parametrize("name", RULES)
def test_a_rule_in_python_is_what_the_prover_says_of_the_same_rule(name):
    rule, draft = RULES[name]
    case = {"rrsw_merged": "tree_rrsw_merged"}.get(name, name)
    options = {"num_speculative_tokens": 2, "instances": 7, "seed": 5}
    here = draftproof.prove(rule, draft=draft, **options)
    there = next(proof for proof in draftproof.prove(case, **options).proofs if proof.verifier == case)
    for key in ("exact", "instances", "vocab", "draft", "outcomes_enumerated", "mean_accepted", "total_variation_max"):
        assert here[key] == there[key], key
    assert here.exact == there.lossless and (here.counterexample is None) == here.exact
    if not here.exact:
        smallest = {"vocab": len(here.counterexample.p),
                    "num_speculative_tokens": here.counterexample.num_speculative_tokens}
        same = draftproof.prove(case, **{**options, **smallest}).proofs[0].counterexample
        assert {key: here.counterexample[key] for key in same} == dict(same)


def test_the_student_draws_the_recovered_token_from_p_and_sees_the_smallest_counterexample():
    found = draftproof.prove(student, instances=7, steps=1)
    one = found.counterexample
    assert (found.verdict, found.as_claimed, len(one.p), one.num_speculative_tokens, one.prefix) == ("refuted", False,
            2, 1, [])
    p, q = (list(map(Fraction, masses)) for masses in (one.p, one.q))
    x = one.token
    assert Fraction(one.probability_emitted) == min(p[x],
                                                    q[x]) + sum(minus(q,
                                                            p)) * p[x] != p[x] == Fraction(one.probability_expected)
    assert (f"string [{x}] comes out with probability {one.probability_emitted}, the target has "
            f"{one.probability_expected}" in found.sentence)


@pytest.mark.parametrize("rule, draft, said", [
    (example(), "chain", "python:chain: lossless, as stated, on 3 pairs of models\n"),
    (student, "chain", "python:student: lossy, as stated, on 3 pairs of models, refuted on "),
    (rejection(False), "distinct", "python:rule: lossless, as stated, on 3 pairs of models\n")])
def test_a_certificate_is_checked_without_this_project(tmp_path, rule, draft, said):
    file = tmp_path / "certificate.json"
    draftproof.prove(rule, draft=draft, num_speculative_tokens=2, steps=1, instances=3, certificate=file)
    checked = subprocess.run([sys.executable, "-B", ROOT / "exactness/proof/check_certificate.py", file],
                             capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "") and checked.stdout.startswith(said)


def test_drafters_of_ones_own_make_chains_and_trees():
    def greedy(q, depth, chance):
        drafts = []
        while len(drafts) < depth:
            drafts.append(q[drafts].index(max(q[drafts])))
        return drafts

    def two(q, depth, chance):
        first = chance.draw(q[()])
        return {(): sorted({first, 1 - first % 2})}

    def one_hot(draft, p, q, chance):
        for i, x in enumerate(draft):
            if not chance.accept(p[i][x]):
                return draft[:i] + [chance.draw([0 if y == x else mass for y, mass in enumerate(p[i])])]
        return draft + [chance.draw(p[len(draft)])]

    assert draftproof.prove(one_hot, draft=greedy, instances=7, steps=1, num_speculative_tokens=2).exact
    assert draftproof.prove(target_only, draft=two, instances=7).exact
    assert not draftproof.prove(rejection(True), draft=two, instances=7).exact  # these two are no draws from q


def test_a_rule_that_raises_is_refuted_by_its_draft():
    def forgets_zeros(draft, p, q, chance):
        return [chance.draw(minus(p[0], q[0]))]

    found = draftproof.prove(forgets_zeros, instances=7)
    assert not found.exact and found.counterexample.failure == "ValueError: a draw from masses that are all zero"
    assert len(found.counterexample.draft) == 1 and found.counterexample.draft_parents == [
            -1] and "it throws 'ValueError" in found.sentence
    divides = draftproof.prove(lambda draft, p, q, chance: [draft.children(())[9]], draft="iid", instances=1)
    assert divides.counterexample.failure.startswith("IndexError") and divides.counterexample.draft_parents == [-1, -1]
    silent = draftproof.prove(lambda draft, p, q, chance: [], instances=1)
    assert "it emits (); expected 1 to 2 tokens in [0, 2)" in silent.counterexample.failure
    halves = draftproof.prove(lambda draft, p, q, chance: [chance.draw(p[0]) + 0.5], instances=1)
    assert halves.counterexample.failure.startswith("TypeError: 'float' object")


@pytest.mark.parametrize("rule, options, said", [
    (lambda draft, p, q, chance: [chance.accept(0.5)], {}, "chance.accept got 0.5; expected a Fraction"),
    (lambda draft, p, q, chance: [chance.draw([0.5, 0.5])], {}, "chance.draw got 0.5; expected a Fraction"),
    (lambda draft, p, q, chance: [chance.accept(Fraction(1, next(counted))) + 0], {}, "after the same decisions"),
    (lambda draft, p, q, chance: [0 for _ in iter(lambda: chance.accept(1), False)], {},
     "more than 400 decisions in a step"),
    (lambda draft, p, q, chance: [*draft, chance.draw(p[len(draft)])] if random.random() < 0.5 else [chance.draw(p[0])],
     {},
     "after the same decisions"),
    (lambda draft, p, q, chance: [random.randrange(3)], {},
     r"emits \(\d\), and the first time it emits \(\d\), after the same decisions"),
    (lambda draft, p, q, chance: [chance.draw(p[0])] if random.random() < 0.9 else [1 / 0], {},
     "after the same decisions"),
    (lambda draft, p, q: [0], {},
     r"rule: <lambda>\(draft, p, q\) cannot be called with \(draft, p, q, chance\): too many"),
    (lambda draft, p, q, chance, u: [0], {}, "missing a required argument: 'u'"),
    (student, {"draft": lambda q: []},
     r"draft: <lambda>\(q\) cannot be called with \(q, num_speculative_tokens, chance\)"),
    (student, {"vocab": 1}, r"vocab: is 1; expected a whole number in \[2, 6\]"),
    (student, {"draft": "tree"}, "draft: is 'tree'; expected 'chain'"),
    (student, {"draft": "iid", "branches": 0}, "branches: is 0")])
def test_what_is_no_rule_is_an_error_at_once(rule, options, said):
    with pytest.raises(draftproof.Error, match=said):
        draftproof.prove(rule, **options)


counted = iter(range(2, 1 << 30))


def test_an_interrupt_says_how_far_the_proof_was_and_that_nothing_is_kept():
    def interrupted(draft, p, q, chance):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="prove interrupted: interrupted after 0 of 20 pairs of models"):
        draftproof.prove(interrupted)
