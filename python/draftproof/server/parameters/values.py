"""Values that no sampler can honour: does the server refuse them, accept them, or fail?"""

from ..collect import PROMPTS, Collector
from ..verdicts import Judge

BAD = {"temperature": -1.0, "top_p": 1.5}


def ask(c: Collector) -> None:
    for name, value in BAD.items():
        if c.offers(name):
            c.wire.post(c.record("parameters", "bad value", PROMPTS[0], name, seed=1, max_tokens=2, **{name: value}))


def judge(j: Judge) -> None:
    for number in j.asked("bad value"):
        record = j.records[number]
        name = record.settings["about"]
        if record.status >= 500:
            j.parameter(f"{name} {BAD[name]:g}", "wrong", f"answered with {record.status}; expected 400", number)
        else:
            j.parameter(f"{name} {BAD[name]:g}", "refused" if record.status != 200 else "accepted", "", number)
