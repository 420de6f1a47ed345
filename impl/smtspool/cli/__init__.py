"""The command line: parse, call the service or the public API, print. No logic of its own.

``app`` holds what commands share and the table of all commands; each other module holds the commands of one
subject, and is imported when one of them is given.
"""

from .app import COMMANDS, Exit, app
from .main import main

__all__ = ["COMMANDS", "Exit", "app", "main"]
