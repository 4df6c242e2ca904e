"""Tests of drawn tokens against visible distributions. Each p-value is a bound (Chernoff) or KS's, conditional on
prefixes: a text of n tokens is n draws. Level 1e-6 over all tests."""

import math
import random
from dataclasses import dataclass

import numpy

from .adapters import Text
from .visible import Reading, Visible, resolution, visible

LEVEL = 1e-6
LAGS = 3


@dataclass
class Found:
    """One test: p-value, the sentence's words, and where (record, position) its first evidence stands."""

    name: str
    p: float
    words: str
    at: tuple[int, int] | None = None


@dataclass
class Drawn:
    """Positions of one case under one reading."""

    tokens: int = 0
    skipped: int = 0
    rows: list[tuple[Visible, int]] = None      # distribution, rank of the drawn token (len(probs): beyond the list)
    uniforms: list[list[float]] = None          # of each text: a number in (0, 1) a position, None where skipped
    by_id: list[list[float]] = None
    outside: list[tuple[int, int, object]] = None  # record, position, token


def place(texts: list[tuple[int, Text]], settings: dict, reading: Reading) -> Drawn:
    """Places drawn tokens in their visible distributions. `texts` pairs a record's number with its text."""
    drawn = Drawn(rows=[], uniforms=[], by_id=[], outside=[])
    noise = random.Random(20)
    step = resolution([value for _, text in texts for at in text.steps for _, value in at.top][:2000])
    known = {}
    for number, text in texts:
        row, ids = [], []
        for position, at in enumerate(text.steps):
            key = tuple(at.top)
            if key not in known:
                known[key] = visible(at.top, settings, reading, step)
            seen = known[key]
            row.append(None), ids.append(None)
            if seen is None:
                drawn.skipped += 1
                continue
            drawn.tokens += 1
            if at.token not in seen.generous and not seen.rest:
                drawn.outside.append((number, position, at.token))
                continue
            if seen.ambiguous or len(set(seen.keys)) < len(seen.keys):
                drawn.skipped += 1
                continue
            rank = seen.keys.index(at.token) if at.token in seen.keys else len(seen.keys)
            drawn.rows.append((seen, rank))
            probs = [*seen.probs, seen.rest]
            row[-1] = sum(probs[:rank]) + noise.random() * probs[rank]
            if rank < len(seen.keys) and not seen.rest:
                below = sum(p for key, p in zip(seen.keys, probs) if str(key).zfill(9) < str(at.token).zfill(9))
                ids[-1] = below + noise.random() * probs[rank]
        drawn.uniforms.append(row)
        drawn.by_id.append(ids)
    return drawn


def beyond(honoured: Drawn, texts: list[tuple[int, Text]], settings: dict, reading: Reading, other: Reading) -> float:
    """Returns how many of the tokens placed under `reading` have probability 0 there and are expected under `other`."""
    mass, count = 0.0, 0
    for _, text in texts:
        for at in text.steps:
            one, two = (visible(at.top, settings, how, 0.0) for how in (reading, other))
            if one and two:
                count += 1
                mass += two.rest + sum(p for key, p in zip(two.keys, two.probs) if key not in one.generous)
    return mass / max(1, count) * honoured.tokens


def count_bound(seen: float, expected: float) -> float:
    """Bounds the probability of a sum of independent indicators as far from `expected` on the side of `seen`."""
    if expected <= 0:
        return 1.0 if seen == 0 else 0.0
    return math.exp(-(expected - seen + (seen * math.log(seen / expected) if seen else 0.0)))


def score_bound(rows: list[tuple[Visible, int]]) -> tuple[float, float]:
    """Returns z of sum(l - E l) and Chernoff's bound by exponential tilting (exact for these distributions)."""
    rows = [row for row in rows if not row[0].rest]
    if not rows:
        return 0.0, 1.0
    width = max(len(seen.probs) for seen, _ in rows)
    p, l = numpy.zeros((len(rows), width)), numpy.zeros((len(rows), width))
    for number, (seen, _) in enumerate(rows):
        p[number, :len(seen.probs)], l[number, :len(seen.probs)] = seen.probs, seen.values
    l -= (p * l).sum(1, keepdims=True)
    at = sum(l[number, rank] for number, (_, rank) in enumerate(rows))
    spread = (p * l * l).sum()
    if spread < 1e-9:
        return 0.0, 1.0
    best, sign = 0.0, math.copysign(1.0, at)
    for part in (0.4, 0.55, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0):
        tilt = min(8.0, part * abs(at) / spread)
        best = min(best, float(numpy.log((p * numpy.exp(sign * tilt * l)).sum(1)).sum() - tilt * abs(at)))
    return float(at / math.sqrt(spread)), min(1.0, 2.0 * math.exp(best))


