"""Whole requests: what they ask for is made as process_rows makes it, sound callables pass under every reading, and
faults that begin with a request's second token, with a mate's history or along drafts are found."""

import dataclasses
import itertools

import numpy as np
import pytest

import draftproof
from draftproof.callable.cases import sample_sweep
from draftproof.callable.cases.request_cases import FILTERS, RequestCase, request_cases
from draftproof.callable.cases.request_params import FACTORS, columns
from draftproof.callable.cases.sample_cases import OF_PEERS, OFF, PEERS
from draftproof.callable.drive import callee
from draftproof.callable.drive.drive import Driver
from draftproof.callable.drive.request_heeded import heeded
from draftproof.callable.drive.request_rows import READINGS, shaped
from draftproof.callable.drive.request_run import RequestRun

EVERY = tuple(name for name in FACTORS if name != "bitmask" and not FACTORS[name].is_end)
#: What two of process_rows do not take together.
EXCLUSIVE = {"allowed", "bitmask"}
LEVEL = 1e-7


def windowed(params, beyond=0, over_prompt=False):
    """Parameters whose histories are cut to their window."""
    params = dict(params)
    windows = params.pop("penalty_last_n", None)
    if windows is None:
        return params
    output = [np.asarray(tokens, np.int32) for tokens in params["output_tokens"]]
    if over_prompt:
        output = [np.concatenate([prompt, tokens]) for prompt, tokens in zip(params["prompt_tokens"], output)]
        params["prompt_tokens"] = [[] for _ in output]
    params["output_tokens"] = [tokens[max(0, len(tokens) - int(n) - beyond):] for tokens, n in zip(output, windows)]
    return params


def sampler(change=lambda params, steps: params, **window):
    def sample(logits, params, seeds, steps):
        return draftproof.sample(logits, change(windowed(params, **window), np.asarray(steps)), seeds, steps=steps)
    return sample


def changed(**changes):
    """Parameters of which each name given is what its function makes of it."""
    return lambda params, steps: {**params,
                                  **{name: change(params[name]) for name, change in changes.items() if name in params}}


def of_mate(values):
    return [values[-1], *values[:-1]] if isinstance(values, list) else np.roll(values, 1, axis=0)


def filters_of_first_token(params, steps):
    return {**params, "top_k": np.where(steps > 0, 0, params["top_k"]),
            "top_p": np.where(steps > 0, 1.0, params["top_p"]).astype(np.float32)}


def penalties_of_first_token(params, steps):
    return {**params, "output_tokens": [tokens[:0] if step > 1 else tokens for tokens,
                                        step in zip(params["output_tokens"], steps)]}


def case_of(*factors, kind="sample", **more):
    return RequestCase("under test", kind, factors, is_one_seed=True,
                       **{**({"lens": (2, 0, 3, 1)} if kind == "verify" else {}), **more})


def judged(callable_, case, seed=3):
    run = RequestRun(Driver(callable_, 60.0), case, seed)
    run.draw(case.n_max)
    return run.judge(LEVEL), run


def test_rows_of_requests_are_what_process_rows_makes_of_them():
    run = RequestRun(Driver(sampler(), 60.0), case_of(*EVERY, filters=({},)), 5)
    for _ in range(6):
        steps = [run._step(b) for b in range(run.case.batch)]
        rows = [step.rows[0] for step in steps]
        requests = [run._requests[b] for b in range(len(rows))]
        given = {**run._filters(steps), **columns(run.names, requests, len(rows), run.case.vocab_size)}
        if any(row.uncond is not None for row in rows):
            given["uncond_logits"] = run._of_rows(rows)["uncond_logits"]
        else:
            given.pop("guidance_scale")
        given["allowed"] = np.stack([np.ones(48, bool) if row.allowed is None else row.allowed for row in rows])
        expected = draftproof.process_rows(np.stack([row.raw for row in rows]), given).probabilities
        ours = draftproof.process_rows(np.stack([shaped(row, {}) for row in rows]), run._filters(steps)).probabilities
        np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=1e-12)
        run.call()
    assert any(len(row.output) > 3 for row in rows)


@pytest.mark.parametrize("kind", ["sample", "verify"])
def test_sound_callables_are_not_accused_of_what_requests_ask(kind):
    for case in request_cases(kind, EVERY, True, True):
        if case.batch <= 24 and case.vocab_size < 100:
            found, _ = judged(draftproof.sample if kind == "sample" else draftproof.verify,
                              dataclasses.replace(case, n_max=min(case.n_max, 96)))
            assert not found.biased, (case.name, found.sentence)


