"""The process of a command: signals unwind it, and every error becomes a sentence and an exit code."""

from __future__ import annotations

import io
import signal
import sys
import traceback
from types import FrameType

from smtspool import service
from smtspool.errors import InfrastructureError, SmtspoolError

from .app import Exit, app

__all__ = ["main"]


def main() -> None:
    """Run a command; every error becomes a sentence on stderr and an exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    if isinstance(sys.stdout, io.TextIOWrapper):  # its encoding may lack characters of names and symbols
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except SmtspoolError as error:
        infrastructure = isinstance(error, InfrastructureError)
        _exit(str(error), Exit.INFRASTRUCTURE if infrastructure else Exit.MISUSE)
    except OSError as error:
        _exit(str(error), Exit.INFRASTRUCTURE)
    except MemoryError:
        _exit(
            "the machine gives this process no more memory: raise the limit of its address space (ulimit -v) "
            "or free some",
            Exit.INFRASTRUCTURE,
        )
    except Exception as error:  # noqa: BLE001 - the last boundary of the process: reported, never swallowed
        if _of_database(error):
            _exit(str(error), Exit.INFRASTRUCTURE)
        traceback.print_exc()
        service.leave_if_unwinding(error)
        _exit("a defect of smtspool; please report it with the lines above", Exit.DEFECT)


def _of_database(error: Exception) -> bool:
    """Whether SQLite raised it. The module is not imported here, since some commands need no store."""
    sqlite3 = sys.modules.get("sqlite3")
    return sqlite3 is not None and isinstance(error, sqlite3.Error)


def _leave(number: int, frame: FrameType | None) -> None:
    """At the first signal unwind, which removes temporary folders and helpers; the second one kills."""
    for again in (signal.SIGINT, signal.SIGTERM):
        signal.signal(again, signal.SIG_DFL)
    sys.exit(128 + number)


def _exit(message: str, code: Exit) -> None:
    service.complain(message)
    sys.exit(code)
