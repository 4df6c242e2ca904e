"""A server audit finds planted faults, does not accuse sound servers, and says what is wrong with a URL."""

import json

import numpy
import pytest
import server_faults
from fake_engine import EOS
from fake_server import Fake

import draftproof
from draftproof.server.__main__ import main
from draftproof.server.adapters import sniff
from draftproof.server.collect import Collector
from draftproof.server.parameters import beams
from draftproof.server.verdicts import Judge
from draftproof.server.visible import READINGS, resolution, visible
from draftproof.server.wire import Wire

# Fault, question that is asked, start of the line that names it; server_faults.py runs all faults.
FOUND = [
    ("temperature times 1.03", "draws", "draws, min_p"), ("temperature ignored", "draws", "draws, "),
    ("top_p ignored", "draws", "draws, top_p"), ("top_k +1", "draws", "draws, "),
    ("top_k ignored", "draws", "draws, "), ("min_p lost from the second token on", "draws", "draws, min_p"),
    ("logit_bias lost on bonus tokens", "draws", "draws, "), ("presence_penalty ignored", "draws", "draws, penalties"),
    ("logit_bias behind the temperature", "draws", "draws, penalties"),
    ("top_k lost on bonus tokens", "draws", "draws, "), ("history of a batch mate", "draws", "draws, penalties"),
    ("logprobs of the row before", "draws", "draws, "), ("one random number for two tokens", "draws", "draws, "),
    ("seed ignored", "seeds", "seed"), ("seed of the process", "seeds", "no seed"),
    ("neighbouring seeds alike", "seeds", "neighbouring seeds"), ("ties drawn", "greedy", "temperature 0 twice"),
    ("second best", "greedy", "temperature 0"), ("stop ignored", "parameters", "stop"),
    ("seeds one token apart", "seeds", "neighbouring seeds"), ("last stop ignored", "parameters", "stop"),
    ("finish reason", "parameters", "stop"), ("usage +1", "parameters", "usage"),
    ("max_tokens +1", "parameters", "max_tokens"), ("stop_token_ids ignored", "parameters", "stop_token_ids"),
    ("min_tokens ignored", "parameters", "min_tokens"), ("ignore_eos ignored", "parameters", "ignore_eos"),
    ("logit_bias times 1.1", "parameters", "logit_bias"), ("window +1", "parameters", "presence_penalty"),
    ("repetition_penalty squared", "parameters", "repetition"), ("choices alike", "parameters", "n"),
    ("repetition_penalty lost from the second token on", "parameters", "repetition along a text"),
    ("stop string across accepted drafts", "parameters", "stop"),
    ("stream without its last piece", "parameters", "stream"),
    ("tokens behind an accepted stop", "parameters", "stop"), ("grammar mask late by one", "parameters", "schema"),
    ("prompt usage doubled", "parameters", "usage of prompts"),
    ("mask without its logits", "parameters", "draws under a schema"), ("beams in reverse", "parameters", "beams"),
    ("a beam is lost", "parameters", "beams"), ("best_of takes the first", "parameters", "best_of"),
]


@pytest.fixture
def serve():
    running = []

    def start(*how: str) -> Fake:
        running.append(Fake(*how))
        return running[-1]
    yield start
    for server in running:
        server.close()


@pytest.mark.parametrize("how,question,name", FOUND, ids=[how for how, _, _ in FOUND])
def test_a_planted_fault_is_found(serve, how, question, name):
    found = draftproof.audit_server(serve(how).url, only=(question,), tokens=6000, connections=2)
    assert found.exit_code == 1, str(found)
    accused = [line for line in found.lines if line.verdict in ("biased", "failure")]
    assert any(line.question.startswith(name) for line in accused), str(found)
    assert all(line.curl.startswith("curl -s http://127.0.0.1:") for line in accused)
    if "ignored" in how and question == "draws":
        assert any(how.replace(" ignored", " is ignored") in line.words for line in accused), str(found)


@pytest.mark.parametrize("how,name", [
    ("n-gram draft drawn again", "draws, repetitions"), ("2 % of mass over the kept tokens", "draws, whole"),
    ("repetition_penalty of a default", "draws, ")])
def test_a_bet_finds_what_engines_are_known_to_do(how, name):
    found = server_faults.audited((how,), 9600, 2, only=("draws",))
    assert any(line.question.startswith(name) for line in found.lines if line.verdict == "biased"), str(found)


