"""Where texts end: stop strings and ids, min_tokens, max_tokens 0, the end of the text. Greedy texts whose tokens are
known one by one say what each request must answer."""

from ..adapters import Text
from ..collect import PROMPTS, Collector
from ..verdicts import Judge
from ..wire import Record

CLEAR, LONGEST = 0.1, 20  # logits between the two best, so that noise does not change a text; its tokens
NEVER = ("#~",)  # a stop string that no text has, before the other


def clear(text: Text) -> int:
    """Returns how many first tokens of a greedy text noise cannot change; without lists, how many it has."""
    if not any(step.top for step in text.steps):
        return min(LONGEST, text.counted or 0)
    close = (place for place, step in enumerate(text.steps) if len(step.top) < 2 or step.top[0][0] != step.token
             or step.top[0][1] - step.top[1][1] < CLEAR)
    return min(LONGEST, next(close, len(text.steps)))


def known(c: Collector) -> tuple[str, int]:
    """Returns the prompt with the longest clear greedy text, and how many tokens of it are clear."""
    asked = [record for record in c.wire.records if record.case == "known"] or c.wire.post_all(
        [c.record("parameters", "known", prompt, seed=7, temperature=0.0, max_tokens=LONGEST)
         for prompt in PROMPTS[:8]])
    lengths = [(clear(c.adapter.read(record.answer)), record.settings["prompt"]) for record in asked
               if record.status == 200]
    length, prompt = max(lengths, default=(0, ""))
    return prompt, length


def ask(c: Collector) -> None:
    prompt, length = known(c)

    def greedy(case: str, about: object = None, **settings: object) -> Record:
        return c.record("parameters", case, prompt, about, seed=7, temperature=0.0,
                        **{"max_tokens": length, **settings})
    c.wire.post(greedy("no tokens", max_tokens=0))
    if length >= 6:
        whole = c.wire.post_all([greedy("prefix", count, max_tokens=count) for count in range(1, length + 1)])
        texts = [c.adapter.read(record.answer) for record in whole if record.status == 200]
        if len(texts) == length:
            tokens = [step.token for step in texts[-1].steps]
            found = strings([text.text for text in texts])
            jobs = [greedy("stop", stop=[*(NEVER if at % 2 else ()), stop]) for at, stop in enumerate(found)]
            places = [at for at in range(2, len(tokens) - 1) if isinstance(tokens[at], int) and tokens[at] not in
                      tokens[:at]][::3][:3]
            if c.adapter.offers("stop_token_ids"):
                jobs += [greedy("stop ids", at, stop_token_ids=[tokens[at]]) for at in places]
                if c.adapter.offers("min_tokens"):
                    jobs += [greedy("min_tokens", at, stop_token_ids=[tokens[at]], min_tokens=at + 2,
                                    max_tokens=length + 2) for at in places]
            c.wire.post_all(jobs)
    free = c.wire.post_all([c.record("parameters", "eos", PROMPTS[number], seed=300 + number, temperature=1.5)
                            for number in range(len(PROMPTS))])
    ended = [record for record in free if record.status == 200 and c.adapter.read(record.answer).finish == "stop"]
    c.wire.post_all([c.record("parameters", "ignore_eos", record.settings["prompt"], seed=record.settings["seed"],
                              temperature=1.5, ignore_eos=True) for record in ended[:3]])


