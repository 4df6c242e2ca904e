"""Jobs in forked processes, whose results come back."""

from __future__ import annotations

import multiprocessing
from typing import Any, Callable

from ..._core import Error


def in_processes(jobs: list[Callable[[], Any]]) -> list[Any]:
    """What each job gives, in order. Raises Error where a process ends without a result."""
    context = multiprocessing.get_context("fork")
    running = []
    for job in jobs:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_send, args=(theirs, job), daemon=True)
        process.start()
        theirs.close()
        running.append((process, ours))
    results = []
    for process, ours in running:
        try:
            result = ours.recv()
        except EOFError:
            process.join()
            raise Error(f"processes: one ended with {process.exitcode} and no result; expected a callable that bears a "
                        "fork (processes=1 needs none)") from None
        process.join()
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


def _send(pipe: Any, job: Callable[[], Any]) -> None:
    try:
        result = job()
    except BaseException as error:  # goes to the process that waits
        result = error
    pipe.send(result)
    pipe.close()
