"""Named faults in the code of value profiles: each restores a historical or plausible bug."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.engine.mutants import Mutant

__all__ = ["MUTANTS", "SHOWS_IN"]

_COORDINATOR = "smtspool.profile.coordinator"
_CANDIDATE = "smtspool.profile.candidate"
_ARCHIVE = "smtspool.profile.archive"
_STATE = "smtspool.profile.state"
_RECORD = "smtspool.profile.record"
_POLICY = "smtspool.profile.policy"
_AGGREGATE = "smtspool.profile.aggregate"
_DOMAIN_PROBE = "smtspool.solve.domainprobe"


def _mutant(name: str, fault: str, module: str, old: str, new: str) -> Mutant:
    return Mutant.of(name, fault, (module, old, new))


MUTANTS = (
    _mutant(
        "replay-skipped",
        "a generation whose label agrees is believed without a replay (F305 section 2.1)",
        _COORDINATOR,
        "                doubts += self._replay(believed=not doubts)\n",
        "                self._served = self._current if not doubts else None\n",
    ),
    _mutant(
        "compare-by-digest",
        "other evidence for the same domains is taken for other domains",
        _CANDIDATE,
        "return semantics(self.content) == semantics(other.content)",
        "return self.artifact_sha256 == other.artifact_sha256",
    ),
    _mutant(
        "checkpoint-ignored",
        "nobody looks at whether the checkpoint was written (F305 section 2.2)",
        _COORDINATOR,
        "            if not saved:\n"
        "                self._counters = self._counters.plus(checkpoint_failures=1)\n"
        "                self._dirty = True\n"
        "            elif settles:\n"
        "                self._settle()\n"
        "        return saved\n",
        "            if settles:\n                self._settle()\n        return True\n",
    ),
    _mutant(
        "dirty-cleared-early",
        "dirty is cleared as soon as there is a candidate",
        _COORDINATOR,
        "            step.outcome = built.value\n",
        "            step.outcome = built.value\n            self._dirty = False\n",
    ),
    _mutant(
        "observe-clean",
        "a record that was taken leaves memory clean",
        _COORDINATOR,
        "            self._dirty = True\n        return True\n",
        "        return True\n",
    ),
    Mutant.of(
        "runtime-before-artifact",
        "the runtime file is written before its artifact",
        (
            _COORDINATOR,
            "lambda: self._archive.write_artifact(candidate)",
            "lambda: self._archive.write_late(candidate)",
        ),
        (
            _COORDINATOR,
            "lambda: self._archive.write_runtime(candidate)",
            "lambda: self._archive.write_artifact(candidate)",
        ),
        (_ARCHIVE, "def write_runtime(", "def write_late("),
    ),
    _mutant(
        "nine-values",
        "a domain of nine values is admitted",
        _AGGREGATE,
        "len(self.values) > MAX_DOMAIN",
        "len(self.values) > MAX_DOMAIN + 1",
    ),
    _mutant(
        "ratio-at-most",
        "a domain that yields exactly the least ratio is suppressed",
        _POLICY,
        "found.validated * _PPM < found",
        "found.validated * _PPM <= found",
    ),
    _mutant(
        "legacy-suppresses",
        "rows from before F304, which say nothing of time, count as costly",
        _RECORD,
        "domain, found = tuple(sorted(set(values))), Yield(*numbers)",
        "domain, found = tuple(sorted(set(values))), Yield(*numbers, *[1_000_000] * (9 - len(numbers)))",
    ),
    _mutant(
        "probe-unsat-final",
        "that there is no model within a domain is taken for the answer",
        _DOMAIN_PROBE,
        "return Probe(end, _undecided(attempt, end), solver_us=solver_us)",
        "return Probe(end, attempt, said if end is ProbeEnd.UNSAT else None, solver_us)",
    ),
    _mutant(
        "stale-served",
        "what was served goes on being served although its rebuild failed",
        _COORDINATOR,
        "self._served = self._current if built is _Built.SAME else None",
        "self._served = self._current if built is _Built.SAME else self._served",
    ),
    _mutant(
        "serve-in-doubt",
        "records that lead to what is on disk make it served, whatever else is wrong",
        _COORDINATOR,
        "self._served = self._current if believed else None",
        "self._served = self._current",
    ),
    _mutant(
        "policy-is-noop",
        "another policy that comes to the same domains is taken for a no-op (F305 section 3.2)",
        _COORDINATOR,
        "        if self._renewal:\n            return _Built.NEW, candidate\n",
        "",
    ),
    _mutant(
        "failed-runtime-forgotten",
        "a runtime file whose write failed is taken for the one before",
        _COORDINATOR,
        "                self._renewal = True  # it may be there",
        "                pass  # it may be there",
    ),
    _mutant(
        "artifact-kept",
        "an artifact that is there is not written again, whatever is in it",
        _ARCHIVE,
        "            write_durable(generations, f",
        '            if not generations.exists(f"{candidate.generation.artifact_sha256}.json"):\n'
        "                write_durable(generations, f",
    ),
    _mutant(
        "runtime-unchecked",
        "a runtime file is believed if it can be read, whatever its artifact makes",
        _ARCHIVE,
        "        if generation.content != text:\n",
        "        if False:\n",
    ),
    _mutant(
        "directory-unsynced",
        "the rename of the runtime file is not made durable",
        _ARCHIVE,
        "write_durable(self._directory, RUNTIME, candidate.generation.content)",
        "write_durable(self._directory, RUNTIME, candidate.generation.content, sync=False)",
    ),
    _mutant(
        "truncation-believed",
        "a checkpoint that lost records is taken for whole",
        _STATE,
        "    if not _complete(document):\n",
        "    if False:\n",
    ),
    _mutant(
        "malformed-believed",
        "a record that cannot be read is passed over",
        _STATE,
        "    if len(records) < len(newest) or not all(map(_whole, records, newest)):\n",
        "    if False:\n",
    ),
    _mutant(
        "mismatch-uncounted",
        "a replay that leads elsewhere is not counted",
        _COORDINATOR,
        "self._counters = self._counters.plus(recovery_replay_mismatches=1)",
        "pass",
    ),
    _mutant(
        "checkpoint-gap",
        "the checkpoint before is removed before the next is written",
        _ARCHIVE,
        "write_durable(self._directory, STATE, data)",
        "self._directory.exists(STATE) and self._directory.unlink(STATE); "
        "write_durable(self._directory, STATE, data)",
    ),
    _mutant(
        "do-nothing",
        "publish returns at once",
        _COORDINATOR,
        "        if not self._dirty or not (force or self._due()):\n            return None\n",
        "        return None\n",
    ),
    Mutant.of(
        "control",
        "nothing is changed but the spelling",
        (
            _COORDINATOR,
            "        if self._renewal:\n            return _Built.NEW, candidate\n",
            "        if self._renewal is True:\n            return _Built.NEW, candidate\n",
        ),
        control=True,
    ),
)

# Where a fault is looked for first; wherever it shows, it is found.
SHOWS_IN: Mapping[str, str] = {
    "replay-skipped": "GraphDamage",
    "compare-by-digest": "GraphWindow",
    "checkpoint-ignored": "GraphFailures",
    "dirty-cleared-early": "GraphWindow",
    "observe-clean": "GraphWindow",
    "runtime-before-artifact": "GraphWindow",
    "nine-values": "domains",
    "ratio-at-most": "domains",
    "legacy-suppresses": "domains",
    "probe-unsat-final": "answers",
    "stale-served": "GraphWindow",
    "serve-in-doubt": "GraphCrashes",
    "policy-is-noop": "GraphPolicy",
    "failed-runtime-forgotten": "GraphFailures",
    "artifact-kept": "GraphDamage",
    "runtime-unchecked": "GraphDamage",
    "directory-unsynced": "GraphFailures",
    "truncation-believed": "GraphDamage",
    "malformed-believed": "GraphDamage",
    "mismatch-uncounted": "GraphCountReplays",
    "checkpoint-gap": "GraphCrashes",
    "do-nothing": "GraphWindow",
}
