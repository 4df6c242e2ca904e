"""Filters and penalties that engines have, against their definitions counted in fractions: rows are logarithms of whole
numbers."""

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import draftproof
from draftproof.callable.drive.request_rows import READINGS, Row, shaped

V = 12
decimal.getcontext().prec = 60
#: What float32 logarithms move a number by, and more.
NEAR = Fraction(1, 100_000)


def rows(count, seed):
    """Whole numbers with ties; a quarter of the rows are flat."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 60, (count, V))
    weights[::4] = rng.integers(1, 3, (len(weights[::4]), V))
    return weights


def kept_of(weights, **params):
    found = draftproof.process_rows(np.log(weights.astype(np.float64)).astype(np.float32), **params).probabilities
    return [set(np.flatnonzero(row).tolist()) for row in found]


def ranked(row):
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


def by_definition(rule, weights, **params):
    """Rows whose sets are known: a rule gives a set, or None where rounding decides."""
    due = [rule([int(w) for w in row]) for row in weights]
    assert sum(one is not None for one in due) > len(due) // 2
    for row, one, found in zip(weights, due, kept_of(weights, **params)):
        assert one is None or found == one, (params, row)
    assert len({frozenset(one) for one in due if one is not None}) > 10  # the rule was seen to cut


@pytest.mark.parametrize("norm", [False, True])
def test_p_less_keeps_what_is_as_likely_as_two_draws_are_to_agree(norm):
    def rule(row):
        total = sum(row)
        squares = sum(w * w for w in row)
        threshold = Fraction(squares, total * total)
        if norm:
            threshold = (V * threshold - 1) / (V - 1)
        p = [Fraction(w, total) for w in row]
        if any(one != threshold and abs(one - threshold) < NEAR for one in p):
            return None
        return {i for i, one in enumerate(p) if one >= threshold} or None

    weights = rows(400, 1)
    by_definition(rule, weights[[len(set(row)) > 1 for row in weights]], p_less=1 + norm)
    flat = np.ones((1, V), int)  # all are as likely as the threshold
    assert kept_of(flat, p_less=1 + norm) == [set(range(V))]


def entropy(p):
    total = sum(p)
    return -sum((Decimal(w) / total) * (Decimal(w) / total).ln() for w in p)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.75])
def test_top_h_keeps_the_longest_prefix_within_its_share_of_the_entropy(alpha):
    def rule(row):
        order = ranked(row)
        most = Decimal(alpha) * entropy(row)
        kept = [order[0]]
        for i in order[1:]:
            h = entropy([row[j] for j in [*kept, i]])
            if abs(h - most) < Decimal("1e-5"):
                return None
            if h > most:
                break
            kept.append(i)
        return set(kept)

    by_definition(rule, rows(300, 2), top_h=alpha)
    assert kept_of(rows(40, 3), top_h=1.0) == [set(range(V))] * 40


@pytest.mark.parametrize("rule", range(4))
def test_top_p_has_the_readings_of_engines_at_its_boundary(rule):
    def kept(row, p=Fraction(2, 5), exact=False):
        order = sorted(ranked(row), key=lambda i: (-row[i], -i)) if rule == 3 else ranked(row)
        out, total = [], sum(row)
        for i in order:
            before = Fraction(sum(row[j] for j in out), total)
            after = before + Fraction(row[i], total)
            # 'ascending' counts from the end: the mass through i in that order is 1 - before.
            stays = [before < p, before <= p, after <= p, 1 - before > 1 - p][rule]
            if not exact and min(abs(before - p), abs(after - p)) < NEAR:
                return None
            if not stays and out:
                break
            out.append(i)
        return set(out)

    by_definition(kept, rows(300, 5), top_p=0.4, top_p_rule=rule)
    for order in ("joint", "top_k_first"):  # of the three left in each row, or of all and then these
        weights = rows(100, 6)
        for row, found in zip(weights, kept_of(weights, top_p=0.4, top_p_rule=rule, top_k=3, filter_order=order)):
            row, first = [int(w) for w in row], ranked(row)[:3]
            of_three = kept([w if i in first else 0 for i, w in enumerate(row)])
            due = of_three if order == "top_k_first" else (kept(row) or set()) & set(first) or {first[0]}
            assert of_three is None or kept(row) is None or found == due, (rule, order, row)
    # The rows that tell them apart, whose masses are exact.
    halves, quarters = np.array([[2, 1, 1]]), np.array([[1, 1, 1, 1]])
    assert kept_of(halves, top_p=0.625, top_p_rule=rule) == [[{0, 1}, {0, 1}, {0}, {0, 2}][rule]]
    assert kept_of(quarters, top_p=0.5, top_p_rule=rule) == [[{0, 1}, {0, 1, 2}, {0, 1}, {2, 3}][rule]]
    # of Omniinfer's sampler, with rule 3
    assert kept_of(quarters, top_p=0.5, top_p_rule=rule, ties="keep_all") == [{0, 1, 2, 3}]
    for row, p in (([2, 1, 1], Fraction(5, 8)), ([1, 1, 1, 1], Fraction(1, 2))):
        assert kept_of(np.array([row]), top_p=float(p), top_p_rule=rule) == [kept(row, p, exact=True)]


def test_draws_of_a_reading_of_top_p_are_judged_by_it():
    logits, rng = np.log(np.array([[2.0, 1.0, 1.0]])).astype(np.float32), np.random.default_rng(7)
    draws = {rule: rng.choice(sorted(kept), 4000) for rule, kept in ((1, {0, 1}), (2, {0}), (3, {0, 2}))}
    draws[1] = rng.choice([0, 1], 4000, p=[2 / 3, 1 / 3])
    draws[3] = rng.choice([0, 2], 4000, p=[2 / 3, 1 / 3])
    for rule, drawn in draws.items():
        for other in draws:
            found = draftproof.audit_draws(drawn, logits, {"top_p": 0.625, "top_p_rule": other}, tv_wanted=0.2)
            assert (found.verdict == "consistent") == (rule == other), (rule, other, found.sentence)


def test_every_filter_leaves_min_tokens_to_keep():
    def prefix(share, least):
        def rule(row):
            before, kept = 0, set()
            for rank, i in enumerate(ranked(row)):
                if abs(Fraction(before, sum(row)) - Fraction(share)) < NEAR:
                    return None
                if Fraction(before, sum(row)) < Fraction(share) or rank < least:
                    kept.add(i)
                before += row[i]
            return kept
        return rule

    def cutoff(limit_of, least):
        def rule(row):
            p = [Fraction(w, sum(row)) for w in row]
            limit = Fraction(limit_of(p))
            if any(abs(one - limit) < NEAR for one in p):
                return None
            return {i for rank, i in enumerate(ranked(row)) if p[i] >= limit or rank < least}
        return rule

    def typical(share, least):
        def rule(row):
            total, h = sum(row), entropy(row)
            off = {i: abs(-(Decimal(row[i]) / total).ln() - h) for i in range(V)}
            order = sorted(ranked(row), key=off.__getitem__)
            if any(0 < b - a < Decimal("1e-5") for a, b in itertools.pairwise(sorted(off.values()))):
                return None
            before, kept = 0, set()
            for rank, i in enumerate(order):
                if abs(Fraction(before, total) - Fraction(share)) < NEAR:
                    return None
                if Fraction(before, total) < Fraction(share) or rank < least:
                    kept.add(i)
                before += row[i]
            return kept
        return rule

    weights = rows(300, 4)
    for least in (1, 3, 7):
        by_definition(prefix(0.4, least), weights, top_p=0.4, min_tokens_to_keep=least)
        by_definition(prefix(0.4, least), weights, top_p=0.4, min_tokens_to_keep=least, filter_order="top_k_first")
        by_definition(cutoff(lambda p: 0.6 * float(max(p)), least), weights, min_p=0.6, min_tokens_to_keep=least)
        by_definition(cutoff(lambda p: 0.11, least), weights, epsilon_cutoff=0.11, min_tokens_to_keep=least)
        assert [len(kept) for kept in kept_of(weights, top_k=2, min_tokens_to_keep=least)] == [max(2, least)] * 300
        by_definition(typical(0.2, least), weights[[len(set(row)) == V - 2 for row in weights]], typical_p=0.2,
                      min_tokens_to_keep=least)
    assert kept_of(weights[:8], top_p=0.01, min_p=0.99, min_tokens_to_keep=50) == [set(range(V))] * 8


def test_adaptive_p_favours_what_is_near_its_target():
    weights = rows(60, 5)
    for target, mean in ((0.3, -1.0), (0.1, 0.25), (0.6, 0.2), (1.0, 0.0)):
        got = draftproof.process_rows(np.log(weights).astype(np.float32), adaptive_target=target, adaptive_mean=mean,
                                      top_k=8).probabilities
        aim = min(Fraction(1), max(Fraction(0), 2 * Fraction(target) - Fraction(target if mean < 0 else mean)))
        for row, found in zip(weights.tolist(), got):
            kept = ranked(row)[:8]
            x = {}
            for i in kept:
                d = abs(Fraction(row[i], sum(row[j] for j in kept)) - aim) / Fraction(3, 10)
                x[i] = 5 - 10 * d * d / (1 + d)
            e = {i: (Decimal(one.numerator) / one.denominator).exp() for i, one in x.items()}
            due = [float(e[i] / sum(e.values())) if i in e else 0.0 for i in range(V)]
            np.testing.assert_allclose(found, due, rtol=2e-5, atol=1e-9)
    with pytest.raises(draftproof.Error, match="adaptive_target is 1.5"):
        draftproof.process_rows(np.zeros((1, V), np.float32), adaptive_target=1.5)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_n_gram_comes_twice_over_prompt_and_output(n):
    rng = np.random.default_rng(6)
    banned = 0
    for _ in range(200):
        text = rng.integers(0, 4, int(rng.integers(0, 14))).tolist()
        cut = int(rng.integers(0, len(text) + 1))
        due = set()
        for token in range(V):
            grams = [tuple([*text, token][i:i + n]) for i in range(len(text) + 2 - n)]
            if not (grams and grams[-1] in grams[:-1]):
                due.add(token)
        banned += V - len(due)
        kept = kept_of(np.ones((1, V), int), no_repeat_ngram_size=n, prompt_tokens=[text[:cut]],
                       output_tokens=[text[cut:]])
        assert kept == [due], (text, n)
    assert banned > 20


def test_dry_goes_across_no_breaker():
    text = [1, 2, 3, 4, 0, 1, 2, 3]
    logits = np.zeros((2, 6), np.float32)
    p = draftproof.process_rows(logits, prompt_tokens=[text] * 2, dry_multiplier=0.8,
                                dry_breakers=[[], [2]]).probabilities
    lowered = Decimal(float(np.float32(0.8))) * Decimal(float(np.float32(1.75)))
    assert float(p[0, 4] / p[0, 0]) == pytest.approx(float((-lowered).exp()), rel=1e-6)  # "1 2 3" would go on with 4
    assert p[1, 4] == p[1, 0]  # "3" alone is shorter than two tokens
    with pytest.raises(draftproof.Error, match="dry_breakers"):
        draftproof.process_rows(logits, dry_multiplier=0.8, dry_breakers=[[7], []])


WINDOWS = dict(zip(("whole_prompt", "alike", "output", "joint"), READINGS["penalty window"]))


@pytest.mark.parametrize("window", WINDOWS)
def test_penalties_look_at_the_last_n_tokens_under_each_reading(window):
    rng = np.random.default_rng(7)
    seen = set()
    for n, _ in itertools.product((1, 2, 5, 30), range(8)):
        prompt, output = (rng.integers(0, V, int(rng.integers(0, 7))).tolist() for _ in range(2))
        raw = rng.standard_normal(V).astype(np.float32)
        params = {"repetition_penalty": 1.5, "frequency_penalty": 0.7, "presence_penalty": 0.4, "penalty_last_n": n}
        expected = shaped(Row(raw, params, prompt, output), {"penalty window": WINDOWS[window]})
        got = draftproof.process_rows(raw[None], params, prompt_tokens=[prompt], output_tokens=[output],
                                      penalty_window=window)
        np.testing.assert_allclose(got.probabilities[0], draftproof.process_rows(expected[None]).probabilities[0],
                                   rtol=1e-5)
        others = [shaped(Row(raw, params, prompt, output), {"penalty window": other}) for other in WINDOWS.values()]
        seen |= {i for i, other in enumerate(others) if not np.array_equal(other, expected)}
    assert len(seen) == 3  # each of the other readings was another row
    off = draftproof.process_rows(raw[None], {**params, "penalty_last_n": 0}, prompt_tokens=[prompt],
                                  output_tokens=[output], penalty_window="alike")
    np.testing.assert_array_equal(off.probabilities, draftproof.process_rows(raw[None]).probabilities)


def test_a_window_moves_along_the_drafts():
    """The token before the window's end is free again at the bonus row, two drafts later."""
    target = np.tile(np.array([9.0, 5.0, 4.0, 0.0], np.float32), (3, 1))
    found = draftproof.verify([1, 2], None, target, [2], temperature=0.0, frequency_penalty=20.0,
                              output_tokens=[[3, 0]], penalty_last_n=2)
    assert found.tokens.tolist() == [[1, 2, 0]]


def test_top_p_is_compared_as_float32_or_as_the_fraction_that_is_given():
    flat = np.zeros((3, 5), np.float32)
    kept = [int((row > 0).sum()) for row in draftproof.process_rows(flat,
            top_p=[0.8, Fraction(4, 5), Decimal("0.8")]).probabilities]
    assert kept == [5, 4, 4]  # 0.8 as float32 is above 4/5, so that four tokens of 1/5 are not yet enough
    assert draftproof.sample(flat, top_p=Fraction(1, 5), seeds=[1, 2, 3]).tolist() == [0, 0, 0]
    for wrong in (Fraction(6, 5), Fraction(0), Fraction(1, 1 << 33), Decimal("NaN")):
        with pytest.raises(draftproof.Error, match="top_p: is .*; expected a fraction in \\(0, 1\\]"):
            draftproof.process_rows(flat, top_p=wrong)
