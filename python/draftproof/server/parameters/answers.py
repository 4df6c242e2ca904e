"""What an answer promises: choices, a stream like the whole answer, counts of the prompt, which logprobs are listed."""

from ..collect import PROMPTS, Collector
from ..verdicts import Judge
from .ends import known

CHOICES = 4


def ask(c: Collector) -> None:
    prompt, length = known(c)
    jobs = [c.record("parameters", "list", prompt, seed=1, max_tokens=1),
            c.record("parameters", "list, filtered", prompt, seed=1, max_tokens=1, temperature=0.5, top_k=3)]
    if c.offers("n"):
        jobs += [c.record("parameters", f"n = {n}", PROMPTS[3], seed=21, max_tokens=16, n=n) for n in (1, CHOICES)]
    for stream in (False, True) if c.adapter.offers("stream") else (False,):
        common = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        jobs.append(c.record("parameters", "greedy stream" if stream else "greedy whole", prompt, seed=7,
                             temperature=0.0, max_tokens=max(1, length), **common))
        jobs += [c.record("parameters", "seeded stream" if stream else "seeded whole", place, seed=60 + number,
                          max_tokens=4, **common) for number, place in enumerate(PROMPTS[:4])]
    if "seed" not in c.dropped:
        jobs += [c.record("parameters", "wide seed", PROMPTS[2], name, seed=seed, max_tokens=12) for name, seed in (
            ("small", 5), ("32 bits", 5 + 2 ** 32), ("large", 2 ** 53), ("float64", 2 ** 53 + 1))]
    c.wire.post_all(jobs)


def judge(j: Judge) -> None:
    _choices(j)
    _stream(j)
    _listed(j)
    _seeds(j)
    _prompts(j)


def _choices(j: Judge) -> None:
    asked, alone = j.asked(f"n = {CHOICES}"), j.of("parameters", "n = 1")
    if not asked:
        return
    number = asked[0]
    record = j.records[number]
    if number not in j.texts:
        return j.parameter("n", "refused", f"with {record.status}", number)
    answered = record.answer.get("choices") or []
    if len(answered) != CHOICES:
        return j.parameter("n", "ignored" if len(answered) == 1 else "wrong",
                           f"{len(answered)} choices are answered; {CHOICES} were asked for", number)
    texts = [j.adapter.read(record.answer, place) for place in range(CHOICES)]
    rows = [tuple(step.token for step in text.steps) for text in texts]
    chance = max(sum(step.logprob for step in text.steps) for text in texts)
    if len(set(rows)) < CHOICES and chance < -16:
        return j.parameter("n", "wrong", "two choices are the same text", number)
    counted = (record.answer.get("usage") or {}).get("completion_tokens")
    if counted is not None and j.adapter.logprobs and not 0 <= counted - sum(map(len, rows)) <= CHOICES:
        return j.parameter("n", "wrong", f"{counted} tokens are counted; the choices list {sum(map(len, rows))}",
                           number)
    same = alone and rows[0] == tuple(step.token for step in alone[0][1].steps)
    j.parameter("n", "honoured", f"{CHOICES} choices; choice 0 is {'' if same else 'not '}that of n = 1")


def _stream(j: Judge) -> None:
    # noise can change one draw near a border
    for case, allowed in (("greedy", 0), *((("seeded", 1),) if "seed" not in j.dropped() else ())):
        pairs = list(zip(j.of("parameters", f"{case} whole"), j.of("parameters", f"{case} stream")))
        other = []
        for (_, whole), (number, part) in pairs:
            for name, a, b in (("text", whole.text, part.text), ("finish reason", whole.finish, part.finish),
                               ("tokens", whole.counted, part.counted)):
                if a != b and None not in (a, b):
                    other.append((number, f"{name} {b!r}; without a stream {a!r}"))
                    break
        if len(other) > allowed:
            return j.parameter("stream", "wrong", f"{len(other)} of {len(pairs)} streams differ (first: {other[0][1]})",
                               other[0][0])
    if j.of("parameters", "greedy stream"):
        return j.parameter("stream", "honoured", "the same texts, finish reasons and counts as without")
    if j.asked("greedy stream"):
        j.parameter("stream", "refused", "", j.asked("greedy stream")[0])


def _listed(j: Judge) -> None:
    plain, filtered = j.of("parameters", "list"), j.of("parameters", "list, filtered")
    if not plain or not filtered or not plain[0][1].steps or not filtered[0][1].steps:
        return
    one, two = (rows[0][1].steps[0].top for rows in (plain, filtered))
    if len(one) < 2 or len(two) < 2:
        return j.parameter("logprobs", "honoured", "processed: taken after the filters")
    wide, now = one[0][1] - one[1][1], two[0][1] - two[1][1]
    scaled = abs(now - 2 * wide) < abs(now - wide)
    shorter = len([value for _, value in two if value > -1e4]) < len(one)
    j.parameter("logprobs", "honoured", "processed: taken after the filters" if shorter else
                "processed: taken after the temperature" if scaled else "raw: taken before the temperature")


def _seeds(j: Judge) -> None:
    rows = {j.records[number].settings["about"]: [step.token for step in text.steps]
            for number, text in j.of("parameters", "wide seed")}
    if len(rows) == 4:
        words = [words for a, b, words in (("small", "32 bits", "modulo 2^32"), ("large", "float64", "as float64"))
                 if rows[a] == rows[b]]
        j.parameter("wide seeds", "honoured", f"taken {' and '.join(words)}" if words else "in all 54 bits")


def _prompts(j: Judge) -> None:
    """Prompts of token ids: the count stated is theirs, or more by one number (a first token that the server adds)."""
    rows = [(number, text.prompted - len(j.records[number].settings["prompt"])) for number, text in j.texts.items()
            if text.prompted is not None and isinstance(j.records[number].settings["prompt"], list)]
    other = [number for number, more in rows if more != rows[0][1] or not 0 <= more <= 1]
    if other:
        j.parameter("usage of prompts", "wrong", f"the count of the prompt's tokens is wrong in {len(other)} of "
                    f"{len(rows)} answers", other[0])
    elif rows:
        more = " and one that the server adds" if rows[0][1] else ""
        j.parameter("usage of prompts", "honoured", f"token ids{more}")
