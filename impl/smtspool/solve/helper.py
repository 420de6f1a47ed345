"""The program of a helper process: it hosts one engine and answers one request at a time.

It has no Python signal handler, so that signals end it at once; it dies with the fork server and with the
service (see :mod:`.processes`), whatever the engine is doing.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from smtspool.query import Status

from .engines import Engine, EngineDied, EngineError, Session, WantedSymbol
from .frames import Inbox, pack, unpack
from .processes import become_subreaper, die_with_parent, die_with_pipe, lower, yield_to_others
from .request import Op, Reply, pushes
from .spec import HelperLimits

__all__ = ["main"]

_CHUNK = 256 * 1024
_COURTESY = 0.95  # part of the request's time that the engine gets: its "unknown" then keeps the generation
_NICENESS = 5  # of a helper that yields; beside another process it gets a quarter of a CPU
_ON_STACK_MS = 100  # a query that takes longer on the stack is solved again without one, with preprocessing
_REASON = 2000  # characters of an engine's message that are sent to the service
_DECLARED = re.compile(r"\(declare-(?:fun|const) (\|[^|]*\||[^\s()]+)")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def main(
    engine: Engine, limits: HelperLimits, channel: int, stderr: int, lifeline: int, *, parent: int
) -> NoReturn:
    """The whole life of a freshly forked helper; never returns."""
    status = 1
    try:
        _prepare(limits, stderr, parent)
        _keep_only(channel, die_with_pipe(lifeline))
        with socket.socket(fileno=channel) as connection:
            Helper(engine, limits).serve(connection)
        status = 0
    except MemoryError:
        os.write(2, b"out of memory\n")
    except EngineDied as death:
        os.write(2, f"{death}\n".encode())
    except BaseException:  # noqa: BLE001 - print the error and end, without running code of the parent
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _prepare(limits: HelperLimits, stderr: int, parent: int) -> None:
    die_with_parent(parent)
    become_subreaper()
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    lower(resource.RLIMIT_AS, limits.memory)
    lower(resource.RLIMIT_CORE, 0)
    if limits.cpu_s is not None:
        lower(resource.RLIMIT_CPU, limits.cpu_s)
    os.dup2(stderr, 2)
    os.dup2(stderr, 1)  # output of an engine on stdout is no answer


def _keep_only(*fds: int) -> None:
    low = 3
    for fd in sorted(fds):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


@dataclass(frozen=True, slots=True)
class _Level:
    """One assertion with the declarations it is the first to need."""

    key: str
    declarations: list[str]
    assertion: str

    @property
    def text(self) -> str:
        return "".join(self.declarations) + f"(assert {self.assertion})"

    @property
    def declared(self) -> set[str]:
        """The names that get a value in a model."""
        return {found[1] for text in self.declarations if (found := _DECLARED.match(text))}


@dataclass(frozen=True, slots=True)
class _Push:
    """One assertion level of the engine, which holds one or more levels of the query."""

    levels: int  # levels of the query up to and with this one
    key: str  # of the last of them
    text: str
    declared: set[str]  # by these


@dataclass(slots=True)
class _Stack:
    """A session that is kept between requests, and the levels that are pushed on it."""

    session: Session
    pushes: list[_Push] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Said:
    status: Status
    reason: str | None = None
    model: dict[str, str] | None = None
    held: int = 0


class Helper:
    """Serves requests with one engine, and remembers what is on its assertion stack."""

    def __init__(self, engine: Engine, limits: HelperLimits) -> None:
        self._engine = engine
        self._limits = limits
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)  # opening it takes 30 us
        self._stack: _Stack | None = None

    def serve(self, connection: socket.socket) -> None:
        """Answer requests until the service closes its end of the channel."""
        while (body := _read(connection, self._limits.frame)) is not None:
            reply = self.answer(unpack(body))
            connection.sendall(pack(reply.to_wire(), self._limits.frame))

    def answer(self, request: dict[str, Any]) -> Reply:
        """The engine's reply. If the engine refuses the text, that is ``error``, and the stack is empty."""
        started = time.monotonic()
        if request["yielding"]:
            yield_to_others(_NICENESS)
        try:
            said = self._decide(request)
        except EngineError as error:
            self._drop()
            said = _Said(Status.ERROR, str(error)[:_REASON] or "the engine gave no reason")
        return Reply(
            attempt_id=request["attempt_id"],
            status=said.status,
            model=said.model,
            reason=said.reason,
            elapsed_ms=(time.monotonic() - started) * 1000,
            kept_levels=request["kept"] if said.held else 0,
            held_levels=said.held,
            rss_bytes=_PAGE * int(os.pread(self._statm, 128, 0).split()[1]),
        )

    def _decide(self, request: dict[str, Any]) -> _Said:
        op = Op(request["op"])
        if op is Op.PING:
            return _Said(Status.UNKNOWN, "ping")
        if request["stacked"]:
            return self._solve_on_stack(request)
        self._drop()
        closed = request["script"].rstrip().removesuffix("(check-sat)")
        if op is Op.CHECK and (status := self._engine.evaluate(closed)) is not None:
            return _Said(status)
        if op is Op.CHECK:
            return self._solve_afresh(closed, request, set())
        levels = [_Level(*level) for level in request["levels"]]
        text = "".join((f"(set-logic {request['logic']})", *(level.text for level in levels)))
        return self._solve_afresh(text, request, _declared(levels))

    def _solve_afresh(self, text: str, request: dict[str, Any], declared: set[str]) -> _Said:
        session = self._engine.open(incremental=False)
        try:
            session.load(text)
            return _conclude(session, request, declared, request["timeout_ms"])
        finally:
            session.close()

    def _solve_on_stack(self, request: dict[str, Any]) -> _Said:
        """Pop the levels that the request does not have, push the others, and leave them for the next one.

        A hard query takes several times longer on a stack, so it gets only a short time there. A session that
        ended with its check is closed.
        """
        kept = request["kept"]
        if kept == 0:
            self._drop()
        if self._stack is None:
            self._stack = _Stack(self._engine.open(incremental=True))
            self._stack.session.load(f"(set-logic {request['logic']})")
        stack = self._stack
        while stack.pushes and stack.pushes[-1].levels > kept:
            stack.session.pop()
            stack.pushes.pop()
        held = (stack.pushes[-1].levels, stack.pushes[-1].key) if stack.pushes else (0, "")
        if held != (kept, request["base"]):
            raise ValueError(f"this helper holds {held}, the service thinks {(kept, request['base'])}")
        levels = [_Level(*level) for level in request["levels"]]
        start = kept
        for end in pushes(kept, kept + len(levels)):
            added = levels[start - kept : end - kept]
            text = "".join(level.text for level in added)
            stack.session.push()
            stack.session.load(text)
            stack.pushes.append(_Push(end, added[-1].key, text, _declared(added)))
            start = end
        declared = set[str]().union(*(push.declared for push in stack.pushes))
        timeout_ms = request["timeout_ms"]
        said = _conclude(stack.session, request, declared, min(timeout_ms, _ON_STACK_MS))
        if said.status is Status.UNKNOWN and timeout_ms > _ON_STACK_MS:
            text = "".join((f"(set-logic {request['logic']})", *(push.text for push in stack.pushes)))
            self._drop()
            left_ms = timeout_ms - _ON_STACK_MS
            return self._solve_afresh(text, {**request, "timeout_ms": left_ms}, declared)
        if stack.session.ended:
            self._drop()
            return said
        return replace(said, held=kept + len(levels))

    def _drop(self) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.session.close()


def _declared(levels: list[_Level]) -> set[str]:
    return set[str]().union(*(level.declared for level in levels))


def _conclude(session: Session, request: dict[str, Any], declared: set[str], timeout_ms: int) -> _Said:
    """Check, and read the values that go with the answer. Symbols that no level declares have no value."""
    status, reason = session.check(max(1, int(timeout_ms * _COURTESY)))
    if status is not Status.SAT:
        return _Said(status, reason)
    symbols = request["symbols"]
    wanted = [WantedSymbol(name, sort, tuple(params)) for name, sort, params in symbols if name in declared]
    return _Said(status, model=session.values(wanted))


def _read(connection: socket.socket, limit: int) -> bytes | None:
    """The next request; None at the end of the channel, at which a helper ends."""
    inbox = Inbox(limit)
    while True:
        chunk = connection.recv(_CHUNK)
        if not chunk:
            return None
        body = inbox.feed(chunk)
        if body is not None:
            return body
