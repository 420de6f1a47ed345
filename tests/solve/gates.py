"""Stop a thread at an exact step of the protocol, look around, let it go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from smtspool.actions import Step, observed_by

PATIENCE_S = 20.0
T = TypeVar("T")


class Gate:
    """Holds the first thread that comes to the step ``name`` with these parameters."""

    def __init__(self, name: str, params: dict[str, object]) -> None:
        self.name = name
        self._params = params
        self._reached = threading.Event()
        self._open = threading.Event()
        self._used = False

    def reached(self) -> None:
        """Wait until the thread stands here."""
        assert self._reached.wait(PATIENCE_S), f"nobody came to {self.name}"

    def open(self) -> None:
        self._open.set()

    def takes(self, step: Step) -> bool:
        if self._used or step.name != self.name:
            return False
        self._used = all(step.params.get(key) == value for key, value in self._params.items())
        return self._used

    def hold(self) -> None:
        self._reached.set()
        assert self._open.wait(PATIENCE_S), f"the gate at {self.name} was never opened"


class Gates:
    """An observer: gates by name, and the steps taken so far in :attr:`steps`."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._gates: list[Gate] = []
        self._lock = threading.Lock()
        self._taken = threading.Condition(self._lock)

    def at(self, name: str, **params: object) -> Gate:
        gate = Gate(name, params)
        with self._lock:
            self._gates.append(gate)
        return gate

    def before(self, step: Step) -> None:
        with self._lock:
            gate = next((gate for gate in self._gates if gate.takes(step)), None)
        if gate is not None:
            gate.hold()

    def after(self, step: Step) -> None:
        with self._taken:
            self.steps.append(step)
            self._taken.notify_all()

    def taken(self, name: str, **params: object) -> Step:
        """Wait until such a step has been taken; give it."""
        with self._taken:
            assert self._taken.wait_for(lambda: self._find(name, params), PATIENCE_S), f"no {name} {params}"
            found = self._find(name, params)
        assert found is not None
        return found

    def names(self, attempt: str | None = None) -> list[str]:
        """The steps so far in order, of one attempt or of all."""
        with self._lock:
            return [step.name for step in self.steps if attempt in (None, step.params.get("attempt"))]

    def _find(self, name: str, params: dict[str, object]) -> Step | None:
        for step in self.steps:
            if step.name == name and params.items() <= step.params.items():
                return step
        return None


@contextmanager
def gates() -> Iterator[Gates]:
    observer = Gates()
    with observed_by(observer):
        yield observer


class Thread(threading.Thread):
    """A thread whose call's result, or error, is had from :meth:`result`."""

    def __init__(self, call: object, *args: object, **kwargs: object) -> None:
        super().__init__(daemon=True)
        self._call, self._args, self._kwargs = call, args, kwargs
        self._future: Future[object] = Future()
        self.start()

    def run(self) -> None:
        try:
            self._future.set_result(self._call(*self._args, **self._kwargs))  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            self._future.set_exception(error)

    def result(self):
        self.join(PATIENCE_S)
        assert not self.is_alive(), "the call did not return"
        return self._future.result(0)
