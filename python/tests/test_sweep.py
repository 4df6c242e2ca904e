"""The sweep over regimes: bets whose mean is 1, rows that show a wrong branch, planted faults with their suspects."""

import dataclasses
import itertools
import types

import numpy as np
import pytest
from planted_faults import FAULTS

import draftproof
from draftproof import planted
from draftproof.callable import auditor as stages
from draftproof.callable.cases import regimes, rows, sample_sweep, verify_sweep
from draftproof.callable.cases.filter_cases import filter_case_of
from draftproof.callable.cases.sample_cases import SampleCase, params_of
from draftproof.callable.drive import callee, profiles
from draftproof.callable.drive.drive import Driver
from draftproof.callable.drive.schedule import run_of
from draftproof.callable.evidence import evidence
from draftproof.callable.evidence.sample_judge import Judgement
from draftproof.callable.facts import described, needs, predict
from draftproof.planted import sound
from draftproof.planted.table import SOUND


@pytest.fixture
def brief(monkeypatch):
    """A profile of few seconds of CPU."""
    monkeypatch.setitem(profiles.PROFILES, "brief", profiles.Profile("brief", 2.0, True, 0.9, 1, False))
    return "brief"


def test_every_pair_of_values_is_in_a_covering_design_and_it_is_smaller_than_the_product():
    axes = {"a": range(5), "b": range(4), "c": "xyz", "d": (True, False)}
    for strength, most in ((2, 30), (3, 80)):
        rows = regimes.covering(axes, strength)
        for names in itertools.combinations(axes, strength):
            seen = {tuple(row[name] for name in names) for row in rows}
            assert seen == set(itertools.product(*(axes[name] for name in names)))
        assert len(rows) <= most


@pytest.mark.parametrize("n, m", [(1, 2), (5, 2), (4, 3), (3, 4)])
def test_a_bet_on_bins_has_a_mean_of_one(n, m):
    mean = sum(np.exp(evidence.bins_log_e(np.bincount(bins, minlength=m)))
               for bins in itertools.product(range(m), repeat=n)) / m ** n
    assert abs(mean - 1.0) < 1e-12


def test_a_bet_on_marked_tokens_has_a_mean_of_one():
    chances = np.array([0.1, 0.5, 0.9, 0.3])
    mean = 0.0
    for hits in itertools.product((False, True), repeat=4):
        chance = np.prod(np.where(hits, chances, 1.0 - chances))
        mean += chance * np.exp(evidence.marked_log_e(np.array(hits), chances))
    assert abs(mean - 1.0) < 1e-12


def test_bets_on_uniform_numbers_pairs_and_coins_have_a_mean_of_one_at_most():
    grid = (np.arange(64) + 0.5) / 64.0  # as fine as the finest bins
    mean = np.mean([np.exp(evidence.uniform_log_e(np.array(u))) for u in itertools.product(grid, repeat=2)])
    assert abs(mean - 1.0) < 1e-9
    eighths = (np.arange(8) + 0.5) / 8.0
    mean = np.mean([np.exp(evidence.pairs_log_e(np.array(a), np.array(b))) for a in itertools.product(eighths, repeat=2)
                    for b in itertools.product(eighths, repeat=2)])
    assert abs(mean - 1.0) < 1e-9
    rng = np.random.default_rng(1)
    rejected = sum(bet.log_e > np.log(20.0) for _ in range(200)
                   for bet in evidence.bets_on_coins(rng.random(200) < 0.5))
    assert rejected <= 25  # a share of 0.05 at most; more than 25 of 200 have a chance of 10^-5


def test_a_distance_that_is_said_to_be_found_is_found():
    rng = np.random.default_rng(5)
    for n, bets, alpha in ((400, 50, 1e-7), (4000, 20, 1e-3)):
        moved = evidence.detectable(n, bets, alpha)
        u = [np.where(rng.random(n) < 0.5 + moved, 0.0, 0.5) + rng.random(n) / 2.0 for _ in range(200)]
        found = sum(evidence.uniform_log_e(one) >= np.log(bets / alpha) for one in u)
        assert found >= 190 and 0.0 < moved < 0.4  # 198 on average; fewer than 190 have a chance of 10^-4
    assert evidence.detectable(8, 50, 1e-7) == 1.0


