"""Small faults in a TLA+ module, generated from its text.

Operators change one place of one definition that belongs to ``Init``, ``Next`` or ``Fairness``. Definitions
that the properties use are not changed, since a property must not change together with what it checks.
Columns have a meaning in TLA+ (the bullets of a list stand in one column), so a change keeps the columns of
the text that follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path

from .module import identifiers, strip_comments, variables

__all__ = ["OPERATORS", "Definition", "ModelMutant", "Module", "model_mutants"]

OPERATORS = (
    "drop guard",
    "negate guard",
    "negate condition",
    "drop assignment",
    "off by one",
    "swap constants",
    "drop disjunct",
    "drop fairness",
)
_DEFINITION = re.compile(
    r"^([A-Za-z_]\w*)(\([^)\n]*\))?[ ]*==(.*?)(?=^[A-Za-z_]\w*(?:\([^)\n]*\))?[ ]*==|^ASSUME|^-{4}|^={4}|\Z)",
    re.MULTILINE | re.DOTALL,
)
_TOKEN = re.compile(
    r'"[^"]*"|[A-Za-z_]\w*|\d+|/\\|\\/|\\[A-Za-z]+|==|<=>|=>|\|->|->|<-|=<|<=|>=|<<|>>|\[\]|<>|~>|\.\.|\S'
)
_OPENING, _CLOSING = {"(", "[", "{", "<<"}, {")", "]", "}", ">>"}
_JUNCTIONS = {"/\\", "\\/"}
# What an operand that begins with them reaches over, to the end of its level.
_WIDE = {"IF", "LET", "CASE", "\\E", "\\A", "CHOOSE"}
_BEFORE_OPERAND = {"CASE", "IF", "THEN", "ELSE", "IN", ":", "->", "==", "=>", "<=>", "[]", ",", "~"}
_NEIGHBOURS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition that begins at the margin. ``body`` has no comments, and each line keeps its columns."""

    name: str
    parameters: str  # "(c, f)", or nothing
    body: str

    def named(self, name: str, body: str | None = None) -> str:
        """The definition under another name, perhaps with another body."""
        return f"{name}{self.parameters} ==\n{self.body if body is None else body}"