@pytest.mark.parametrize("over_prompt", [False, True])
def test_each_reading_of_a_window_is_sound_and_is_told(over_prompt):
    found, run = judged(sampler(over_prompt=over_prompt),
                        case_of("frequency_penalty", "repetition_penalty", "prompt_tokens", "penalty_last_n"))
    assert not found.biased, found.sentence
    assert run.driver.reading == {"penalty window": READINGS["penalty window"][over_prompt]}


def test_every_two_parameters_that_a_callable_reads_vary_together():
    def has(request, name):
        return bool(request.prompt) if name == "prompt_tokens" else name in request.params

    for a, b in itertools.combinations([*OFF, *FACTORS], 2):
        alone = {a, b} & {*PEERS} and {a, b} <= {*OFF, *OF_PEERS} - {"temperature"}
        if {a, b} == EXCLUSIVE or {a, b} <= {*OFF} or alone:
            continue
        factors = tuple(name for name in FACTORS if name in (a, b))
        needed = [FACTORS[name].beside[0] for name in factors if FACTORS[name].beside
                  and not FACTORS[name].partners(factors)]
        factors = tuple(name for name in FACTORS if name in (*factors, *needed[:1]))
        requests = [request for case in request_cases("sample", factors, True, True)
                    for request in RequestRun(Driver(sampler(), 60.0), case, 5)._requests]
        assert any(has(request, a) and has(request, b) for request in requests), (a, b)


def test_what_is_read_and_cannot_vary_is_said():
    def reads(logits, params, seeds):
        return draftproof.sample(logits,
                                 {name: params[name] for name in ("temperature", "frequency_penalty", "prompt_tokens")},
                                 seeds)

    driver = Driver(reads, 60.0)
    RequestRun(driver, case_of(), 3).call()
    factors, notes = heeded(driver, "sample", 0, lambda: 2.0, 1.0)
    assert factors == ()
    assert "the callable reads frequency_penalty, and it was left off: that needs output_tokens as well" in notes
    assert any(note.startswith("the callable reads prompt_tokens, and it was left off: that needs repetition_penalty "
                               "or") for note in notes)


def over_log_probabilities(logits, params, seeds, steps):
    """Guidance over log-probabilities, as transformers has it, before the rest."""
    params = dict(params)
    scale, uncond = params.pop("guidance_scale")[:, None], params.pop("uncond_logits")
    a, b = (x - np.logaddexp.reduce(x.astype(np.float64), axis=1, keepdims=True).astype(np.float32)
            for x in (logits, uncond))
    return draftproof.sample(np.where(scale == 1.0, logits, b + scale * (a - b)), params, seeds, steps=steps)


def test_guidance_over_log_probabilities_is_sound_under_a_repetition_penalty():
    found, run = judged(over_log_probabilities, case_of("repetition_penalty", "guidance_scale"))
    assert not found.biased and run.driver.reading == {"guidance": READINGS["guidance"][1]}, found.sentence


def over_prompts(name):
    """A penalty of that name counts the prompt's tokens as those of the output."""
    def count(params, steps):
        wanted = np.array(params[name])
        both = [np.concatenate([prompt, tokens]).astype(np.int32) for prompt,
                tokens in zip(params["prompt_tokens"], params["output_tokens"])]
        return {**params, "output_tokens": [of if on else tokens for of, on,
                                            tokens in zip(both, wanted != 0.0, params["output_tokens"])]}
    return count


def p_less_before_temperature(logits, params, seeds, steps):
    cut = draftproof.process_rows(logits, p_less=params["p_less"]).probabilities > 0.0
    rest = {name: value for name, value in params.items() if name != "p_less"}
    return draftproof.sample(np.where(cut, logits, -np.inf).astype(np.float32), rest, seeds, steps=steps)


