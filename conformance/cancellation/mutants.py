"""Named faults in the code of cancellation: each restores a historical or plausible bug (F381)."""

from __future__ import annotations

from conformance.engine.mutants import Mutant

__all__ = ["MUTANTS", "SHOWS_IN"]

_PERSISTENT = "smtspool.solve.persistent"
_GENERATION = "smtspool.solve.generation"


def _mutant(name: str, fault: str, *changes: tuple[str, str], module: str = _PERSISTENT) -> Mutant:
    return Mutant.of(name, fault, *((module, old, new) for old, new in changes))


MUTANTS = (
    _mutant(
        "register-after-io",
        "a request registers when its turn has come (F381 section 1)",
        ("            self._running.setdefault(me.query_id, set()).add(me)\n", ""),
        (
            "                    self._holder = me\n",
            "                    self._holder = me\n"
            "                    self._running.setdefault(me.query_id, set()).add(me)\n",
        ),
    ),
    _mutant(
        "signal-by-id",
        "the signal goes to the generation that is there when it is sent",
        (
            "                generation.signal_kill()\n",
            "                (self._generation or generation).signal_kill()\n",
        ),
    ),
    _mutant(
        "signal-anybody",
        "whoever is active is killed, told or not",
        ("return self._generation if self._active in registered else None", "return self._generation"),
    ),
    _mutant(
        "unregister-on-success",
        "a request that was cancelled stays registered",
        (
            "        finally:\n            self._unregister(me)\n",
            "        finally:\n            if me.ended is None:\n                self._unregister(me)\n",
        ),
    ),
    _mutant(
        "generation-kept",
        "a generation that has answered serves on, cancelled or not",
        ("if me.ended is not None or not me.keep:", "if not me.keep:"),
    ),
    _mutant(
        "kept-if-unsent",
        "a request that is found cancelled at Admit leaves the generation alone",
        (
            "if me.ended is not None or not me.keep:",
            "if self._active is me and (me.ended is not None or not me.keep):",
        ),
    ),
    _mutant(
        "lock-held-while-killing",
        "the helper is killed with the state lock held",
        (
            "        self._signal(target)\n        return told\n",
            "        with self._state:\n            self._signal(target)\n        return told\n",
        ),
    ),
    _mutant(
        "close-forgets-queued",
        "close tells the active request only",
        (
            "everybody = {one for registered in self._running.values() for one in registered}",
            "everybody = {self._active} if self._active is not None else set()",
        ),
    ),
    _mutant(
        "cancel-wakes-nobody",
        "whoever waits for the turn is told and not woken",
        (
            "                one.reason = reason\n        self._changed.notify_all()\n",
            "                one.reason = reason\n",
        ),
    ),
    _mutant(
        "switch-ignored",
        "a request that registers after its race was decided does not look at the switch",
        ("                me.reason = cancellation.reason\n", "                pass\n"),
    ),
    _mutant(
        "told-after-settle",
        "a cancellation that comes after Settle takes the answer back",
        (
            "reply, failure, why = me.reply, me.failure, me.ended",
            "reply, failure, why = me.reply, me.failure, me.reason",
        ),
    ),
    _mutant(
        "raised-though-cancelled",
        "a request without a helper raises even if it was cancelled before it settled",
        ("        if why is not None:\n", "        if why is not None and me.trouble is None:\n"),
    ),
    _mutant(
        "turn-kept",
        "a request that is cancelled does not pass its turn on",
        ("            self._holder = None\n            self._ch", "            self._ch"),
    ),
    _mutant(
        "helper-leaked",
        "a detached generation is forgotten, not retired",
        (
            '            self._retire(doomed, "unfit" if me.ended is None else me.ended.value)\n',
            "            pass\n",
        ),
    ),
    _mutant(
        "exchange-unchecked",
        "a request that was cancelled after Admit is sent all the same",
        (
            "            if self._is_over(me):\n"
            '                step.outcome = "cancelled"\n'
            "                return\n",
            "",
        ),
    ),
    _mutant(
        "deadline-restarts",
        "every wake-up of an exchange gives it all its time again",
        (
            "        while True:\n            remaining = deadline - self._clock()\n",
            "        allowed = deadline - self._clock()\n"
            "        while True:\n"
            "            remaining = allowed\n",
        ),
        module=_GENERATION,
    ),
    Mutant.of(
        "control",
        "nothing is changed but the spelling",
        (_PERSISTENT, "            if not siblings:\n", "            if len(siblings) == 0:\n"),
        control=True,
    ),
)

# The graphs that a fault shows in, where that is not the first; the rest is tried too.
SHOWS_IN = {
    "close-forgets-queued": "GraphClose",
    "switch-ignored": "GraphFaults",
    "raised-though-cancelled": "GraphFaults",
    "deadline-restarts": "GraphFaults",
}
