"""audit_beams: beams of the program's own search and of rules that engines have are consistent, planted faults are
named."""

import functools

import numpy as np
import pytest

import draftproof

V, EOS, WIDTH, MOST = 7, 0, 3, 6


def model(seed):
    table = 1.5 * np.random.default_rng(seed).standard_normal((V + 1, V + 1, V)).astype(np.float32)
    table[..., EOS] += 0.5

    def logits_of(tokens):
        last = [V, V, *tokens][-2:]
        return table[last[0], last[1]]
    return logits_of


def log_p(logits, tempered=1.0):
    wide = logits.astype(np.float64) / tempered
    return wide - np.logaddexp.reduce(wide)


def engine(logits_of, width=WIDTH, most=MOST, a=1.0, stop="never", keep_end=True, counts_end=True,
           ends_of_any_rank=False, end_is_free=False, prompt_len=0, early=0, rows=log_p):
    """A beam search as engines write it, with places for faults. early: of max_tokens, tokens that are not made."""
    def score(total, tokens):
        n = prompt_len + len(tokens) - (tokens[-1] == EOS and not counts_end)
        return total / max(1, n) ** a

    running, done = [(0.0, [])], []
    for length in range(1, most + 1 - early):
        grown = sorted(((total + (0.0 if end_is_free and t == EOS else p), [*tokens, t])
                        for total, tokens in running for t, p in enumerate(rows(logits_of(tokens)))),
                       key=lambda one: -one[0])
        done += [one for rank, one in enumerate(grown) if one[1][-1] == EOS
                 and (rank < width or (ends_of_any_rank and rank < 2 * width))]
        running = [one for one in grown if one[1][-1] != EOS][:width]
        done.sort(key=lambda one: -score(*one))
        if not ends_of_any_rank and len(done) >= width and length < most:
            done = done[:width]
            bound = score(running[0][0], [1] * (most if stop == "never" else length))
            if stop is True or score(*done[-1]) >= bound:
                break
    else:
        done += running
    done = sorted(done, key=lambda one: -score(*one))[:width]
    return [tokens if keep_end else tokens[:-1] for _, tokens in done], [score(*one) for one in done]


def audited(seed, **options):
    asked = {name: options.pop(name) for name in ("early_stopping", "length_penalty", "prompt_len") if name in options}
    beams, scores = engine(model(seed), **options)
    return draftproof.audit_beams(beams, scores, model(seed), eos_ids=[EOS], max_tokens=MOST, **asked)


@pytest.mark.parametrize("stop", ["never", False, True])
def test_each_rule_of_stopping_is_consistent_and_told_where_it_matters(stop):
    told = set()
    for seed in range(40):
        found = audited(seed, stop=stop, early_stopping=stop)
        assert found.verdict == "consistent", (seed, found.sentence)
        any_rule = audited(seed, stop=stop)
        assert any_rule.verdict == "consistent", (seed, any_rule.sentence)
        told.add(any_rule.readings[1])
    assert len(told) > (stop != "never")  # other rules than the first explain some


@pytest.mark.parametrize("options, words", [
    ({"counts_end": False}, "without the end"), ({"a": 0.0, "length_penalty": 0.0}, "sum / length^a"),
    ({"prompt_len": 5}, "prompt and generated tokens, the end included"),
    # vLLM's
    ({"prompt_len": 5, "counts_end": False, "ends_of_any_rank": True}, "prompt and generated tokens, without the end"),
], ids=["an end that has no length", "no length penalty", "lengths with the prompt", "vLLM"])
def test_usual_readings_of_scores_are_sound(options, words):
    seen = []
    for seed in range(12):
        beams, scores = engine(model(seed),
                               **{name: value for name, value in options.items() if name != "length_penalty"})
        found = draftproof.audit_beams(beams, scores, model(seed), eos_ids=[EOS], max_tokens=MOST,
                                       length_penalty=options.get("length_penalty", 1.0),
                                       prompt_len=options.get("prompt_len"))
        assert not found.biased, (seed, found.sentence)
        seen.append(found.readings[0] if found.readings else "")
    assert sum(words in reading for reading in seen) > 5, seen


