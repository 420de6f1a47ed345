"""TLA+ values as TLC prints them, as hashable Python values, and back to one canonical text.

=====================  =============================================
TLA+                   Python
=====================  =============================================
``TRUE``, ``FALSE``    ``bool``
integer                ``int``
``"text"``             ``str``
sequence, tuple        ``tuple``
set, interval          ``frozenset``
record, function       :class:`Function` (a record is a function of strings)
model value            :class:`Model`
=====================  =============================================

A function whose domain is ``1..n`` *is* a sequence, so :func:`function` builds a tuple of it and no value
has two representations. TLC refuses to compare a boolean with an integer, so no set and no domain mixes them;
Python does not tell ``True`` from ``1``, which is why states are compared by canonical text. Parser and
printer are total and iterative: every text is a value or a :class:`ValueSyntaxError`, at any depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

__all__ = [
    "Function",
    "Model",
    "Value",
    "ValueSyntaxError",
    "function",
    "parse",
    "parse_state",
    "show",
    "show_state",
]

MAX_INTERVAL = 1_000_000  # elements of one printed ``a..b`` that are unfolded


class ValueSyntaxError(ValueError):
    """The text is not a TLA+ value as TLC prints it; the message names the offset."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model value: equal to itself and to nothing else."""

    name: str


class Function(Mapping["Value", "Value"]):
    """A function with a finite domain, hashable. Build it with :func:`function`."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[Value, Value]) -> None:
        self._items = dict(items)
        self._hash = hash(frozenset(self._items.items()))

    def __getitem__(self, key: Value) -> Value:
        return self._items[key]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Function) and self._items == other._items

    def __repr__(self) -> str:
        return show(self)


Value = Union[bool, int, str, Model, "tuple[Value, ...]", "frozenset[Value]", Function]


def function(items: Mapping[Any, Value]) -> Value:
    """The function with these points: a tuple when its domain is ``1..n``, else a :class:`Function`."""
    if all(type(key) is int for key in items):
        length = len(items)
        if all(index in items for index in range(1, length + 1)):
            return tuple(items[index] for index in range(1, length + 1))
    return Function(items)


# --- reading -----------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<interval>-?\d+\s*\.\.\s*-?\d+)
      | (?P<number>-?\d+(?![A-Za-z_0-9]))
      | (?P<name>[A-Za-z_0-9]*[A-Za-z_][A-Za-z_0-9!]*)
      | (?P<mark><<|>>|\|->|:>|@@|/\\|[][{}(),=])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", '"': '"', "\\": "\\"}
_CLOSING = {"<<": ">>", "{": "}", "[": "]", "(": ")"}


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    offset: int


def _tokens(text: str) -> Iterator[_Token]:
    offset, end = 0, len(text.rstrip())
    while offset < end:
        match = _TOKEN.match(text, offset)
        if match is None or match.lastgroup is None:
            raise ValueSyntaxError(f"offset {offset}: unexpected {text[offset : offset + 20]!r}")
        yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        offset = match.end()
    yield _Token("end", "", end)


def _atom(token: _Token) -> Value:
    if token.kind == "number":
        return int(token.text)
    if token.kind == "string":
        try:
            return re.sub(r"\\(.)", lambda hit: _ESCAPES[hit[1]], token.text[1:-1], flags=re.DOTALL)
        except KeyError as error:
            raise ValueSyntaxError(f"offset {token.offset}: unknown escape {error}") from None
    if token.kind == "interval":
        low, high = (int(part) for part in token.text.split(".."))
        if high - low >= MAX_INTERVAL:
            raise ValueSyntaxError(f"offset {token.offset}: interval of {high - low + 1} elements")
        return frozenset(range(low, high + 1))
    if token.kind == "name":
        return {"TRUE": True, "FALSE": False}.get(token.text, Model(token.text))
    raise ValueSyntaxError(f"offset {token.offset}: expected a value, found {token.text!r}")


@dataclass(slots=True)
class _Open:
    """A bracket whose members are still being read. ``key`` is a member's left side, once it is known."""

    bracket: str
    offset: int
    values: list[Value]
    items: dict[Value, Value]
    key: Value | None = None
    has_key: bool = False

    def close(self) -> Value:
        if self.bracket == "<<":
            return tuple(self.values)
        if self.bracket == "{":
            return frozenset(self.values)
        return function(self.items)


