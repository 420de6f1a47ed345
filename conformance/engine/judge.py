"""TLC's verdicts on many mutants of one module, in few runs.

All mutants of a module go into one text: a definition becomes a choice by a variable ``mutant``, which every
behaviour keeps, and TLC explores all of them side by side. Two questions are asked with each bound:

1. Which invariant or action property does the mutant violate? It is not explored beyond the first violation.
2. If none: does its labelled graph differ? Steps of the original and of the mutant are both followed, and
   a step that only one of the two has is the answer.

A mutant that is not caught with one bound is tried with the next, so the bound with the largest graph comes
first.

A mutant whose evaluation fails (``Head`` of nothing) stops TLC. It is set down as caught by "evaluation", and
the others go on in another run. Mutants of the fairness are not steps: each is judged by itself, by the
temporal properties.

The bounded module keeps the conventions of :mod:`.graph` (``act``), and each cfg names a specification of the
form ``Init /\\ [][Next]_vars``.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .model_mutants import ModelMutant, Module
from .tlc import Outcome, Tlc, TlcError

__all__ = ["EVALUATION", "Cfg", "judge", "judge_fairness", "module_with", "pure_of"]

EVALUATION = "evaluation"
_KEYWORDS = (
    "SPECIFICATION",
    "CONSTANT",
    "CONSTANTS",
    "INVARIANT",
    "INVARIANTS",
    "PROPERTY",
    "PROPERTIES",
    "VIEW",
)
_ORIGINAL = "Original"
_NOTHING = '""'
_FEW, _MANY = 16, 64  # groups of so few are not split; so many take long


@dataclass(frozen=True, slots=True)
class Cfg:
    """A bound, taken apart."""

    path: Path
    specification: str
    constants: str
    invariants: tuple[str, ...]
    properties: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Cfg:
        """Raises ``ValueError`` unless it names one specification."""
        text = re.sub(r"\\\*[^\n]*", "", path.read_text())
        pattern = rf"^({'|'.join(_KEYWORDS)})\b(.*?)(?=^(?:{'|'.join(_KEYWORDS)})\b|\Z)"
        parts: dict[str, str] = {}
        for keyword, body in re.findall(pattern, text, re.MULTILINE | re.DOTALL):
            kind = {"PROPERTIES": "PROPERTY"}.get(keyword, keyword.rstrip("S"))
            parts[kind] = parts.get(kind, "") + body
        if "SPECIFICATION" not in parts:
            raise ValueError(f"{path.name} names no specification")
        return cls(
            path,
            parts["SPECIFICATION"].strip(),
            parts.get("CONSTANT", ""),
            tuple(parts.get("INVARIANT", "").split()),
            tuple(parts.get("PROPERTY", "").split()),
        )


def module_with(module: Module, mutants: Mapping[int, ModelMutant]) -> str:
    """The text of the module with all of ``mutants``, chosen between by the variable ``mutant``."""
    of: dict[str, list[int]] = {}
    for number, mutant in mutants.items():
        of.setdefault(mutant.definition.name, []).append(number)
    text = module.text
    for name, numbers in of.items():
        definition = module.definitions[name]
        call = definition.parameters
        cases = [f"mutant = {number} -> {name}_{number}{call}" for number in numbers]
        choice = "\n    [] ".join([*cases, f"OTHER -> {name}_0{call}"])
        texts = [definition.named(f"{name}_0")]
        texts += [definition.named(f"{name}_{number}", mutants[number].body) for number in numbers]
        texts.append(f"{name}{call} ==\n    CASE {choice}\n")
        text = _in_place(text, name, "\n".join(texts) + "\n")
    return re.sub(r"^(EXTENDS [^\n]*)$", r"\1\nVARIABLE mutant\n", text, count=1, flags=re.MULTILINE)


def _in_place(text: str, name: str, new: str) -> str:
    """``text`` with ``new`` for the definition of ``name``."""
    head = re.search(rf"^{name}(?:\([^)\n]*\))?[ ]*==", text, re.MULTILINE)
    assert head is not None
    after = re.compile(r"^(?:[A-Za-z_]\w*(?:\([^)\n]*\))?[ ]*==|ASSUME|-{4}|={4})", re.MULTILINE)
    tail = after.search(text, head.end())
    assert tail is not None
    return text[: head.start()] + new + text[tail.start() :]


class Judge:
    """The mutants of one module that are not judged yet, and the verdicts on the others."""

    def __init__(self, bounded: Path, view: str | None, say: Callable[[str], None]) -> None:
        self.bounded = Module(bounded, variables_in=pure_of(bounded))
        self.module = Module(pure_of(bounded))
        self.verdicts: dict[str, str] = {}
        self._definitions = {**self.bounded.definitions, **self.module.definitions}
        self._view = view
        self._say = say
        self._tlc = Tlc()

    def ask(self, mutants: Sequence[ModelMutant], cfgs: Sequence[tuple[Path, int]]) -> None:
        """Ask both questions, with every bound, about the mutants that have no verdict."""
        numbered = dict(enumerate(mutants, 1))
        for path, deep in cfgs:
            for question in (self._violations, self._differences):
                before, runs = len(self.verdicts), 0
                waiting = [self._left(numbered)]
                while waiting:
                    batch = waiting.pop()
                    failed = bool(batch) and self._run(batch, Cfg.read(path), question, deep)
                    runs += bool(batch)
                    # The others begin anew, in halves: the next one that fails costs only its own half.
                    waiting += _halves(self._left(batch)) if failed else []
                told = question.__name__.strip("_")
                found = len(self.verdicts) - before
                self._say(f"{self.module.path.stem}/{path.stem}: {found} by {told}, {runs} runs")

    def _left(self, mutants: Mapping[int, ModelMutant]) -> dict[int, ModelMutant]:
        return {n: mutant for n, mutant in mutants.items() if mutant.name not in self.verdicts}

    def _run(
        self,
        left: Mapping[int, ModelMutant],
        cfg: Cfg,
        question: Callable[[Cfg], tuple[str, str]],
        deep: int,
    ) -> bool:
        """One run of TLC; True when an evaluation failed, and the rest has to be asked again."""
        body, directives = question(cfg)
        numbers = ", ".join(map(str, left))
        run = f"""---- MODULE MutantRun ----
