"""One engine of a service: it starts when it is first needed, and works once it has passed its trial."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container

from smtspool.errors import ClosedError, InfrastructureError
from smtspool.solve import LOGICS, Capabilities, EngineSpec, ForkServer, Generation, HelperLimits, trial

__all__ = ["EngineMember"]

log = logging.getLogger("smtspool")

# Starting an engine takes as long as a hundred small queries, so one that is not started joins a race so much
# later.
START_SECONDS = 0.4


class EngineMember:
    """A source of helpers, thread-safe. A race takes an engine that is not started yet as one that works.

    Lock order: ``_proving``, which is held while the engine starts and answers, then ``_state``.
    """

    def __init__(
        self,
        spec: EngineSpec,
        limits: HelperLimits,
        *,
        logics: Container[str] = LOGICS,
        clock: Callable[[], float],
    ) -> None:
        self.spec = spec
        self._logics = logics
        self._limits = limits
        self._clock = clock
        self._proving = threading.Lock()
        self._state = threading.Lock()  # protects the three below
        self._server: ForkServer | None = None
        self._found: Capabilities | None = None
        self._closed = False

    def start(self) -> ForkServer:
        """Start a process that imports the engine, and do not wait for it."""
        with self._state:
            if self._closed:
                raise ClosedError("the engines are closed")
            if self._server is None:
                self._server = ForkServer(self.spec, self._limits, clock=self._clock)
            return self._server

    def works(self, deadline: float, *, again: bool = False) -> bool:
        """Whether the engine works: by a trial the first time, or ``again``. A failure is logged once.

        Raises InfrastructureError if the deadline passes before that is known.
        """
        if not self._proving.acquire(timeout=max(0.0, deadline - self._clock())):
            raise self._late()
        try:
            if self._found is None or again:
                found = trial(self.start(), deadline, logics=self._logics)
                if found.trouble and self._clock() >= deadline:
                    raise self._late()
                if not found.logics and not again:
                    log.error("engine %s does not work and is left out: %s", self.spec.name, found.trouble[0])
                elif found.logics and found.trouble:
                    log.info("engine %s: %s", self.spec.name, "; ".join(found.trouble))
                self._found = found
            return bool(self._found.logics)
        finally:
            self._proving.release()

    @property
    def trouble(self) -> str | None:
        """Why the engine cannot be used; None if it can, or if that is not known yet."""
        unusable = None if self._server is None else self._server.unusable
        if unusable is not None:
            return unusable.cause
        return None if self._found is None or self._found.logics else self._found.trouble[0]

    @property
    def start_s(self) -> float:
        """About how many seconds pass before it can answer; 0 once it has passed its trial."""
        return START_SECONDS if self._found is None else 0.0

    def takes(self, logic: str) -> bool:
        """Whether it can be asked in this logic; an engine that is not started yet takes every logic."""
        return self._found is None or logic in self._found.logics

    def spawn(self, deadline: float) -> Generation:
        """A helper. Raises InfrastructureError if the engine does not work or no helper can be started."""
        if not self.works(deadline):
            raise InfrastructureError(f"engine {self.spec.name} does not work: {self.trouble}")
        return self.start().spawn(deadline)

    def close(self) -> None:
        """End the engine's process and all helpers, also while other threads wait for them."""
        with self._state:
            self._closed = True
            server = self._server
        if server is not None:
            server.close()

    def _late(self) -> InfrastructureError:
        return InfrastructureError(f"engine {self.spec.name} was not ready in time")
