"""``docs/invariants.md``, from the sources themselves: what each invariant says, where it is defined, which
runs check it, and which code takes the steps that could break it.

``python -m conformance.invariants`` writes the page; a test says whether it is up to date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.engine.module import identifiers, strip_comments, variables

__all__ = ["PAGE", "page"]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "invariants.md"
MODULES = ("models/spool_admission/SpoolAdmission.tla", "models/spool_admission/MCSpoolAdmission.tla")
CODE = ROOT / "impl" / "smtspool" / "spool"
_OPERATOR = re.compile(
    r"^([A-Za-z_]\w*)(?:\([^)]*\))?\s*==(.*?)(?=^[A-Za-z_]\w*(?:\([^)]*\))?\s*==|\Z)", re.M | re.S
)


def _bodies(module: Path) -> Mapping[str, str]:
    return dict(_OPERATOR.findall(strip_comments(module.read_text())))


def _symbols() -> Mapping[str, str]:
    """Action -> the function of the code that takes it."""
    found: dict[str, str] = {}
    for path in sorted(CODE.glob("*.py")):
        for owner in ast.parse(path.read_text()).body:
            if isinstance(owner, ast.ClassDef):
                for function in owner.body:
                    for name in re.findall(r"action\('(\w+)'", ast.unparse(function)):
                        found[name] = f"{path.stem}.{owner.name}.{getattr(function, 'name', '')}"
    return found


def _steps(predicate: str, bodies: Mapping[str, str], names: tuple[str, ...]) -> Iterator[str]:
    """The actions that change a variable of which a predicate speaks."""
    told = {name for name in names if re.search(rf"\b{name}\b", predicate)}
    for action in _symbols():
        # TryLock is the sum of its three ways.
        body = bodies["Acquire" if action == "TryLock" else action]
        if any(f"{name}'" in body for name in told):
            yield action


def page() -> str:
    """The page, as it must be."""
    bodies = {name: body for path in MODULES for name, body in _bodies(ROOT / path).items()}
    names = variables(ROOT / MODULES[0])
    symbols = _symbols()
    cfgs = sorted((ROOT / "models" / "spool_admission").glob("*.cfg"))
    known = {key: (path, *value) for path in MODULES for key, value in identifiers(ROOT / path).items()}
    lines = [
        "# Invariants",
        "",
        "Written by `python -m conformance.invariants` from the models and the code.",
        "",
    ]
    for key in sorted(known, key=lambda text: int(text.partition("-")[2])):
        path, name, statement = known[key]
        told = bodies[name] if name != "TypeOK" else " ".join(names)
        runs = [cfg.stem for cfg in cfgs if re.search(rf"^\s+{name}$", cfg.read_text(), re.M)]
        if not runs:
            raise ValueError(f"no run checks {key}")
        steps = [f"`{action}` in `{symbols[action]}`" for action in _steps(told, bodies, names)]
        lines += [
            f"## {key}: {name}",
            statement[:1].upper() + statement[1:],
            "",
            f"- defined in `{path}`",
            f"- checked in {', '.join(f'`{run}`' for run in runs)}",
            f"- may be broken by {', '.join(steps) or 'no step of the code'}",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
