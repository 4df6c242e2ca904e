"""Requests to one server: bounded in number and time, to one host, with a key that is never saved."""

import http.client
import json
import os
import shlex
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .._core import Error

ANSWER_MAX_BYTES = 64 << 20


@dataclass
class Record:
    """One request and its answer, as --save keeps them. `settings` are the parameters in draftproof's own names."""

    question: str
    case: str
    settings: dict
    path: str
    body: dict
    status: int = 0
    answer: Any = None
    seconds: float = 0.0
    order: int = 0

    def line(self) -> str:
        return json.dumps(self.__dict__)


@dataclass
class Wire:
    """Connections to `url`. Raises Error if the server is not reached or redirects. `requests_max` ends the time."""

    url: str
    key_env: str | None = None
    timeout_s: float = 600.0
    seconds_max: float = 120.0
    requests_max: int = 20000
    connections: int = 4
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url if "://" in self.url else "http://" + self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Error(f"the URL is '{self.url}'; expected http://HOST:PORT or https://HOST")
        if parts.username or parts.password:
            raise Error("the URL holds a password; give the key in an environment variable and its name by --key-env")
        self.secure, self.host, self.port = parts.scheme == "https", parts.hostname, parts.port
        self.prefix = parts.path.rstrip("/").removesuffix("/v1")
        self.origin = f"{parts.scheme}://{parts.netloc}{self.prefix}"
        if self.key_env and not os.environ.get(self.key_env):
            raise Error(f"the environment variable {self.key_env} is empty; --key-env names the variable of the key")
        self.started, self.sent, self.until_s = time.monotonic(), 0, float("inf")
        self.kept, self.lock, self.stopped = threading.local(), threading.Lock(), False

    def left_s(self) -> float:
        """Returns the seconds that are left, of the whole or of a part's share."""
        if self.stopped or self.sent >= self.requests_max:
            return 0.0
        return min(self.seconds_max, self.until_s) - (time.monotonic() - self.started)

    def share(self, part: float) -> None:
        """Gives what follows this part of the time that is left of the whole."""
        passed = time.monotonic() - self.started
        self.until_s = passed + part * max(0.0, self.seconds_max - passed)

    def _wait_s(self) -> float:
        return max(1.0, min(self.timeout_s, self.seconds_max - (time.monotonic() - self.started) + 5.0))

    def _connect(self) -> http.client.HTTPConnection:
        timeout_s = self._wait_s()
        if self.secure:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s,
                                               context=ssl.create_default_context())
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)

    def ask(self, method: str, path: str, body: dict | None = None) -> tuple[int, str]:
        """Returns status and text of the answer. One connection a thread is kept; a closed one is opened anew once."""
        with self.lock:
            self.sent += 1
        headers = {"Content-Type": "application/json"}
        if self.key_env:
            headers["Authorization"] = "Bearer " + os.environ[self.key_env]
        text = None if body is None else json.dumps(body)
        while (answered := self._once(method, path, text, headers))[2] > 0 and self.left_s() > 0:
            time.sleep(min(answered[2], self.left_s()))
        return answered[:2]

    def _once(self, method: str, path: str, text: str | None, headers: dict) -> tuple[int, str, float]:
        """Returns status, text, and the seconds after which a server that is busy may be asked again, else 0."""
        for attempt in (0, 1):
            fresh = getattr(self.kept, "line", None) is None
            try:
                if fresh:
                    self.kept.line = self._connect()
                elif self.kept.line.sock:
                    self.kept.line.sock.settimeout(self._wait_s())
                self.kept.line.request(method, self.prefix + path, text, headers)
                answer = self.kept.line.getresponse()
                data = answer.read(ANSWER_MAX_BYTES)
                break
            except (OSError, http.client.HTTPException) as wrong:
                self.kept.line = None
                if fresh or attempt:
                    raise Error(f"{self.origin}{path} was not reached: {wrong or type(wrong).__name__}") from None
        if 300 <= answer.status < 400:
            raise Error(f"{self.origin}{path} redirects to {answer.getheader('Location')}; "
                        "redirects are not followed, give the server's own URL")
        if answer.will_close:
            self.kept.line = None
        after = answer.getheader("Retry-After") or ""
        wait_s = max(0.1, float(after) if after.isdigit() else 1.0)
        is_busy = answer.status == 429 or answer.status == 503 and after
        return answer.status, data.decode("utf-8", "replace"), wait_s if is_busy else 0.0

    def get(self, path: str) -> Any:
        """Returns the JSON (else the text) at `path`, None where the server has no such path."""
        status, text = self.ask("GET", path)
        if status in (401, 403):
            raise Error(f"{self.origin}{path} answers {status}; give the key by --key-env VARIABLE")
        if status == 503:
            raise Error(f"{self.origin}{path} answers 503: the server loads its model, or is overloaded; ask later")
        if status != 200:
            return None
        try:
            return json.loads(text)
        except ValueError:
            return text

    def post(self, record: Record) -> Record:
        """Sends the record's body and fills in the answer; a request that the server does not survive has status 0."""
        begin = time.monotonic()
        try:
            record.status, text = self.ask("POST", record.path, record.body)
        except Error as wrong:
            record.answer = str(wrong)
            if self.left_s() > 0:
                with self.lock:
                    self.records.append(record)
            raise
        record.seconds = round(time.monotonic() - begin, 4)
        if record.status in (401, 403):
            raise Error(f"{self.origin}{record.path} answers {record.status}; give the key by --key-env VARIABLE")
        try:
            lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
            record.answer = ([json.loads(line) for line in lines if line != "[DONE]"] if record.body.get("stream")
                             else json.loads(text))
        except ValueError:
            record.answer = text[:2000]
        with self.lock:
            self.records.append(record)
        return record

    def post_all(self, records: list[Record]) -> list[Record]:
        """Sends records over all connections until the time is spent. Returns those answered, in their order."""
        def one(record: Record) -> Record | None:
            try:
                return self.post(record) if self.left_s() > 0 else None
            except Error:
                if self.left_s() > 0:
                    raise
                return None  # the time was spent while it waited
        with ThreadPoolExecutor(self.connections) as pool:
            jobs = [pool.submit(one, record) for record in records]
            try:
                wait(jobs)
            except KeyboardInterrupt:
                self.stopped = True
                wait(jobs)
        return [done for job in jobs if (done := job.result()) is not None]


def curl(origin: str, record: Record) -> str:
    """Returns the command that repeats a request, without its key."""
    return (f"curl -s {origin}{record.path} -H 'Content-Type: application/json' "
            f"-d {shlex.quote(json.dumps(record.body))}")
