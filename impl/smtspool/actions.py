"""Named protocol steps: the one seam where models, traces and tests attach.

A package that takes the steps of a modelled protocol declares that protocol once, in its ``steps`` module::

    action = Protocol("spool_admission").action

Every atomic step of it is then written ::

    with action("Commit", consumer=self.name, files=names):
        ...exactly the effect that the model treats as one step...

The name and the parameters are those of the TLA+ action; the same name may stand for different actions of
two protocols. A step whose result the model leaves open says which way it went, still inside the body::

    with action("TryLock", consumer=self.name) as step:
        step.outcome = "Busy"

Without an observer a step costs one global load and a shared null context. With one,
``before(step)`` runs ahead of the body (a *gate*: the conformance scheduler holds or kills the
thread there) and ``after(step)`` follows it (a *record*: outcome, or the error that escaped).
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

__all__ = ["Observer", "Protocol", "Step", "observed_by"]


class Observer(typing.Protocol):
    """What sees the steps of this process. Called on the thread that takes the step."""

    def before(self, step: Step) -> None: ...

    def after(self, step: Step) -> None: ...


class Step:
    """One occurrence of an action of ``protocol``: ``name``, ``params``, and after the body ``outcome`` or
    ``error``."""

    __slots__ = ("_observer", "error", "name", "outcome", "params", "protocol")

    def __init__(
        self, protocol: Protocol, name: str, params: Mapping[str, object], observer: Observer
    ) -> None:
        self.protocol = protocol
        self.name = name
        self.params = params
        self.outcome: str | None = None
        self.error: BaseException | None = None
        self._observer = observer

    def __enter__(self) -> Step:
        self._observer.before(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.error = error
        self._observer.after(self)


class _Unobserved:
    """The step without an observer; one instance serves all threads, so its ``outcome`` is never read."""

    __slots__ = ("outcome",)

    outcome: str | None

    def __enter__(self) -> _Unobserved:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        return None


_UNOBSERVED = _Unobserved()
_observer: Observer | None = None


class Protocol:
    """A modelled protocol. ``name`` is that of its folder under ``conformance/``.

    The steps of a protocol that is ``ordered`` are taken by threads of one process on what they share, so a
    recording keeps them in their exact order; those of the others are ordered by time alone.
    """

    __slots__ = ("name", "ordered")

    def __init__(self, name: str, *, ordered: bool = False) -> None:
        self.name = name
        self.ordered = ordered

    def action(self, name: str, /, **params: object) -> Step | _Unobserved:
        """Mark the ``with`` body as one step of this protocol."""
        if _observer is None:
            return _UNOBSERVED
        return Step(self, name, params, _observer)


@contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Attach ``observer`` to every step of this process until the block ends; one at a time."""
    global _observer
    if _observer is not None:
        raise RuntimeError("an observer is already attached to this process")
    _observer = observer
    try:
        yield
    finally:
        _observer = None
