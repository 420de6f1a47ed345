"""Log lines on stderr, for people or as JSON lines for machines."""

from __future__ import annotations

import json
import logging

__all__ = ["log_to_stderr"]

# What a line is about, where it is about something: given as ``extra`` to the logger.
SUBJECTS = ("query", "attempts")


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
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(threadName)s: %(message)s")
    handler.setFormatter(_JsonLines() if form == "json" else text)
    logger = logging.getLogger("smtspool")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
