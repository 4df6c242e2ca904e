"""The rules of verifiers as their papers state them, over fractions, for check_certificate.py: which decisions a step
takes, in which order, and with which shares. Nothing of the project is used. docs/verifiers.md has the definitions.
"""

from fractions import Fraction


class Invalid(Exception):
    pass


def require(holds, message):
    if not holds:
        raise Invalid(message)


#: Bits of a denominator at most: of honest certificates it has some hundred.
BITS = 1 << 15


def bounded(x):
    require(x.denominator.bit_length() <= BITS, f"a denominator has more than {BITS} bits")
    return x


def minus(p, q, weight=1):
    return [max(weight * a - b, Fraction(0)) for a, b in zip(p, q)]


def normed(masses):
    return [m / sum(masses) for m in masses] if sum(masses) else masses


def without(masses, *tokens):
    return [m * (x not in tokens) for x, m in enumerate(masses)]


class Replay:
    """The decisions of one outcome, each compared with the masses that a rule draws it from."""

    def __init__(self, decisions):
        self.left = list(decisions)

    def draw(self, purpose, masses):
        require(self.left, f"the decision {purpose} is missing")
        (stated, row, _), outcome, share = self.left.pop(0)
        masses = [bounded(mass) for mass in masses]
        require(outcome < len(masses) and sum(masses) > 0,
                f"decision {stated} of row {row} has outcome {outcome}; the rule gives none such")
        require(stated == purpose and share * sum(masses) == masses[outcome], f"decision {stated} of row {row} has "
                f"share {share}; the rule gives {purpose} {masses[outcome] / sum(masses)}")
        return outcome

    def accept(self, rate):
        return self.draw("accept", [min(rate, Fraction(1)), 1 - min(rate, Fraction(1))]) == 0


# Chains. rule(chance, rows, drafts) returns what is emitted; rows[prefix] is (p, q) after it.
def chain(chance, rows, drafts):  # Leviathan et al. 2211.17192, Algorithm 1
    for i, x in enumerate(drafts):
        p, q = rows[drafts[:i]]
        if not chance.accept(p[x] / q[x]):
            return drafts[:i] + (chance.draw("residual", minus(p, q)),)
    return drafts + (chance.draw("target_sample", rows[drafts][0]),)


def block(chance, rows, drafts):  # Sun et al. 2403.10444
    tau, weight, accepted = 0, Fraction(1), Fraction(1)
    for i, x in enumerate(drafts, start=1):
        p, q = rows[drafts[:i - 1]]
        weight = min(Fraction(1), weight * p[x] / q[x])
        s = sum(minus(*rows[drafts[:i]], weight))
        if chance.accept(weight if i == len(drafts) else s / (s + 1 - weight) if s + 1 > weight else Fraction(1)):
            tau, accepted = i, weight
    p, q = rows[drafts[:tau]]
    return drafts[:tau] + (chance.draw("target_sample", p) if tau == len(drafts) else
                           chance.draw("residual", minus(p, q, accepted)),)


def sampler_match(chance, rows, drafts):  # Miao et al. 2305.09781 on a chain
    for i in range(len(drafts) + 1):
        y = chance.draw("target_sample", rows[drafts[:i]][0])
        if i == len(drafts) or y != drafts[i]:
            return drafts[:i] + (y,)


# Siblings of one node. rule(chance, p, q, siblings) returns a token and whether it is one of them.
def naive(chance, p, q, siblings):  # Miao et al. 2305.09781
    y = chance.draw("target_sample", p)
    return y, y in siblings


def target_only(chance, p, q, siblings):  # EAGLE, Li et al. 2401.15077; SGLang at thresholds 1
    rest = without(p, *siblings)
    chosen = chance.draw("sibling_coin", [p[x] for x in siblings] + [sum(rest)])
    return (siblings[chosen], True) if chosen < len(siblings) else (chance.draw("residual", rest), False)


def rejection(chance, p, q, siblings, replaced):  # RRS: Miao et al.; RRSw, not replaced: Jeon et al. 2402.14160
    for x in siblings:
        if chance.accept(p[x] / q[x]):
            return x, True
        p, q = normed(minus(p, q)), q if replaced else normed(without(q, x))
    return chance.draw("residual", p), False


