"""A program with a service of its own that forks: ``forking_program.py CAMPAIGN ENGINE``.

It forks when it is told to, by a line on standard input. The child tells its pid, leaves the block of the
service in order, says so and lives for as long as standard input is open. The parent waits to be killed.
"""

import os
import signal
import sys
from pathlib import Path

from smtspool.service import Campaign, Service, Settings

campaign, engine = Campaign.open(Path(sys.argv[1])), sys.argv[2]
with Service(campaign, Settings(jobs=1, engines=(engine,), timeout_ms=1_000_000)):
    sys.stdin.readline()
    if os.fork():
        signal.pause()  # killed by the test
    print(os.getpid(), flush=True)
print("left in order", flush=True)
sys.stdin.read()
