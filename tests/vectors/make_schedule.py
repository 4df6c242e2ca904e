#!/usr/bin/env python3
"""Writes schedule.txt: the answers that every backend must give for our randomness, noise, masses and draws.

    python3 make_schedule.py > schedule.txt

Nothing here comes from the C++ code. Philox is written from its paper, the rows are worked out on exact rationals that
are rounded where the numerics contract rounds, and draws are integer arithmetic. The kinds whose columns end in ~ULP
hold the mathematical value (60 digits, rounded once) and are compared within that many units in the last place; all
others are compared bit by bit.

A line is  KIND input... -> output...  and a line  kind KIND name... -> name...  declares each kind before its first
use. Numbers are integers, hexadecimal floats (a trailing f means binary32) or -inf (binary32).
"""

import random
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 60
MASKED = None  # a logit of -inf
ALL_ONES = 2**32 - 1


# --- Philox4x32-10, from section 3.3 of the paper. --------------------------------------------------------------------
def philox(counter, key):
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        product0, product1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [product1 >> 32 ^ c[1] ^ k0, product1 & ALL_ONES, product0 >> 32 ^ c[3] ^ k1, product0 & ALL_ONES]
        k0, k1 = k0 + 0x9E3779B9 & ALL_ONES, k1 + 0xBB67AE85 & ALL_ONES
    return c


PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([ALL_ONES] * 4, [ALL_ONES] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox(*PI) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def block(seed, index, row, step, purpose):
    return philox([index, row, step, purpose], [seed & ALL_ONES, seed >> 32])


def high_half(words):
    return words[0] << 32 | words[1]


def low_half(words):
    return words[2] << 32 | words[3]


# --- IEEE-754 on exact rationals. -------------------------------------------------------------------------------------
def nearest_even(x):
    """The integer nearest to a rational, ties to even (Python's own rule for Fraction)."""
    return round(x)


def rounded(x, precision, least_exponent):
    """x rounded to `precision` bits, subnormals from 2^least_exponent on."""
    x = Fraction(x)
    if x == 0:
        return x
    magnitude = abs(x)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - precision + 1, least_exponent)
    return nearest_even(x / unit) * unit


def f32(x):
    return rounded(x, 24, -149)


def f64(x):
    return rounded(x, 53, -1074)


def c(text):
    return Fraction(float.fromhex(text))


# --- The row formulas: exp(x) = f 2^n, masses, probabilities. ---------------------------------------------------------
EXP_COEFFICIENTS = [c(t) for t in (
    "0x1.6a1e66p-10", "0x1.123d64p-7", "0x1.555908p-5", "0x1.55548cp-3", "0x1.fffffcp-2")]


def exp_polynomial(r):
    p = EXP_COEFFICIENTS[0]
    for coefficient in EXP_COEFFICIENTS[1:] + [Fraction(1), Fraction(1)]:
        p = f32(p * r + coefficient)
    return p


def exp_parts(x):
    if abs(x) <= 65536:
        # Adding 1.5 * 2^23 and rounding to 24 bits leaves the nearest even integer.
        n = nearest_even(x * c("0x1.715476p+0"))
        r = f32(x - n * c("0x1.62e430p-1"))
        r = f32(r - n * c("-0x1.05c610p-29"))
    else:
        n = nearest_even(x * c("0x1.71547652b82fep+0"))
        r = f64(x - n * c("0x1.62e42fefa3800p-1"))
        r = f32(f64(r - n * c("0x1.ef35793c76730p-45")))
    return exp_polynomial(r), n


def exp_parts_near(x, n):
    """f to full precision for a given n, rounded once to binary32."""
    exact = (Decimal(x.numerator) / Decimal(x.denominator) - n * Decimal(2).ln()).exp()
    return f32(Fraction(exact))


