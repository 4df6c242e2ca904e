"""Servers without lists of logprobs: filters at values that leave the best token alone, draws at temperature 1."""

from ..collect import PROMPTS, Collector
from ..verdicts import Judge

# Each leaves the best token alone.
EXTREMES = {"temperature": 1e-3, "top_k": 1, "top_p": 1e-6, "min_p": 1.0}
TEXTS = 6


def ask(c: Collector) -> None:
    if c.adapter.logprobs:
        return
    common = {"max_tokens": 12}
    c.wire.post_all([c.record("parameters", "best", PROMPTS[0], seed=1, temperature=0.0, **common),
                     *(c.record("parameters", "free", PROMPTS[0], seed=70 + number, **common) for number in range(TEXTS)),
                     *(c.record("parameters", f"extreme {name}", PROMPTS[0], seed=80 + number, **{name: value}, **common)
                       for name, value in EXTREMES.items() if name not in c.dropped and c.adapter.offers(name)
                       for number in range(2))])


def judge(j: Judge) -> None:
    best = [text.text for _, text in j.of("parameters", "best")]
    free = j.of("parameters", "free")
    if not best or not free:
        return
    if all(text.text == best[0] for _, text in free):
        return j.parameter("temperature", "ignored", f"{len(free)} texts of temperature 1 and {len(free)} seeds are that of "
                           "temperature 0", free[0][0])
    for name, value in EXTREMES.items():
        rows = j.of("parameters", f"extreme {name}")
        other = [number for number, text in rows if text.text != best[0]]
        if other:
            j.parameter(name, "ignored" if len(other) == len(rows) else "wrong", f"with {value:g} {len(other)} of {len(rows)} "
                        "texts are not that of temperature 0", other[0])
        elif rows:
            j.parameter(name, "honoured", f"{value:g} gives the text of temperature 0; other values are not visible")