def test_draws_of_a_flat_row_are_bet_on_at_the_level():
    rng = np.random.default_rng(2)
    accused = 0
    for _ in range(100):
        bets = list(evidence.bets_on_flat(rng.integers(64, size=300), 64, (1, 2, 32)))
        accused += evidence.best_bet(bets, 0.1) is not None
    assert accused <= 25  # 10 are allowed; more than 25 have a chance of 10^-5


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 34])
def test_bets_are_made_on_as_few_draws_as_a_slow_callable_gives(n):
    """Whatever comes, none wins much."""
    token = np.zeros(n, np.int64)
    bets = [*evidence.bets_on_flat(token, 64, (1, 2, 32)), *evidence.bets_on_coins(token > 0),
            evidence.bet_on_places(token, 64, 1)]
    assert all(np.isfinite(bet.log_e) for bet in bets) and (n > 4 or evidence.best_bet(bets, 1e-6) is None)


@pytest.mark.parametrize("parameters",
                         [{"top_k": 1}, {"top_k": 64}, {"top_p": 0.5}, {"top_p": 0.1}, {"top_p": 0.0}, {"min_p": 0.1},
                                        {"min_p": 1.0}, {"top_k": 5, "temperature": 0.01},
                          {"top_p": 0.5, "temperature": 1e7}])