class Row:
    """The distribution of at most one tile of logits (None: masked)."""

    def __init__(self, logits):
        self.logits = logits
        self.parts = [None if x is MASKED else exp_parts(x) for x in logits]
        self.exponent = max(part[1] for part in self.parts if part)
        self.masses = [nearest_even(part[0] * Fraction(2) ** (part[1] - self.exponent + 44)) if part else 0
                       for part in self.parts]
        self.total = sum(self.masses)
        self.reciprocal = f32(1 / f32(Fraction(self.total, 2**44)))

    def probability(self, i):
        if self.parts[i] is None:
            return Fraction(0)
        f, n = self.parts[i]
        return f32(f32(f * Fraction(2) ** (n - self.exponent)) * self.reciprocal)

    def log_probability(self, i):
        if self.logits[i] is MASKED:
            return MASKED
        t = f64(self.logits[i] - self.exponent * c("0x1.62e42fefa3800p-1"))
        t = f64(t - self.exponent * c("0x1.ef35793c76730p-45"))
        return f32(f64(t - natural_log(f64(Fraction(self.total, 2**44)))))


def draw_by_masses(masses, words):
    """Tokens share [0, sum) in order of id; one tile, so the high half of the block has nothing to choose."""
    position = low_half(words) * sum(masses) >> 64
    for token, mass in enumerate(masses):
        if position < mass:
            return token
        position -= mass
    raise AssertionError("a position beyond the last mass")


def residual_masses(p, q):
    masses = [nearest_even(f32(a - b) * 2**62) if a > b else 0 for a, b in zip(p, q)]
    return masses if sum(masses) > 0 else [nearest_even(a * 2**62) for a in p]


# --- Logarithm and noise. ---------------------------------------------------------------------------------------------
LOG_COEFFICIENTS = [c(t) for t in (
    "0x1.2f0d8ef234fd9p-3", "0x1.39a0f4f5f8283p-3", "0x1.7466462d33713p-3", "0x1.c71c51e7f3125p-3",
    "0x1.2492494217a8bp-2", "0x1.999999997fb31p-2", "0x1.5555555555593p-1")]


def natural_log(x):
    k, m = 0, Fraction(x)
    while m >= 2 * c("0x1.6a09e667f3bcdp-1"):
        k, m = k + 1, m / 2
    while m < c("0x1.6a09e667f3bcdp-1"):
        k, m = k - 1, m * 2
    f = f64(m - 1)
    s = f64(f / f64(2 + f))
    z = f64(s * s)
    p = LOG_COEFFICIENTS[0]
    for coefficient in LOG_COEFFICIENTS[1:]:
        p = f64(p * z + coefficient)
    correction = f64(s * f64(f - z * p))
    return f64(k * c("0x1.62e42fefa3800p-1") + f64(f - f64(correction - f64(k * c("0x1.ef35793c76730p-45")))))


def exponential_noise(r):
    return -natural_log(1 - Fraction(2 * r + 1, 2**33))


def gumbel_noise(r):
    return -natural_log(exponential_noise(r))


def noise_near(r):
    v = Fraction(2 * r + 1, 2**33)
    exponential = -(Decimal((1 - v).numerator) / Decimal((1 - v).denominator)).ln()
    return f64(Fraction(exponential)), f64(Fraction(-exponential.ln()))


