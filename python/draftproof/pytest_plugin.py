"""pytest plugin: a fixture and a marker for audits of samplers, with one budget of false alarms for a whole session.

    def test_my_sampler(draftproof_audit):
        draftproof_audit(my_sampler)                        # fails the test where the sampler is biased

    @pytest.mark.draftproof(kind="verify", tv=0.05)
    def test_my_verifier(draftproof_audit):
        draftproof_audit(my_verifier)

    def test_the_server(draftproof_server):
        draftproof_server("http://127.0.0.1:8000", only=("draws", "speculation"))  # audit_server

draftproof_server without a URL takes that of `--draftproof-server`, and skips the test where there is none.

Every audit takes `--draftproof-alpha` / `--draftproof-audits` of the budget; a session with more audits than that is
stopped. `--draftproof-profile` says how long each takes: quick (60 seconds of CPU), full, soak. A bias and an error of
the callable fail a test with words of their own; regimes that time did not reach skip it, and fail it with
`--draftproof-fail-inconclusive`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from typing import Any, Callable

import pytest

from ._progress import on_stderr


class Biased(AssertionError):
    """The callable's distribution is not the one that it should have."""


class CallableError(AssertionError):
    """The callable raised, hung, changed its inputs or gave back something of another form."""


class Inconclusive(AssertionError):
    """Nothing was found, but not all was looked at."""


@dataclasses.dataclass
class Session:
    alpha: float
    audits_max: int
    profile: str
    fail_inconclusive: bool
    results: list[tuple[str, Any]] = dataclasses.field(default_factory=list)
    servers: list[tuple[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def share(self) -> float:
        return self.alpha / self.audits_max


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("draftproof")
    group.addoption("--draftproof-alpha", type=float, default=1e-6,
                    help="probability that a session accuses any sound callable (1e-6)")
    group.addoption("--draftproof-audits", type=int, default=100, help="audits of a session that share it (100)")
    group.addoption("--draftproof-server", metavar="URL", help="the server that draftproof_server audits")
    group.addoption("--draftproof-json", metavar="FILE", help="write what the audits found")
    group.addoption("--draftproof-profile", default="quick", help="quick (60 seconds of CPU an audit), full or soak")
    group.addoption("--draftproof-fail-inconclusive", action="store_true",
                    help="what time did not reach fails, and does not skip")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "draftproof(kind='sample', tv=0.02, ...): arguments of audit_callable for the "
                                       "fixture draftproof_audit")
    alpha, audits = config.getoption("--draftproof-alpha"), config.getoption("--draftproof-audits")
    if not 0.0 < alpha < 1.0 or audits < 1:
        raise pytest.UsageError(f"--draftproof-alpha is {alpha} and --draftproof-audits {audits}; expected a number in "
                                "(0, 1) and 1 or more")
    profile = config.getoption("--draftproof-profile")
    if profile not in ("quick", "full", "soak"):
        raise pytest.UsageError(f"--draftproof-profile is {profile}; expected quick, full or soak")
    config.stash[_SESSION] = Session(alpha, audits, profile, config.getoption("--draftproof-fail-inconclusive"))


_SESSION: pytest.StashKey[Session] = pytest.StashKey()


def _consistent(result: Any, session: Session) -> Any:
    """The result of an audit, where its verdict is 'consistent'; raises, or skips the test, where it is not."""
    if result.verdict in ("biased", "failure"):
        raise Biased(str(result))
    if result.verdict == "error":
        raise CallableError(str(result))
    if result.verdict == "inconclusive":
        if session.fail_inconclusive:
            raise Inconclusive(result.sentence)
        pytest.skip(result.sentence)
    return result


@pytest.fixture
def draftproof_audit(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """audit(sampler, **arguments of audit_callable) -> CallableAudit; raises where the verdict is not 'consistent'."""
    session = request.config.stash[_SESSION]
    marker = request.node.get_closest_marker("draftproof")
    marked = dict(marker.kwargs) if marker else {}

    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            on_stderr(f"\n{line}; {request.node.nodeid}")

    def audit(sampler: Callable[..., Any], **given: Any) -> Any:
        from . import audit_callable

        if len(session.results) >= session.audits_max:
            raise pytest.UsageError(f"more than {session.audits_max} audits in this session; raise "
                                    "--draftproof-audits, "
                                    "among which the false alarms are divided")
        result = audit_callable(sampler,
                                **{"alpha": session.share, "profile": session.profile, "progress": say, **marked,
                                   **given})
        session.results.append((request.node.nodeid, result))
        if any(note.startswith("interrupted") for note in result.notes):
            raise KeyboardInterrupt
        return _consistent(result, session)

    return audit


@pytest.fixture
def draftproof_server(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """audit(url=None, **arguments of audit_server) -> ServerAudit; raises where the verdict is not 'consistent'."""
    session = request.config.stash[_SESSION]

    def audit(url: str | None = None, **given: Any) -> Any:
        from . import audit_server

        url = url or request.config.getoption("--draftproof-server")
        if not url:
            pytest.skip("no server: --draftproof-server URL names one")
        result = audit_server(url, **given)
        session.servers.append((request.node.nodeid, result))
        return _consistent(result, session)

    return audit


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    session = config.stash.get(_SESSION, None)
    if session is None or not session.results + session.servers:
        return
    terminalreporter.section("draftproof")
    for name, result in session.results + session.servers:
        terminalreporter.line(f"{name}: {result.sentence}")
    if session.results:
        terminalreporter.line(f"{len(session.results)} audits; any sound callable is accused with probability "
                              f"{len(session.results) * session.share:.3g} at most")


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = session.config.stash.get(_SESSION, None)
    path = session.config.getoption("--draftproof-json")
    if found is None or not path:
        return
    document = {"alpha": found.alpha, "alpha_of_an_audit": found.share,
                "audits": [{"test": name, **result.to_json()} for name, result in found.results],
                "servers": [{"test": name, **json.loads(result.json())} for name, result in found.servers]}
    target = Path(path)
    staging = target.with_name(f".draftproof-{os.getpid()}.tmp")
    staging.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    staging.replace(target)
