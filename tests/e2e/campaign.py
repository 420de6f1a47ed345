"""What the end-to-end tests share: the real command, and a way to find every process it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from smtspool import sample
from smtspool.query import parse_envelope
from smtspool.service import Campaign
from smtspool.spool import Spool
from smtspool.store import Counts, Store
from tests.service.support import PATIENCE_S, until

COMMAND = str(Path(sys.executable).with_name("smtspool"))
MARK = "E2E_RUN"  # inherited by everything a command starts
GONE_WITHIN_S = 10.0


class Place:
    """A folder, the command line at work in it, and every process that comes of it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.root = folder / "campaign"
        self.mark = uuid.uuid4().hex
        self._stack = stack

    # -- commands ---------------------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        base = {name: value for name, value in os.environ.items() if not name.startswith("SMTSPOOL_")}
        # Two engines will do: one to answer, one to verify.
        engines = {"SMTSPOOL_ENGINES": "bitwuzla,z3"}
        return base | {MARK: self.mark, "PYTHONWARNINGS": "error"} | engines | more

    def run(
        self, *words: str | Path, code: int | None = 0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``smtspool words...`` to its end and expect its exit code (None: whatever it is)."""
        done = subprocess.run(
            [COMMAND, *map(str, words)],
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )
        assert code in (None, done.returncode), f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def documents(self, *words: str | Path, code: int | None = 0, **environment: str) -> list[dict[str, Any]]:
        """The JSON lines that a command prints."""
        printed = self.run(*words, code=code, **environment).stdout
        return [json.loads(line) for line in printed.splitlines()]

    def start(self, *words: str | Path, **environment: str) -> subprocess.Popen[str]:
        """Start ``smtspool words...``; what still runs at the end of the test is killed."""
        return self.launch([COMMAND, *map(str, words)], **environment)

    def launch(self, command: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        """Start any command in this place, as :meth:`start` does."""
        child = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.enter_context(child)
        self._stack.callback(child.kill)
        return child

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    # -- processes --------------------------------------------------------------------------------------

    def processes(self) -> list[int]:
        """Every living process that a command of this place has started, directly or not."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with suppress(OSError):
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
        return found

    def assert_no_process_left(self) -> None:
        until(lambda: not self.processes(), "the end of all processes", GONE_WITHIN_S)

    # -- the campaign -----------------------------------------------------------------------------------

    def create(self, *scripts: tuple[str, str | bytes]) -> Campaign:
        """``init``, and each (name, text) in the spool."""
        campaign = Campaign.create(self.root)
        with Spool.open(campaign.spool) as spool:
            spool.submit_many(
                (name, text.encode() if isinstance(text, str) else text) for name, text in scripts
            )
        return campaign

    def counts(self) -> Counts:
        with Store.open(self.root / "store") as store:
            return store.counts()

    def counters(self) -> dict[str, int | float]:
        with Store.open(self.root / "store") as store:
            return store.counters()

    def answers(self) -> dict[str, str]:
        """Query id to status; every query has at most one answer."""
        with Store.open(self.root / "store") as store:
            found = [(result.query_id, result.answer) for result in store.results()]
        assert len({identity for identity, _ in found}) == len(found)
        for identity, answer in found:
            if answer.status == "sat":
                assert answer.verified_by not in (None, answer.engine), identity
        return {identity: answer.status.value for identity, answer in found}

    def in_spool(self, folder: str) -> set[str]:
        return {path.name for path in (self.root / "spool" / folder).iterdir()}

    def assert_in_order(self, asked: Sequence[tuple[str, str]], expected: dict[str, str]) -> None:
        """Every query answered once and as expected, every file accepted, every result published."""
        assert self.answers() == expected
        assert self.in_spool("accepted") == {name for name, _ in asked}
        assert self.in_spool("incoming") == self.in_spool("rejected") == set()
        published = {path.stem for path in (self.root / "out" / "results").glob("*.json")}
        assert published == set(expected)
        assert self.run("fsck", self.root).stdout == "clean\n"
        self.assert_no_process_left()


@contextmanager
def placed(folder: Path) -> Iterator[Place]:
    """A place, and after the block no process of it is left, killed if it must be."""
    with ExitStack() as stack:
        place = Place(folder, stack)
        try:
            yield place
        finally:
            for pid in place.processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def sampled(*programs: str) -> list[tuple[str, str]]:
    """(file name, envelope text) of the sample campaign, of some of its programs only."""
    return [
        (name, json.dumps(envelope))
        for name, envelope in sample.campaign()
        if not programs or envelope["metadata"]["program"] in programs
    ]


def identities(asked: Sequence[tuple[str, str]]) -> set[str]:
    return {parse_envelope(json.loads(text)).id for _, text in asked}