def strings(prefixes: list[str]) -> list[str]:
    """Returns stop strings of a text that is known token by token: within tokens, and over two of them."""
    found: list[str] = []
    whole = prefixes[-1]
    for place in range(1, len(prefixes) - 1):
        border = len(prefixes[place])
        for stop in (whole[border - 2:border + 2], whole[border:border + 3]):
            if len(stop.strip()) > 1 and whole.find(stop) + len(stop) > border and stop not in found:
                found.append(stop)
    return found[::max(1, len(found) // 8)][:8]


def judge(j: Judge) -> None:
    prefixes = [text for _, text in j.of("parameters", "prefix")]
    if prefixes and all(after.text.startswith(before.text) for before, after in zip(prefixes, prefixes[1:])):
        _stop(j, prefixes)
        _stop_ids(j, prefixes)
    elif j.asked("known"):
        j.parameter("stop", "not visible", "no greedy text is clear enough")
    _nothing(j)
    _eos(j)


def _stop(j: Judge, prefixes: list[Text]) -> None:
    whole, readings = prefixes[-1].text, set()
    rows = j.of("parameters", "stop")
    if j.asked("stop") and not rows:
        return j.parameter("stop", "refused", "", j.asked("stop")[0])
    for number, text in rows:
        stop = j.records[number].settings["stop"][-1]
        at = whole.find(stop)
        need = next(count for count, prefix in enumerate(prefixes, 1) if stop in prefix.text)  # tokens that complete it
        if text.text == whole and at + len(stop) < len(whole):
            return j.parameter("stop", "ignored" if all(other.text == whole for _, other in rows) else "wrong",
                               f"the text does not end at the stop string {stop!r}", number)
        kept = {whole[:at]: "cut", whole[:at + len(stop)]: "kept", prefixes[need - 1].text: "kept with its token"}
        if text.text not in kept:
            return j.parameter("stop", "wrong", f"the text ends elsewhere than at the stop string {stop!r}", number)
        readings.add(kept[text.text])
        if text.finish != "stop":
            return j.parameter("stop", "wrong", f"the finish reason is '{text.finish}'; expected 'stop'", number)
        count = max(text.counted or 0, len(text.steps) if j.adapter.logprobs else 0)
        if count > need:
            return j.parameter("stop", "wrong",
                               f"{count} tokens are returned; {need} complete the stop string {stop!r}", number)
    if rows:
        j.parameter("stop", "honoured", f"the string is {' or '.join(sorted(readings))}, within tokens and over two")


def _stop_ids(j: Judge, prefixes: list[Text]) -> None:
    tokens = [step.token for step in prefixes[-1].steps]
    for name, case in (("stop_token_ids", "stop ids"), ("min_tokens", "min_tokens")):
        rows, readings, wrong = j.of("parameters", case), set(), []
        if j.asked(case) and not rows:
            j.parameter(name, "refused", "", j.asked(case)[0])
            continue
        for number, text in rows:
            at, drawn = j.records[number].settings["about"], [step.token for step in text.steps]
            count = len(drawn) if text.counted is None else text.counted
            if case == "stop ids":
                right = drawn in (tokens[:at], tokens[:at + 1]) and count in (at, at + 1) and text.finish == "stop"
                readings.add("listed" if len(drawn) > at else "not listed")
                ignored = len(drawn) > at + 1
            else:
                right = count >= at + 2 or (text.finish == "stop" and count == at + 1 and drawn[at:at + 1]
                                            not in ([], tokens[at:at + 1]))
                readings.add("earlier ends are passed over" if drawn[at:at + 1] == tokens[at:at + 1]
                             else "earlier ends are masked")
                ignored = count <= at + 1
            if not right:
                least = f", min_tokens is {at + 2}" if case == "min_tokens" else ""
                wrong.append((number, ignored, f"{count} tokens, finish reason '{text.finish}'; the token to stop at "
                              f"is number {at + 1}{least}"))
        if wrong:
            j.parameter(name, "ignored" if sum(ignored for _, ignored, _ in wrong) == len(rows) else "wrong",
                        wrong[0][2], wrong[0][0])
        elif rows:
            j.parameter(name, "honoured", " or ".join(sorted(readings)))


def _nothing(j: Judge) -> None:
    for number in j.asked("no tokens"):
        record, text = j.records[number], j.texts.get(number)
        words = "gives no token" if text and not text.steps and not text.text else "gives a token"
        j.parameter("max_tokens 0", "honoured" if text else "refused",
                    words if text else f"with {record.status}", number)


def _eos(j: Judge) -> None:
    rows, ended = j.of("parameters", "ignore_eos"), j.of("parameters", "eos")
    if j.asked("ignore_eos") and not rows:
        return j.parameter("ignore_eos", "refused", "", j.asked("ignore_eos")[0])
    for number, text in rows:
        count = len(text.steps) if j.adapter.logprobs else text.counted or 0
        if text.finish == "stop" or count < j.records[number].settings["max_tokens"] - 3:
            return j.parameter("ignore_eos", "ignored", "texts end before max_tokens", number)
    if rows:
        return j.parameter("ignore_eos", "honoured", f"{len(rows)} texts that ended without it go on")
    if ended:
        j.parameter("ignore_eos", "not visible", f"none of {len(ended)} texts ended by itself")