def k_seq(chance, p, q, siblings):  # SpecTr, Sun et al. 2310.15141, with rho = k
    k = len(siblings)
    for x in siblings:
        if chance.accept(p[x] / (k * q[x])):
            return x, True
    common = [min(a / k, b) for a, b in zip(p, q)]
    trials = sum((1 - sum(common)) ** j for j in range(k))
    y = chance.draw("residual", [a - trials * c for a, c in zip(p, common)])
    return y, y in siblings


def greedy_draft(chance, p, q, siblings):  # Hu et al. 2502.18779
    q = normed(without(q, *siblings[:-1]))
    if chance.accept(p[siblings[-1]] / q[siblings[-1]]):
        return siblings[-1], True
    y = chance.draw("residual", minus(p, q))
    return y, y in siblings


# How two children are drawn.
def independent(chance, q):
    return [chance.draw("draft_sample", q), chance.draw("draft_sample", q)]


def distinct(chance, q):
    first = chance.draw("draft_sample", q)
    rest = without(q, first)
    return [first, chance.draw("draft_sample", rest)] if sum(rest) else [first]


def top_and_drawn(chance, q):
    first = q.index(max(q))
    rest = without(q, first)
    return [first, chance.draw("draft_sample", rest)] if sum(rest) else [first]


def drafted(rule):  # a chain, each token from q
    def step(chance, rows, depth):
        drafts = ()
        while len(drafts) < depth:
            drafts += (chance.draw("draft_sample", rows[drafts][1]),)
        return rule(chance, rows, drafts)
    return step


def top_down(children, rule, **options):  # children are drawn where the walk comes
    def step(chance, rows, depth):
        path, accepted = (), True
        while accepted:
            p, q = rows[path]
            siblings = children(chance, q) if len(path) < depth else []
            token, accepted = (rule(chance, p, q, siblings, **options) if siblings else
                               (chance.draw("target_sample", p), False))
            path += (token,)
        return path
    return step


def distinct_tree(chance, rows, depth):  # {path: children}, two without replacement at every node
    children, level = {}, [()]
    for _ in range(depth):
        for path in level:
            children[path] = distinct(chance, rows[path][1])
        level = [path + (x,) for path in level for x in children[path]]
    return children


def merged_paths(chance, rows, depth):  # two independent paths, siblings in order of first appearance
    children = {}
    for path in ((), ()):
        while len(path) < depth:
            siblings = children.setdefault(path, [])
            path += (chance.draw("draft_sample", rows[path][1]),)
            siblings += [path[-1]] * (path[-1] not in siblings)
    return children


def traversal(chance, rows, children):  # Weng et al. 2505.12398
    stack = [((), Fraction(1), *rows[()], "target_sample")]
    while True:
        path, weight, p, q, purpose = stack[-1]
        if children.get(path):
            x = children[path][0]
            stack.append((path + (x,), min(Fraction(1), weight * p[x] / q[x]), *rows[path + (x,)], "target_sample"))
        elif not path or chance.accept(weight):
            return path + (chance.draw(purpose, p),)
        else:
            stack.pop()
            parent, weight, p, q, _ = stack.pop()
            residual = minus(p, q, weight)
            s = sum(residual)
            stack.append((parent, s / (s + 1 - weight) if s + 1 > weight else Fraction(1), normed(residual) if s else p,
                          normed(without(q, children[parent].pop(0))), "residual"))


RULES = {"chain": drafted(chain), "greedy": drafted(chain), "block": drafted(block),
         "sampler_match": drafted(sampler_match),
         "traversal": lambda chance, rows, depth: traversal(chance, rows, distinct_tree(chance, rows, depth)),
         "traversal_merged": lambda chance, rows, depth: traversal(chance, rows, merged_paths(chance, rows, depth)),
         "tree_naive": top_down(independent, naive), "tree_target_only": top_down(distinct, target_only),
         "tree_rrs": top_down(independent, rejection, replaced=True),
         "tree_rrsw": top_down(distinct, rejection, replaced=False),
         "tree_k_seq_rho_k": top_down(independent, k_seq), "tree_greedy_draft": top_down(top_and_drawn, greedy_draft)}
