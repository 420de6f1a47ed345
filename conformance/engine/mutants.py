"""Named faults in the code under test, and the proof that the harness sees them.

A mutant replaces text of the sources while they are imported, in a process of its own, so every importer sees
it. Each replaced text must occur exactly once: a mutant that does not apply is an error, never a kill. A
*control* replaces text by something equivalent and must survive; if it is killed, other kills prove nothing.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

__all__ = ["Mutant", "MutantError", "Substitution", "install"]


class MutantError(RuntimeError):
    """The mutant does not apply to the code as it is."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """In ``module``, the only occurrence of ``old`` becomes ``new``."""

    module: str
    old: str
    new: str

    def of(self, text: str) -> str:
        """The source with the substitution. Raises :class:`MutantError` unless it occurs exactly once."""
        if (found := text.count(self.old)) != 1:
            raise MutantError(f"{self.module}: occurs {found} times, not once:\n{self.old}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault with a name and a sentence that says what is wrong with it."""

    name: str
    fault: str
    substitutions: tuple[Substitution, ...]
    control: bool = False

    @classmethod
    def of(cls, name: str, fault: str, *changes: tuple[str, str, str], control: bool = False) -> Mutant:
        """A mutant of some changes: module, old text, new text."""
        return cls(name, fault, tuple(Substitution(*change) for change in changes), control)

    def to_json(self) -> str:
        """For the command line of the process that gets the fault."""
        return json.dumps([(s.module, s.old, s.new) for s in self.substitutions])

    def check(self) -> None:
        """Raises :class:`MutantError` unless it applies to the sources as they are, without importing
        them."""
        texts: dict[str, str] = {}
        for substitution in self.substitutions:
            spec = importlib.util.find_spec(substitution.module)
            if spec is None or spec.origin is None:
                raise MutantError(f"there is no module {substitution.module}")
            text = texts.get(substitution.module) or Path(spec.origin).read_text()
            texts[substitution.module] = substitution.of(text)


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the changed source, past the cache of byte code."""

    def __init__(
        self, name: str, path: str, substitutions: Sequence[Substitution], applied: set[str]
    ) -> None:
        super().__init__(name, path)
        self._substitutions = substitutions
        self._applied = applied

    def get_code(self, fullname: str) -> CodeType:
        text = Path(self.path).read_text()
        for substitution in self._substitutions:
            text = substitution.of(text)
        self._applied.add(fullname)
        code: CodeType = compile(text, self.path, "exec", dont_inherit=True)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, substitutions: Sequence[Substitution]) -> None:
        self.substitutions = substitutions
        self.applied: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        mine = [s for s in self.substitutions if s.module == fullname]
        if not mine:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.origin is None:
            return None
        return importlib.util.spec_from_loader(
            fullname,
            _Loader(fullname, spec.origin, mine, self.applied),
            is_package=spec.submodule_search_locations is not None,
        )


def install(document: str) -> _Finder:
    """Put a mutant, as :meth:`Mutant.to_json` wrote it, between this process and its imports."""
    substitutions = [Substitution(*parts) for parts in json.loads(document)]
    if loaded := sorted({s.module for s in substitutions} & set(sys.modules)):
        raise MutantError(f"imported before the mutant was installed: {', '.join(loaded)}")
    finder = _Finder(substitutions)
    sys.meta_path.insert(0, finder)
    return finder


def require_applied(finder: _Finder) -> None:
    """Raises :class:`MutantError` when a module of the mutant was not imported."""
    if missing := sorted({s.module for s in finder.substitutions} - finder.applied):
        raise MutantError(f"never imported: {', '.join(missing)}")


def main(arguments: Sequence[str]) -> int:
    """``python -m conformance.engine.mutants DOCUMENT ARGUMENTS``: pytest on the code with a mutant in it."""
    import pytest

    finder = install(arguments[0])
    code = int(pytest.main(list(arguments[1:])))
    require_applied(finder)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