FAULTS = {
    "a narrower search": ("search", {"width": 2, "beam_width": 3}),
    "ends of any rank where they are not asked for": ("search", {"ends_of_any_rank": True, "early_stopping": "never"}),
    "stops at once where it must not": ("search", {"stop": True, "early_stopping": "never"}),
    "a length penalty of 1.2": ("score", {"a": 1.2}),
    "the end's log-probability is left out": ("score", {"end_is_free": True}),
    "logits in place of log-probabilities": ("score", {"rows": lambda logits: logits.astype(np.float64)}),
    "a temperature of 1.1": ("score", {"rows": functools.partial(log_p, tempered=1.1)}),
    "a token too few": ("unfinished", {"early": 1}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_of_a_search_is_named(fault):
    name, options = FAULTS[fault]
    options = dict(options)
    width, asked = options.pop("beam_width", None), {key: options.pop(key) for key in ("early_stopping",)
                                                     if key in options}
    found = []
    for seed in range(20):
        beams, scores = engine(model(seed), **options)
        found.append(draftproof.audit_beams(beams, scores, model(seed), eos_ids=[EOS], max_tokens=MOST,
                                            beam_width=width, **asked))
    assert any(name in {failure.name for failure in one.failures} for one in found), [one.sentence for one in found][:3]
    if name == "score":
        assert sum(one.biased for one in found) > 15
    if "1.2" in fault:
        assert any("with a length penalty of 1.2" in one.sentence for one in found)


def test_order_duplicates_tokens_behind_an_end_and_impossible_ones_are_named():
    beams, scores = engine(model(1))

    def names(beams, scores):
        found = draftproof.audit_beams(beams, scores, model(1), eos_ids=[EOS], max_tokens=MOST)
        assert found.verdict == "biased" and found.biased
        return {failure.name for failure in found.failures}

    assert "order" in names(beams[::-1], scores[::-1])
    assert "duplicates" in names([beams[0], beams[0], *beams[1:]], [scores[0], scores[0], *scores[1:]])
    assert "goes_on" in names([[EOS, 1], *beams[1:]], scores)
    assert "too_long" in names([[1] * (MOST + 1), *beams[1:]], scores)
    assert "impossible" in names([[V], *beams[1:]], scores)
    with pytest.raises(draftproof.Error, match="scores: has shape \\[1\\] beside 3 hypotheses"):
        draftproof.audit_beams(beams, [1.0], model(1))
    with pytest.raises(draftproof.Error, match="logits_of: gave 3 logits"):
        draftproof.audit_beams([[1]], [1.0], lambda tokens: [np.nan, 1.0, 2.0])
    alone = draftproof.audit_beams(beams, scores, model(1), eos_ids=[EOS])
    assert alone.verdict == "consistent" and "the search was not looked at" in alone.sentence


def test_the_programs_own_beam_search_is_consistent():
    prompt, most = "the ", 5
    beams = draftproof.generate(model="ngram:2", prompt=prompt, max_tokens=most, beams=4).requests[0]["beams"]

    def logits_of(tokens):
        text = prompt + bytes(tokens).decode("latin-1")
        row = np.full(257, -np.inf)
        every = draftproof.generate(model="ngram:2", prompt=text, max_tokens=1, temperature=0, logprobs=300,
                                    drafter="none").requests[0]["logprobs"][0]
        row[[one["token"] for one in every]] = [one["logprob"] for one in every]
        return row

    found = draftproof.audit_beams([beam["tokens"] for beam in beams], [beam["score"] for beam in beams], logits_of,
                                   max_tokens=most)
    assert found.verdict == "consistent", found.sentence
    worse = draftproof.audit_beams([beam["tokens"] for beam in beams[1:]], [beam["score"] for beam in beams[1:]],
                                   logits_of, max_tokens=most)
    assert [failure.name for failure in worse.failures] == ["search"], worse.sentence


def test_an_end_may_be_one_id_and_a_length_penalty_is_proposed_only_where_it_explains_all_scores():
    beams, scores = engine(model(3))
    assert draftproof.audit_beams(beams, scores, model(3), eos_ids=EOS, max_tokens=MOST).verdict == "consistent"
    for name, value in {"max_tokens": 0, "beam_width": 2.5, "prompt_len": -3, "length_penalty": np.nan,
                        "tolerance": -1, "eos_ids": [1.5], "tokens": None, "scores": ["a"], "logits_of": 3}.items():
        with pytest.raises(draftproof.Error, match=f"^{name}: .*; expected "):
            draftproof.audit_beams(**{"tokens": beams, "scores": scores, "logits_of": model(3), "eos_ids": [EOS],
                                      name: value})
    others = engine(model(3), a=0.6)
    of_other = draftproof.audit_beams(*others, model(3), eos_ids=[EOS]).sentence
    of_one = draftproof.audit_beams(beams, [scores[0], scores[1] - 0.01, *scores[2:]], model(3), eos_ids=[EOS]).sentence
    assert "with a length penalty of 0.6" in of_other and "1 of 3 scores" in of_one and "penalty of" not in of_one
