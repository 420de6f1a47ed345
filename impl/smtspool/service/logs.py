"""Log lines on stderr, as text or as JSON lines; and texts made safe for a terminal.

A thread that logs never waits for the reader of stderr. Lines go through a bounded queue to one thread, which
may wait for ever. While the queue is full, lines are dropped and counted; the count is logged as soon as
stderr is read again.
"""

from __future__ import annotations

import json
import logging
import os
import select
import threading
from collections import deque
from contextlib import suppress
from typing import Any

from smtspool import threads

__all__ = ["complain", "dropped_lines", "flush_log", "log_to_stderr", "plain"]

LOGGER = logging.getLogger("smtspool")

# Keys that may be given as ``extra`` to the logger, to say what a line is about.
SUBJECTS = ("query", "attempts")
STDERR = 2
# The most lines that are held for a slow reader.
LINES_HELD = 4096
# How long a process that ends waits for its last lines to be read.
PATIENCE_SECONDS = 0.5


def plain(text: str) -> str:
    """``text`` as one line, with control characters escaped, which a terminal might obey: ``\\x1b``.

    For names of files and other texts that producers and engines choose.
    """
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text])


class _TextLines(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = plain(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        return "\n".join(map(plain, super().formatException(ei).split("\n")))


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        members: dict[str, object] = {
            "time": record.created,
            "level": record.levelname.lower(),
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        members.update((name, record.__dict__[name]) for name in SUBJECTS if name in record.__dict__)
        if record.exc_info:
            members["traceback"] = self.formatException(record.exc_info)
        return json.dumps(members)


class StderrLog(logging.Handler):
    """Lines to descriptor 2, from a thread of its own; :meth:`emit` never waits for it.

    The thread writes to the descriptor and not to ``sys.stderr``: a daemon thread that holds the lock of a
    stream keeps the interpreter from ending. ``_changed`` guards what follows it and is never held while
    anything is written.
    """

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._idle = True
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        with threads.wanted():
            self._thread.start()

    @property
    def dropped(self) -> int:
        """How many lines were dropped."""
        with self._changed:
            return self._dropped

    def emit(self, record: logging.LogRecord) -> None:
        line = self._line(record)
        with self._changed:
            if len(self._lines) >= LINES_HELD:
                self._dropped += 1
                return
            self._lines.append(line)
            self._idle = False
            self._changed.notify_all()

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode("utf-8", "backslashreplace")

    def _write_all(self) -> None:
        told = 0
        while (line := self._next()) is not None:
            whole = _write(line)
            with self._changed:
                self._dropped += not whole
                self._changed.notify_all()
                dropped = self._dropped
            if whole and dropped > told and _write(self._line(_loss(dropped - told))):
                told = dropped

    def _next(self) -> bytes | None:
        """Wait for the next line to write; None at the end."""
        with self._changed:
            self._idle = not self._lines
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._lines or self._closed)
            return self._lines.popleft() if self._lines else None

    def flush(self) -> None:
        """Wait until all is written, or until nothing was read for PATIENCE_SECONDS, so that a process can
        end although stderr is not read."""
        with self._changed:
            while not self._idle:
                if not self._changed.wait(PATIENCE_SECONDS):
                    return

    def close(self) -> None:
        """Write as :meth:`flush` does, and end the thread unless it waits for a reader."""
        self.flush()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(PATIENCE_SECONDS)
        super().close()


def _loss(count: int) -> logging.LogRecord:
    message = f"{count} log lines are lost: nobody read them in time"
    return logging.LogRecord(LOGGER.name, logging.WARNING, __file__, 0, message, None, None)


def _write(line: bytes) -> bool:
    """Write all of it to stderr, however long that takes; False if it cannot be done."""
    poller = select.poll()
    poller.register(STDERR, select.POLLOUT)
    try:
        while line:
            poller.poll()  # needed because another process that shares stderr may have made it non-blocking
            with suppress(BlockingIOError):
                line = line[os.write(STDERR, line) :]
    except OSError:
        return False  # closed, or a terminal that is gone
    return True


def log_to_stderr(form: str, level: int) -> StderrLog:
    """Send the log of this package to stderr; ``form`` is ``text`` or ``json``.

    The interpreter closes what is returned when it ends.
    """
    handler = StderrLog()
    text = _TextLines("%(asctime)s %(levelname)-7s %(threadName)s: %(message)s")
    handler.setFormatter(_JsonLines() if form == "json" else text)
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level)
    LOGGER.propagate = False
    return handler


def dropped_lines() -> int:
    """How many lines of this process's log are lost."""
    return sum(handler.dropped for handler in LOGGER.handlers if isinstance(handler, StderrLog))


def flush_log() -> None:
    """For code that ends the process without the interpreter: see :meth:`StderrLog.flush`."""
    for handler in LOGGER.handlers:
        handler.flush()


def complain(message: str) -> None:
    """Write a last sentence to stderr, behind the log; given up after PATIENCE_SECONDS if it is not read."""
    flush_log()
    poller = select.poll()
    poller.register(STDERR, select.POLLOUT)
    if poller.poll(PATIENCE_SECONDS * 1e3):  # a pipe that has room has room for so few words
        with suppress(OSError):
            os.write(STDERR, f"smtspool: {plain(message)}\n".encode("utf-8", "backslashreplace"))
