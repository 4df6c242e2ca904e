"""Beam search and best_of, where a server offers them, by lists that say what they must answer."""

from ..collect import PROMPTS, Collector
from ..verdicts import Judge
from .ends import CLEAR

WIDTH, BEST, PROMPTS_MAX = 3, 4, 5


def ask(c: Collector) -> None:
    ids = c.ids()
    if c.adapter.names.get("beams") and ids and c.offers("n") and c.offers("logit_bias"):
        prompts, tokens = [ids[start:start + 16] for start in range(0, 8 * PROMPTS_MAX, 8)], set()
        for at, (prompt, top) in enumerate(zip(prompts, c.lists(prompts))):
            done = c.wire.post_all([
                c.record("parameters", "beams", prompt, top, seed=1, temperature=0.0, max_tokens=2, n=WIDTH,
                         beams=True),
                *(c.record("parameters", f"beams {at}", [*prompt, token], token, seed=1, max_tokens=1)
                  for token, _ in top[:WIDTH])])
            tokens |= _within(top, _best_two(top, {
                record.settings["about"]: step.top for record in done if record.case != "beams" and record.status == 200
                for step in c.adapter.read(record.answer).steps}))
        # bias shows which of them end a text
        c.wire.post_all([c.record("parameters", "beam token", prompts[0], token, seed=1, temperature=0.0, max_tokens=2,
                                  logit_bias={str(token): 100.0}) for token in sorted(tokens)])
    if c.adapter.names.get("best_of") and c.offers("n"):
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


def _best_two(first: list, second: dict) -> list:
    """Returns texts of two tokens with the sums of their logprobs, best first."""
    return sorted(((known + value, (token, key)) for token, known in first[:WIDTH]
                   for key, value in second.get(token, [])), key=lambda row: -row[0])


def _within(first: list, best: list) -> set:
    """Returns the tokens that change which texts are the best of WIDTH beams if they end a text."""
    last = best[:WIDTH][-1][0] if best else 0.0
    return {token for place, (token, value) in enumerate(first) if place < WIDTH or value > last} | {
        token for _, row in best[:WIDTH] for token in row}


def _beams(j: Judge) -> None:
    asked = j.asked("beams")
    lasting = {j.records[number].settings["about"] for number, text in j.of("parameters", "beam token")
               if text.finish != "stop"}
    if asked and not j.of("parameters", "beams"):
        return j.parameter("beams", "refused", "", asked[0])
    seen = 0
    for at, number in enumerate(asked):
        first = [tuple(pair) for pair in j.records[number].settings["about"]]
        second = {j.records[place].settings["about"]: text.steps[0].top for place,
                  text in j.of("parameters", f"beams {at}")
                  if text.steps}
        best = _best_two(first, second)
        gaps = [first[WIDTH - 1][1] - first[WIDTH][1],
                *(above[0] - below[0] for above, below in zip(best[:WIDTH], best[1:]))]
        if number not in j.texts or len(second) < WIDTH or min(gaps) < CLEAR / 10:
            continue  # noise could change the order
        if not _within(first, best) <= lasting:
            continue  # a text that ends is ranked by its length in some servers
        rows = [row for row, _ in _rows(j, number, len(j.records[number].answer.get("choices") or []))]
        seen += 1
        if rows != (expected := [row for _, row in best[:WIDTH]]):
            return j.parameter("beams", "wrong",
                               f"{rows} are answered; {expected} are the best of {WIDTH} beams by the "
                               "lists", number)
    if asked:
        j.parameter("beams", "honoured" if seen else "not visible", f"the best {WIDTH}, in order, of {seen} prompts"
                    if seen else "two beams are too close in each prompt, or end early")


def _best(j: Judge) -> None:
    for number, every in zip(j.asked("best of"), j.asked("all of best")):
        if number not in j.texts or every not in j.texts:
            return j.parameter("best_of", "refused", "", number)
        rows = _rows(j, every, len(j.records[every].answer.get("choices") or []))
        chosen = _rows(j, number, 1)[0][0]
        best = {"sum": max(rows, key=lambda row: row[1])[0],
                "mean": max(rows, key=lambda row: row[1] / max(1, len(row[0])))[0]}
        how = [name for name, row in best.items() if row == chosen]
        if len({row for row, _ in rows}) < 2 or chosen not in [row for row, _ in rows]:
            return j.parameter("best_of", "not visible", "its texts are not those of n with the same seed")
        return j.parameter("best_of", "honoured" if how else "wrong",
                           f"the best by the {' and the '.join(how)} of logprobs" if how
                           else f"another text than the best of {BEST} by the sum of logprobs", number)