FAULTS = {
    "frequency counts the prompt's tokens": (("frequency_penalty", "prompt_tokens"),
                                             sampler(over_prompts("frequency_penalty"))),
    "presence counts the prompt's tokens": (("presence_penalty", "prompt_tokens"),
                                            sampler(over_prompts("presence_penalty"))),
    "bad words begin in the prompt of a batch mate": (("bad_words", "prompt_tokens"),
                                                      sampler(changed(prompt_tokens=of_mate))),
    "filters are lost from the second token on": ((), sampler(filters_of_first_token)),
    "penalties are lost from the third token on": (("frequency_penalty",), sampler(penalties_of_first_token)),
    "frequency counts a token once": (("frequency_penalty",),
                                      sampler(changed(output_tokens=lambda of: [np.unique(tokens) for tokens in of]))),
    "the history of a batch mate": (("presence_penalty",), sampler(changed(output_tokens=of_mate))),
    "the last token is not in the history": (("presence_penalty",),
                                             sampler(changed(output_tokens=lambda of: [tokens[:-1] for tokens in of]))),
    "the repetition penalty is squared": (("repetition_penalty",), sampler(changed(repetition_penalty=np.square))),
    "a frequency penalty of 1.1 times what is asked": (("frequency_penalty",),
                                                       sampler(changed(frequency_penalty=lambda of: of *
                                                               np.float32(1.1)))),
    "the prompt is not penalised": (("repetition_penalty", "prompt_tokens"),
                                    sampler(changed(prompt_tokens=lambda of: [[] for _ in of]))),
    "a window too wide by one": (("presence_penalty", "penalty_last_n"), sampler(beyond=1)),
    "a window too narrow by one": (("presence_penalty", "penalty_last_n"), sampler(beyond=-1)),
    "the bias of a batch mate": (("logit_bias",), sampler(changed(logit_bias=of_mate))),
    "bad words of one token alone": (("bad_words",),
                                     sampler(changed(bad_words=lambda of:
                                                     [[word for word in words if len(word) == 1] for words in of]))),
    "stop ids one token too early": (("min_tokens",), sampler(changed(min_tokens=lambda of: np.maximum(of - 1, 0)))),
    "min_tokens counts the prompt": (
        ("min_tokens", "prompt_tokens"),
        sampler(lambda params, steps: {**params, "min_tokens": np.maximum(
            0, params["min_tokens"] - [len(tokens) for tokens in params["prompt_tokens"]])})),
    "stop ids one token too late": (("min_tokens",),
                                    sampler(changed(min_tokens=lambda of: np.where(of > 0, of + 1, 0)))),
    "the mask of a batch mate": (("allowed",), sampler(changed(allowed=of_mate))),
    "p-less is taken as its other form": (
        ("p_less",), sampler(changed(p_less=lambda of: np.where(of > 0.0, 3.0 - of, 0.0).astype(np.float32)))),
    "p-less before the temperature": (("p_less",), p_less_before_temperature),
    "top-H of a batch mate": (("top_h",), sampler(changed(top_h=of_mate))),
    "typical_p keeps what it should drop": (
        ("typical_p",), sampler(changed(typical_p=lambda of: np.where(of < 1.0, 1.0 - of, 1.0).astype(np.float32)))),
    "adaptive-p forgets its state": (
        ("adaptive_target",), sampler(changed(adaptive_mean=lambda of: np.full_like(of, -1.0)))),
    "n-grams too long by one": (
        ("no_repeat_ngram_size",), sampler(changed(no_repeat_ngram_size=lambda of: np.where(of > 0, of + 1, 0)))),
    "n-grams of the batch mate's prompt": (
        ("no_repeat_ngram_size", "prompt_tokens"), sampler(changed(prompt_tokens=of_mate))),
    "one token fewer is kept": (
        ("min_tokens_to_keep",), sampler(changed(min_tokens_to_keep=lambda of: np.maximum(of - 1, 1)))),
    "DRY goes across breakers": (
        ("dry_multiplier", "dry_breakers"), sampler(changed(dry_breakers=lambda of: [[] for _ in of]))),
    "DRY begins a token late": (("dry_multiplier",), sampler(changed(dry_allowed_length=lambda of: of + 1))),
    "DRY looks at everything": (("dry_multiplier", "dry_range"), sampler(changed(dry_range=np.zeros_like))),
    "guidance of another scale": (("guidance_scale",),
                                  sampler(changed(guidance_scale=lambda of: np.where(of != 1.0, of + 0.5,
                                          1.0).astype(np.float32)))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_what_requests_ask_is_found(fault):
    factors, faulty = FAULTS[fault]
    found, _ = judged(faulty, case_of(*factors))
    assert found.biased, fault
    if "second token" in fault:
        assert "none before a request's call 2" in found.sentence


def along(change):
    """A verifier that processes each row by itself: with what `change` makes of the histories along its drafts."""
    def verify(drafts, probs, target, ends, params, seeds, steps):
        of_request = np.repeat(np.arange(len(seeds)), np.diff(ends, prepend=0) + 1)
        rows = {name: [value[b] for b in of_request] if isinstance(value, list) else value[of_request] for name,
                value in params.items()}
        begins = ends - np.diff(ends, prepend=0)
        # drafts of its request before a row
        before = np.arange(len(target)) - (begins + np.arange(len(ends)))[of_request]
        rows["output_tokens"] = [np.concatenate([tokens, change(drafts[begins[b]:begins[b] + count])]).astype(np.int32)
                                 for b, count, tokens in zip(of_request, before, rows["output_tokens"])]
        p = draftproof.process_rows(target, rows).probabilities
        return draftproof.verify(drafts, probs, None, ends, seeds=seeds, steps=steps, target_probs=p)
    return verify


@pytest.mark.parametrize("change, is_sound",
                         [(lambda before: before, True), (lambda before: before[:0], False),
                          (lambda before: before[:-1], False),
                                              (lambda before: before[:1], False)],
                         ids=["along the drafts", "not along the drafts", "a draft late", "by the first draft alone"])
def test_histories_move_along_the_drafts(change, is_sound):
    found, _ = judged(along(change), case_of("frequency_penalty", "repetition_penalty", kind="verify"))
    assert found.biased != is_sound, found.sentence


def test_what_a_callable_reads_is_found_by_name_and_by_what_it_does():
    def by_name(logits, params, seeds):
        return draftproof.sample(logits,
                                 {name: params[name] for name in ("temperature", "top_k", "top_p", "frequency_penalty",
                                         "output_tokens")}, seeds)

    def ignores(logits, params, seeds):
        return draftproof.sample(logits, {name: params[name] for name in ("temperature", "top_k", "top_p")}, seeds)

    clock = lambda: 0.0  # noqa: E731
    assert heeded(Driver(by_name, 60.0), "sample", 0, clock, 1.0)[0] == ("frequency_penalty",)
    assert heeded(Driver(draftproof.sample, 60.0), "sample", 0, clock, 1.0)[0] == EVERY
    assert heeded(Driver(ignores, 60.0), "sample", 0, clock, 1.0)[0] == ()


def test_what_is_read_beside_something_else_alone_is_found_and_no_call_tries_a_name_that_is_not_read():
    def lazy(logits, params, seeds):
        names = ["temperature", "top_k", "top_p", "min_tokens"]
        names += ["stop_ids", "output_tokens"] if (params["min_tokens"] > 0).any() else []
        return draftproof.sample(logits, {name: params[name] for name in names}, seeds)

    driver = Driver(lazy, 60.0)
    assert heeded(driver, "sample", 0, lambda: 0.0, 1.0)[0] == ("min_tokens",)
    assert driver.calls < 20
    for whole in (dict, lambda params: params | {}, lambda params: {**params},
                  lambda params: {name: params[name] for name in params}):
        driver = Driver(lambda logits, params, seeds, take=whole: draftproof.sample(logits, take(params), seeds), 60.0)
        RequestRun(driver, case_of(), 3).call()
        assert driver.takes_whole and not driver.read and not driver.wanted


def test_an_audit_finds_filters_that_are_lost_from_the_second_token_on_and_its_snippet_shows_it_again(monkeypatch):
    few = sample_sweep.sample_sweep(False)[:3]
    monkeypatch.setattr(callee, "sample_sweep", lambda with_min_p, profile: few)

    def lost(logits, params, seeds, steps):
        given = {name: params[name] for name in ("temperature", "top_k", "top_p")}
        return draftproof.sample(logits, filters_of_first_token(given, np.asarray(steps)), seeds, steps=steps)

    found = draftproof.audit_callable(lost, profile="quick", failures_max=1)
    assert found.verdict == "biased" and found.failures[0].name == "support", found
    assert len(found.failures[0].case.filters) == 1 and found.failures[0].case.filters[0] in FILTERS
    printed = []
    exec(found.failures[0].snippet.replace("print(", "show(").replace("# sampler:", "pass  #"),
         {"show": printed.append, "sampler": lost})
    assert "impossible" in printed[0], printed