class _Reader:
    """Reads values from one text with an explicit stack of open brackets."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)

    def take(self) -> _Token:
        token = self._next
        if token.kind != "end":
            self._next = next(self._tokens)
        return token

    def at(self, mark: str) -> bool:
        return self._next.kind == "mark" and self._next.text == mark

    def expect(self, mark: str) -> None:
        if not self.at(mark):
            raise ValueSyntaxError(
                f"offset {self._next.offset}: expected {mark!r}, found {self._next.text!r}"
            )
        self.take()

    def name(self) -> str:
        token = self.take()
        if token.kind != "name":
            raise ValueSyntaxError(f"offset {token.offset}: expected a name, found {token.text!r}")
        return token.text

    @property
    def finished(self) -> bool:
        return self._next.kind == "end"

    def value(self) -> Value:
        stack: list[_Open] = []
        while True:
            token = self.take()
            if token.kind == "mark" and token.text in _CLOSING:
                frame = _Open(token.text, token.offset, [], {})
                if not self.at(_CLOSING[frame.bracket]):
                    self._begin_member(frame)
                    stack.append(frame)
                    continue
                if frame.bracket == "(":
                    raise ValueSyntaxError(f"offset {token.offset}: empty parentheses")
                self.take()
                done = frame.close()
            else:
                done = _atom(token)
            while stack:
                if self._add(stack[-1], done):
                    done = stack.pop().close()
                else:
                    break
            else:
                return done

    def _begin_member(self, frame: _Open) -> None:
        if frame.bracket == "[":
            frame.key, frame.has_key = self.name(), True
            self.expect("|->")

    def _add(self, frame: _Open, value: Value) -> bool:
        """Put ``value`` where ``frame`` waits for one; True when the bracket is closed after it."""
        if frame.bracket == "(" and not frame.has_key:
            self.expect(":>")
            frame.key, frame.has_key = value, True
            return False
        if frame.has_key:
            assert frame.key is not None
            if frame.key in frame.items:
                raise ValueSyntaxError(f"offset {frame.offset}: {show(frame.key)} twice in one domain")
            frame.items[frame.key] = value
            frame.key, frame.has_key = None, False
        else:
            frame.values.append(value)
        if self.at(_CLOSING[frame.bracket]):
            self.take()
            return True
        self.expect("@@" if frame.bracket == "(" else ",")
        self._begin_member(frame)
        return False


def parse(text: str) -> Value:
    """The value that ``text`` prints. Raises :class:`ValueSyntaxError`."""
    reader = _Reader(text)
    value = reader.value()
    if not reader.finished:
        token = reader.take()
        raise ValueSyntaxError(f"offset {token.offset}: {token.text!r} after the value")
    return value


def parse_state(text: str) -> dict[str, Value]:
    """The state that ``/\\ x = 1 /\\ y = {}`` prints (TLC leaves the ``/\\`` out for a single variable)."""
    reader = _Reader(text)
    state: dict[str, Value] = {}
    while not reader.finished:
        if reader.at("/\\"):
            reader.take()
        elif state:
            raise ValueSyntaxError("two variables without a conjunction between them")
        name = reader.name()
        reader.expect("=")
        if name in state:
            raise ValueSyntaxError(f"variable {name} twice in one state")
        state[name] = reader.value()
    if not state:
        raise ValueSyntaxError("a state without variables")
    return state


# --- writing -----------------------------------------------------------------------------------------

_UNESCAPES = {plain: "\\" + letter for letter, plain in _ESCAPES.items()}
_IDENTIFIER = re.compile(r"[A-Za-z_0-9]*[A-Za-z_][A-Za-z_0-9]*\Z")


def _show_string(text: str) -> str:
    return '"' + "".join(_UNESCAPES.get(letter, letter) for letter in text) + '"'


def _order(shown: tuple[Value, str]) -> tuple[int, int, str]:
    value, text = shown
    return (0, value, "") if type(value) is int else (1, 0, text)


def _show_composite(value: Value, shown: Iterable[str]) -> str:
    parts = list(shown)
    if isinstance(value, tuple):
        return "<<" + ", ".join(parts) + ">>"
    if isinstance(value, frozenset):
        ordered = sorted(zip(value, parts, strict=True), key=_order)
        return "{" + ", ".join(text for _, text in ordered) + "}"
    assert isinstance(value, Function)
    half = len(parts) // 2
    points = sorted(
        ((key, text, image) for key, text, image in zip(value, parts[:half], parts[half:], strict=True)),
        key=lambda point: _order((point[0], point[1])),
    )
    if all(isinstance(key, str) and _IDENTIFIER.match(key) for key in value):
        return "[" + ", ".join(f"{key} |-> {image}" for key, _, image in points) + "]"
    return "(" + " @@ ".join(f"{text} :> {image}" for _, text, image in points) + ")"


def _members(value: Value) -> list[Value] | None:
    if isinstance(value, (tuple, frozenset)):
        return list(value)
    if isinstance(value, Function):
        return [*value, *value.values()]
    return None


def _show_atom(value: Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _show_string(value)
    if isinstance(value, Model):
        return value.name
    raise TypeError(f"not a TLA+ value: {value!r}")


def show(value: Value) -> str:
    """The canonical text of ``value``: members of sets and domains in one fixed order."""
    texts: list[str] = []
    work: list[Callable[[], None]] = []

    def visit(node: Value) -> None:
        members = _members(node)
        if members is None:
            texts.append(_show_atom(node))
            return
        count = len(members)

        def assemble() -> None:
            start = len(texts) - count
            parts = texts[start:]
            del texts[start:]
            texts.append(_show_composite(node, parts))

        work.append(assemble)
        for member in reversed(members):
            work.append(lambda member=member: visit(member))  # type: ignore[misc]

    visit(value)
    while work:
        work.pop()()
    return texts[0]


def show_state(state: Mapping[str, Value]) -> str:
    """One line: the variables in alphabetical order."""
    return " ".join(f"/\\ {name} = {show(state[name])}" for name in sorted(state))
