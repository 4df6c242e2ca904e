"""Beam search and best_of, where a server offers them, by lists that say what they must answer."""

from ..collect import PROMPTS, Collector
from ..verdicts import Judge
from .ends import CLEAR

WIDTH, BEST = 3, 4


def ask(c: Collector) -> None:
    ids = c.ids()
    if c.adapter.names.get("beams") and ids:
        prompt = ids[:16]
        top = c.lists([prompt])[0]
        c.wire.post_all([c.record("parameters", "beams", prompt, seed=1, temperature=0.0, max_tokens=2, n=WIDTH, beams=True),
                         c.record("parameters", "beam first", prompt, seed=1, max_tokens=1),
                         *(c.record("parameters", "beam second", [*prompt, token], token, seed=1, max_tokens=1)
                           for token, _ in top[:WIDTH])])
    if c.adapter.names.get("best_of"):
        c.wire.post_all([c.record("parameters", case, PROMPTS[3], seed=21, max_tokens=12, **more) for case, more in (
            ("best of", {"n": 1, "best_of": BEST}), ("all of best", {"n": BEST}))])


def judge(j: Judge) -> None:
    _beams(j)
    _best(j)


def _rows(j: Judge, number: int, count: int) -> list:
    """Returns the tokens of each choice of an answer, with the sum of their logprobs."""
    texts = [j.adapter.read(j.records[number].answer, place) for place in range(count)]
    return [(tuple(text.ids or (step.token for step in text.steps)), sum(step.logprob for step in text.steps))
            for text in texts]


def _beams(j: Judge) -> None:
    for number in j.asked("beams"):
        if number not in j.texts:
            return j.parameter("beams", "refused", "", number)
        first = [text.steps[0].top for _, text in j.of("parameters", "beam first") if text.steps]
        second = {j.records[at].settings["about"]: text.steps[0].top for at, text in j.of("parameters", "beam second")
                  if text.steps}
        if not first or len(second) < WIDTH or first[0][WIDTH - 1][1] - first[0][WIDTH][1] < CLEAR:
            return j.parameter("beams", "not visible", "the lists leave open which are the best")
        best = sorted(((known + value, (token, key)) for token, known in first[0][:WIDTH]
                       for key, value in second.get(token, [])), key=lambda row: -row[0])
        sums = [value for value, _ in best[:WIDTH + 1]]
        choices = len(j.records[number].answer.get("choices") or [])
        rows = [row for row, _ in _rows(j, number, choices)]
        if min(a - b for a, b in zip(sums, sums[1:])) < CLEAR / 10 or any(len(row) != 2 for row in rows):
            return j.parameter("beams", "not visible", "two beams are too close, or one ended early")
        expected = [row for _, row in best[:WIDTH]]
        if rows != expected:
            return j.parameter("beams", "wrong", f"{rows} are answered; {expected} are the best of {WIDTH} beams by the "
                               "lists", number)
        return j.parameter("beams", "honoured", f"the best {WIDTH} of {WIDTH} beams, in order")


def _best(j: Judge) -> None:
    for number, every in zip(j.asked("best of"), j.asked("all of best")):
        if number not in j.texts or every not in j.texts:
            return j.parameter("best_of", "refused", "", number)
        rows = _rows(j, every, len(j.records[every].answer.get("choices") or []))
        chosen = _rows(j, number, 1)[0][0]
        best = {"sum": max(rows, key=lambda row: row[1])[0], "mean": max(rows, key=lambda row: row[1] / max(1, len(row[0])))[0]}
        how = [name for name, row in best.items() if row == chosen]
        if len({row for row, _ in rows}) < 2 or chosen not in [row for row, _ in rows]:
            return j.parameter("best_of", "not visible", "its texts are not those of n with the same seed")
        return j.parameter("best_of", "honoured" if how else "wrong", f"the best by the {' and the '.join(how)} of logprobs" if how
                           else f"another text than the best of {BEST} by the sum of logprobs", number)
