"""A real SIGKILL at every step and inside every write; then the next process converges (F305 §3)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from smtspool.actions import Step, observed_by
from smtspool.files import Directory
from smtspool.profile import Coordinator, build_candidate
from tests.profile.conftest import EAGER
from tests.profile.support import RUNTIME, STATE, Failing, document, saw, served
from tests.profile.support import kind as kind_of

RECOVERY = ("LoadState", "VerifyRuntime", "Replay")
PUBLISHING = ("Observe", "Build", "WriteArtifact", "WriteRuntime", "WriteState", "Switch")


class Killer:
    """Kills its process ahead of the step, or right behind it."""

    def __init__(self, step: str, *, behind: bool = False) -> None:
        self._step = step
        self._behind = behind

    def before(self, step: Step) -> None:
        if step.name == self._step and not self._behind:
            os.kill(os.getpid(), signal.SIGKILL)

    def after(self, step: Step) -> None:
        if step.name == self._step and self._behind:
            os.kill(os.getpid(), signal.SIGKILL)


class Deadly(Directory):
    """A directory in which the write of one file is the end: with the temporary file there, or renamed."""

    __slots__ = ("kind", "renamed")
    kind: str
    renamed: bool

    def child(self, name: str, *, create: bool = False) -> Directory:
        plain = super().child(name, create=create)
        child = Deadly(os.dup(plain.fd), plain.path)
        plain.close()
        child.kind, child.renamed = self.kind, self.renamed
        return child

    def replace(self, name: str, to: Directory, new_name: str) -> None:
        if kind_of(new_name) == self.kind and not self.renamed:
            os.kill(os.getpid(), signal.SIGKILL)
        super().replace(name, to, new_name)
        if kind_of(new_name) == self.kind:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(work: Callable[[], object]) -> bool:
    """Do ``work`` in a process of its own; whether it was killed at it. It must not fail otherwise."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def begin(folder: Path, restart: Callable[..., Coordinator]) -> None:
    first = restart()
    first.observe(document(saw(1)))
    first.publish()


def assert_converges(restart: Callable[..., Coordinator]) -> None:
    """Nothing unjustified is served, and one publication later all is clean and served."""
    again = restart()
    justified = served(build_candidate(again.records, EAGER).generation)
    assert served(again.serve()) in ((), justified)
    assert again.dirty or served(again.serve()) == justified
    again.publish(force=True)
    assert not again.dirty
    assert served(again.serve()) == justified
    assert justified
    last = restart()
    assert not last.dirty
    assert last.serve() == again.serve()
    assert last.records == again.records


@pytest.mark.parametrize("behind", [False, True], ids=["ahead", "behind"])
@pytest.mark.parametrize("step", RECOVERY + PUBLISHING)
def test_killed(
    step: str, behind: bool, folder: Path, disk: Failing, restart: Callable[..., Coordinator]
) -> None:
    begin(folder, restart)

    def go_on() -> None:
        with observed_by(Killer(step, behind=behind)):
            second = restart()
            second.observe(document(saw(2)))
            second.publish()

    assert killed(go_on)
    assert_converges(restart)


@pytest.mark.parametrize("renamed", [False, True], ids=["unnamed", "unsynced"])
@pytest.mark.parametrize("kind", ["artifact", RUNTIME, STATE])
def test_killed_inside_the_write_of(
    kind: str, renamed: bool, folder: Path, restart: Callable[..., Coordinator]
) -> None:
    begin(folder, restart)

    def go_on() -> None:
        with Directory.open(folder) as plain, Deadly(os.dup(plain.fd), str(folder)) as disk:
            disk.kind, disk.renamed = kind, renamed
            second = Coordinator(disk, policy=EAGER, window=8)
            second.observe(document(saw(2)))
            second.publish()

    assert killed(go_on)
    assert_converges(restart)


def test_killed_again_and_again_at_every_step_in_turn(
    folder: Path, restart: Callable[..., Coordinator]
) -> None:
    """Not every process comes to its step: where nothing is new, nothing is written."""
    begin(folder, restart)
    kills = 0
    for number, step in enumerate((*PUBLISHING, *reversed(PUBLISHING), *RECOVERY) * 2):

        def go_on(step: str = step, number: int = number) -> None:
            with observed_by(Killer(step, behind=number % 2 == 1)):
                one = restart()
                one.observe(document(saw(number % 3)))
                one.publish()

        kills += killed(go_on)
    assert kills > 20
    assert_converges(restart)
