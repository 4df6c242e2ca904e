"""What every answer promises: that it comes, lists of logprobs, its count of tokens, max_tokens."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from .adapters import Text
    from .verdicts import Judge
    from .wire import Record


def judge(j: Judge) -> None:
    _ended(j)
    _answered(j)
    if j.adapter.logprobs:
        _listed(j)
        _counted(j)


def _said(record: Record) -> str:
    """Returns the message of an answer that is an error."""
    error = record.answer.get("error", record.answer) if isinstance(record.answer, dict) else record.answer
    return str(error.get("message", error) if isinstance(error, dict) else error)[:120]


def _ended(j: Judge) -> None:
    """Parameters whose first request fails, and a server that ends."""
    for number, record in enumerate(j.records):
        if record.question == "probe" and record.case.startswith("with ") and not 0 < record.status < 500:
            name = record.case.removeprefix("with ")
            lives = any(later.status == 200 for later in j.records[number + 1:])
            how = f"answered with {record.status}" if record.status else "not answered"
            j.failed.add(name)
            j.add(name, "failure", f"the first request with it is {how}: {_said(record)}"
                  + ("" if lives else f"; the server then ends (--without {name} audits the rest)"), number)
            j.audit.ended_at = "" if lives else name
    if j.lost and not j.audit.ended_at:
        at = next((number for number, record in enumerate(j.records) if not 0 < record.status < 500), None)
        # None: its time ended
        j.add("server", "inconclusive" if at is None else "failure", f"the run ended early: {j.lost}", at)


def _answered(j: Judge) -> None:
    bad = [number for number, record in enumerate(j.records)
           if record.question not in ("probe", "parameters", "speculation") and record.status not in (0, 200, 429)]
    if bad:
        record = j.records[bad[0]]
        j.add("answers", "failure", f"{len(bad)} of {len(j.records)} requests failed; the first with "
              f"{record.status}: {_said(record)}", bad[0])
    for name in j.dropped():
        if name in j.failed:
            continue
        theirs = str(j.adapter.names.get(name, name))
        said = next((f": {_said(record)}" for record in j.records if record.question == "probe"
                     and record.status in (400, 422) and theirs in str(record.answer)), "")
        j.add(name, "ok",
              "not sent: left out by --without" if name in j.without else f"refused by the server; not sent{said}")


def _listed(j: Judge) -> None:
    """Tokens without a list."""
    steps = [(number, step) for number, text in j.texts.items() for step in text.steps
             if j.records[number].settings.get("logprobs", 0) is not None]
    empty = [(number, step) for number, step in steps if not step.top]
    if empty:
        numbers = {number for number, _ in empty}
        drafted = sum(j.texts[number].accepted > 0 for number in numbers)
        zero = sum(step.logprob == 0.0 for _, step in empty)
        j.add("logprobs", "failure", f"{len(empty)} of {len(steps)} tokens have no list of logprobs"
              + (f"; {zero} of them state the logprob 0.0" if zero else "")
              + (f"; drafts were accepted in {drafted} of their {len(numbers)} answers" if drafted else ""),
              empty[0][0])


def _unfinished(j: Judge, text: Text) -> bool:
    """Returns whether tokens may be missing: llama.cpp leaves those of unfinished characters out of its list."""
    missing = (text.counted or 0) - len(text.steps)
    return j.adapter.engine == "llama.cpp" and 1 <= missing <= 3


def _miscounts(j: Judge, number: int, text: Text) -> bool:
    """Returns whether usage is not that of the list, which may lack a text's last token or those of a stop string."""
    missing = 0 if text.counted is None else text.counted - len(text.steps)
    stops = j.records[number].settings.get("stop") or []
    cut = max([1, *(len(stop.encode()) for stop in stops)]) if text.finish == "stop" else 0
    return not -min(cut, 1) <= missing <= cut and not _unfinished(j, text)


def _counted(j: Judge) -> None:
    wrong = [(number, len(text.steps), text.counted) for number, text in j.texts.items() if _miscounts(j, number, text)]
    if wrong:
        number, seen, said = wrong[0]
        j.add("usage", "failure", f"counts are wrong in {len(wrong)} of {len(j.texts)} answers (first: "
              f"{said} stated, {seen} listed)", number)

    def is_other(number: int, text: Text) -> bool:
        most, count = j.records[number].settings["max_tokens"], len(text.steps)
        short = text.finish == "length" and count != most and not _unfinished(j, text)
        return bool(most) and (count > most or short)
    other = [number for number, text in j.texts.items() if is_other(number, text)]
    if other:
        j.add("max_tokens", "failure", f"{len(other)} of {len(j.texts)} texts have another length than max_tokens",
              other[0])
    elif j.texts:
        j.add("max_tokens, usage", "ok", f"kept in {len(j.texts)} answers")