EXTENDS {self.bounded.path.stem}, Sequences, TLC
{_ORIGINAL} == INSTANCE {_ORIGINAL}{self.bounded.path.stem}
Batch == {{{numbers}}}
ASSUME \\A number \\in Batch : TLCSet(number, "")
Unjudged == TLCGet(mutant) = ""
Found(what) == TLCSet(mutant, what) /\\ PrintT(<<"killed", mutant, what>>)
\\* Told whenever it is another's turn, so that the last one told is the one whose evaluation fails.
Now == 0
ASSUME TLCSet(Now, 0)
Turn == TLCGet(Now) = mutant \\/ (TLCSet(Now, mutant) /\\ PrintT(<<"now", mutant>>))
Alive == Unjudged /\\ TLCGet("level") < {deep}
View == <<{self._view or "act"}, mutant>>
{body}
====
"""
        with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
            folder = Path(scratch)
            self._copies(folder, left)
            (folder / "MutantRun.tla").write_text(run)
            (folder / "MutantRun.cfg").write_text(
                f"SPECIFICATION RunSpec\nCONSTANTS{cfg.constants}\n{directives}CONSTRAINT Alive\n"
                + ("VIEW View\n" if self._view else "")
            )
            output, failed = self._tlc_says(folder, quick=len(left) < _MANY)
        for number, what in re.findall(r'^<<"killed", (\d+), "([^"]*)">>$', output, re.MULTILINE):
            self.verdicts[left[int(number)].name] = what
        if failed is not None:
            self.verdicts.setdefault(left[failed].name, EVALUATION)
        return failed is not None

    def _tlc_says(self, folder: Path, *, quick: bool) -> tuple[str, int | None]:
        """TLC's output, and the mutant whose evaluation failed."""
        try:
            run, cfg = folder / "MutantRun.tla", folder / "MutantRun.cfg"
            result = self._tlc.run(run, cfg, timeout_s=3600.0, quick=quick)
        except TlcError as error:
            found = re.findall(r'^<<"now", (\d+)>>$', error.output, re.MULTILINE)
            if not found or "Finished in" not in error.output:
                raise
            return error.output, int(found[-1])
        if result.outcome is not Outcome.OK:
            raise TlcError(f"{result.outcome} {result.violated}", result.output)
        return result.output, None

    def _copies(self, folder: Path, left: Mapping[int, ModelMutant]) -> None:
        home, pure, bounded = self.module.path.parent, self.module.path.stem, self.bounded.path.stem
        for path in home.glob("*.tla"):
            shutil.copy(path, folder)
        (folder / f"{pure}.tla").write_text(module_with(self.module, left))
        for name in (pure, bounded):
            text = re.sub(rf"\b({pure}|{bounded})\b", rf"{_ORIGINAL}\1", (home / f"{name}.tla").read_text())
            (folder / f"{_ORIGINAL}{name}.tla").write_text(text)

    def _spec(self, cfg: Cfg) -> tuple[str, str, str]:
        """Init, Next and the variables of a specification."""
        body = self._definitions[cfg.specification].body
        hit = re.fullmatch(r"(\w+) /\\ \[\]\[(\w+)\]_(\w+)", body.strip())
        if hit is None:
            raise ValueError(f"{cfg.specification} is not Init /\\ [][Next]_vars")
        return hit[1], hit[2], hit[3]

    def _violations(self, cfg: Cfg) -> tuple[str, str]:
        init, step, variables = self._spec(cfg)
        broken = [f'~({name}) -> "invariant {name}"' for name in cfg.invariants]
        actions = {name: self._step_of(name) for name in cfg.properties}
        lines = [f"Holds_{name} == {text}" for name, text in actions.items()]
        judged = [f'~Holds_{name} -> Found("property {name}") /\\ FALSE' for name in actions]
        lines += [
            f"RunSpec == (mutant \\in Batch /\\ {init})",
            f"           /\\ [][Turn /\\ {step} /\\ UNCHANGED mutant]_<<{variables}, mutant>>",
            f"Broken == {_case(*broken, other=_NOTHING)}",
            "Judged == Turn /\\ LET broken == Broken",
            '                  IN IF broken = "" \\/ ~Unjudged THEN TRUE ELSE Found(broken)',
            f"JudgedStep == {_case('~Unjudged -> FALSE', *judged, other='TRUE')}",
        ]
        return "\n".join(lines), "INVARIANT Judged\nACTION_CONSTRAINT JudgedStep\n"

    def _step_of(self, name: str) -> str:
        """An action property as a formula of one step."""
        body = self._definitions[name].body
        hit = re.fullmatch(r"(\s*)\[\]\[(.*)\]_(\w+)\s*", body, re.DOTALL)
        if hit is None:
            raise ValueError(f"{name} is not [][A]_vars")
        return f"UNCHANGED {hit[3]} \\/ (\n{hit[1]}   {hit[2]}\n)"

    def _differences(self, cfg: Cfg) -> tuple[str, str]:
        init, step, variables = self._spec(cfg)
        theirs = f"{_ORIGINAL}!{init}", f"{_ORIGINAL}!{step}"
        lines = [
            f"RunInit == mutant \\in Batch /\\ ({init} \\/ {theirs[0]})",
            f"RunNext == Turn /\\ ({step} \\/ {theirs[1]}) /\\ UNCHANGED mutant",
            f"RunSpec == RunInit /\\ [][RunNext]_<<{variables}, mutant>>",
            f'Judged == Turn /\\ IF Unjudged /\\ act.name = "Init" /\\ {init} # {theirs[0]}',
            '                  THEN Found("graph: other initial states") ELSE TRUE',
            "JudgedStep == CASE ~Unjudged -> FALSE",
            f'    [] ~{step} -> Found("graph: a " \\o act\'.name \\o " less") /\\ FALSE',
            f'    [] ~{theirs[1]} -> Found("graph: a " \\o act\'.name \\o " more") /\\ FALSE',
            "    [] OTHER -> TRUE",
        ]
        return "\n".join(lines), "INVARIANT Judged\nACTION_CONSTRAINT JudgedStep\n"


