"""Named faults in the code of qualification: each restores a historical or plausible bug (F351 to F355)."""

from __future__ import annotations

from conformance.engine.mutants import Mutant

__all__ = ["MUTANTS", "SHOWS_IN"]

_CLUSTER = "smtspool.cluster."


def _mutant(name: str, fault: str, *changes: tuple[str, str, str]) -> Mutant:
    return Mutant.of(name, fault, *((_CLUSTER + module, old, new) for module, old, new in changes))


MUTANTS = (
    _mutant(
        "narrow-except",
        "the boundary lists the exceptions that it knows (F355 section 1)",
        (
            "diagnostics",
            "    except Exception as error:",
            "    except (OSError, RuntimeError, ValueError) as error:",
        ),
    ),
    _mutant(
        "except-everything",
        "the boundary makes a value of an interrupt",
        (
            "diagnostics",
            "    except Exception as error:",
            "    except BaseException as error:",
        ),
    ),
    _mutant(
        "partial-counts-kept",
        "a contained result claims the rounds that had ended (F355 section 4)",
        ("result", "        proof=Proof(),\n", "        proof=Proof(rounds=1),\n"),
    ),
    _mutant(
        "diagnostic-not-cut",
        "a diagnostic is as long as the exception makes it",
        ("diagnostics", "        if len(kept) == TEXT_LIMIT:\n            break\n", ""),
    ),
    _mutant(
        "cut-before-cleaning",
        "a diagnostic is cut before it is cleaned, so that what is not printable counts",
        ("diagnostics", "    for character in text:\n", "    for character in text[:TEXT_LIMIT]:\n"),
    ),
    _mutant(
        "isinstance-generation",
        "True is taken for a generation (F355 section 4.2)",
        (
            "proof",
            "    return value if type(value) is int and 0",
            "    return value if isinstance(value, int) and 0",
        ),
    ),
    _mutant(
        "transcript-without-generation",
        "the transcript of one generation is that of another (F352)",
        ("proof", "    for number in (\n        generation,\n", "    for number in (\n        0,\n"),
    ),
    _mutant(
        "contention-ignored",
        "a lock that was given to two ranks is no failure",
        (
            "litmus",
            "        if acquired:\n            return _failure(\n",
            "        if False:\n            return _failure(\n",
        ),
    ),
    _mutant(
        "round-left-open",
        "the descriptor of a round is closed by its release only",
        ("litmus", "        with self._held, self._in_round:\n", "        with self._held:\n"),
    ),
    _mutant(
        "attempt-counted-first",
        "an attempt is counted before its result is looked at (F353)",
        (
            "renewal",
            "        if not math.isfinite(completed_at) or completed_at < before",
            "        self.ledger = replace(before, attempts=before.attempts + 1)\n"
            "        if not math.isfinite(completed_at) or completed_at < before",
        ),
        (
            "renewal",
            "Completion(controller.complete(generation, result, completed_at=clock())),",
            "Completion(_completed(controller, generation, result, clock)),",
        ),
        (
            "renewal",
            "def complete_renewal(\n",
            "def _completed(controller, generation, result, clock):\n"
            "    try:\n"
            "        now = clock()\n"
            "    except Exception:\n"
            "        now = math.nan\n"
            "    return controller.complete(generation, result, completed_at=now)\n\n\n"
            "def complete_renewal(\n",
        ),
    ),
    _mutant(
        "works-on",
        "a failed renewal is counted, and the rank works on",
        ("master", "                self.fail(result.diagnostic or unproved)\n", ""),
    ),
    _mutant(
        "verified-without-commit",
        "a rank counts as verified once it has seen the transcripts (F352)",
        (
            "qualification",
            '    exchange.gather(Stage.COMMIT, lambda: {"ok": False, "error": complaint} if differing '
            "else {})\n",
            "    if differing:\n        raise exchange.failure(Code.REFUSED, complaint)\n",
        ),
    ),
    _mutant(
        "stale-is-fatal",
        "a message of an earlier attempt is a malformed one",
        (
            "exchange",
            "            if epoch != self.epoch or place < self._place():\n",
            "            if epoch != self.epoch and place < self._place():\n",
        ),
    ),
    _mutant(
        "failure-not-answered",
        "a root that fails leaves its peers to their deadlines",
        (
            "exchange",
            "self._send(range(1, self.size), FROM_ROOT",
            "self._send(range(1, 1 if failed else self.size), FROM_ROOT",
        ),
    ),
    _mutant(
        "lock-file-left",
        "the root leaves its lock file",
        ("litmus", "        self._held.callback(self._files.remove, self._root, self._name)\n", ""),
    ),
    _mutant(
        "stop-not-told",
        "a rank that shuts down tells nobody",
        ("master", "            self._tell(Notice.STOP)\n", ""),
    ),
    Mutant.of(
        "control",
        "nothing is changed but the spelling",
        (
            _CLUSTER + "exchange",
            "            return bool(answers)\n",
            "            return len(answers) > 0\n",
        ),
        control=True,
    ),
)

# The graphs that a fault shows in: small ones, for speed. The others are tried too, for some tours.
SHOWS_IN = {
    "narrow-except": "GraphOneHost",
    "except-everything": "GraphControl",
    "partial-counts-kept": "GraphOneHost",
    "diagnostic-not-cut": "GraphOneHost",
    "cut-before-cleaning": "GraphOneHost",
    "isinstance-generation": "GraphInputs",
    "transcript-without-generation": "GraphAccounting",
    "contention-ignored": "GraphFaults",
    "round-left-open": "GraphControl",
    "attempt-counted-first": "GraphAccounting",
    "works-on": "GraphAccounting",
    "verified-without-commit": "GraphInputs",
    "stale-is-fatal": "GraphFaults",
    "failure-not-answered": "GraphOneHost",
    "lock-file-left": "GraphControl",
    "stop-not-told": "GraphOneHost",
    "control": "GraphInputs",
}
