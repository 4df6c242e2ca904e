"""A server on loopback over the small engine, with one planted fault or sound peculiarities."""

import json
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fake_engine import Engine, Moment, Request, ids_of
from fake_faults import FAULTS, SOUND

#: Peculiarities that are no matter of draws.
FORMS = ("no logprobs", "no model", "redirects", "needs a key", "as TensorRT-LLM", "ends at top_k", "is busy")


class Fake(ThreadingHTTPServer):
    """Serves at http://127.0.0.1:PORT (`url`). how: names of a fault of FAULTS or of peculiarities. seed: its model."""

    daemon_threads = True

    def __init__(self, *how: str, seed: int = 7) -> None:
        if unknown := [name for name in how if name not in {*FAULTS, *SOUND, *FORMS}
                       and not name.startswith("refuses ")]:
            raise ValueError(f"{unknown[0]!r} is no fault and no peculiarity of the fake server")
        super().__init__(("127.0.0.1", 0), Handler)
        fault = next((FAULTS[name] for name in how if name in FAULTS), None)
        self.how = frozenset(how) | (fault.traits if fault else frozenset())
        self.engine = Engine(fault, self.how, seed)
        self.url, self.sent, self.keys, self.crash = f"http://127.0.0.1:{self.server_address[1]}", 0, set(), ""
        self.ended, self.asked = False, 0
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def reply(self, path: str, body: dict | None) -> tuple[int, str]:
        """Returns status and text of an answer."""
        if body is None:
            if path == "/v1/models" and "no model" not in self.how:
                owner = "tensorrt_llm" if "as TensorRT-LLM" in self.how else "vllm"
                return 200, json.dumps({"data": [{"id": "table", "owned_by": owner}]})
            return 404, json.dumps({"error": "not found"})
        if path == "/tokenize" and "gives ids" in self.how:
            return 200, json.dumps({"tokens": ids_of(body["prompt"])})
        self.sent += 1
        self.ended |= any(f"ends at {name}" in self.how and body.get(name, -1) > 0 for name in ("top_k", "min_p"))
        if self.ended:
            return 500, json.dumps({"error": "the engine is dead"})
        if words := self.refusal(body):
            return 400, json.dumps({"error": words})
        answer = self.answer(body)
        if "no logprobs" in self.how:
            for choice in answer["choices"]:
                choice["logprobs"] = None
        if not body.get("stream"):
            return 200, json.dumps(answer)
        lines = [f"data: {json.dumps(part)}\n\n" for part in self.pieces(answer, body)]
        return 200, "".join([*lines, "data: [DONE]\n\n"])

    def handle_error(self, *_: object) -> None:
        self.crash = traceback.format_exc()

    def close(self) -> None:
        """Ends the server. Raises RuntimeError if an answer failed in its code."""
        self.shutdown()
        self.server_close()
        if self.crash:
            raise RuntimeError(self.crash)

    def refusal(self, body: dict) -> str:
        """Returns why a request is refused, '' if it is not."""
        for name in ("min_p", "logit_bias", "seed", "n"):
            if f"refuses {name}" in self.how and name in body:
                return f"{name} is not supported"
        if "refuses token ids" in self.how and isinstance(body["prompt"], list):
            return "prompt: expected a string"
        if "accepts bad values" not in self.how:
            if not body.get("temperature", 1.0) >= 0:
                return f"temperature must be non-negative, got {body['temperature']}"
            if not 0 < body.get("top_p", 1.0) <= 1:
                return f"top_p must be in (0, 1], got {body['top_p']}"
        return ""

    def answer(self, body: dict) -> dict:
        """Returns the JSON of a completion."""
        engine, ids = self.engine, ids_of(body["prompt"])
        whole = Moment(Request(body, ids, None))
        if body.get("stream"):
            body = {**body, "seed": engine.see("stream seed", body.get("seed"), whole)}
        done = engine.choices(body, ids)
        choices = [{"index": number, "text": request.text, "finish_reason": request.finish, "logprobs": {
            "tokens": [name for name, _, _ in request.rows], "token_logprobs": [value for _, value, _ in request.rows],
            "top_logprobs": [top for *_, top in request.rows]}} for number, request in enumerate(done)]
        if "gives ids" in self.how:
            for choice, request in zip(choices, done):
                choice |= {"token_ids": request.out, **({} if body.get("logprobs") else {"logprobs": None})}
        counted = engine.see("usage", sum(len(request.out) for request in done), whole)
        prompt = engine.see("prompt usage", len(ids), whole)
        return {"choices": choices, "usage": {"prompt_tokens": prompt, "completion_tokens": counted}}

    def pieces(self, answer: dict, body: dict) -> list[dict]:
        """Returns the parts of a streamed answer: pieces of text with their tokens, then the usage."""
        parts = []
        for choice in answer["choices"]:
            logprobs, text = choice["logprobs"] or {}, choice["text"]
            cuts = list(range(0, max(1, len(text)), 9))
            listed = [{key: values if not number else [] for key, values in logprobs.items()}
                      for number in range(len(cuts))]
            parts += [{"choices": [{"index": choice["index"], "text": text[cut:cut + 9], "logprobs": now,
                                    "finish_reason": choice["finish_reason"] if cut == cuts[-1] else None}]}
                      for cut, now in zip(cuts, listed)]
        parts = self.engine.see("pieces", parts, Moment(Request(body, [], None)))
        return [*parts, {"choices": [], "usage": answer["usage"]}]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def send(self, status: int, text: str, headers: dict[str, str]) -> None:
        data = text.encode()
        self.send_response(status)
        for name, header in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, header)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        server, key = self.server, self.headers.get("Authorization")
        server.keys.add(key)
        if "redirects" in server.how:
            return self.send(302, "{}", {"Location": "http://other.invalid/"})
        if "needs a key" in server.how and key != "Bearer hidden":
            return self.send(401, "{}", {})
        return self.send(*server.reply(self.path, None), {"Content-Type": "application/json"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += 1
        if "is busy" in self.server.how and self.server.asked % 9 == 0:
            return self.send(429, "{}", {"Retry-After": "0"})
        kind = "text/event-stream" if body.get("stream") else "application/json"
        return self.send(*self.server.reply(self.path, body), {"Content-Type": kind})