def race(logits, seed, row, step, purpose):
    best, winner = None, -1
    for token, logit in enumerate(logits):
        if logit is MASKED:
            continue
        score = f64(logit + gumbel_noise(block(seed, token // 4, row, step, purpose)[token % 4]))
        if best is None or score > best:
            best, winner = score, token
    return winner


# --- Text. ------------------------------------------------------------------------------------------------------------
def hexadecimal(x):
    text = float(x).hex()
    mantissa, exponent = text.split("p")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + "p" + exponent


def single(x):
    return "-inf" if x is MASKED else hexadecimal(x) + "f"


def double(x):
    return hexadecimal(x)


def word(x):
    return f"0x{x:08x}"


def wide(x):
    return f"0x{x:016x}"


def kind(name, inputs, outputs):
    print(f"\nkind {name} {inputs} -> {outputs}")
    return lambda inputs, outputs: print(name, *inputs, "->", *outputs)


def numbered(stem, count):
    return " ".join(f"{stem}{i}" for i in range(count))


def main():
    choose = random.Random(20221117)

    def any_word():
        return choose.getrandbits(32)

    def any_seed():
        return choose.getrandbits(64)

    print("# Our schedule of randomness, noise, masses and draws. Written by make_schedule.py; do not edit.")

    line = kind("block", "seed index row step purpose", numbered("w", 4))
    addresses = [(0, 0, 0, 0, 1), (0, 0, 0, 0, 2), (0, 0, 0, 1, 1), (0, 0, 1, 0, 1), (0, 1, 0, 0, 1), (1, 0, 0, 0, 1),
                 (2**32, 0, 0, 0, 1), (2**64 - 1, ALL_ONES, ALL_ONES, ALL_ONES, 9)]
    addresses += [(any_seed(), choose.randrange(32768), choose.randrange(64), choose.randrange(4096), purpose)
                  for purpose in range(1, 10) for _ in range(2)]
    for address in addresses:
        line([wide(address[0]), *address[1:]], map(word, block(*address)))

    line = kind("derive_seed", "run_seed request", "seed")
    for run_seed, request in [(0, 0), (0, 1), (1, 0), (0, 2**32), (2**64 - 1, 2**64 - 1), (any_seed(), 7),
                              (any_seed(), any_seed())]:
        line([wide(run_seed), wide(request)],
             [wide(high_half(block(run_seed, request & ALL_ONES, request >> 32, 0, 7)))])

    line = kind("uniform_53", "bits", "u")
    for bits in [0, 2**11 - 1, 2**11, 2**63, 2**64 - 2**11, 2**64 - 1] + [any_seed() for _ in range(4)]:
        line([wide(bits)], [double(Fraction(bits >> 11, 2**53))])

    line = kind("below", "bits n", "value")
    for n in (1, 2, 3, 10, 128256, 2**63 + 1, 2**64 - 1):
        for bits in (0, 2**64 // n, 2**64 - 1, any_seed()):
            bits = min(bits, 2**64 - 1)
            line([wide(bits), n], [bits * n >> 64])

    words = [0, 1, 2, 3, 2**31 - 1, 2**31, 2**32 - 3, 2**32 - 2, 2**32 - 1]
    # Beside noise 1 and -1, and on both sides of where the mantissa of 1 - v passes sqrt(1/2).
    words += [int((1 - (-Decimal(-gumbel).exp()).exp()) * 2**32) for gumbel in (1, -1)]
    words += [1257966796, 1257966797] + [any_word() for _ in range(16)]
    line = kind("noise_near", "r", "exponential~2 gumbel~2")
    for r in words:
        line([word(r)], map(double, noise_near(r)))
    # Noise that all but vanishes has an absolute accuracy only, so this word is not among those above.
    words += [int((1 - Decimal(-1).exp()) * 2**32)]
    line = kind("noise", "r", "exponential gumbel")
    for r in words:
        line([word(r)], [double(exponential_noise(r)), double(gumbel_noise(r))])

    points = [Fraction(0), f32(Fraction(1, 3)), Fraction(1), Fraction(-1), Fraction(65536), Fraction(-65536),
              f32(65536 + Fraction(1, 128)), f32(-65536 - Fraction(1, 128)), Fraction(2)**29, -Fraction(2)**29,
              Fraction(1, 2**149), f32(Fraction(-1, 2**140)), f32(Fraction(34657359, 10**8)),
              f32(Fraction(34657360, 10**8)), f32(Fraction(103972077, 10**8))]
    points += [f32(Fraction(choose.uniform(-scale, scale))) for scale in (1, 20, 1000, 60000, 10**6, 5 * 10**8)
               for _ in range(3)]
    line = kind("exp_near", "x", "f~2 n")
    for x in points:
        n = exp_parts(x)[1]
        line([single(x)], [single(exp_parts_near(x, n)), n])
    line = kind("exp", "x", "f n")
    for x in points:
        f, n = exp_parts(x)
        line([single(x)], [single(f), n])

    rows = [[Fraction(0)] * 8,
            [Fraction(i) for i in range(8)],
            [MASKED, Fraction(0), MASKED, MASKED, MASKED, MASKED, MASKED, MASKED],
            [MASKED, Fraction(1), Fraction(1), MASKED, Fraction(-40), Fraction(1), f32(Fraction(-3, 7)), MASKED],
            [Fraction(500), Fraction(-500), Fraction(499), f32(Fraction(4995, 10)), Fraction(470), Fraction(469),
             Fraction(400), MASKED],
            [Fraction(70000), Fraction(69999), Fraction(-70000), Fraction(69990), Fraction(0), MASKED,
             f32(Fraction(699985, 10)), Fraction(65536)]]
    rows += [[f32(Fraction(choose.gauss(0, 3))) for _ in range(8)] for _ in range(6)]
    line = kind("row", numbered("x", 8), f"N S {numbered('W', 8)} {numbered('p', 8)} {numbered('logp', 8)}")
    for logits in rows:
        distribution = Row(logits)
        line(map(single, logits), [distribution.exponent, distribution.total, *distribution.masses,
                                   *(single(distribution.probability(i)) for i in range(8)),
                                   *(single(distribution.log_probability(i)) for i in range(8))])

    line = kind("draw", f"{numbered('x', 8)} excluded {numbered('w', 4)}", "token")
    for logits in rows:
        distribution = Row(logits)
        for excluded in (-1, 0, 1, 3):
            masses = [0 if i == excluded else mass for i, mass in enumerate(distribution.masses)]
            for low in (0, 2**64 - 1, any_seed(), any_seed()):
                words4 = [any_word(), any_word(), low >> 32, low & ALL_ONES]
                token = draw_by_masses(masses, words4) if sum(masses) > 0 else excluded
                line([*map(single, logits), excluded, *map(word, words4)], [token])

    line = kind("race", f"{numbered('x', 8)} seed row step purpose", "token")
    for logits in rows:
        for _ in range(4):
            address = (any_seed(), choose.randrange(8), choose.randrange(1000), choose.choice((1, 3, 4, 6)))
            line([*map(single, logits), wide(address[0]), *address[1:]], [race(logits, *address)])

    pairs = [([Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8)],
              [Fraction(1, 4), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)]),
             ([Fraction(1, 4)] * 4, [Fraction(1, 4)] * 4),
             ([Fraction(x) for x in (1, 0, 0, 0)], [Fraction(x) for x in (0, 0, 0, 1)]),
             # Below 2^-38 a mass has to be rounded: ties to even, and a value whose mass is zero.
             ([Fraction(x, 2**63) for x in (3, 5, 1, 2**23 + 1)], [Fraction(0)] * 4)]
    for _ in range(6):
        p, q = ([choose.random() for _ in range(4)] for _ in range(2))
        pairs.append(tuple([f32(Fraction(x / sum(row))) for x in row] for row in (p, q)))
    line = kind("residual", f"{numbered('p', 4)} {numbered('q', 4)} {numbered('w', 4)}", "token")
    for p, q in pairs:
        masses = residual_masses(p, q)
        for low in (0, 2**64 - 1, any_seed(), any_seed(), any_seed()):
            words4 = [any_word(), any_word(), low >> 32, low & ALL_ONES]
            line([*map(single, p), *map(single, q), *map(word, words4)], [draw_by_masses(masses, words4)])
        # Where the draw changes from one token to the next: the last low half of one and the first of the other.
        for boundary in sorted({sum(masses[:i]) for i in range(1, 4)} - {0, sum(masses)}):
            first = -(-boundary * 2**64 // sum(masses))
            for low in (first - 1, first):
                words4 = [0, 0, low >> 32, low & ALL_ONES]
                line([*map(single, p), *map(single, q), *map(word, words4)], [draw_by_masses(masses, words4)])

    line = kind("accept", f"p q {numbered('w', 4)}", "accepted")
    least = Fraction(1, 2**149)
    half, nothing = Fraction(1, 2), Fraction(0)
    for p, q in [(nothing, half), (half, nothing), (nothing, nothing), (least, least), (least, 2 * least),
                 (half / 2, half), (half, half), (f32(Fraction(1, 10)), f32(Fraction(3, 10)))]:
        share = min(Fraction(1), p / q) if q > 0 else Fraction(1, 2)
        first_rejected = int(share * 2**53) << 11
        for bits in (0, 2**11, first_rejected - 2**11, first_rejected, first_rejected + 2**11, 2**64 - 1):
            bits = min(max(bits, 0), 2**64 - 1)
            u = Fraction(bits >> 11, 2**53)
            accepted = q > 0 and (p >= q or f64(u * q) < p)
            line([single(p), single(q), word(bits >> 32), word(bits & ALL_ONES), 0, 0], [int(accepted)])


if __name__ == "__main__":
    main()
