"""A fork server's place taken by scripts: real processes, real generations, engines that misbehave."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from smtspool.solve import EngineSpec, Generation, HelperLimits

_HELPER = Path(__file__).with_name("scripted_helper.py")


class ScriptedServer:
    """Spawns one scripted helper after another: the n-th follows the n-th script, the last script repeats."""

    def __init__(self, name: str, *scripts: str, limits: HelperLimits | None = None) -> None:
        self.spec = EngineSpec(name)
        self.spawned: list[Generation] = []
        self._scripts = [script.split() for script in scripts]
        self._limits = limits or HelperLimits(frame=1 << 20)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._numbers = itertools.count(1)

    def spawn(self, deadline: float) -> Generation:
        number = next(self._numbers)
        script = self._scripts[min(number, len(self._scripts)) - 1]
        channel, theirs = socket.socketpair()
        stderr, stderr_end = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-S", "-E", str(_HELPER), str(theirs.fileno()), *script],
                stderr=stderr_end,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError:
            channel.close()
            os.close(stderr)
            raise
        finally:
            theirs.close()
            os.close(stderr_end)
        channel.setblocking(False)
        os.set_blocking(stderr, False)
        self._processes.append(process)

        def wait_exit(until: float) -> str | None:
            try:
                return f"exit {process.wait(max(0.0, until - time.monotonic()))}"
            except subprocess.TimeoutExpired:
                return None

        generation = Generation(
            number=number,
            pid=process.pid,
            pidfd=os.pidfd_open(process.pid),
            channel=channel,
            stderr=stderr,
            limits=self._limits,
            clock=time.monotonic,
            wait_exit=wait_exit,
        )
        self.spawned.append(generation)
        return generation

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for generation in self.spawned:
            generation.retire("end of test")
        for process in self._processes:
            process.kill()
            process.wait()