@pytest.mark.parametrize("how,only,name", [
    ("accepts 1.5 p/q", "draws", "draws, unexpected"), ("recovered token from p", "speculation", "draws, unexpected"),
    ("recovered token from p under a mask", "parameters", "draws under a schema, unexpected")])
def test_a_token_that_no_drafter_expects_shows_what_verification_forgets(how, only, name):
    for fault in (how, "speculation"):
        found = server_faults.audited((fault,), 9600, 2, only=(only,))
        line = next(line for line in found.lines if line.question == name)
        assert line.verdict == ("biased" if fault == how else "ok"), str(found)


# Peculiarities of a sound server, and what its audit says of them.
SAID = [
    (("noise", "rounded"), "logprobs", "raw"), (("filters first", "stop kept"), "reading", "temperature last"),
    (("top_p over all", "none is one"), "reading", "top_p over all"),
    (("refuses min_p", "refuses token ids"), "min_p", "refused"),
    (("refuses logit_bias", "choices differ"), "logit_bias", "refused"),
    (("lists after temperature", "seeds of 64 bits"), "reading", "logprobs after the temperature"),
    (("window of 64", "speculation"), "repetition", "honoured: over the last 64"),
    (("as TensorRT-LLM",), "reading", "penalties over the output, behind the temperature"),
    (("penalties over the prompt", "accepts bad values"), "presence_penalty", "honoured: over prompt and output"),
    (("stop is not listed", "noise"), "stop", "honoured"),
    (("refuses n", "speculation"), "n", "refused"), (("refuses seed", "gives ids"), "seed", "refused"),
    (("eos is passed over", "last token is not listed"), "stop_token_ids", "honoured: not listed"),
]


@pytest.mark.parametrize("how,name,words", SAID, ids=[" and ".join(how) for how, *_ in SAID])
def test_a_sound_server_is_not_accused(serve, how, name, words):
    found = draftproof.audit_server(serve(*how).url, tokens=6000, connections=2)
    assert (found.verdict, found.exit_code) == ("consistent", 0), str(found)
    assert "would have been found" in found.sentence
    assert any(line.question == name and words in line.words for line in found.lines), str(found)


def test_a_server_that_is_busy_is_asked_again(serve):
    found = draftproof.audit_server(serve("is busy").url, only=("seeds",), tokens=600, connections=2)
    assert found.verdict == "consistent", str(found)


def test_a_saved_run_is_judged_alike_and_holds_no_key(serve, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_KEY", "hidden")
    server, saved = serve("needs a key"), tmp_path / "run.jsonl"
    common = ["--only", "seeds,greedy", "--json"]
    assert main([server.url, *common, "--key-env", "FAKE_KEY", "--save", str(saved)]) == 0
    live, sent = json.loads(capsys.readouterr().out), server.sent
    assert "hidden" not in saved.read_text()
    assert main([str(saved), *common]) == 0
    assert json.loads(capsys.readouterr().out) == live
    assert server.sent == sent
    saved.write_text("{}\n")
    assert main([str(saved)]) == 2
    assert "line 1" in capsys.readouterr().err


@pytest.mark.parametrize("how,words", [
    ("redirects", "redirects to http://other.invalid/"), ("no model", "not a server"), ("needs a key", "--key-env")])
def test_a_server_that_cannot_be_audited_gives_one_line(serve, how, words, capsys):
    assert main([serve(how).url]) == 2
    err = capsys.readouterr().err
    assert words in err.splitlines()[-1] and "Traceback" not in err


def test_a_url_that_cannot_be_used_is_refused(capsys):
    assert main(["http://127.0.0.1:9"]) == 2
    assert main(["ftp://host"]) == 2
    assert main(["http://user:word@host"]) == 2
    assert main(["http://127.0.0.1:9", "--key-env", "NO_SUCH_VARIABLE"]) == 2
    assert main(["http://127.0.0.1:9", "--only", "drawz"]) == 2
    assert "drawz" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["http://127.0.0.1:9", "--samples", "3"])
    assert capsys.readouterr().err.startswith("draftproof: error: unrecognized arguments: --samples 3 (see ")


