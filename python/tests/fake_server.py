"""A server of a table model on loopback, with one planted fault or one sound peculiarity."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy

SIZE, LISTED = 64, 20
_rng = numpy.random.default_rng(7)
TABLE = _rng.normal(0.0, 1.6, (SIZE, SIZE))
TABLE[:, :2] += 1.0
TABLE[::4, 5] = TABLE[::4, 9] = TABLE[::4].max(1) + 0.5  # exact ties of the two best
TABLE -= numpy.log(numpy.exp(TABLE).sum(1, keepdims=True))


def _filtered(row: numpy.ndarray, t: float, k: int, p: float, m: float, how: str) -> numpy.ndarray:
    """Returns probabilities (size SIZE) of a row of logprobs under one request's filters."""
    order = numpy.argsort(-row, kind="stable")
    if how == "filters first":
        value = row[order]
    else:
        value = row[order] / t
    keep = numpy.ones(SIZE, bool)
    if k > 0:
        keep[k:] = False
    if m > 0:
        keep &= value >= value[0] + numpy.log(m)
    weight = numpy.exp(value - value[0])
    mass = numpy.cumsum(weight if how == "top_p over all" else weight * keep)
    if p < 1:
        keep &= (mass - weight) < p * mass[-1]
    keep[0] = True
    weight = numpy.exp((row[order] - row[order[0]]) / t) * keep
    probs = numpy.zeros(SIZE)
    probs[order] = weight / weight.sum()
    return probs


class Fake(ThreadingHTTPServer):
    """Serves at http://127.0.0.1:PORT (`url`). `how` names the fault or peculiarity."""

    daemon_threads = True

    def __init__(self, how: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.how, self.url, self.sent = how, f"http://127.0.0.1:{self.server_address[1]}", 0
        self.fresh = numpy.random.default_rng(11)
        self.seen, self.lists, self.keys = {}, {}, set()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def probs(self, state: int, body: dict, first: bool) -> numpy.ndarray:
        how, t = self.how, body.get("temperature", 1.0)
        k, p, m = body.get("top_k", -1), body.get("top_p", 1.0), body.get("min_p", 0.0)
        if how == "temperature + 3 %" or (how == "temperature ignored" and t > 0):
            t = t * 1.03 if "+" in how else 1.0
        k = k + 1 if how == "top_k + 1" and k > 0 else k
        k = k - 1 if how == "top_k - 1" and k > 1 else k
        k = -1 if how == "top_k ignored" else k
        p = 0.927 if how == "top_p too wide" and p < 1 else 1.0 if how == "top_p ignored" else p
        m = 0.0 if how == "min_p ignored" else m
        if how == "filters lost" and not first:
            k, p, m = -1, 1.0, 0.0
        key = (state, t, k, p, m)
        if key not in self.seen or how == "noise":
            row = TABLE[state] + (self.fresh.normal(0, 1e-3, SIZE) if how == "noise" else 0.0)
            probs = _filtered(row, t, k, p, m, how)
            if how == "accepts 1.5 p/q":  # drafts from a flat q over the kept tokens
                q = (probs > 0) / (probs > 0).sum()
                accepted = numpy.minimum(q, 1.5 * probs)
                rest = numpy.maximum(probs - q, 0.0)
                probs = accepted + (1 - accepted.sum()) * rest / max(rest.sum(), 1e-300)
                probs /= probs.sum()
            self.seen[key] = numpy.cumsum(probs)
        return self.seen[key]

    def listed(self, state: int) -> list:
        if state not in self.lists or self.how == "noise":
            row = TABLE[state] + (self.fresh.normal(0, 1e-3, SIZE) if self.how == "noise" else 0.0)
            digits = 3 if self.how == "rounded" else 7
            best = numpy.argsort(-row, kind="stable")[:LISTED]
            self.lists[state] = ([(f"token_id:{x}", round(float(row[x]), digits)) for x in best],
                                 numpy.round(row, digits))
        return self.lists[state]

    def answer(self, body: dict) -> dict:
        how, seed, t = self.how, body.get("seed"), body.get("temperature", 1.0)
        if seed is None:
            seed = 42 if how == "seed of the process" else int(self.fresh.integers(2 ** 40))
        if how == "seed ignored":
            seed = int(self.fresh.integers(2 ** 40))
        rng = numpy.random.default_rng(seed % 2 ** 32)
        state = hashlib.sha256(body["prompt"].encode()).digest()[0] % SIZE
        count, out, u = body["max_tokens"] + (how == "max_tokens + 1"), [], 0.0
        text, finish, tokens, values, tops = "", "length", [], [], []
        for position in range(count):
            if how == "one random number for two tokens" and position % 2 == 1:
                pass
            elif how == "neighbouring seeds alike" and position == 0:
                u = (seed % 4096) / 4096.0
            else:
                u = rng.random()
            best = numpy.flatnonzero(TABLE[state] == TABLE[state].max())
            if t == 0:
                token = int(self.fresh.choice(best) if how == "ties drawn" else best[0])
                if how == "second best" and position == 5:
                    token = int(numpy.argsort(-TABLE[state])[2])
            else:
                token = int(min(SIZE - 1, numpy.searchsorted(self.probs(state, body, position == 0), u, "right")))
            top, row = self.listed(token if how == "logprobs of the next row" else state)
            if how == "logprobs after temperature" and t not in (0, 1):
                row = row / t - numpy.log(numpy.exp(row / t).sum())
                top = [(name, float(row[int(name[9:])])) for name, _ in top]
            tokens.append(f"token_id:{token}"), values.append(float(row[token]))
            tops.append(dict([*top, (tokens[-1], values[-1])][:LISTED + 1]))
            out.append(token)
            text += f" w{token}"
            state = token
            stops = [stop for stop in body.get("stop") or [] if stop in text]
            if stops and how != "stop ignored":
                text, finish = text[:text.index(stops[0])], "length" if how == "finish reason" else "stop"
                break
        return {"choices": [{"text": text, "finish_reason": finish, "logprobs":
                             {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops}}],
                "usage": {"completion_tokens": len(out) + (how == "usage + 1")}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def say(self, status: int, value: object, **headers: str) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, header in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, header)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.server.keys.add(self.headers.get("Authorization"))
        if self.server.how == "redirects":
            return self.say(302, {}, Location="http://other.invalid/")
        if self.server.how == "needs a key" and self.headers.get("Authorization") != "Bearer hidden":
            return self.say(401, {})
        if self.path == "/v1/models" and self.server.how != "no model":
            return self.say(200, {"data": [{"id": "table", "owned_by": "vllm"}]})
        return self.say(404, {"error": "not found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.sent += 1
        if self.server.how == "refuses min_p" and "min_p" in body:
            return self.say(400, {"error": "min_p is not supported"})
        answer = self.server.answer(body)
        if self.server.how == "no logprobs":
            answer["choices"][0]["logprobs"] = None
        return self.say(200, answer)
