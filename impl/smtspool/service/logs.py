"""Log lines on stderr, for people or as JSON lines for machines; texts that a terminal can be shown."""

from __future__ import annotations

import json
import logging

__all__ = ["log_to_stderr", "plain"]

# What a line is about, where it is about something: given as ``extra`` to the logger.
SUBJECTS = ("query", "attempts")


def plain(text: str) -> str:
    """``text`` as one line, with what a terminal might obey written out: ``\\x1b``, ``\\n``.

    For names of files, and whatever else producers and engines choose.
    """
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text])


class _TextLines(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = plain(record.message)
        return super().formatMessage(record)


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


def log_to_stderr(form: str, level: int) -> None:
    """Send the log of this package to stderr; ``form`` is ``text`` or ``json``."""
    handler = logging.StreamHandler()
    text = _TextLines("%(asctime)s %(levelname)-7s %(threadName)s: %(message)s")
    handler.setFormatter(_JsonLines() if form == "json" else text)
    logger = logging.getLogger("smtspool")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
