from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from smtspool.spool import Spool
from tests.spool.support import Ledger

DEADLINE_S = 60


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def spool(root: Path) -> Iterator[Spool]:
    with Spool.open(root, create=True) as opened:
        yield opened


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


@pytest.fixture
def consumer(root: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts ``consumer.py`` on this spool; what still runs at the end is killed and reaped."""
    with ExitStack() as running:

        def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
            script = str(Path(__file__).with_name("consumer.py"))
            command = [sys.executable, "-W", "error", script, str(root), str(tmp_path / "ledger.sqlite")]
            child = subprocess.Popen(
                [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
            )
            running.enter_context(child)
            running.callback(child.kill)
            return child

        yield start
