"""Gates hold real threads and real processes, one step at a time, and report what goes another way."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.engine.gates import At, Dead, Gate, GateError, Idle, Nursery, Participant


class Thread:
    """A participant in this process, that runs ``steps`` when it is called."""

    def __init__(self, steps: Callable[[Gate], object], patience_s: float = 5.0) -> None:
        ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gate = Gate(self._theirs)
        self._thread = threading.Thread(target=self._live, args=(gate, steps))
        self._thread.start()
        self.participant = Participant("t", ours, None, patience_s=patience_s)

    def _live(self, gate: Gate, steps: Callable[[Gate], object]) -> None:
        with self._theirs:
            try:
                gate.serve({"go": lambda: steps(gate)})
            except SystemExit:
                return

    def close(self) -> None:
        self.participant.close()
        self._thread.join(5.0)
        assert not self._thread.is_alive()


@pytest.fixture
def thread() -> Iterator[Callable[..., Participant]]:
    made: list[Thread] = []

    def make(steps: Callable[[Gate], object], patience_s: float = 5.0) -> Participant:
        made.append(Thread(steps, patience_s))
        return made[-1].participant

    yield make
    for one in made:
        one.close()


def test_a_thread_stands_at_each_gate_until_it_is_released(thread: Callable[..., Participant]) -> None:
    done: list[str] = []

    def steps(gate: Gate) -> str:
        for name in ("First", "Second"):
            gate.before(name, {"n": len(done)})
            done.append(name)
            gate.after(name, {"n": len(done)}, "well", None)
        return "over"

    participant = thread(steps)
    assert participant.position == Idle(None)
    assert participant.call("go") == At("First", {"n": 0}) and done == []
    passed = participant.release()
    assert passed is not None and (passed.name, passed.outcome) == ("First", "well")
    assert participant.position == At("Second", {"n": 1}) and done == ["First"]
    participant.release()
    assert participant.position == Idle("over")


def test_a_failed_step_raises_what_the_environment_says(thread: Callable[..., Participant]) -> None:
    participant = thread(lambda gate: gate.before("Write", {}))
    participant.call("go")
    assert participant.release(fail="ENOSPC") is None
    assert participant.position == Idle(
        {"raised": "InjectedFault", "text": "[Errno 28] No space left on device"}
    )


def test_a_participant_that_blocks_is_named_with_its_step(thread: Callable[..., Participant]) -> None:
    hold = threading.Event()

    def steps(gate: Gate) -> None:
        gate.before("Wait", {})
        gate.after("Wait", {}, None, None)
        hold.wait(10.0)

    participant = thread(steps, patience_s=0.2)
    participant.call("go")
    with pytest.raises(GateError, match=r"blocked.*after Wait"):
        participant.release()
    hold.set()


def test_a_step_that_is_not_the_released_one_is_an_error(thread: Callable[..., Participant]) -> None:
    def steps(gate: Gate) -> None:
        gate.before("This", {})
        gate.after("That", {}, None, None)

    participant = thread(steps)
    participant.call("go")
    with pytest.raises(GateError, match="took That, released was This"):
        participant.release()


def test_a_step_without_its_report_is_an_error(thread: Callable[..., Participant]) -> None:
    participant = thread(lambda gate: gate.before("Mute", {}))
    participant.call("go")
    with pytest.raises(GateError, match="did not report"):
        participant.release()


def test_who_stands_nowhere_cannot_be_released(thread: Callable[..., Participant]) -> None:
    participant = thread(lambda gate: None)
    with pytest.raises(GateError, match="stands at no gate"):
        participant.release()
    with pytest.raises(GateError, match="cannot be killed"):
        participant.kill()


def test_a_process_is_killed_at_its_gate() -> None:
    with Nursery("tests.conformance.test_engine_gates:life") as nursery:
        first = nursery.spawn("one", {"folder": "/tmp"})
        assert first.call("go") == At("Step", {"folder": "/tmp"})
        pid = first.pid
        assert pid is not None and Path(f"/proc/{pid}").exists()
        first.kill()
        assert first.position == Dead() and not Path(f"/proc/{pid}/fd/0").exists()
        second = nursery.spawn("two", {"folder": "/"})
        assert second.pid != pid and second.call("go") == At("Step", {"folder": "/"})
        second.release()
        assert second.position == Idle(None)
        second.kill()


def test_a_process_that_ends_by_itself_is_dead() -> None:
    with Nursery("tests.conformance.test_engine_gates:short_life") as nursery:
        participant = nursery.spawn("one", {})
        participant.call("go")
        participant.release()
        assert participant.position == Dead()
        participant.close()


def life(gate: Gate, *, folder: str) -> None:
    """A process with one step."""

    def go() -> None:
        gate.before("Step", {"folder": folder})
        gate.after("Step", {"folder": folder}, None, None)

    gate.serve({"go": go})


def short_life(gate: Gate) -> None:
    """A process that ends in the middle of its work."""

    def go() -> None:
        gate.before("Last", {})
        gate.after("Last", {}, None, None)
        raise SystemExit

    gate.serve({"go": go})
