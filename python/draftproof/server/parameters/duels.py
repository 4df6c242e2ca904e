"""Duels: at temperature 0 the bias lifts two tokens above all others and sets their distance to a known lead.

Which of the two is answered shows the bias, or what a penalty takes from the first. The lead is that of the answer's
own
list: a server's arithmetic may move logits by more than NEAR between two requests."""

from ..adapters import Step
from ..collect import Collector
from ..history import HISTORIES
from ..verdicts import Judge
from ..wire import Record

LIFT, NEAR, CLOSE = 20.0, 0.05, 0.02  # logits; what is nearer than CLOSE to a border is not judged
FACTOR, MORE = 1.5, 12.0  # of repetition; logits by which a second token is lifted more
LENGTH = 70
DISTANCES = (20, 63, 64, 65, LENGTH)  # of the penalised token from the prompt's end
PENALTIES = {"presence_penalty": 1.0, "frequency_penalty": 1.0, "repetition": FACTOR}


def duel(c: Collector, name: str, prompt: list[int], top: list, pair: tuple[int, int], lead: float,
         lift: float = LIFT, at: object = 0, shift: float = 0.0, **settings: object) -> Record:
    """Returns a request in which the pair's first token leads its second by `lead` logits.

    at: which of several duels of that name. shift: what a penalty is expected to take from the first."""
    known, (a, b) = dict(top), pair
    bias = {str(a): lift, str(b): round(lift + known[a] - known[b] - lead, 4)}
    return c.record("parameters", f"duel {name}", prompt, {"a": a, "b": b, "at": at, "shift": shift, "lead": lead},
                    seed=1, temperature=0.0, max_tokens=1, logit_bias=bias, **settings)


def result(settings: dict, step: Step) -> tuple[object, float]:
    """Returns the winner of a duel, 'a', 'b' or another token, and the lead by its own list."""
    about, bias, known = settings["about"], settings["logit_bias"], dict(step.top)
    a, b = about["a"], about["b"]
    lead = about["lead"]
    if a in known and b in known:  # lists may be taken before the bias or after it
        apart = known[a] - known[b]
        lead = min(apart + bias[str(a)] - bias[str(b)], apart, key=lambda value: abs(value - about["lead"]))
    return {a: "a", b: "b"}.get(step.token, step.token), lead


def ask(c: Collector) -> None:
    ids = c.ids()
    if not ids or not c.offers("logit_bias"):
        return
    prompts = [ids[start:start + 16] for start in (0, 8, 16)]
    jobs = []
    for prompt, top in zip(prompts, c.lists(prompts)):
        pair = (top[0][0], top[min(10, len(top) - 2)][0])
        jobs += [duel(c, "logit_bias", prompt, top, pair, lead) for lead in (NEAR, -NEAR)]
    far = c.lists(prompts[:1])[0][-1][0]
    jobs.append(c.record("parameters", "only one", prompts[0], far, seed=3, max_tokens=8, logit_bias={str(far): 100.0}))
    if all(record.status == 200 for record in c.wire.post_all(jobs)):
        _penalties(c, ids)


