"""A process that registers, leases everything, says so, and waits to be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from smtspool.store import Store

with Store.open(Path(sys.argv[1])) as store, store.register() as owner:
    leases = store.claim(owner.name, 3600.0, 100)
    print(owner.name, len(leases), flush=True)
    sys.stdin.read()