def test_what_a_row_drops_by_its_parameters_has_most_of_the_mass(parameters):
    row = sample_sweep.probe(400, seed=3, **parameters)[None, :]
    every = params_of(1, **{"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, **parameters})
    filtered = draftproof.process_rows(row, every)
    assert filtered.kept_mass[0] < 0.66
    rows = evidence.Rows.of(row, every)
    assert np.array_equal(rows.probabilities[0] > 0.0, filtered.probabilities[0] > 0.0) and not rows.zone.any()


def test_tokens_that_readings_disagree_on_are_left_out():
    row = np.log(np.array([[0.4, 0.2, 0.2, 0.2]], np.float32))
    rows = evidence.Rows.of(row, params_of(1, temperature=1.0, top_k=2, top_p=1.0))
    assert rows.probabilities.tolist() == [[1.0, 0.0, 0.0, 0.0]] and rows.zone.tolist() == [[False, True, True, True]]
    equal = np.log(np.array([[0.5, 0.3, 0.2]], np.float32))
    rows = evidence.Rows.of(equal, params_of(1, temperature=1.0, top_k=0, top_p=0.5))  # equal to a cumulative mass
    assert rows.zone.tolist() == [[False, True, False]]


@pytest.mark.parametrize("kind, right",
                         [("sample", draftproof.sample), ("sample", sound.Sampler()), ("filter", sound.Filter()),
                                         ("verify", draftproof.verify), ("verify", sound.Verifier())],
                         ids=["sample", "sampler in numpy", "filter in numpy", "verify", "verifier in numpy"])
def test_sound_callables_are_not_accused_by_what_a_few_seconds_reach(kind, right, brief):
    found = draftproof.audit_callable(right, kind=kind, profile=brief)
    assert found.verdict in ("consistent", "inconclusive"), found
    assert sum(case.n > 0 for case in found.cases) >= 3 and not found.but


def entry_of(entries, name):
    return next(entry for entry in entries if entry.name == name)


@pytest.mark.parametrize("kind", ["sample", "filter", "verify"])
def test_every_profile_begins_with_the_sweep_of_quick_and_spends_the_level(kind, monkeypatch):
    planned = {}
    for profile in ("quick", "full", "soak"):
        monkeypatch.setattr(stages.Auditor, "run",
                            lambda auditor, cases, share, sweeps, profile=profile: planned.update(
            {profile: (sweeps, len(cases) * share)}) or stages.Found())
        draftproof.audit_callable(SOUND[kind](), kind=kind, profile=profile, alpha=1e-3)
    of = {profile: [(entry.name, entry.n) for entry in sweeps[0].entries] for profile, (sweeps, _) in planned.items()}
    assert len(of["quick"]) > 200 and of["quick"] == of["full"] == of["soak"]
    assert len({sweeps[0].share for sweeps, _ in planned.values()}) == 1 and all(sweeps[0].again == 0 for sweeps,
            _ in planned.values())
    for sweeps, of_cases in planned.values():
        of_requests = (stages.REQUEST_SHARE + stages.FORM_SHARE) * 1e-3
        assert sum(len(plan.entries) * plan.share for plan in sweeps) + of_requests + of_cases == pytest.approx(1e-3)


def test_the_self_test_says_what_a_profile_finds_of_planted_faults():
    said = []
    found = planted.self_test("quick", "filter", ["top_k is at most 64", "min_p compares logits"], each=said.append)
    assert said == found.faults and [one.fault for one in said] == ["top_k is at most 64", "min_p compares logits"]
    assert all(one.found and one.profiles == ("quick", "full", "soak") and one.case and one.test == "wrong_set"
               for one in said)
    assert not found.is_finding and found.sentence.startswith("quick finds 2 of 2 planted faults, 2 of them by draws "
                                                              "that every profile makes")
    accused = dataclasses.replace(said[0], fault="sound")
    assert planted.SelfTest("quick", [accused]).is_finding and str(accused).startswith("ACCUSED filter, sound")
    missed = dataclasses.replace(said[0], found=False, profiles=(), case="")
    assert planted.SelfTest("quick",
                            [missed]).is_finding and "(not: filter, top_k is at most 64)" in planted.SelfTest("quick",
                                    [missed]).sentence


@pytest.mark.parametrize("given, named", [(("slow",), "profile: is 'slow'"), (("quick", "tree"), "kind: is 'tree'"),
                                          (("quick", "filter", ["nothing"]), "faults: 'nothing'"),
                                          (("quick", "filter", (), 0), "processes: is 0")])
def test_the_self_test_refuses_what_it_does_not_know(given, named):
    with pytest.raises(draftproof.Error, match=named):
        planted.self_test(*given)


@pytest.mark.parametrize("kind, fault, name, suspect", [
    ("sample", "top_k is at most 64", "top_k 128", "top_k is 64 at most; predicts"),
    ("sample", "min_p compares probabilities from before the temperature", "min_p 0.1",
     "min_p is applied before the temperature"),
    ("sample", "parameters of row i modulo 16", "batch of 33, each row its own", "parameters are place i modulo 16's"),
    ("sample", "greedy beside random goes by the first row", "batch of 8, greedy and random in turn",
     "temperature 0 beside others"),
    ("filter", "top_k is at most 64", "top_k 65", "top_k 65 (64 passes)"),
    ("filter", "min_p compares logits", "min_p 0.1", "min_p"),
    ("verify", "the residual is absolute", "a residual of one token", "recovered tokens are drawn from |p - q|"),
    ("verify", "the bonus token is of the row before", "rows that differ from place to place",
     "the bonus token is of the row before"),
    ("verify", "greedy beside random is drawn", "greedy and random in turn, ragged drafts",
     "temperature 0 beside others"),
    ("verify", "requests 32 apart share their coins", "coins and recovered tokens, seeds: consecutive",
     "random numbers"),
    ("sample", "the seed is XORed with the row's index", "top_k 3",
     "random numbers are those of another row of the call"),
    ("verify", "one coin a request", "a lone request of 2 drafts",
     "all drafts of a request are judged with one coin"),
    ("verify", "results of a batch sorted greedy first are put back by the order, not by its inverse",
     "greedy and random in turn, ragged drafts",
     "requests are sorted by rising greedy and random and put back by the wrong permutation"),
    ("sample", "rows sorted by top_k are put back by the wrong permutation", "top_k about or above V = 12",
     "rows are sorted by rising top_k and put back by the wrong permutation"),
    ("sample", "noise is a hash of seed plus token", "top_k 127", "those of another row of the call, a token further"),
    ("verify", "draft probabilities read at the target rows' offset", "rows that differ from request to request",
     "q is read at the rows of the target"),
    ("verify", "coins of the first call replayed for captured batch sizes", "a residual of one token",
     "random numbers are those of the call before"),
    ("verify", "output buffer not cleared between calls", "a residual of one token",
     "the output keeps tokens of the call before"),
    ("verify", "draft probability gathered at the next draft's token", "strings of four tokens",
     "q of a draft is that of the next draft's token"),
    ("sample", "ranks are returned for tokens where min_p is on", "filters over seven tokens",
     "the rank of a token comes in its place"),
    ("sample", "tokens masked in the call before stay masked", "calls in turn with other masks",
     "what an earlier call left"),
    ("verify", "recovery reads the last draft's rows", "rows that differ from place to place",
     "residuals are of the last draft's row")])
def test_planted_faults_are_found_with_their_suspect(kind, fault, name, suspect):
    case = entry_of(verify_sweep.verify_sweep(True) if kind == "verify" else sample_sweep.sample_sweep(True),
                    name).make()
    case = filter_case_of(case) if kind == "filter" else case
    right = draftproof.audit_callable(SOUND[kind](), kind=kind, cases=[case], profile="quick")
    assert right.verdict != "biased"
    found = draftproof.audit_callable(FAULTS[kind][fault](), kind=kind, cases=[case], failures_max=1, profile="quick")
    assert found.verdict == "biased", found
    assert suspect in found.failures[0].suspect, found.failures[0].sentence


@pytest.mark.parametrize("kind, fault, suspect", [
    ("verify", "draft probabilities of an earlier call reused", "what an earlier call left"),
    ("filter", "tokens dropped in the call before stay dropped", "what an earlier call left"),
    ("sample", "filter parameters are uploaded again only when a temperature changed", "what an earlier call left"),
    ("sample", "the uniform is linear in the seed", "random numbers of neighbouring seeds depend on each other"),
    ("sample", "the seed is XORed with the row's index", "random numbers of neighbouring seeds depend on each other")])
def test_a_failure_that_depends_on_calls_or_seeds_is_said_to(kind, fault, suspect):
    found = draftproof.audit_callable(FAULTS[kind][fault](), kind=kind, profile="quick", failures_max=1)
    assert found.failures[0].suspect.startswith(suspect), found.failures[0].sentence


@pytest.mark.parametrize("fails_where, needed", [
    (lambda case, seed, between: True, ""), (lambda case, seed, between: seed != 4, ""),
    (lambda case, seed, between: None, ""),
    (lambda case, seed, between: case.seeds == "consecutive", needs.SEEDS),
    (lambda case, seed, between: case.seeds == "consecutive" or seed == 1, ""),
    (lambda case, seed, between: between is None, needs.CALLS),
    (lambda case, seed, between: between is None or len(between.logits) == 1, needs.CALLS),
    (lambda case, seed, between: None if between is not None else True, "")])
def test_a_failure_depends_on_what_makes_it_pass_every_time(fails_where, needed):
    probe, case = (SampleCase("", rows.normal(size, 5, 1.0, 1), "",
                              params_of(size, temperature=1.0, top_k=0, top_p=1.0), batch=size)
                   for size in (1, 3))
    assert needs.dependence(case, probe, 0, fails_where) == needed


def test_a_rule_is_refuted_by_all_steps_but_its_own():
    run = run_of(Driver(FAULTS["verify"]["drafts of low confidence are dropped after they were sampled, and the "
                                         "position is drawn from the target"](),
                        60.0), entry_of(verify_sweep.verify_sweep(),
                                        "proposal and target equal but for two tokens").make(), 0)
    run.draw(1024)
    observed = predict.observed_of(run)
    everything = np.ones(len(observed.sound), bool)
    rules = {wrong.name: lambda *x, make=wrong.make: make(*x).refuted(everything, observed.draws)
             for wrong in observed.rules()}
    dropped = rules["drafts of q below {} are dropped, and their place is drawn from p"]
    assert dropped(0.4) < 0.0 and dropped(0.05) > 100.0
    for other in ("q is taken for 1", "residuals are of the row before"):
        assert rules[other]() > 100.0
    assert observed.of_sound.refuted(everything, observed.draws) > 100.0
    assert observed.of_sound.refuted(~everything, observed.draws) <= 0.0


@pytest.mark.parametrize("kind, entry",
                         [("sample", "filters over seven tokens"),
                          ("verify", "each request its own parameters, ragged drafts"), ("verify", "ties at top_p"),
                                         ("filter", "filters over seven tokens")])
def test_the_sound_rule_is_refuted_by_no_draws_of_a_sound_callable(kind, entry):
    case = entry_of(verify_sweep.verify_sweep(True) if kind == "verify" else sample_sweep.sample_sweep(True),
                    entry).make()
    run = run_of(Driver(SOUND[kind](), 60.0), filter_case_of(case) if kind == "filter" else case, 0)
    run.draw(512)
    observed = predict.observed_of(run)
    for regime in observed.regimes:
        assert observed.of_sound.refuted(regime.here, observed.draws) < predict.REFUTED
    assert not predict.explained(run, run.judge(1e-6), lambda: [run]).words


def test_what_other_cases_do_not_bear_out_is_not_said():
    """The rule that is right taken away, those left are near it in the failing case alone."""
    entries, runs = sample_sweep.sample_sweep(True), []
    for name in ("top_k 128", "top_k 257", "top_k 129", "top_k 31", "top_k 256"):
        runs.append(run_of(Driver(FAULTS["sample"]["top_k is at most 64"](), 60.0), entry_of(entries, name).make(), 0))
        runs[-1].draw(128)
    judgement = runs[0].judge(1e-6)
    assert predict.explained(runs[0], judgement, lambda: runs[1:]).words == "top_k is 64 at most"
    assert not predict.explained(runs[0], judgement, lambda: runs[1:], left_out=["top_k is 64 at most"]).words
    needed = described.described(predict.observed_of(runs[0]))
    assert "a row with top_k 128" in needed and "observed" in needed, needed


def run_that_says(name="", suspect=""):
    """A run of another case of which a judgement says that, or that passes."""
    found = Judgement(bool(name), name, "", 10, None, None, suspect=suspect)
    return types.SimpleNamespace(n=10, judge=lambda alpha: found)


NOTE = "random numbers of draws {} apart are the same"
SAME, PASSES = run_that_says("repeats", NOTE.format(65)), run_that_says()


@pytest.mark.parametrize("others, is_said", [
    ([SAME, SAME, PASSES], True), ([SAME] * 4, True), ([SAME, SAME, run_that_says("ranks"), PASSES], True),
    ([SAME, PASSES], False), ([SAME] * 3, False),
    ([SAME, SAME, run_that_says("ranks"), run_that_says("ranks"), PASSES], False),
    ([SAME, SAME, SAME, PASSES, run_that_says("support")], False)])
def test_a_note_on_random_numbers_is_said_where_most_unseen_failures_show_it_and_no_draw_is_impossible(others, is_said):
    words = NOTE.format(64)
    assert predict.noted(words, predict.suspected, lambda: others).words == (words if is_said else "")


def test_rows_that_are_wrong_are_not_taken_for_random_numbers_that_come_again():
    rng = np.random.default_rng(4)
    u = rng.random((32, 32))  # [calls, requests]
    of_rows = ((np.arange(32) % 8 + u) / 8.0).ravel()  # each request's tokens are in an eighth of their distribution
    again = np.repeat(u[::2], 2, axis=0).ravel()  # every second call has the numbers of the call before
    for tokens, said in ((of_rows, ""), (again, "again")):
        log_e = evidence.pairs_log_e(tokens[:-32], tokens[32:])
        assert log_e > 50.0
        assert verify_sweep.of_numbers("again", log_e, tokens[:-64], tokens[64:]) == said


def test_a_factor_is_needed_or_not_and_a_number_has_its_border():
    case = SampleCase("", rows.normal(3, 100, 1.0, 1), "", params_of(3, temperature=1.0, top_k=70, top_p=0.9), batch=40)
    found = needs.minimal(case, 1, lambda smaller, times: smaller.batch >= 9 and smaller.params["top_k"][0] > 64)
    assert str(found) == "needs: top_k 65 (64 passes), batch 9 (8 passes); not on other rows, top_p, vocabulary"
    assert found.case.batch == 9 and found.case.vocab_size == 2 and len(found.case.logits) == 1 and found.case.params[
            "top_p"][0] == 1.0
    assert str(needs.minimal(case, 1, lambda smaller, times: None)) == ""


def sampler_of(best=np.argmax, key=lambda seeds: seeds):
    """A sound sampler but for the draws of its seeds, and which of the largest it takes at temperature 0."""

    class Made(sound.Sampler):
        def __call__(self, logits, params, seeds):
            tokens = super().__call__(logits, params, key(np.asarray(seeds)))
            greedy = params["temperature"] == 0.0
            return np.where(greedy, [best(row) for row in np.asarray(logits)], tokens).astype(np.int32)

    return Made()


def readings(callable_):
    asked = callee.Callee(Driver(callable_, 60.0), "sample", 0, profiles.Clock(True), 60.0, {}, True)
    asked.cases(None)
    return asked.readings()


def test_an_audit_says_which_of_the_usual_readings_a_callable_has(brief):
    assert {"top_p over what top_k left", "min_p after top_p",
            "of equal largest logits the first at temperature 0"} <= set(readings(sampler_of()))
    other = draftproof.audit_callable(sampler_of(lambda row: np.flatnonzero(row == row.max())[-1]), profile=brief)
    assert ("of equal largest logits the last at temperature 0" in other.readings
            and "the last at temperature 0" in other.sentence)
    assert "top_p over the whole row" in readings(draftproof.sample)
    count = iter(range(1 << 20))
    assert "equal calls give other tokens" in readings(sampler_of(key=lambda seeds: seeds +
            np.uint64(next(count) << 40)))
    places = sampler_of(key=lambda seeds: seeds * np.uint64(64) +
                        np.arange(len(seeds), dtype=np.uint64) % np.uint64(64))
    assert "rows in another order draw other tokens with the same seeds" in readings(places)


def judged(entry, callable_):
    run = run_of(Driver(callable_, 60.0), entry.make(), 0)
    run.draw(entry.n)
    return run.judge(1e-9)


def test_a_mask_of_a_finite_number_is_called_that_with_the_number():
    entries = sample_sweep.sample_sweep(False)
    found = judged(entry_of(entries, "a mask at high temperatures, logits about 0"),
                   FAULTS["sample"]["a mask of -1e4"]())
    assert found.name == "masked_token", found.sentence
    assert -2e4 < float(found.sentence.split("a logit of about ")[1]) < -4e3, found.sentence


@pytest.mark.parametrize("kind", ["consecutive", "families", "large", "double", "signed", "high_bits", "random"])
def test_no_seed_comes_twice(kind):
    case = dataclasses.replace(entry_of(sample_sweep.sample_sweep(False), "equal rows, consecutive seeds").make(),
                               seeds=kind)
    for seed in (0, 3, 12345, 2 ** 40):
        seeds = np.concatenate([case.seeds_of(call, seed) for call in range(16)])
        assert len(np.unique(seeds)) == len(seeds)


@pytest.mark.parametrize("fault, name", [
    ("seeds of 16 bits", "equal rows, seeds: families"), ("seeds of 32 bits", "equal rows, seeds: families"),
    ("seeds as floats", "equal rows, seeds: large"),
    ("every second call uses the noise of the call before", "equal rows, consecutive seeds"),
    ("the noise goes by seed minus row", "equal rows, consecutive seeds"),
    ("uniforms of 12 bits", "a flat row of 131072")])
def test_random_numbers_that_are_used_again_are_found(fault, name):
    entry = entry_of(sample_sweep.sample_sweep(False), name)
    assert not judged(entry, sound.Sampler()).biased
    assert judged(entry, FAULTS["sample"][fault]()).biased


def test_requests_whose_coins_are_those_of_any_other_place_are_found():
    entry = entry_of(verify_sweep.verify_sweep(), "coins of 64 requests in 64 calls")
    found = judged(entry, FAULTS["verify"]["requests share coins with their mirror"]())
    assert found.biased and "draw alike in all of 64 calls" in found.sentence, found.sentence
    assert not judged(entry, sound.Verifier()).biased


def test_draws_alike_of_two_places_are_bet_on_at_the_level():
    rng = np.random.default_rng(3)
    ends = [evidence.bet_on_places(rng.integers(2, size=12 * 16), 2, 16).log_e > np.log(20.0) for _ in range(400)]
    assert sum(ends) <= 45  # a share of 0.05 at most, 20; more than 45 have a chance of 10^-6
    same = np.tile(rng.integers(2, size=(40, 1)), (1, 4)) ^ np.array([0, 1, 0, 0])
    same[:, [2, 3]] = rng.integers(2, size=(40, 2))
    assert evidence.bet_on_places(same.ravel(), 2, 4).log_e > 24.0  # never alike is as rare as always


def test_what_a_callable_does_not_take_is_left_out_and_counted(brief):
    seen = {"temperature": [], "top_p": []}

    def clamped(logits, params, seeds):
        for name, values in seen.items():
            values.append(np.unique(params[name]))
        return draftproof.sample(logits,
                                 {**params,
                                  "temperature": np.where(params["temperature"] > 0.0,
                                                          np.clip(params["temperature"], 0.01, 2.0), 0.0)
                                          .astype(np.float32)}, seeds)

    assert draftproof.audit_callable(clamped, profile="quick", failures_max=1).verdict == "biased"
    for values in seen.values():
        values.clear()
    found = draftproof.audit_callable(clamped, profile=brief, ranges={"temperature": (0.01, 2.0), "top_p": (1e-3, 1.0)})
    assert found.verdict in ("consistent", "inconclusive") and any("cases were left out" in note
            for note in found.notes), found
    assert set(np.unique(np.concatenate(seen["temperature"]))) - {0.0,
            1.0} and min(np.concatenate(seen["top_p"])) >= np.float32(1e-3)
    assert all(t == 0.0 or 0.009 < t <= 2.0 for t in np.concatenate(seen["temperature"]))

    def drawn(x, q, p, ends, params, seeds):
        assert q is not None
        return draftproof.verify(x, q, p, ends, params, seeds)

    assert draftproof.audit_callable(drawn, kind="verify", profile=brief, one_hot=False).verdict in ("consistent",
            "inconclusive")
    for wrong in ({"heat": (0.0, 1.0)}, {"top_p": (1.0, 0.5)}):
        with pytest.raises(draftproof.Error, match="ranges: "):
            draftproof.audit_callable(clamped, ranges=wrong)


def test_min_p_is_varied_where_a_verifier_heeds_it_though_it_does_so_wrongly():
    def reads(verifier):
        auditor = draftproof.audit_callable(verifier, kind="verify", profile="quick", time_budget=0.01)
        return not any("min_p" in note for note in auditor.notes)

    assert reads(sound.Verifier()) and reads(draftproof.verify)
    assert reads(FAULTS["verify"]["min_p compares probabilities from before the temperature"]())
    assert not reads(lambda x, q, p, ends, params, seeds: draftproof.verify(
        x, q, p, ends, {name: params[name] for name in ("temperature", "top_k", "top_p")}, seeds))


def test_a_coin_of_the_last_call_is_found():
    entry = entry_of(verify_sweep.verify_sweep(), "coins and recovered tokens, seeds: consecutive")
    found = judged(entry, FAULTS["verify"]["the first coin is the last call's"]())
    assert found.biased and "256 " in found.sentence, found.sentence


def test_a_verifier_without_its_bonus_token_is_consistent_but_slow(brief):
    found = draftproof.audit_callable(FAULTS["verify"]["no bonus token"](), kind="verify", profile=brief)
    assert found.verdict in ("consistent",
                             "inconclusive") and "no bonus token" in found.but and "consistent, but" in found.sentence
    found = draftproof.audit_callable(FAULTS["verify"]["no bonus token"](), kind="verify", profile=brief, emits="chain")
    assert found.verdict == "error" and found.failures[0].name == "emits_fewer"


class SlipsAfterAnotherSize:
    """The first call of a vocabulary's size after another one is not filtered."""

    def __init__(self):
        self.size = None

    def __call__(self, logits, params, seeds):
        changed, self.size = self.size not in (None, logits.shape[1]), logits.shape[1]
        return draftproof.sample(logits, {"temperature": params["temperature"]} if changed else dict(params), seeds)


def test_a_failure_that_needs_the_call_before_it_says_so_and_shows_again():
    found = draftproof.audit_callable(SlipsAfterAnotherSize(), failures_max=1, profile="quick")
    failure = found.failures[0]
    assert failure.before is not None and "it needs a call of" in failure.sentence, failure.sentence
    printed = []
    exec(failure.snippet.replace("print(", "show("), {"show": printed.append, "sampler": SlipsAfterAnotherSize()})
    assert "impossible" in printed[0], printed


def test_a_snippet_of_the_sweep_shows_the_failure_again():
    for kind, fault, entry in (("sample", "top_p 0 is off", entry_of(sample_sweep.sample_sweep(True), "top_p 0")),
                               ("verify", "the residual is absolute",
                                entry_of(verify_sweep.verify_sweep(), "a residual of one token"))):
        callable_ = FAULTS[kind][fault]()
        found = draftproof.audit_callable(callable_, kind=kind, cases=[entry.make()], failures_max=1)
        printed = []
        exec(found.failures[0].snippet.replace("print(", "show("), {"show": printed.append, "sampler": callable_})
        assert "impossible" in printed[0] or "do not follow" in printed[0], printed


def test_a_verifier_that_drops_drafts_is_consistent_but_slow():
    run = run_of(Driver(FAULTS["verify"]["drafts beyond the 16th are dropped"](), 60.0),
                 entry_of(verify_sweep.verify_sweep(), "33 drafts of the target itself").make(), 0)
    run.draw(64)
    assert not run.judge(1e-9).biased and "never emits more than 17 tokens" in run.stops, run.stops