def _penalties(c: Collector, ids: list[int]) -> None:
    pair: tuple = ()

    def holding(*distances: int) -> list[int]:
        rest = [token for token in ids if token not in pair] or ids
        filler = (rest * (1 + LENGTH // len(rest)))[-LENGTH:]
        return [pair[0] if pair and LENGTH - place in distances else token for place, token in enumerate(filler)]
    for _ in range(4):  # until all lists hold the pair
        prompts = {at: holding(at) for at in DISTANCES}
        lists = dict(zip(DISTANCES, c.lists(list(prompts.values()))))
        common = [key for key, _ in lists[64] if all(key in dict(top) for top in lists.values())]
        if pair and set(pair) <= set(common):
            break
        free = [key for key in common if key not in ids[-4:]]  # the end of the prompt stays
        if len(free) < 3:
            return
        pair = (free[1], free[2])
    else:
        return
    thrice = holding(20, 23, 26)
    jobs = []
    for at, top in lists.items():
        if set(pair) <= set(dict(top)):
            jobs += [duel(c, "control", prompts[at], top, pair, lead, at=at) for lead in (0.5, -0.5)]
            jobs += [duel(c, name, prompts[at], top, pair, 0.5, at=at, **{name: value})
                     for name, value in PENALTIES.items()]
    top = c.lists([thrice])[0]
    if set(pair) <= set(dict(top)):
        jobs += [duel(c, f"amount {name}", thrice, top, pair, shift + near, shift=shift, **{name: value})
                 for name, value, shift in (("presence_penalty", 1.0, 1.0), ("frequency_penalty", 0.5, 1.5))
                 for near in (NEAR, -NEAR)]
    c.wire.post_all(jobs)
    # until one is still listed when the prompt holds it
    for second in [key for key, _ in lists[20] if key not in pair][:3]:
        prompt = [second if LENGTH - 26 == place else token for place, token in enumerate(prompts[20])]
        top = c.lists([prompt])[0]
        if {*pair, second} <= set(dict(top)):
            _repetition(c, prompt, top, pair, second)
            break
    _split(c, ids[:24])


def _repetition(c: Collector, prompt: list[int], top: list, pair: tuple[int, int], second: int) -> None:
    """Bisects what repetition takes from one token, which shows the hidden logsumexp; a second token, lifted by MORE
    more, is then asked at what each reading takes from it."""
    low, high, known = 0.0, 40.0, dict(top)
    for _ in range(10):
        record = c.wire.post(duel(c, "bisect", prompt, top, pair, (low + high) / 2, repetition=FACTOR))
        steps = c.adapter.read(record.answer).steps if record.status == 200 else []
        if not steps:
            return
        winner, lead = result(record.settings, steps[0])
        low, high = (lead, high) if winner == "b" else (low, lead)
        if high - low < NEAR:
            break
    other, apart = (second, pair[1]), known[second] - known[pair[0]]
    c.wire.post_all([duel(c, "amount repetition", prompt, top, other, low + more + near, LIFT + MORE, at=reading,
                          repetition=FACTOR, shift=low + more) for reading,
                     more in (("before", (apart + MORE) * (1 - 1 / FACTOR)),
                                           ("after", apart * (1 - 1 / FACTOR)),
                              ("after, below 0", apart * (1 - FACTOR)))
                     for near in (8 * NEAR, -8 * NEAR)])


def _split(c: Collector, prompt: list[int]) -> None:
    """One greedy text with repetition, and its tokens one by one, each behind all before it."""
    common = {"seed": 1, "temperature": 0.0, "repetition": FACTOR}
    whole = c.wire.post(c.record("parameters", "whole", prompt, max_tokens=24, **common))
    plain = c.record("parameters", "whole plain", prompt, max_tokens=24, **{**common, "repetition": 1.0})
    steps = c.adapter.read(whole.answer).steps if whole.status == 200 else []
    c.wire.post_all([plain, *(c.record("parameters", "split", [*prompt, *(step.token for step in steps[:place])], place,
                                       max_tokens=1, **common) for place in range(1, len(steps), 2))])


def judge(j: Judge) -> None:
    if j.asked("duel logit_bias"):
        _bias(j)
    else:
        if "logit_bias" not in j.dropped():
            j.parameter("logit_bias", "not visible",
                        "not asked: no ids of tokens, no lists in time, or no such parameter")
        return
    for name in PENALTIES:
        if j.asked(f"duel {name}"):
            _penalty(j, name)
    _along(j)


def _won(j: Judge, case: str) -> list[tuple[int, dict, object, float]]:
    """Returns (record, about, winner, lead less what a penalty is expected to take) of each answered duel of a case."""
    rows = []
    for number, text in j.of("parameters", f"duel {case}"):
        settings = j.records[number].settings
        if text.steps:  # servers may leave out the token that ends a text
            winner, lead = result(settings, text.steps[0])
            rows.append((number, settings["about"], winner, lead - settings["about"]["shift"]))
    return rows


def _is_other(row: tuple, close: float = CLOSE) -> bool:
    """Returns whether another token is answered than the one that leads by more than `close`."""
    return abs(row[3]) > close and row[2] != ("a" if row[3] > 0 else "b")


def _bias(j: Judge) -> None:
    rows = _won(j, "logit_bias")
    if not rows:
        return j.parameter("logit_bias", "refused" if not j.of("parameters", "duel logit_bias") else "not visible", "",
                           j.asked("duel logit_bias")[0])
    wrong = [row for row in rows if _is_other(row)]
    if len(wrong) == len(rows) or all(row[2] == "a" for row in rows) and wrong:
        return j.parameter("logit_bias", "ignored", "the answers are those without it", rows[-1][0])
    near = max(abs(row[3]) for row in rows)
    if wrong:
        return j.parameter("logit_bias", "wrong",
                           f"a token that leads by {near:.2f} logits after the bias is not answered "
                           f"({len(wrong)} of {len(rows)} requests)", wrong[0][0])
    for number, text in j.of("parameters", "only one"):
        other = [place for place, step in enumerate(text.steps) if step.token != j.records[number].settings["about"]]
        if other:
            return j.parameter("logit_bias", "wrong", f"a bias of 100 does not decide the token at position {other[0]} "
                               "of its text", number)
    return j.parameter("logit_bias", "honoured", f"exact to {near:.2f} logits, all along a text")


def _penalty(j: Judge, name: str) -> None:
    rows = _won(j, name)
    if not rows:
        return j.parameter(name, "refused" if not j.of("parameters", f"duel {name}") else "not visible", "",
                           j.asked(f"duel {name}")[0])
    unknown = {row[1]["at"] for row in _won(j, "control") if _is_other(row)}
    unknown |= {about["at"] for _, about, _, lead in rows if not CLOSE < lead < PENALTIES[name] - CLOSE}
    hit = {about["at"]: winner == "b" for _, about, winner, _ in rows if about["at"] not in unknown}
    if len(hit) < 3 or max(hit) <= 64 or min(hit) > 64:
        return j.parameter(name, "not visible", f"{len(hit)} of {len(DISTANCES)} prompts lead to known answers")
    far = [at for at in hit if hit[at]]
    number = next(number for number, about, *_ in rows if about["at"] == 64 or 64 not in hit)
    expected = far == [at for at in hit if at <= 64]
    if not far:
        return _unseen(j, name, number)
    if len(far) < len(hit) and not expected:
        near = [at for at in hit if at not in far]
        return j.parameter(name, "wrong", f"a token is penalised {' and '.join(map(str, far))} tokens before the end "
                           f"of the prompt, not {' and '.join(map(str, near))}; a known window is 64", number)
    words = f"over {HISTORIES[2 if expected else 1]}"
    if name == "repetition":
        return _amount(j, words)
    for row in _won(j, f"amount {name}"):
        if _is_other(row):
            return j.parameter(name, "wrong", f"it takes {'more' if row[2] == 'b' else 'less'} than "
                               f"{row[1]['shift']:g} +- {abs(row[3]):.2f} logits from a token that occurs 3 times",
                               row[0])
    return j.parameter(name, "honoured", words)


def _unseen(j: Judge, name: str, number: int) -> None:
    """A penalty that does not count the prompt."""
    j.silent.add(name)
    same = [_key(j, case) for case in ("whole", "whole plain")]
    if name == "repetition" and same[0] and same[0] == same[1]:
        return j.parameter(name, "ignored", f"a greedy text is the same with {FACTOR:g} and with 1", number)
    if name == "repetition":
        return j.parameter(name, "honoured", f"over {HISTORIES[0]}; its amount is not visible")
    drawn = any(line.question == "draws, penalties" and line.verdict == "ok" for line in j.audit.lines)
    return j.parameter(name, "honoured" if drawn else "not visible", f"over {HISTORIES[0]}" if drawn else
                       "the prompt is not counted; draws show whether the output is")


def _amount(j: Judge, words: str) -> None:
    """Repetition: the reading under which the bisected token and the second lead to one offset of logits."""
    won: dict = {}
    for row in _won(j, "amount repetition"):
        won.setdefault(row[1]["at"], []).append(row)
    holds = next((reading for reading, rows in won.items() if not any(_is_other(row, 4 * NEAR) for row in rows)
                  and {row[2] for row in rows} == {"a", "b"}), "")
    if won and not holds:
        return j.parameter("repetition", "wrong", "what it takes from two tokens leads to no one offset of logits from "
                           "logprobs, neither with the bias before the penalty nor after it",
                           next(iter(won.values()))[0][0])
    words += f", bias {holds.partition(',')[0]} the penalty" if holds else "; its amount is not visible"
    taken = [lead for _, _, winner, lead in _won(j, "bisect") if winner == "b"]
    if holds in ("before", "after") and taken:
        number = j.asked("duel bisect")[0]
        logprob = dict(j.texts[number].steps[0].top).get(j.records[number].settings["about"]["a"])
        offset = max(taken) / (1 - 1 / FACTOR) - (LIFT if holds == "before" else 0.0) - (logprob or 0.0)
        if logprob is not None:
            words += f", on logits (logprobs + {offset:.1f})" if abs(offset) > 0.5 else ", on logprobs"
    return j.parameter("repetition", "honoured", words)


def _key(j: Judge, case: str) -> list:
    return [step.token for _, text in j.of("parameters", case) for step in text.steps]


def _along(j: Judge) -> None:
    """A text with repetition against its tokens one by one, where the penalty counts the prompt."""
    whole, pieces = _key(j, "whole"), j.of("parameters", "split")
    if not whole or not pieces or "repetition" in j.silent:
        return
    other = [number for number, text in pieces
             if text.steps and text.steps[0].token != whole[j.records[number].settings["about"]]]
    if len(other) >= 3:
        j.parameter("repetition along a text", "wrong", f"{len(other)} of {len(pieces)} greedy tokens are others when "
                    "the text so far is sent as the prompt", other[0])
