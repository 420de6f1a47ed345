"""``docs/invariants.md``, from the sources themselves: what each invariant says, where it is defined, which
runs check it, and which code takes the steps that could break it.

``python -m conformance.invariants`` writes the page; a test says whether it is up to date.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from conformance.engine.manifest import load_manifest
from conformance.engine.module import identifiers, strip_comments, variables
from conformance.protocols import PROTOCOLS
from conformance.seam import actions_of

__all__ = ["MODELS", "PAGE", "Model", "page"]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "invariants.md"
_OPERATOR = re.compile(
    r"^([A-Za-z_]\w*)(?:\([^)]*\))?\s*==(.*?)(?=^[A-Za-z_]\w*(?:\([^)]*\))?\s*==|\Z)", re.M | re.S
)


@dataclass(frozen=True)
class Model:
    """A pure module, and the functions of the code that take its steps."""

    module: Path
    code: str
    protocols: Collection[str]  # whose steps they are

    @cached_property
    def modules(self) -> tuple[Path, ...]:
        """The module and its bounded ones."""
        return self.module, self.module.with_name(f"MC{self.module.name}")

    @cached_property
    def bodies(self) -> Mapping[str, str]:
        """Operator -> its definition."""
        return {
            name: body
            for path in self.modules
            for name, body in _OPERATOR.findall(strip_comments(path.read_text()))
        }

    @cached_property
    def runs(self) -> Mapping[str, str]:
        """The cfgs that are about this module -> their texts."""
        ours = {*(path.name for path in self.modules), f"Legacy{self.module.name}"}
        listed = load_manifest(self.module.with_name("manifest.toml"))
        cfgs = sorted(run.cfg for run in listed if run.module in ours)
        return {Path(cfg).stem: self.module.with_name(cfg).read_text() for cfg in cfgs}

    @cached_property
    def symbols(self) -> Mapping[str, list[str]]:
        """Action -> the functions of the code that take it."""
        found = {
            action: places
            for protocol in self.protocols
            for action, places in actions_of(self.code, protocol).items()
        }
        return {action: found[action] for action in found if action in self.bodies}

    def unfolded(self, name: str) -> str:
        """A definition with all definitions that it uses."""
        pending, seen = [name], set[str]()
        while pending:
            body = self.bodies.get(current := pending.pop())
            if body is not None and current not in seen:
                seen.add(current)
                pending += re.findall(r"[A-Za-z_]\w*", body)
        return "".join(self.bodies[name] for name in sorted(seen))

    def steps(self, predicate: str) -> Iterator[str]:
        """The actions that change a variable of a predicate, with their code."""
        told = self.unfolded(predicate)
        spoken = [name for name in variables(self.module) if re.search(rf"\b{name}\b", told)]
        for action, symbols in self.symbols.items():
            body = self.unfolded(action)
            if any(re.search(rf"\b{name}'", body) for name in spoken):
                yield f"`{action}` in {' and '.join(f'`{symbol}`' for symbol in dict.fromkeys(symbols))}"


MODELS = tuple(Model(protocol.module, protocol.code, protocol.steps) for protocol in PROTOCOLS)


def _chapter(model: Model) -> Iterator[str]:
    """Everything of one model."""
    known = {key: (path, *value) for path in model.modules for key, value in identifiers(path).items()}
    yield from (f"## {model.module.stem}", "")
    for key in sorted(known, key=lambda text: int(text.partition("-")[2])):
        path, name, statement = known[key]
        runs = [run for run, text in model.runs.items() if re.search(rf"^\s+{name}$", text, re.M)]
        if not runs:
            raise ValueError(f"no run checks {key}")
        statement = statement.removeprefix(f"{name}: ")
        yield from (
            f"### {key}: {name}",
            statement[:1].upper() + statement[1:],
            "",
            f"- defined in `{path.relative_to(ROOT)}`",
            f"- checked in {', '.join(f'`{run}`' for run in runs)}",
            f"- may be broken by {', '.join(model.steps(name)) or 'no step of the code'}",
            "",
        )


def page() -> str:
    """The page, as it must be."""
    head = [
        "# Invariants",
        "",
        "Written by `python -m conformance.invariants` from the models and the code. Words: the",
        "[glossary](../CONTRIBUTING.md#glossary).",
        "",
    ]
    return "\n".join([*head, *(line for model in MODELS for line in _chapter(model))])


if __name__ == "__main__":
    PAGE.write_text(page())
