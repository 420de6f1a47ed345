"""The fork server's own process: ``python -m smtspool.solve.server CONTROL LIFELINE SETTINGS``.

Single-threaded from start to end, so that a fork copies no lock that another thread holds. It imports one
engine, then forks a helper for each ``SPAWN`` and reaps what dies. It is the subreaper of all below: when a
helper dies, whatever of its group and of its other descendants is left is killed and reaped too, and only
then is the death reported.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from . import control, helper
from .control import Word
from .engines import Engine, load_engine, warm_up
from .processes import Children, become_subreaper
from .spec import EngineSpec, HelperLimits


class Server:
    def __init__(self, channel: socket.socket, lifeline: int, engine: Engine, limits: HelperLimits) -> None:
        self._control = channel
        self._lifeline = lifeline
        self._engine = engine
        self._limits = limits
        self._pid = os.getpid()
        self._children = Children()
        self._helpers: set[int] = set()
        self._dead: list[tuple[int, int]] = []  # reaped, not yet reported: (pid, exit code or minus signal)
        self._wake, wake_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noted)

    def serve(self) -> None:
        """Work until the service closes the control socket or dies; then kill all descendants."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self._wake in ready:
                with suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self._reap()
            if self._control.fileno() in ready and not self._obey():
                self._end()
                return

    def _obey(self) -> bool:
        """Handle one message of the service; False at the end."""
        try:
            message = control.receive(self._control)
            if message is None:
                return False
            self._spawn(message[-1])
        except (BrokenPipeError, ConnectionResetError):  # the service was killed
            return False
        return True

    def _spawn(self, fds: Sequence[int]) -> None:
        try:
            if len(fds) != 2:
                raise OSError(errno.EMFILE, "descriptors were lost on the way")
            pid = self._fork(*fds)
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            control.send(self._control, Word.SPAWNED, 0, error.errno or 0)
        else:
            try:
                control.send(self._control, Word.SPAWNED, pid, fds=[pidfd])
            finally:
                os.close(pidfd)
        finally:
            for fd in fds:
                os.close(fd)

    def _fork(self, channel: int, stderr: int) -> int:
        pid = os.fork()
        if pid == 0:
            helper.main(self._engine, self._limits, channel, stderr, self._lifeline, parent=self._pid)
        self._helpers.add(pid)
        return pid

    def _reap(self) -> None:
        while (pid := _first_dead()) is not None:
            if pid in self._helpers:
                # The group id cannot be reused while the leader is not reaped.
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if pid in self._helpers:
                self._helpers.discard(pid)
                self._dead.append((pid, os.waitstatus_to_exitcode(status)))
        if self._dead and not self._kill_orphans():
            for pid, code in self._dead:
                with suppress(OSError):  # the service has ended; serve() will notice
                    control.send(self._control, Word.EXITED, pid, code)
            self._dead.clear()

    def _kill_orphans(self) -> bool:
        """Kill processes that dead helpers left; True while there are any. A living helper adopts its own."""
        orphans = self._children() - self._helpers
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
        return bool(orphans)

    def _end(self) -> None:
        """Kill and reap all descendants."""
        signal.set_wakeup_fd(-1)
        while alive := self._children():
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _first_dead() -> int | None:
    """A child that has died and is not reaped yet."""
    try:
        dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return None
    return None if dead is None else dead.si_pid


def _noted(_signal: int, _frame: FrameType | None) -> None:
    """The handler of SIGCHLD does nothing: the wake-up descriptor ends the poll."""


def main(arguments: list[str]) -> None:
    settings = json.loads(arguments[2])
    limits = HelperLimits(**settings["limits"])
    lifeline = int(arguments[1])
    os.set_inheritable(lifeline, False)
    with socket.socket(fileno=int(arguments[0])) as channel:
        channel.set_inheritable(False)
        become_subreaper()
        spec = EngineSpec.from_json(settings["spec"])
        engine = load_engine(spec)
        if spec.command is None:
            warm_up(engine)
        gc.collect()
        gc.freeze()  # helpers share these pages; a collection in one would copy them
        Server(channel, lifeline, engine, limits).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