def test_a_server_without_lists_is_judged_by_its_texts(serve):
    found = draftproof.audit_server(serve("no logprobs").url, tokens=3000, connections=2)
    assert (found.verdict, found.tokens) == ("consistent", 0) and "draws were not judged" in found.sentence
    said = {line.question: line.words for line in found.lines}
    assert said["seed"].startswith("honoured") and said["top_k"].startswith("honoured: 1 gives the texts of "
                                                                            "temperature 0")
    for how, name in (("temperature ignored", "temperature"), ("top_k ignored", "top_k"), ("seed ignored", "seed"),
                      ("stop ignored", "stop"), ("stream without its last piece", "stream"), ("choices alike", "n")):
        found = draftproof.audit_server(serve("no logprobs", how).url, tokens=3000, connections=2)
        assert name in [line.question for line in found.lines if line.verdict == "failure"], f"{how}: {found}"


def test_a_server_that_a_parameter_ends_is_accused_and_audited_without_it(serve, tmp_path):
    saved = str(tmp_path / "run.jsonl")
    found = draftproof.audit_server(serve("ends at top_k").url, save=saved)
    assert (found.verdict, found.ended_at) == ("failure", "top_k") and "--without top_k" in found.sentence
    assert '"top_k": 19' in found.lines[0].curl and draftproof.audit_server(saved).json() == found.json()
    rest = draftproof.audit_server(serve("ends at top_k").url, tokens=6000, connections=2, without=("top_k",))
    assert (rest.verdict, rest.ended_at) == ("consistent", ""), str(rest)
    assert any(line.words == "not sent: left out by --without" for line in rest.lines)
    cold = draftproof.audit_server(serve("ends at top_k", "temperature ignored").url, tokens=6000, connections=2,
                                   only=("draws",), without=("top_k",))
    line = next(line for line in cold.lines if line.question == "draws, temperature")
    assert line.verdict in ("biased", "failure"), str(cold)
    with pytest.raises(draftproof.Error, match="'seed' cannot be left out"):
        draftproof.audit_server(serve().url, without=("seed",))


def test_a_request_that_the_end_of_the_time_cuts_off_accuses_nobody(serve, monkeypatch):
    ask = Wire.ask

    def late(wire, method, path, body=None):
        if (body or {}).get("top_p", 1.0) < 1.0:
            wire.seconds_max = 0.0
            raise draftproof.Error("timed out")
        return ask(wire, method, path, body)
    monkeypatch.setattr(Wire, "ask", late)
    found = draftproof.audit_server(serve().url)
    assert (found.verdict, found.exit_code) == ("inconclusive", 4)
    assert "server: the run ended early: timed out" in found.sentence and not any(line.curl for line in found.lines)


def test_a_question_that_nothing_answers_in_time_leaves_the_audit_inconclusive(serve, monkeypatch, tmp_path):
    monkeypatch.setattr(Collector, "draws", lambda _: None)
    saved = str(tmp_path / "run.jsonl")
    for found in (draftproof.audit_server(serve("refuses min_p").url, only=("seeds", "draws"), save=saved),
                  draftproof.audit_server(saved)):
        assert found.sentence == "inconclusive: draws: not answered before the time ended"
        assert "refused by the server; not sent: min_p is not supported" in [line.words for line in found.lines]
    assert draftproof.audit_server(saved, only=("seeds",)).verdict == "consistent"


def test_a_penalty_shows_the_hidden_logsumexp(serve, tmp_path):
    saved, server = tmp_path / "run.jsonl", serve()
    found = draftproof.audit_server(server.url, only=("parameters",), connections=2, save=str(saved))
    said = next(line.words for line in found.lines if line.question == "repetition")
    rows = [json.loads(line) for line in saved.read_text().splitlines()[1:]]
    prompt = next(row["settings"]["prompt"] for row in rows if row["case"] == "duel bisect")
    logits = server.engine.raw(prompt)
    hidden = float(numpy.log(numpy.exp(logits).sum()))
    assert abs(float(said.partition("logprobs + ")[2].rstrip(")")) - hidden) < 0.3, said


@pytest.mark.parametrize("how,words", [("beams by length", ""), ("", ""), ("a beam is lost", "wrong")])
def test_beams_are_not_judged_where_a_text_of_theirs_may_end(serve, how, words):
    verdicts = set()
    for more in (0.0, 3.0):  # then the end is often among the first three tokens
        server = serve(how)
        server.engine.last[:, EOS] += more
        wire = Wire(server.url)
        collector = Collector(wire, sniff(wire), ("parameters",), 1000, 8, lambda _: None)
        collector.known_ids = numpy.random.default_rng(1).integers(8, EOS, 80).tolist()
        beams.ask(collector)
        audit = Judge(wire.origin, collector.adapter, wire.records)
        beams.judge(audit)
        verdicts |= {line.words.partition(":")[0] for line in audit.audit.lines}
    assert verdicts <= {words or "honoured", "not visible"} and (words or "honoured") in verdicts, verdicts


