"""Servers without lists of logprobs: filters at values that leave the best token alone, draws at temperature 1.

Without lists a near tie is not seen, at which noise changes a text: a parameter is accused by two of three prompts."""

from ..collect import PROMPTS, Collector
from ..verdicts import Judge

# Each leaves the best token alone.
EXTREMES = {"temperature": 1e-5, "top_k": 1, "top_p": 1e-6, "min_p": 1.0}
ASKED = PROMPTS[:3]


def ask(c: Collector) -> None:
    if c.adapter.logprobs:
        return
    names = [name for name in EXTREMES if c.offers(name)]
    c.wire.post_all([
        c.record("parameters", case, prompt, seed=70 + 10 * place + number, max_tokens=12, **settings)
        for place, (case, settings) in enumerate((("best", {"temperature": 0.0}), ("free", {}), ("free", {}),
                               *((f"extreme {name}", {name: EXTREMES[name]}) for name in names)))
        for number, prompt in enumerate(ASKED)])


def judge(j: Judge) -> None:
    best = {j.records[number].settings["prompt"]: text.text for number, text in j.of("parameters", "best")}

    def other(case: str) -> tuple[int, list[int]]:
        """Returns how many texts of a case are judged, and which are not that of temperature 0."""
        rows = [(number, text.text, best.get(j.records[number].settings["prompt"])) for number,
                text in j.of("parameters", case)]
        return sum(wanted is not None for *_, wanted in rows), [
            number for number, text, wanted in rows if wanted is not None and text != wanted]
    count, differ = other("free")
    if count < len(ASKED):
        return
    if not differ:
        return j.parameter("temperature", "ignored", f"{count} texts of temperature 1 are those of temperature 0",
                           j.asked("free")[0])
    for name, value in EXTREMES.items():
        count, differ = other(f"extreme {name}")
        if len(differ) > 1:
            j.parameter(name, "ignored" if len(differ) == count else "wrong",
                        f"with {value:g} {len(differ)} of {count} texts "
                        "are not those of temperature 0", differ[0])
        elif count == len(ASKED):
            j.parameter(name, "honoured", f"{value:g} gives the texts of temperature 0; other values are not visible")