class Module:
    """The text of a module, and its definitions by name."""

    def __init__(self, path: Path, *, variables_in: Path | None = None) -> None:
        self.path = path
        self.text = _blanked(path.read_text())
        self.definitions: Mapping[str, Definition] = {
            hit[1]: Definition(hit[1], hit[2] or "", _own_line(hit[0], hit[3]))
            for hit in _DEFINITION.finditer(self.text)
        }
        self.variables = variables(variables_in or path)

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The definitions that the properties of the module use."""
        return self.closure(*(name for name, _ in identifiers(self.path).values()))

    def closure(self, *names: str) -> frozenset[str]:
        """The definitions that ``names`` consist of, directly or not, themselves included."""
        found: set[str] = set()
        pending = [name for name in names if name in self.definitions]
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                words = set(re.findall(r"[A-Za-z_]\w*", self.definitions[name].body))
                pending += sorted(words & set(self.definitions))
        return frozenset(found)

    def assigned(self, text: str) -> tuple[str, ...]:
        """The variables whose next value a part of a step defines, itself or through an operator."""
        found = set(re.findall(r"\b(\w+)'\s*(?:=|\\in\b)", text))
        for kept in re.findall(r"UNCHANGED\s*(<<[^>]*>>|\w+)", text):
            found |= set(re.findall(r"\w+", kept))
        for word in set(re.findall(r"[A-Za-z_]\w*", text)) & set(self.definitions):
            inner = self.definitions[word].body
            if "'" in inner or "UNCHANGED" in inner:
                found |= set(self.assigned(inner))
            elif word in found:  # a tuple of variables
                found |= set(re.findall(r"\w+", inner))
        return tuple(name for name in self.variables if name in found)


@dataclass(frozen=True, slots=True)
class ModelMutant:
    """One change in one definition. ``digest`` is of what was changed, and into what."""

    name: str
    operator: str
    definition: Definition
    body: str
    change: str

    @property
    def digest(self) -> str:
        """Of the definition and the change."""
        return sha256(f"{self.definition.body}\0{self.body}".encode()).hexdigest()[:16]


def _blanked(text: str) -> str:
    """``text`` with comments replaced by spaces, so that everything else keeps its place."""

    def blank(hit: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", hit[0])

    return re.sub(r"\\\*[^\n]*", blank, re.sub(r"\(\*.*?\*\)", blank, text, flags=re.DOTALL))


def _own_line(whole: str, body: str) -> str:
    """A body whose first line is padded to the column where it stood behind its name."""
    padded = " " * (len(whole) - len(body)) + body
    return "\n".join(line.rstrip() for line in padded.strip("\n").splitlines() if line.strip()) + "\n"


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    end: int
    line: int
    column: int
    depth: int  # of brackets around it; an opening and a closing one stand outside
    bullet: bool
    inside: tuple[int, ...]  # the bullets whose items it is in, from the outermost


def _tokens(body: str) -> list[_Token]:
    found: list[_Token] = []
    open_: list[int] = []  # bullets
    depth = 0
    line, begin = 0, 0
    for hit in _TOKEN.finditer(body):
        text = hit[0]
        line += body.count("\n", begin, hit.start())
        begin = hit.start()
        column = hit.start() - (body.rfind("\n", 0, hit.start()) + 1)
        depth -= text in _CLOSING
        while open_ and (
            depth < found[open_[-1]].depth
            or (line > found[open_[-1]].line and column <= found[open_[-1]].column)
        ):
            open_.pop()
        before = found[-1] if found else None
        bullet = text in _JUNCTIONS and (
            before is None or before.text in _BEFORE_OPERAND | _OPENING or before.bullet or before.line < line
        )
        found.append(_Token(text, hit.start(), hit.end(), line, column, depth, bullet, tuple(open_)))
        if bullet:
            open_.append(len(found) - 1)
        depth += text in _OPENING
    return found


class _Body:
    """The operands of the junctions of one body."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)

    def operands(self, junction: str) -> Iterator[tuple[int, int]]:
        """The text spans of the operands of every list, and every chain, of ``junction``."""
        spans: set[tuple[int, int]] = set()
        for index, token in enumerate(self.tokens):
            if token.text != junction:
                continue
            end = self._right(index)
            if token.bullet and end < len(self.tokens) and self.tokens[end].text in _JUNCTIONS - {junction}:
                end = self._right(index, chains=False)
            spans.add((index + 1, end))
            if not token.bullet:
                start = self._left(index)
                before = self.tokens[start - 1] if start else None
                if before is None or before.text not in _JUNCTIONS:
                    spans.add((start, index))
        for start, end in sorted(spans):
            yield self.tokens[start].start, self.tokens[end - 1].end

    def conditions(self) -> Iterator[tuple[int, int]]:
        """The text spans between IF and THEN."""
        for index, token in enumerate(self.tokens):
            if token.text == "IF":
                end = self._right(index, chains=False)
                yield self.tokens[index + 1].start, self.tokens[end - 1].end

    def _right(self, index: int, *, chains: bool = True) -> int:
        """Where the operand behind a junction, or a word, ends."""
        first = self.tokens[index]
        home = (*first.inside, index) if first.bullet else first.inside
        wide = False
        waiting = {"IF": 0, "LET": 0, "CASE": 0}
        for position in range(index + 1, len(self.tokens)):
            token = self.tokens[position]
            if token.depth < first.depth or token.inside[: len(home)] != home:
                return position
            if token.depth > first.depth or token.inside != home:
                continue
            text = token.text
            if text in waiting:
                waiting[text] += 1
            if (text in ("THEN", "ELSE") and not waiting["IF"]) or (text == "IN" and not waiting["LET"]):
                return position
            waiting["IF"] -= text == "ELSE"
            waiting["LET"] -= text == "IN"
            wide = wide or text in _WIDE
            if not wide and (text in ("=>", "<=>", ",", "[]", "->") or (chains and text in _JUNCTIONS)):
                return position
            after = self.tokens[position + 1].text if position + 1 < len(self.tokens) else ""
            if after == "==" and not waiting["LET"]:
                return position
        return len(self.tokens)

    def _left(self, index: int) -> int:
        """Where the operand ahead of an infix junction begins."""
        first = self.tokens[index]
        for position in range(index - 1, -1, -1):
            token = self.tokens[position]
            if token.depth < first.depth or token.inside != first.inside:
                return position + 1
            if token.depth == first.depth and (token.text in _BEFORE_OPERAND or token.text in _JUNCTIONS):
                return position + 1
        return 0

    def replaced(self, start: int, end: int, new: str) -> str:
        """The body with ``new``, which is one line, for a span, and what follows where it stood."""
        rest = self.text[end:]
        column = end - (self.text.rfind("\n", 0, end) + 1)
        here = start - (self.text.rfind("\n", 0, start) + 1) + len(new)
        if not rest or rest.startswith("\n"):
            pad = ""
        elif here <= column and "\n" not in self.text[start:end]:
            pad = " " * (column - here)
        else:
            pad = "\n" + " " * column
        return self.text[:start] + new + pad + rest