MEAN = {"SGLang": ("meta_info", "spec_accept_length"), "TensorRT-LLM": ("choices", 0, "avg_decoded_tokens_per_iter")}
SCHEMA = {"enum": ["red"]}
SENT = {"SGLang": ("sampling_params", "json_schema", json.dumps(SCHEMA)), "Ollama": ("", "format", SCHEMA),
        "TGI": ("parameters", "grammar", {"type": "json", "value": SCHEMA}), "llama.cpp": ("", "json_schema", SCHEMA),
        "TensorRT-LLM": ("", "response_format",
                         {"type": "json_schema", "json_schema": {"name": "one", "schema": SCHEMA}})}


@pytest.mark.parametrize("engine", SENT)
def test_a_schema_is_sent_and_accepted_drafts_are_counted_as_each_server_has_it(engine, monkeypatch):
    paths, answer = SERVERS[engine]
    monkeypatch.setattr(Wire, "get", lambda _, path: paths.get(path))
    adapter = sniff(Wire("http://127.0.0.1:9"))
    sent = adapter.body("words", {"schema": SCHEMA, "stop": ["."], "seed": 3})
    nest, name, wanted = SENT[engine]
    assert (sent[nest] if nest else sent)[name] == wanted
    if engine in MEAN:
        *way, last = MEAN[engine]
        at = answer = json.loads(json.dumps(answer))
        for key in way:
            at = at[key]
        at[last] = 1.5
        (answer["meta_info"] if engine == "SGLang" else answer["usage"])["completion_tokens"] = 12
        assert adapter.read(answer).accepted == 4  # 8 steps


def test_below_temperature_1_a_list_bounds_its_tail():
    top = [(0, -0.5), (1, -1.5), (2, -2.5)]  # the tail has 1 - 0.911746 = 0.088254
    seen = visible(top, {"temperature": 0.5, "top_k": -1, "top_p": 1.0, "min_p": 0.0}, READINGS[0], 0.0)
    assert seen.probs == pytest.approx([0.866813, 0.117310, 0.015876], abs=1e-6)
    assert seen.beyond == pytest.approx(0.088254 * 0.082085 / 0.424404, rel=1e-4)  # e^-2.5; e^-1 + e^-3 + e^-5
    hot = visible(top, {"temperature": 2.0, "top_k": -1, "top_p": 1.0, "min_p": 0.0}, READINGS[0], 0.0)
    assert hot.beyond == 1.0 and seen.rest == hot.rest == 0.0


def test_few_tokens_are_inconclusive(serve):
    found = draftproof.audit_server(serve().url, only=("draws",), tokens=100, length=8)
    assert (found.verdict, found.exit_code) == ("inconclusive", 4)


# Answers of a server at paths that identify it; an answer of one token, 7 at -0.5, before 9 at -1.5.
LISTED = {"id": 7, "logprob": -0.5, "token": "a", "text": "a"}
OTHER = {"id": 9, "logprob": -1.5, "token": "b", "text": "b"}
CHOICE = {"text": "a", "finish_reason": "length", "token_ids": [7], "logprobs":
          {"tokens": ["token_id:7"], "token_logprobs": [-0.5],
           "top_logprobs": [{"token_id:9": -1.5, "token_id:7": -0.5}]}}
