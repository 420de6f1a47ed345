"""Any SMT-LIB 2 command, behind the same helper as the bundled engines."""

from __future__ import annotations

import errno
import itertools
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import IO

from smtspool.query import Status

from ..processes import Children, die_with_parent
from ..spec import EngineSpec
from .base import Engine, EngineDied, EngineError, Session, WantedSymbol
from .sexpr import items
from .text import TextSession, definitions, hexadecimal

__all__ = ["External"]

_CHUNK = 64 * 1024
_REFUSED = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # the machine may allow it later
_ENDING_S = 1.0  # from the end of a command's output until it has exited
_SHELL_SIGNAL = 128  # a shell adds the number of the signal that ended its command
_COMPLAINT = 500  # characters quoted of what an engine printed
_OUTPUT = 64 << 20  # bytes that one answer may have


class External(Engine):
    """Starts the command for each session; an interactive one ahead of need."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec
        self._options = "".join(f"(set-option {key} {value})" for key, value in spec.options)
        self._ready: Command | None = None

    def open(self, *, incremental: bool) -> Session:
        preamble = f"(set-option :produce-models true){self._options}"
        assert self._spec.command is not None
        if not self._spec.interactive:
            return FileSession(self._spec.command, preamble)
        command, self._ready = self._ready, None
        if command is not None and command.has_exited(0.0):  # before any query was asked
            command.end()
            command = None
        command = command or Command(self._spec.command, subprocess.PIPE)
        return InteractiveSession(command, preamble, self)

    def start_ahead(self, words: Sequence[str]) -> None:
        """Start the process of the next session. If that fails, opening the session raises the error."""
        with suppress(EngineError, EngineDied):
            self._ready = Command(words, subprocess.PIPE)


class Command:
    """A running command and the bytes it has printed."""

    def __init__(self, words: Sequence[str], stdin: int) -> None:
        self.words = words
        parent = os.getpid()
        try:
            self._popen = subprocess.Popen(
                list(words),
                stdin=stdin,
                stdout=subprocess.PIPE,
                bufsize=0,
                preexec_fn=lambda: die_with_parent(parent),  # a helper has one thread
            )
        except OSError as error:
            kind = EngineDied if error.errno in _REFUSED else EngineError
            raise kind(f"{words[0]!r} cannot be started: {error}") from error
        self._pidfd = os.pidfd_open(self._popen.pid)
        self.printed = bytearray()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)

    def converse(self, text: bytes, until: bytes | None, end: float | None) -> None:
        """Write ``text``, collect output until it has ``until``, or without one until the end.

        Raises :class:`EngineError` if it ends early or prints too much, :class:`EngineDied` if a signal ended
        it, ``TimeoutError`` at ``end``.
        """
        unsent = memoryview(text)
        listening = True
        poller = select.poll()
        poller.register(_fd(self._popen.stdout), select.POLLIN)
        poller.register(self._pidfd, select.POLLIN)
        if unsent:
            poller.register(_fd(self._popen.stdin), select.POLLOUT)
        while True:
            remaining = None if end is None else end - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise TimeoutError
            ready = dict(poller.poll(None if remaining is None else int(remaining * 1000) + 1))
            if unsent and _fd(self._popen.stdin) in ready:
                with suppress(BlockingIOError, BrokenPipeError):
                    unsent = unsent[os.write(_fd(self._popen.stdin), unsent) :]
                if not unsent:
                    poller.unregister(_fd(self._popen.stdin))
            ended = self._pidfd in ready
            seen = len(self.printed)
            if listening and not self.read():
                listening = False
                poller.unregister(_fd(self._popen.stdout))
                ended = ended or until is not None
            if until is not None and self.printed.find(until, max(0, seen - len(until))) >= 0:
                return
            if ended:
                if until is None:
                    return
                raise self.ended_early()

    def read(self) -> bool:
        """Take what was printed; False at its end."""
        while True:
            try:
                chunk = os.read(_fd(self._popen.stdout), _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.printed += chunk
            if len(self.printed) > _OUTPUT:
                raise EngineError(f"the command printed more than {_OUTPUT} bytes")

    @property
    def ended(self) -> bool:
        return self._pidfd < 0

    def has_exited(self, within_s: float) -> bool:
        """Whether the command ends by itself within this time."""
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(int(within_s * 1000)))

    def ended_early(self) -> EngineError | EngineDied:
        """The error for a command that ended before its answer was complete."""
        killed_by_us = self.ended or not self.has_exited(_ENDING_S)
        how = self.end()
        if self.death is None or killed_by_us:
            return EngineError(f"the command ended early: {how}")
        return self.death

    @property
    def death(self) -> EngineDied | None:
        """The error for a command that a signal ended, as kernel or shell report; None for others."""
        code = self._popen.returncode
        if 0 <= code <= _SHELL_SIGNAL:
            return None
        signal_number = -code if code < 0 else code - _SHELL_SIGNAL
        return EngineDied(f"{self.words[0]!r} was ended by signal {signal_number}")

    def end(self) -> str:
        """Kill the command and all its descendants; returns how it ended. Idempotent."""
        if not self.ended:
            self._popen.kill()
            self._popen.wait()
            os.close(self._pidfd)
            self._pidfd = -1
            for pipe in (self._popen.stdin, self._popen.stdout):
                if pipe is not None:
                    pipe.close()
            with closing(Children()) as children:
                while orphans := children():  # the helper is the subreaper of all it starts
                    for pid in orphans:
                        os.kill(pid, signal.SIGKILL)
                        os.waitpid(pid, 0)
        code = self._popen.returncode
        return f"signal {-code}" if code < 0 else f"exit {code}"


class InteractiveSession(TextSession):
    """Commands go in, text comes out; an ``echo`` after them marks where their text ends."""

    def __init__(self, command: Command, preamble: str, engine: External) -> None:
        self._command = command
        self._engine = engine
        self._marks = itertools.count(1)
        self._end: float | None = None  # of the check under way
        self.run(f"(set-option :print-success false){preamble}")  # "unsupported" is accepted here

    def run(self, commands: str) -> str:
        command = self._command
        if command.ended or not command.read():
            raise command.ended_early()
        if command.printed:
            raise EngineError(f"text that nobody asked for: {bytes(command.printed[:_COMPLAINT])!r}")
        mark = f"smtspool-{next(self._marks)}-done"
        command.converse(f'{commands}\n(echo "{mark}")\n'.encode(), mark.encode(), self._end)
        printed, command.printed = command.printed, bytearray()
        text, _, after = _decoded(printed).partition(mark)
        if after.strip().strip('"'):
            raise EngineError(f"text that nobody asked for: {after[:_COMPLAINT]!r}")
        text = text.removesuffix('"')
        if text.lstrip().startswith("(error"):
            raise EngineError(text.strip()[:_COMPLAINT])
        return text

    @property
    def ended(self) -> bool:
        return self._command.ended

    def check(self, timeout_ms: int) -> tuple[Status, str | None]:
        self._end = time.monotonic() + timeout_ms / 1000
        try:
            return super().check(timeout_ms)
        except TimeoutError:
            self._command.end()
            return Status.UNKNOWN, "timeout"
        finally:
            self._end = None

    def close(self) -> None:
        self._command.end()
        self._engine.start_ahead(self._command.words)


class FileSession(TextSession):
    """Runs the command once for each check. The stack is kept here as text and written to an anonymous file,
    which vanishes if all processes are killed."""

    def __init__(self, words: Sequence[str], preamble: str) -> None:
        self._words = words
        self._script = [preamble]
        self._pushes: list[int] = []  # how long the script was at each
        self._model = ""

    def load(self, commands: str) -> None:
        self._script.append(commands)

    def push(self) -> None:
        self._pushes.append(len(self._script))

    def pop(self) -> None:
        del self._script[self._pushes.pop() :]

    def check(self, timeout_ms: int) -> tuple[Status, str | None]:
        script = "\n".join([*self._script, "(check-sat)", "(get-model)", "(exit)", ""])
        query = os.memfd_create("query.smt2")
        try:
            os.writev(query, [script.encode()])
            path = f"/proc/{os.getpid()}/fd/{query}"
            command = Command([word.replace("{query}", path) for word in self._words], subprocess.DEVNULL)
            try:
                command.converse(b"", None, time.monotonic() + timeout_ms / 1000)
            except TimeoutError:
                command.end()
                return Status.UNKNOWN, "timeout"
            except BaseException:
                command.end()
                raise
            how = command.end()
            if command.death is not None:
                raise command.death
            return self._read(_decoded(command.printed), how)
        finally:
            os.close(query)

    def _read(self, printed: str, how: str) -> tuple[Status, str | None]:
        """The status by the first word; an error if the rest of the output does not fit that word."""
        word, _, rest = printed.strip().partition("\n")
        rest = rest.strip()
        if word == "sat" and how == "exit 0" and rest.startswith("("):
            self._model = rest
            return Status.SAT, None
        # After unsat there is no model; some commands report that as an error, some also by their exit code.
        if word == "unsat" and how.startswith("exit") and (not rest or rest.startswith("(error")):
            return Status.UNSAT, None
        if word in ("unknown", "timeout"):
            return Status.UNKNOWN, word
        raise EngineError(f"the command ended with {how} and printed {printed[:_COMPLAINT]!r}")

    def values(self, wanted: Sequence[WantedSymbol]) -> dict[str, str]:
        model = definitions(self._model)
        found = {symbol.name: model[symbol.name] for symbol in wanted if symbol.name in model}
        return {
            symbol.name: hexadecimal(found[symbol.name] if symbol.params else items(found[symbol.name])[-1])
            for symbol in wanted
            if symbol.name in found
        }


def _fd(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()


def _decoded(printed: bytes | bytearray) -> str:
    try:
        return printed.decode()
    except UnicodeDecodeError as error:
        raise EngineError(f"the command printed what is not UTF-8: {error}") from error
