"""The service's side of one helper process."""

from __future__ import annotations

import math
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from smtspool import forks
from smtspool.errors import MisuseError

from .frames import FrameError, Inbox, Oversize, pack, unpack
from .request import FailureKind, GenerationFailed, Op, Reply, Request, RequestRefused, pushes
from .spec import EngineSpec, HelperLimits
from .views import HelperView

if TYPE_CHECKING:
    from smtspool.query import Level

__all__ = ["Generation", "Helpers"]

_CHUNK = 256 * 1024
_LONGEST_POLL_S = 3600.0  # poll() counts milliseconds in an int
_OBITUARY_S = 0.2  # how long to wait for the report of a helper's death
_SHARED_TO_STACK = 2  # levels that two successive requests must share before the helper keeps a stack


class Generation:
    """One helper process, its channel and its assertion stack (F368). Once retired it is never valid again.

    ``exchange`` is for one thread at a time. ``signal_kill`` and ``retire`` may be called from any thread
    at any time; an exchange that is under way then fails within a millisecond, without waiting for the kernel
    to remove the helper. ``_guard`` is the only lock, and no thread waits for anything while it has it.
    """

    def __init__(
        self,
        *,
        number: int,
        pid: int,
        pidfd: int,
        channel: socket.socket,
        stderr: int,
        limits: HelperLimits,
        clock: Callable[[], float],
        wait_exit: Callable[[float], str | None],
    ) -> None:
        self.number = number
        self.pid = pid
        self.valid = True
        self.retired_for: str | None = None
        self._pidfd = pidfd
        self._channel = channel
        self._stderr = stderr
        self._limits = limits
        self._clock = clock
        self._wait_exit = wait_exit
        self._kill = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._guard = threading.Lock()  # protects the descriptors against use after close, and the flags
        self._exchanging = False
        self._asked = False  # the whole request is sent
        self._open = True
        self._tail = bytearray()
        self._last: tuple[str, ...] = ()  # level keys of the last request
        self._on_path = False  # it found some of them on the stack
        self._stack: list[tuple[int, str]] = []  # (levels, key of the last one) at each push of the helper

    def exchange(self, request: Request, deadline: float, *, wake: int | None = None) -> Reply:
        """Send the request and receive the reply before ``deadline``, by the clock of the fork server (F370).

        ``wake`` is a descriptor that ends the exchange when it becomes readable. Raises
        :class:`GenerationFailed` after which the generation is invalid, or :class:`RequestRefused`, with
        nothing sent and the generation still valid.
        """
        stacked, kept = self._reuse(request)
        frame = self._frame(request, stacked, kept)
        self._begin()
        try:
            reply = self._ask(frame, request.attempt_id, deadline, wake)
        except BaseException:  # any exception ends the generation, an interrupt too (F368)
            self._end(valid=False)
            raise
        self._end(valid=True)
        self._remember(request, kept, reply)
        return reply

    def signal_kill(self) -> None:
        """SIGKILL now; does not wait. The exchange under way, if any, fails as KILLED."""
        with self._guard:
            self.valid = False
            if self._open:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                os.eventfd_write(self._kill, 1)

    def retire(self, reason: str) -> None:
        """Kill the helper and close its descriptors. Idempotent; does not wait for the reaping.

        The fork server kills what is left of the process group and reaps it; see :meth:`wait_reaped`.
        """
        self.signal_kill()
        with self._guard:
            if self.retired_for is None:
                self.retired_for = reason
            if not self._exchanging:
                self._close()

    def wait_reaped(self, deadline: float) -> str | None:
        """How the helper ended ("signal 9", "exit 1"), once it and all it started are reaped.

        None if they are not by then, or if the fork server died with them.
        """
        return self._wait_exit(deadline)

    @property
    def alive(self) -> bool:
        """False once the helper has died, even if that was not noticed before."""
        with self._guard:
            return self.valid and not _readable(self._pidfd)

    def view(self) -> HelperView:
        """The state of the helper; from any thread."""
        with self._guard:
            alive = self.valid and not _readable(self._pidfd)
            return HelperView(self.number, alive, self._asked)

    @property
    def stderr_tail(self) -> str:
        """The end of what helper and engine have printed so far."""
        return self._tail.decode(errors="replace")

    def held(self, levels: Sequence[Level]) -> int:
        """How many of the levels are on the helper's stack after the last exchange; from any thread."""
        for held, key in reversed(self._stack):
            if held <= len(levels) and levels[held - 1].key == key:
                return held
        return 0

    # -- one exchange ---------------------------------------------------------------------------

    def _begin(self) -> None:
        with self._guard:
            if not self.valid:
                raise GenerationFailed(FailureKind.RETIRED, f"generation {self.number} is retired")
            if self._exchanging:
                raise MisuseError("a generation serves one exchange at a time")
            self._exchanging = True

    def _end(self, *, valid: bool) -> None:
        with self._guard:
            self._exchanging = self._asked = False
            self.valid = self.valid and valid
            if self.retired_for is not None:
                self._close()

    def _ask(self, frame: bytes, attempt_id: str, deadline: float, wake: int | None) -> Reply:
        try:
            reply = _reply(self._transfer(frame, deadline, wake))
            if reply.attempt_id != attempt_id:
                raise _failed(FailureKind.ECHO, f"answer of attempt {reply.attempt_id!r} to {attempt_id!r}")
        except GenerationFailed as failure:
            if failure.kind is FailureKind.CRASHED:
                failure.exit = self._wait_exit(min(deadline, self._clock() + _OBITUARY_S))
            self._drain_stderr()
            failure.stderr = self.stderr_tail
            raise
        except OSError as error:
            raise _failed(FailureKind.SYSTEM, f"the channel failed: {error}") from error
        return reply

    def _transfer(self, frame: bytes, deadline: float, wake: int | None) -> bytes:
        """One poll loop over both directions, the error pipe and the two descriptors that interrupt it."""
        self._refuse_early_bytes()
        unsent = memoryview(frame)
        inbox = Inbox(self._limits.frame)
        channel = self._channel.fileno()
        poller = select.poll()
        poller.register(channel, select.POLLIN | select.POLLOUT)
        poller.register(self._stderr, select.POLLIN)
        poller.register(self._kill, select.POLLIN)
        if wake is not None:
            poller.register(wake, select.POLLIN)
        while True:
            remaining = deadline - self._clock()
            if remaining <= 0:
                raise _failed(FailureKind.TIMEOUT, "the deadline passed before the reply was in")
            ready = dict(poller.poll(math.ceil(min(remaining, _LONGEST_POLL_S) * 1000)))
            if self._kill in ready or wake in ready:
                raise _failed(FailureKind.KILLED, "the exchange was interrupted")
            if self._stderr in ready and not self._drain_stderr():
                poller.unregister(self._stderr)
            events = ready.get(channel, 0)
            if events & ~select.POLLOUT:
                body = self._receive(inbox)
                if body is not None:
                    if unsent:
                        raise _failed(FailureKind.EXTRA, "an answer before the whole request was sent")
                    return body
            elif events:
                unsent = unsent[self._send(unsent) :]
                if not unsent:
                    poller.modify(channel, select.POLLIN)
                    self._asked = True

    def _refuse_early_bytes(self) -> None:
        if not _readable(self._channel.fileno()):
            return
        try:
            early = self._channel.recv(1)
        except ConnectionError:
            early = b""
        if early:
            raise _failed(FailureKind.EXTRA, "the helper sent bytes that nobody had asked for")
        raise _failed(FailureKind.CRASHED, "the helper died between two requests")

    def _send(self, unsent: memoryview) -> int:
        try:
            return self._channel.send(unsent, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0
        except ConnectionError as error:
            raise _failed(FailureKind.CRASHED, f"the helper died over a request: {error}") from error

    def _receive(self, inbox: Inbox) -> bytes | None:
        try:
            chunk = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return None
        except ConnectionError:
            chunk = b""
        if not chunk:
            raise _failed(FailureKind.CRASHED, "the helper died before its answer was complete")
        try:
            return inbox.feed(chunk)
        except Oversize as error:
            raise _failed(FailureKind.OVERSIZE, str(error)) from error
        except FrameError as error:
            raise _failed(FailureKind.EXTRA, str(error)) from error

    def _drain_stderr(self) -> bool:
        """Read the helper's error output and keep its end; False at end of file."""
        while True:
            try:
                chunk = os.read(self._stderr, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._tail += chunk
            del self._tail[: -self._limits.stderr]

    # -- the assertion stack --------------------------------------------------------------------

    def _reuse(self, request: Request) -> tuple[bool, int]:
        """Whether the helper shall keep a stack for this request, and how many of its levels stay on it.

        Incremental solving costs an engine its preprocessing, so a stack is begun only for a path: when two
        successive requests share levels, or when the path before this one was answered on the stack. What
        that saves on paths that grow or shrink by one assertion: docs/measurements.md.
        """
        if request.op is not Op.SOLVE or request.fresh:
            return False, 0
        levels = request.levels
        shared = 0
        for level, key in zip(levels, self._last, strict=False):
            if level.key != key:
                break
            shared += 1
        held = self.held(levels)
        on_path = self._on_path and len(levels) > _SHARED_TO_STACK
        stacked = on_path or max(shared, held) >= _SHARED_TO_STACK
        return stacked, held if stacked else 0

    def _remember(self, request: Request, kept: int, reply: Reply) -> None:
        if request.op is not Op.SOLVE:
            return
        levels = request.levels
        self._last = tuple(level.key for level in levels)
        self._on_path = kept > 0 and reply.held_levels > 0
        if not reply.held_levels:
            self._stack = []
            return
        kept_pushes = [push for push in self._stack if push[0] <= kept]
        new_pushes = [(end, levels[end - 1].key) for end in pushes(kept, len(levels))]
        self._stack = kept_pushes + new_pushes

    def _frame(self, request: Request, stacked: bool, kept: int) -> bytes:
        levels = request.levels
        document: dict[str, Any] = {
            "attempt_id": request.attempt_id,
            "op": request.op.value,
            "logic": request.logic,
            "timeout_ms": request.timeout_ms,
            "yielding": request.yielding,
            "stacked": stacked,
            "kept": kept,
            "base": levels[kept - 1].key if kept else "",
            "levels": [[level.key, level.declarations, level.assertion] for level in levels[kept:]],
            "symbols": [[symbol.name, symbol.sort, symbol.params] for symbol in request.symbols],
            "script": request.script,
        }
        try:
            return pack(document, self._limits.frame)
        except (Oversize, UnicodeEncodeError) as error:
            raise RequestRefused(f"the request cannot be framed: {error}") from error

    def _close(self) -> None:
        """Close all descriptors; under the guard, with no exchange under way."""
        if self._open:
            self._open = False
            with suppress(OSError):
                self._drain_stderr()
            forks.give_up(self._channel.fileno())
            self._channel.close()
            for fd in (self._stderr, self._pidfd, self._kill):
                os.close(fd)


class Helpers(Protocol):
    """The source of helpers of one engine: a fork server, or an object that starts one when it is needed."""

    spec: EngineSpec

    def spawn(self, deadline: float) -> Generation:
        """A helper that is ready to serve. Raises :class:`~smtspool.errors.InfrastructureError`."""


def _failed(kind: FailureKind, message: str) -> GenerationFailed:
    return GenerationFailed(kind, message)


def _readable(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(0))


def _reply(body: bytes) -> Reply:
    """The reply in a frame. Every member is checked, since a helper may send anything."""
    try:
        members = unpack(body)
    except UnicodeDecodeError as error:
        raise _failed(FailureKind.ENCODING, f"the reply is not UTF-8: {error}") from error
    except FrameError as error:
        raise _failed(FailureKind.GARBAGE, f"the reply is {error}") from error
    try:
        return Reply.from_wire(members)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _failed(FailureKind.GARBAGE, f"the reply is malformed: {error!r}") from error