def ks(uniforms: list[float]) -> float:
    """Returns a bound (Massart) on the p-value of Kolmogorov and Smirnov's test against uniform."""
    count = len(uniforms)
    if count < 30:
        return 1.0
    u = numpy.sort(numpy.array(uniforms))
    above = numpy.arange(1, count + 1) / count
    distance = max((above - u).max(), (u - above + 1.0 / count).max())
    return min(1.0, 2.0 * math.exp(-2.0 * count * distance * distance))


def lagged(texts: list[list[float]], lag: int) -> tuple[float, float, int]:
    """Returns correlation of positions `lag` apart within a text, Hoeffding's bound on its p-value, and pairs."""
    pairs = [(row[i] - 0.5, row[i + lag] - 0.5) for row in texts for i in range(len(row) - lag)
             if row[i] is not None and row[i + lag] is not None]
    if len(pairs) < 100:
        return 0.0, 1.0, len(pairs)
    r = 12.0 * sum(a * b for a, b in pairs) / len(pairs)
    # Products are a martingale's differences with variance 1/144 and at most 1/4: Freedman's bound.
    total = abs(r) * len(pairs) / 12.0
    return r, min(1.0, 2.0 * math.exp(-total * total / 2.0 / (len(pairs) / 144.0 + total / 12.0))), len(pairs)


def judge(drawn: Drawn) -> list[Found]:
    """Returns all tests of one case under one reading."""
    rows, found = drawn.rows, []
    if drawn.outside:
        number, position, token = drawn.outside[0]
        later = sum(1 for _, place, _ in drawn.outside if place > 0)
        where = ", all behind a text's first token" if later == len(drawn.outside) else ""
        found.append(Found("outside", 0.0, f"{len(drawn.outside)} of {drawn.tokens} tokens have probability 0 by the "
                           f"server's own list (first: token {token!r} at position {position} of its text{where})",
                           (number, position)))
    if not rows:
        return found
    shell = sum(seen.shell for seen, _ in rows)
    count = sum(1 for seen, rank in rows if rank < len(seen.keys) and seen.keys[rank] in seen.shell_keys)
    found.append(Found("shell", count_bound(count, shell) if count < shell else 1.0,
                       f"tokens that a 3 % smaller cut drops were drawn {count} times; {shell:.1f} expected"))
    edges = [(seen.probs[-1], rank == len(seen.probs) - 1) for seen, rank in rows if len(seen.probs) > 1]
    expected, count = sum(p for p, _ in edges), sum(hit for _, hit in edges)
    found.append(Found("edge", min(1.0, 2 * count_bound(count, expected)),
                       f"the last kept token was drawn {count} times; {expected:.1f} expected"))
    rest, count = sum(seen.rest for seen, _ in rows), sum(rank == len(seen.keys) for seen, rank in rows)
    if rest or count:
        found.append(Found("rest", min(1.0, 2 * count_bound(count, rest)),
                           f"tokens beyond the list were drawn {count} times; {rest:.1f} expected"))
    z, p = score_bound(rows)
    found.append(Found("score", p, f"drawn tokens are {'more' if z > 0 else 'less'} probable than stated, z = {z:.1f}"))
    flat = [u for text in drawn.uniforms for u in text if u is not None]
    found.append(Found("PIT", ks(flat), "ranks of drawn tokens do not follow the stated probabilities"))
    for name, texts in (("rank", drawn.uniforms), ("id", drawn.by_id)):
        for lag in range(1, LAGS + 1):
            r, p, pairs = lagged(texts, lag)
            found.append(Found(f"pairs ({name}, lag {lag})", p, f"tokens {lag} apart within a text are correlated: "
                               f"r = {r:.2f} over {pairs} pairs"))
    return found


TESTS = 6 + 2 * LAGS  # of one case


def detectable(drawn: list[Drawn], level: float) -> tuple[float, float]:
    """Returns the smallest change of temperature (%) and of mass (%) found with 90 % power at `level`."""
    rows = [row for case in drawn for row in case.rows]
    if not rows:
        return math.inf, math.inf
    need = math.sqrt(2.0 * math.log(2.0 / level)) + 1.28
    spread = 0.0
    for seen, _ in rows:
        mean = sum(p * l for p, l in zip(seen.probs, seen.values))
        spread += sum(p * (l - mean) ** 2 for p, l in zip(seen.probs, seen.values))
    shells = max(sum(seen.shell for seen, _ in case.rows) for case in drawn)
    temperature = 100.0 * need / math.sqrt(spread) if spread else math.inf
    if shells > math.log(1.0 / level):
        temperature = min(temperature, 3.0)
    mass = 100.0 * (math.sqrt(math.log(2.0 / level) / 2.0) + 0.64) / math.sqrt(len(rows))
    return temperature, mass
