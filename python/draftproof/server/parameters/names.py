"""Names of other servers: does a parameter under such a name have an effect, is it refused, or ignored silently?"""

from ..collect import PROMPTS, Collector
from ..verdicts import Judge

VALUE = 1.8  # of a parameter that is neutral at 1


def ask(c: Collector) -> None:
    common = {"seed": 1, "temperature": 0.0, "max_tokens": 24}
    for name, other in c.adapter.other_names.items():
        plain, own, foreign = (c.record("parameters", f"name {turn}", PROMPTS[8], name, **common, **more)
                               for turn, more in (("plain", {}), ("own", {name: VALUE}), ("foreign", {})))
        foreign.body[other] = VALUE
        c.wire.post_all([plain, own, foreign])


def judge(j: Judge) -> None:
    for number in j.asked("name foreign"):
        name = j.records[number].settings["about"]
        other, here = j.adapter.other_names[name], j.adapter.names[name]
        texts = {turn: [text.text for _, text in j.of("parameters", f"name {turn}")]
                 for turn in ("plain", "own", "foreign")}
        if not texts["foreign"]:
            j.parameter(other, "refused", "", number)
        elif texts["plain"] == texts["own"]:
            j.parameter(other, "not visible", f"{here} does not change the text either", number)
        elif texts["foreign"] == texts["plain"]:
            j.add(other, "none", f"accepted without effect and without an error; its name here is {here}", number)
        else:
            j.parameter(other, "accepted", f"as {here}", number)
