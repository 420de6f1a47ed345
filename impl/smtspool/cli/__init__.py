"""The command line: parse arguments, call the service or the public API, print. It has no logic of its own.

``app`` has the table of all commands and what they share; each other module has the commands of one subject,
and is imported only when one of them is given.
"""

from .app import COMMANDS, Exit, app
from .main import main

__all__ = ["COMMANDS", "Exit", "app", "main"]