def _halves(mutants: Mapping[int, ModelMutant]) -> list[dict[int, ModelMutant]]:
    items = list(mutants.items())
    middle = len(items) // 2 if len(items) > _FEW else 0
    return [dict(half) for half in (items[:middle], items[middle:]) if half]


def _case(*cases: str, other: str) -> str:
    return "CASE " + "\n    [] ".join([*cases, f"OTHER -> {other}"]) if cases else other


def pure_of(bounded: Path) -> Path:
    """The module that a bounded one gives bounds to: the first it extends that lies beside it."""
    hit = re.search(r"^EXTENDS (\w+)", bounded.read_text(), re.MULTILINE)
    if hit is None or not (pure := bounded.with_name(f"{hit[1]}.tla")).is_file():
        raise ValueError(f"{bounded.name} does not extend a module beside it first")
    return pure


def judge(
    bounded: Path,
    mutants: Sequence[ModelMutant],
    cfgs: Sequence[tuple[Path, int]],
    *,
    view: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Mapping[str, str]:
    """Name -> what caught the mutant first: "invariant ...", "property ...", "graph: ...", or "evaluation".

    A mutant that is missing in the result has survived. ``cfgs`` are tried in turn, each with the depth
    beyond which no mutant is followed.
    """
    asked = Judge(bounded, view, say)
    asked.ask([mutant for mutant in mutants if mutant.operator != "drop fairness"], cfgs)
    return asked.verdicts


def judge_fairness(bounded: Path, mutant: ModelMutant, cfgs: Sequence[Path]) -> str | None:
    """The first temporal property that fails without one conjunct of the fairness."""
    module = Module(pure_of(bounded))
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        folder = Path(scratch)
        for path in bounded.parent.glob("*.tla"):
            shutil.copy(path, folder)
        text = _in_place(
            module.text, mutant.definition.name, mutant.definition.named("Fairness", mutant.body)
        )
        (folder / module.path.name).write_text(text)
        for path in cfgs:
            cfg = Cfg.read(path)
            for name in cfg.properties:
                single = folder / "Single.cfg"
                single.write_text(
                    f"SPECIFICATION {cfg.specification}\nCONSTANTS{cfg.constants}\nPROPERTY {name}\n"
                )
                result = Tlc().run(folder / bounded.name, single, timeout_s=600.0)
                if result.outcome is not Outcome.OK:
                    return f"property {name}"
    return None