COMPLETION = {"choices": [CHOICE], "usage": {"completion_tokens": 1, "prompt_tokens": 3}}
SERVERS = {
    "llama.cpp": ({"/props": {"default_generation_settings": {}, "build_info": "1.2"}}, {
        "content": "a", "tokens": [7], "stop_type": "limit", "tokens_predicted": 1, "tokens_evaluated": 3,
        "timings": {"draft_n_accepted": 2}, "completion_probabilities": [{**LISTED, "top_logprobs": [LISTED, OTHER]}]}),
    "vLLM": ({"/v1/models": {"data": [{"id": "m", "owned_by": "vllm"}]}, "/version": {"version": "1.2"}}, COMPLETION),
    "SGLang": ({"/v1/models": {"data": [{"id": "m", "owned_by": "sglang"}]}, "/model_info": {"model_path": "m"},
                "/server_info": {"version": "1.2"}}, {
        "text": "a", "output_ids": [7], "meta_info": {
            "finish_reason": {"type": "length", "length": 1}, "completion_tokens": 1, "prompt_tokens": 3,
            "spec_accept_length": 1.5, "output_token_logprobs": [[-0.5, 7, None]],
            "output_top_logprobs": [[[-0.5, 7, None], [-1.5, 9, None]]]}}),
    "TensorRT-LLM": ({"/v1/models": {"data": [{"id": "m", "owned_by": "tensorrt_llm"}]},
                      "/version": {"version": "1.2"}}, COMPLETION),
    "TGI": ({"/info": {"model_id": "m", "version": "1.2", "max_input_tokens": 9}, "/v1/models": {"data": []}}, {
        "generated_text": "a", "details": {"finish_reason": "length", "generated_tokens": 1, "tokens": [LISTED],
                                           "top_tokens": [[LISTED, OTHER]]}}),
    "Ollama": ({"/v1/models": {"data": [{"id": "m", "owned_by": "library"}]}, "/api/version": {"version": "1.2"}}, {
        "response": "a", "done_reason": "length", "eval_count": 1, "prompt_eval_count": 3, "logprobs":
        [{"token": "a", "bytes": [97], "logprob": -0.5, "top_logprobs": [
            {"token": "a", "bytes": [97], "logprob": -0.5}, {"token": "b", "bytes": [98], "logprob": -1.5}]}]}),
    "MLX LM": ({"/v1/models": {"object": "list", "data": [{"id": "m", "object": "model", "created": 5}]},
                "/version": {"version": "1.2"}}, {**COMPLETION, "choices": [
                    {**CHOICE, "logprobs": {"content": [{**LISTED, "top_logprobs": [LISTED, OTHER]}]}}]}),
    "generic": ({"/v1/models": {"data": [{"id": "m"}]}, "/version": {"version": "1.2"}}, COMPLETION),
}


@pytest.mark.parametrize("engine", SERVERS)
def test_a_server_is_recognised_and_its_answers_are_read(engine, monkeypatch):
    paths, answer = SERVERS[engine]
    monkeypatch.setattr(Wire, "get", lambda _, path: paths.get(path))
    adapter = sniff(Wire("http://127.0.0.1:9"))
    assert (adapter.engine, adapter.version) == (engine, "1.2")
    text = adapter.read(answer)
    keys = [(97,), (98,)] if engine == "Ollama" else [7, 9]
    assert [(step.token, step.logprob, step.top) for step in text.steps] == [
        (keys[0], -0.5, [(keys[0], -0.5), (keys[1], -1.5)])]
    assert (text.text, text.finish, text.counted) == ("a", "length", 1)
    assert text.ids == ([7] if adapter.ids else []) and text.accepted == (2 if engine == "llama.cpp" else 0)
    sent = adapter.body("words", {"temperature": 0.0, "min_p": 0.1, "max_tokens": 4, "repetition": 1.5})
    inner = sent[adapter.nest] if adapter.nest else sent
    assert 4 in inner.values() and 1.5 in inner.values() and "words" in sent.values()
    assert ("min_p" in inner) == (engine != "TGI")
    with pytest.raises(draftproof.Error, match="the answer has no '"):
        adapter.read({})


def test_lists_show_their_distribution_and_their_resolution():
    top = [(0, -0.5), (1, -1.5), (2, -2.5), (3, -2.75), (4, -9.0)]
    seen = visible(top, {"temperature": 2.0, "top_k": 4, "top_p": 1.0, "min_p": 0.35}, READINGS[0], 0.0)
    assert seen.keys == [0, 1, 2]  # 2 ln 0.35 = -2.0996
    assert seen.probs == pytest.approx([0.506480, 0.307196, 0.186324], abs=1e-6)
    last = visible(top, {"temperature": 2.0, "top_k": 4, "top_p": 1.0, "min_p": 0.35}, READINGS[2], 0.0)
    assert last.keys == [0, 1]  # ln 0.35 = -1.0498
    near = visible(top, {"temperature": 1.0, "top_k": 2, "top_p": 1.0, "min_p": 0.0}, READINGS[0], 0.5)
    assert near.ambiguous and near.generous == {0, 1, 2}  # noise of 1.0
    assert resolution([-0.25, -1.5]) == 0.01 and resolution([-0.123456789]) == 0.0
