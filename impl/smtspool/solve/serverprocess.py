"""The service's side of one fork server process: it asks for helpers and receives reports of their deaths.

:mod:`.control` has the messages, :mod:`.server` the process itself.
"""

from __future__ import annotations

import errno
import json
import math
import os
import select
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict

from smtspool import forks
from smtspool.errors import InfrastructureError

from . import control
from .control import Word
from .spec import EngineSpec, HelperLimits

__all__ = ["Launch", "ServerProcess"]

_STUCK_S = 5.0  # a fork server that has not given a helper for so long is replaced; one starts in 0.3 s
_LONGEST_POLL_S = 3600.0  # poll() counts milliseconds in an int
_OBITUARY_S = 1.0  # from the end of its control socket until a process has died
_COMPLAINT = 300  # characters of its last words in a message


def _shell(stack: int) -> tuple[str, ...]:
    """The start of a command that runs with a larger stack limit, which takes effect only at exec."""
    return "/bin/sh", "-c", 'ulimit -S -s "$0" 2>/dev/null; exec "$@"', str(stack // 1024)


class Launch:
    """A requested helper: the service's ends of channel and error pipe, its pid and pidfd, how it ended."""

    __slots__ = ("answered", "asked", "channel", "error", "exit", "pid", "pidfd", "stderr")

    def __init__(self, channel: socket.socket, stderr: int, asked: float) -> None:
        self.asked = asked
        self.channel = channel
        self.stderr = stderr
        self.pid = 0
        self.pidfd = -1
        self.answered = False
        self.error: OSError | None = None
        self.exit: str | None = None

    @property
    def dead(self) -> bool:
        poller = select.poll()
        poller.register(self.pidfd, select.POLLIN)
        return bool(poller.poll(0))

    def close(self) -> None:
        forks.give_up(self.channel.fileno())
        self.channel.close()
        os.close(self.stderr)
        if self.pidfd >= 0:
            os.close(self.pidfd)


class ServerProcess:
    """One process of the fork server.

    Threads that wait for different messages share one socket: one of them reads at a time, delivers what it
    reads, and wakes the others. The only lock is ``_changed``.
    """

    def __init__(self, spec: EngineSpec, limits: HelperLimits, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed = threading.Condition()  # protects everything below
        self._reading = False
        self._ended = False
        self.gave = False  # a helper, at least once
        self._ahead: deque[Launch] = deque()  # asked for and not yet taken
        self._unanswered: deque[Launch] = deque()
        self._helpers: dict[int, Launch] = {}
        self._printed = bytearray()
        try:
            self._start(spec, limits)
        except OSError as error:
            raise InfrastructureError(f"no fork server of {spec.name}: {error}") from error

    def _start(self, spec: EngineSpec, limits: HelperLimits) -> None:
        settings = json.dumps({"spec": asdict(spec), "limits": asdict(limits)})
        with forks.held_off(), ExitStack() as undo, ExitStack() as theirs:
            self._control, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undo.callback(self._control.close)
            theirs.callback(channel.close)
            self._control.setblocking(False)
            # Nothing is ever written to the lifeline. When the service dies, in any way, its end of file
            # makes the kernel kill each helper.
            lifeline, self._lifeline = os.pipe2(os.O_CLOEXEC)
            undo.callback(os.close, self._lifeline)
            theirs.callback(os.close, lifeline)
            # Output before the engine is imported tells what is wrong with it. The pipe is read when the
            # process has ended; output that it cannot hold is dropped, so that the process never waits.
            self._complaints, stderr = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            undo.callback(os.close, self._complaints)
            theirs.callback(os.close, stderr)
            arguments = [str(channel.fileno()), str(lifeline), settings]
            program = [sys.executable, "-P", "-m", "smtspool.solve.server", *arguments]
            self._popen = subprocess.Popen(
                [*_shell(limits.stack), *program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                close_fds=True,
                pass_fds=(channel.fileno(), lifeline),
                start_new_session=True,
            )
            for descriptor in (self._control.fileno(), self._lifeline):
                forks.keep(descriptor)
            undo.pop_all()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return not self._ended and self._popen.poll() is None

    @property
    def last_words(self) -> str:
        """The last line that the process printed before it ended, or how it ended."""
        with self._changed:
            if self._lifeline >= 0:
                self._hear_complaints()
            printed = self._printed.decode(errors="replace").rstrip()
        if printed:
            return printed.rpartition("\n")[2].strip()[:_COMPLAINT]
        try:
            code = self._popen.wait(_OBITUARY_S)
        except subprocess.TimeoutExpired:
            return "it has closed its socket and still runs"
        return f"exit {code}" if code >= 0 else f"signal {-code}"

    def _hear_complaints(self) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(self._complaints, select.PIPE_BUF):
                self._printed += chunk

    @property
    def has_launches(self) -> bool:
        return bool(self._ahead)

    def launch_ahead(self) -> None:
        """Ask for the next helper without waiting. An error is raised when it is taken."""
        with self._changed, suppress(InfrastructureError):
            self._ahead.append(self._launch())

    def take(self, deadline: float) -> Launch:
        """A launched helper, asking for one if none is on its way."""
        with self._changed:
            launch = self._ahead.popleft() if self._ahead else self._launch()
        if not self._wait(lambda: launch.answered or self._ended, deadline):
            with self._changed:
                self._ahead.appendleft(launch)  # its answer will come in its turn
            if self._clock() - launch.asked > _STUCK_S:
                self._popen.kill()  # it may be stopped and never answer; the next spawn starts another one
            raise InfrastructureError("the fork server gave no helper before the deadline")
        if launch.pidfd < 0:
            launch.close()
            why = launch.error or f"the fork server has ended ({self.last_words})"
            raise InfrastructureError(f"no helper process: {why}") from launch.error
        return launch

    def wait_exit(self, launch: Launch, deadline: float) -> str | None:
        """How the helper ended; None if it has not by then, or died with the fork server."""
        self._wait(lambda: launch.exit is not None or self._ended, deadline)
        return launch.exit

    def close(self, deadline: float) -> None:
        """Close the control socket, at which the server kills and reaps its helpers and ends."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        try:
            self._popen.wait(max(0.0, deadline - self._clock()))
        except subprocess.TimeoutExpired:
            self._popen.kill()  # stopped or stuck; its helpers die with it
            self._popen.wait()
        with self._changed:
            self._changed.wait_for(lambda: not self._reading)
            if not self._ended:
                self._receive()
                self._end()
            while self._ahead:
                self._ahead.popleft().close()
            if self._lifeline >= 0:
                self._hear_complaints()
                for descriptor in (self._control.fileno(), self._lifeline):
                    forks.give_up(descriptor)
                os.close(self._lifeline)
                os.close(self._complaints)
                self._lifeline = -1
            self._control.close()

    def _launch(self) -> Launch:
        """Ask for a helper; under the lock, so that answers come in the order of requests.

        The launch is queued before it is sent, since a signal may unwind this thread in between, and an
        answer needs its entry in the queue.
        """
        if self._ended:
            raise InfrastructureError("no helper process: the fork server has ended")
        try:
            with forks.held_off(), ExitStack() as undo, ExitStack() as sent:
                channel, theirs = socket.socketpair()
                undo.callback(channel.close)
                sent.callback(theirs.close)
                stderr, stderr_end = os.pipe2(os.O_CLOEXEC)
                undo.callback(os.close, stderr)
                sent.callback(os.close, stderr_end)
                channel.setblocking(False)
                os.set_blocking(stderr, False)
                launch = Launch(channel, stderr, self._clock())
                self._unanswered.append(launch)
                try:
                    control.send(self._control, Word.SPAWN, fds=(theirs.fileno(), stderr_end))
                except OSError as error:
                    self._unanswered.pop()
                    if isinstance(error, BrokenPipeError):
                        self._receive()  # the server is ending; read its last messages
                    raise
                forks.keep(channel.fileno())
                undo.pop_all()
        except OSError as error:
            raise InfrastructureError(f"a helper cannot be asked for: {error}") from error
        return launch

    def _wait(self, done: Callable[[], bool], deadline: float) -> bool:
        with self._changed:
            while True:
                if not self._reading and not self._ended:
                    self._receive()
                if done():
                    return True
                remaining = deadline - self._clock()
                if remaining <= 0:
                    return False
                if self._reading:
                    self._changed.wait(remaining)
                    continue
                self._reading = True
                self._changed.release()
                try:
                    poller = select.poll()
                    poller.register(self._control, select.POLLIN)
                    poller.poll(math.ceil(min(remaining, _LONGEST_POLL_S) * 1000))
                finally:
                    self._changed.acquire()
                    self._reading = False
                    self._changed.notify_all()

    def _receive(self) -> None:
        """Read and deliver the messages that have arrived, under the lock."""
        while True:
            try:
                message = control.receive(self._control)
            except BlockingIOError:
                return
            except ConnectionError:
                message = None
            self._changed.notify_all()
            if message is None:
                self._end()
                return
            word, pid, value, fds = message
            if word is Word.EXITED:
                launch = self._helpers.pop(pid, None)
                if launch is not None:  # it is None for a helper that came without a pidfd
                    launch.exit = f"signal {-value}" if value < 0 else f"exit {value}"
                continue
            launch = self._unanswered.popleft()
            launch.answered = True
            if launch.channel.fileno() < 0:  # its caller was unwound; the helper ends as its channel closes
                for fd in fds:
                    os.close(fd)
                continue
            if pid:
                self.gave = True
                self._helpers[pid] = launch
                launch.pid = pid
            if fds:
                launch.pidfd = fds[0]
            else:  # the fork failed, or no descriptor is left; that helper ends when its channel closes
                launch.error = OSError(value or errno.EMFILE, os.strerror(value or errno.EMFILE))

    def _end(self) -> None:
        self._ended = True
        self._unanswered.clear()
        self._helpers.clear()
        self._changed.notify_all()