def _one_line(text: str) -> str | None:
    """``text`` on one line; None where that would break a list."""
    bullets = any(token.bullet for token in _tokens(text))
    return None if bullets and "\n" in text else " ".join(text.split())


Change = tuple[int, int, str]


def _guards(module: Module, body: _Body, *, initial: bool = False) -> Iterator[tuple[str, Change]]:
    for start, end in body.operands("/\\"):
        text = body.text[start:end]
        assigned = module.assigned(text)
        if initial and re.match(rf"({'|'.join(module.variables)}) (=|\\in) ", text):
            continue  # what gives a variable its first value cannot be left out, or be anything else
        if not assigned:
            yield "drop guard", (start, end, "TRUE")
            line = _one_line(text)
            if line is not None:
                yield "negate guard", (start, end, f"~({line})")
        elif not text.startswith("UNCHANGED"):
            yield "drop assignment", (start, end, f"UNCHANGED <<{', '.join(assigned)}>>")


def _conditions(module: Module, body: _Body) -> Iterator[tuple[str, Change]]:
    for start, end in body.conditions():
        line = _one_line(body.text[start:end])
        if line is not None:
            yield "negate condition", (start, end, f"~({line})")


def _disjuncts(module: Module, body: _Body) -> Iterator[tuple[str, Change]]:
    for start, end in body.operands("\\/"):
        yield "drop disjunct", (start, end, "FALSE")


def _numbers(module: Module, body: _Body) -> Iterator[tuple[str, Change]]:
    for token in body.tokens:
        if token.text.isdigit():
            number = int(token.text)
            for other in {number + 1, max(0, number - 1)} - {number}:
                yield "off by one", (token.start, token.end, str(other))
        elif token.text in _NEIGHBOURS:
            yield "off by one", (token.start, token.end, _NEIGHBOURS[token.text])


def _constants(module: Module, body: _Body) -> Iterator[tuple[str, Change]]:
    swaps = {"TRUE": "FALSE", "FALSE": "TRUE", **_kin(module)}
    for token in body.tokens:
        if token.text in swaps:
            yield "swap constants", (token.start, token.end, swaps[token.text])


def _kin(module: Module) -> Mapping[str, str]:
    """Each constant -> the next of its kind: strings of one set, constants declared on one line."""
    text = strip_comments(module.path.read_text())
    groups = [re.findall(r'"[^"]*"', hit) for hit in re.findall(r"\{([^{}]*)\}", text)]
    declared = re.search(r"^CONSTANTS?\b(.*?)\n\s*\n", text, re.DOTALL | re.MULTILINE)
    groups += [re.findall(r"\w+", line) for line in declared[1].splitlines()] if declared else []
    found: dict[str, str] = {}
    for group in groups:
        for one, other in zip(group, [*group[1:], *group[:1]], strict=True):
            if one != other:
                found.setdefault(one, other)
    return found


def _fairness(module: Module, body: _Body) -> Iterator[tuple[str, Change]]:
    for start, end in body.operands("/\\"):
        yield "drop fairness", (start, end, "TRUE")


def model_mutants(module: Module) -> Sequence[ModelMutant]:
    """All of them, in the order of the module. The names say definition, operator and number."""
    steps = module.closure("Init", "Next") - module.spoken
    found: list[ModelMutant] = []
    bodies: set[tuple[str, str]] = set()
    for definition in module.definitions.values():
        body = _Body(definition.body)
        if definition.name == "Fairness":
            changes = list(_fairness(module, body))
        elif definition.name in steps:
            guards = partial(_guards, initial=definition.name == "Init")
            kinds = (guards, _conditions, _numbers, _constants, _disjuncts)
            changes = [change for kind in kinds for change in kind(module, body)]
        else:
            continue
        numbers: dict[str, int] = {}
        for operator, (start, end, new) in changes:
            text = body.replaced(start, end, new)
            if (definition.name, " ".join(text.split())) in bodies or text == definition.body:
                continue
            bodies.add((definition.name, " ".join(text.split())))
            numbers[operator] = numbers.get(operator, 0) + 1
            name = f"{definition.name}: {operator} {numbers[operator]}"
            old = " ".join(definition.body[start:end].split())
            found.append(ModelMutant(name, operator, definition, text, f"{old} -> {new}"))
    return found
