"""An audit judges draws with drafts, tells float noise at temperature 0 from bugs, and fails nightly jobs by a fixture.

The server here answers as llama.cpp does: ids without lists where asked for, no lists under drafts, /metrics."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy
import pytest

import draftproof
from draftproof.server import greedy
from draftproof.server.adapters import Step, sniff
from draftproof.server.collect import Collector
from draftproof.server.parameters import names
from draftproof.server.verdicts import Judge
from draftproof.server.wire import Wire

SIZE = 64
TABLE = numpy.random.default_rng(3).normal(0.0, 1.5, (SIZE, SIZE))
TABLE -= numpy.log(numpy.exp(TABLE).sum(1, keepdims=True))


class Drafting(ThreadingHTTPServer):
    """A table model; every third step holds a draft. how: a fault or peculiarity. noise: of its logits, in standard
    deviations; weights: how far its table is from the others'."""

    daemon_threads = True

    def __init__(self, how: str = "", noise: float = 0.0, weights: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.how, self.noise, self.url = how, noise, f"http://127.0.0.1:{self.server_address[1]}"
        self.rng, self.accepted = numpy.random.default_rng(5), 0
        self.table = TABLE + weights * numpy.random.default_rng(8).normal(size=TABLE.shape)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def row(self, state: int) -> numpy.ndarray:
        row = self.table[state] + self.noise * self.rng.normal(size=SIZE)
        return row - numpy.log(numpy.exp(row).sum())

    def draw(self, row: numpy.ndarray, body: dict, rng: numpy.random.Generator, drafted: bool) -> int:
        t, k, m, p = body["temperature"], body["top_k"] or SIZE, body["min_p"], body["top_p"]
        if t == 0:
            penalty = max(body["repeat_penalty"], "both names" in self.how and body.get("repetition_penalty", 1.0))
            return int(numpy.argsort(-row)[int(self.how == "greedy off under drafts" and drafted or penalty > 1)])
        if self.how == "temperature lost under drafts" and drafted and "n_probs" not in body:
            t, k, m, p = 1.0, SIZE, 0.0, 1.0
        weight = numpy.exp((row - row.max()) / t)
        weight = weight * (weight >= numpy.sort(weight)[-k]) * (weight >= m)
        best = numpy.argsort(-weight)
        weight[best[numpy.cumsum(weight[best]) - weight[best] >= p * weight.sum()]] = 0.0
        return int(rng.choice(SIZE, p=weight / weight.sum()))

    def complete(self, body: dict) -> dict:
        rng = numpy.random.default_rng(body["seed"] if "seed" in body else self.rng.integers(2 ** 40))
        prompt = body["prompt"] if isinstance(body["prompt"], list) else ids_of(body["prompt"])
        state, out, places = prompt[-1], [], []
        while len(out) < body["n_predict"]:
            drafted = "no drafts" not in self.how and len(out) % 3 == 2
            row = self.row(state)
            state = self.draw(row, body, rng, drafted)
            self.accepted += drafted
            out.append(state)
            best = [{"id": int(x), "token": f" w{x}", "logprob": float(row[x])} for x in numpy.argsort(-row)[:40]]
            places.append({"id": state, "token": f" w{state}", "logprob": 0.0, "top_logprobs": []} if drafted else
                          {"id": state, "token": f" w{state}", "logprob": float(row[state]), "top_logprobs": best})
        answer = {"content": "".join(f" w{token}" for token in out), "tokens": out, "stop_type": "limit",
                  "tokens_predicted": len(out), "timings": {"draft_n_accepted": len(out) // 3 * ("no" not in self.how)}}
        return {**answer, "completion_probabilities": places} if "n_probs" in body else answer


def ids_of(text: str) -> list[int]:
    return [byte % SIZE for byte in text.encode()]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def say(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self) -> None:
        server = self.server
        if self.path == "/props":
            self.say(200, json.dumps({"default_generation_settings": {}, "build_info": "b1"}))
        elif self.path == "/metrics" and server.how != "no drafts, no metrics":
            self.say(200, f"llamacpp:spec_decode_num_accepted_tokens_total {server.accepted}\n")
        else:
            self.say(404, "{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            self.say(200, json.dumps({"tokens": ids_of(body["content"])}))
        elif "presence_penalty" in body:  # the draws are then without penalties
            self.say(400, json.dumps({"error": "presence_penalty is not supported"}))
        else:
            self.say(200, json.dumps(self.server.complete(body)))


@pytest.fixture
def serve():
    running = []

    def start(*how: object) -> Drafting:
        running.append(Drafting(*how))
        return running[-1]
    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def lines(found: draftproof.ServerAudit) -> dict[str, object]:
    return {line.question: line for line in found.lines}


def test_draws_with_drafts_are_scored_afterwards_and_judged(serve):
    found = draftproof.audit_server(serve().url, only=("speculation",), tokens=1000, connections=2)
    said = lines(found)
    assert said["speculation"].verdict == "ok" and "scored afterwards" in said["speculation"].words
    assert said["draws, min_p without logprobs"].verdict == "ok" and found.tokens > 500
    assert "of them state the logprob 0.0" in said["logprobs"].words and found.verdict == "failure"
    assert "drafts were accepted in" in said["logprobs"].words
    assert said["draws, top_p without logprobs"].verdict == "ok"  # instead of draws whose lists are missing


def test_a_fault_under_drafts_alone_is_found_without_logprobs(serve):
    found = draftproof.audit_server(serve("temperature lost under drafts").url, only=("speculation",), tokens=1000,
                                    connections=2)
    assert found.verdict == "biased", str(found)
    accused = [line.question for line in found.lines if line.verdict == "biased"]
    assert accused and all(question.endswith("without logprobs") for question in accused)


@pytest.mark.parametrize("how,words", [("no drafts", "not seen at work"),
                                       ("no drafts, no metrics", "not seen at work")])
def test_speculation_that_is_not_seen_at_work_is_inconclusive_where_it_was_asked_for(serve, how, words):
    found = draftproof.audit_server(serve(how).url, only=("speculation",), tokens=700, connections=2)
    assert (found.verdict, found.exit_code) == ("inconclusive", 4) and words in found.sentence
    every = draftproof.audit_server(serve(how).url, only=("draws", "speculation"), tokens=700, connections=2)
    assert every.verdict == "consistent" and lines(every)["speculation"].verdict == "none"


@pytest.mark.parametrize("how,noise,weights,verdict,words", [
    ("no drafts", 0.0, 0.0, "ok", "same"), ("", 0.0, 0.0, "ok", "same"),
    ("no drafts", 0.0, 0.05, "failure", "other weights or arithmetic"),
    ("greedy off under drafts", 0.0, 0.0, "failure", "not noise")])
def test_a_reference_tells_the_same_from_other_weights_and_bugs(serve, tmp_path, how, noise, weights, verdict, words):
    plain, saved = serve("no drafts"), tmp_path / "run.jsonl"
    found = draftproof.audit_server(serve(how, noise, weights).url, reference=plain.url, only=("greedy",),
                                    connections=2, save=str(saved))
    line = lines(found)["reference"]
    assert (line.verdict, line.words.partition(":")[0]) == (verdict, words), str(found)
    if words == "not noise":
        assert "position 2" in line.words and line.curl.startswith("curl -s http://127.0.0.1:")
    assert draftproof.audit_server(str(saved), only=("greedy",)).json() == found.json()


@pytest.mark.parametrize("how,verdict,words", [("no drafts", "none", "accepted without effect"),
                                               ("no drafts, both names", "ok", "accepted: as repeat_penalty")])
def test_a_name_of_another_server_that_is_ignored_silently_is_reported(serve, how, verdict, words):
    wire = Wire(serve(how).url)
    collector = Collector(wire, sniff(wire), ("parameters",), 1000, 8, lambda _: None)
    collector.dropped = frozenset(("presence_penalty",))
    names.ask(collector)
    audit = Judge(wire.origin, collector.adapter, wire.records)
    names.judge(audit)
    line = audit.audit.lines[0]
    assert (line.question, line.verdict) == ("repetition_penalty", verdict) and line.words.startswith(words)


def test_the_last_request_that_is_allowed_ends_the_time_and_accuses_nobody(serve):
    wire = Wire(serve("no drafts").url, requests_max=60)
    collector = Collector(wire, sniff(wire), ("seeds", "draws"), 1000, 8, lambda _: None)
    collector.dropped = frozenset(("presence_penalty",))
    collector.run()
    assert 60 <= wire.sent < 60 + wire.connections and wire.left_s() == 0.0
    audit = Judge(wire.origin, collector.adapter, wire.records, only=("seeds", "draws")).run()
    assert audit.verdict == "inconclusive" and "not answered before the time ended" in str(audit)


def test_a_question_whose_time_is_over_is_left_out(serve):
    wire = Wire(serve("no drafts").url, seconds_max=30.0)
    collector = Collector(wire, sniff(wire), ("parameters",), 1000, 8, lambda _: None)
    collector.known_ids = list(range(8, 60))
    post_all = wire.post_all
    wire.post_all = lambda records: [] if any(r.case == "list behind" for r in records) else post_all(records)
    collector.parameters()  # the duels need lists
    assert {"count", "name own"} <= {record.case for record in wire.records}
    assert not any(record.case.startswith("duel") for record in wire.records)


def test_an_answer_that_names_another_token_than_the_drawn_one_is_accused_at_temperature_0(monkeypatch):
    """MLX LM 0.32.2 names the first token of a list that is not sorted."""
    models = {"data": [{"id": "m", "object": "model", "created": 1}]}
    monkeypatch.setattr(Wire, "get", lambda _, path: models if path == "/v1/models" else None)
    wire = Wire("http://127.0.0.1:9")
    adapter = sniff(wire)
    listed = [{"id": 216, "token": " ", "logprob": -3.1648}, {"id": 15442, "token": "\u00a0", "logprob": -0.0746}]
    answer = {"choices": [{"text": "\u00a0", "finish_reason": "length", "logprobs": {
        "content": [{**listed[0], "top_logprobs": listed}]}}], "usage": {"completion_tokens": 1, "prompt_tokens": 4}}
    record = Collector(wire, adapter, ("greedy",), 100, 8, lambda _: None).record(
        "greedy", "first", "A robot", temperature=0.0, max_tokens=1)
    record.status, record.answer = 200, answer
    audit = Judge(wire.origin, adapter, [record])
    greedy.judge(audit)
    assert (adapter.engine, record.body["top_logprobs"], record.body["top_k"]) == ("MLX LM", 10, 0)
    assert [(line.verdict, line.words[:44]) for line in audit.audit.lines] == [
        ("failure", "1 of 1 tokens are below the best of their li")]


def test_noise_at_a_near_tie_is_float_noise_and_at_a_wide_margin_is_not():
    def run(*first: float) -> list[Step]:
        rows = [[(1, first[0]), (2, first[1])], [(1, -0.2), (2, -2.0)]]
        return [Step(max(row, key=lambda pair: pair[1])[0], max(row)[1], sorted(row, key=lambda pair: -pair[1]))
                for row in rows]
    one, near = [((0, run(-0.7, -0.7004)), (1, run(-0.7004, -0.7)))], greedy.Compared()
    near = greedy.compare(one)
    assert near.differences[0][:2] == (0, 0) and near.differences[0][2] == pytest.approx(0.0008)
    assert greedy.verdict(near, 0.0004) == "float noise"  # need 0.0008, control 0.0004
    assert greedy.verdict(near, 0.0001) == "not noise"
    assert greedy.verdict(greedy.compare([((0, run(-0.1, -3.0)), (1, run(-0.1, -3.0)))]), 0.0) == "same"
    far = greedy.compare([((0, run(-0.1, -3.0)), (1, run(-0.5, -3.0)))])
    assert greedy.verdict(far, 0.001) == "other weights or arithmetic"  # same texts, margins 0.4 apart


def test_the_fixture_passes_fails_and_skips(serve, pytester):
    pytester.makepyfile("""
def test_seeds(draftproof_server):
    assert draftproof_server(only=("seeds",), connections=2).verdict == "consistent"

def test_bug(draftproof_server):
    draftproof_server(only=("greedy",), connections=2)
""")
    url = f"--draftproof-server={serve('no drafts').url}"
    pytester.runpytest_subprocess("-q", url, "--draftproof-json=found.json").assert_outcomes(passed=2)
    found = json.loads((pytester.path / "found.json").read_text())
    assert [row["verdict"] for row in found["servers"]] == ["consistent"] * 2 and found["audits"] == []
    failed = pytester.runpytest_subprocess("-q", f"--draftproof-server={serve('').url}", "-k", "bug")
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*Biased*", "*no list of logprobs*"])
    pytester.runpytest_subprocess("-q").assert_outcomes(skipped=2)
