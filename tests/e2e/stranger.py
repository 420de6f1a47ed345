"""Runs commands in this process as another user: ``stranger.py UID COMMANDS``, the commands as JSON.

Each is run once before as who we are, so that all modules are loaded, which the other user may not read.
Prints a JSON list of what they printed.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stdout

from smtspool import cli


def printed(words: list[str]) -> str:
    with redirect_stdout(io.StringIO()) as out:
        cli.app(words, standalone_mode=False)
    return out.getvalue()


user, commands = int(sys.argv[1]), json.loads(sys.argv[2])
for words in commands:
    printed(words)
if user != os.geteuid():
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
print(json.dumps([printed(words) for words in commands]))
