"""Operators that not every engine knows, replaced by operators that every engine knows.

An argument that occurs twice in a replacement is bound by a let, so the text grows at most by the template.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from smtspool.query.lexer import tokenize
from smtspool.query.limits import DEFAULT, Limits
from smtspool.query.operators import BIT_VECTORS, CORE, DIALECT, Operator, width_of

__all__ = ["Expansion", "expansion", "written_out"]

_X, _Y, _Z = "arg!1", "arg!2", "arg!3"
_PARAMETERS = (_X, _Y, _Z)

Expansion = tuple[str, ...]  # the tokens of a term over the parameters, or one other operator

_SAME: Mapping[Operator, Expansion] = {
    DIALECT["implies"]: ("=>",),
    DIALECT["iff"]: ("=",),
    DIALECT["if"]: ("ite",),
    # z3 prints these where the divisor cannot be zero; for zero they mean the same as the others.
    **{DIALECT[f"{name}_i"]: (name,) for name in ("bvudiv", "bvurem", "bvsdiv", "bvsrem", "bvsmod")},
}


def _rotation(there: str, back: str) -> Callable[[int], str]:
    def template(width: int) -> str:
        size = f"(_ bv{width} {width})"
        by = f"(bvurem {_Y} {size})"
        return f"(bvor ({there} {_X} {by}) ({back} {_X} (bvsub {size} {by})))"

    return template


def _parity(width: int) -> str:
    """XOR of all bits: each step folds the upper half onto the lower; the result is the lowest bit."""
    shifts = [1 << step for step in range((width - 1).bit_length())]
    folds = "".join(f"(let (({_X} (bvxor {_X} (bvlshr {_X} (_ bv{by} {width}))))) " for by in shifts)
    return f"{folds}((_ extract 0 0) {_X}){')' * len(shifts)}"


def _signed_product(signs: str) -> Callable[[int], str]:
    """A product overflows upwards if the signs are equal, and downwards if they differ."""

    def template(width: int) -> str:
        zero = f"(_ bv0 {width})"
        return f"(or (not (bvsmulo {_X} {_Y})) ({signs} (bvslt {_X} {zero}) (bvslt {_Y} {zero})))"

    return template


_TEMPLATES: Mapping[Operator, Callable[[int], str]] = {
    BIT_VECTORS["bvrol"]: _rotation("bvshl", "bvlshr"),
    BIT_VECTORS["bvror"]: _rotation("bvlshr", "bvshl"),
    BIT_VECTORS["bvinc"]: lambda width: f"(bvadd {_X} (_ bv1 {width}))",
    BIT_VECTORS["bvdec"]: lambda width: f"(bvsub {_X} (_ bv1 {width}))",
    BIT_VECTORS["bvredxor"]: _parity,
    BIT_VECTORS["bvite"]: lambda _: f"(ite (= {_X} #b1) {_Y} {_Z})",
    DIALECT["bvumul_noovfl"]: lambda _: f"(not (bvumulo {_X} {_Y}))",
    DIALECT["bvsmul_noovfl"]: _signed_product("xor"),
    DIALECT["bvsmul_noudfl"]: _signed_product("="),
}
_ALONE = frozenset((CORE["and"], CORE["or"]))  # of one argument z3 and cvc5 take them


def expansion(operator: Operator, sorts: Sequence[str]) -> Expansion | None:
    """The replacement for an application to arguments of these sorts; None if it may stay as it is."""
    if operator in _TEMPLATES:
        return _expansion(operator, width_of(sorts[0]) or 0)
    return (_X,) if len(sorts) == 1 and operator in _ALONE else _SAME.get(operator)


@lru_cache(maxsize=1 << 8)
def _expansion(operator: Operator, width: int) -> Expansion:
    return tuple(tokenize(_TEMPLATES[operator](width), DEFAULT))


def written_out(tokens: Sequence[str], expansions: Mapping[int, Expansion], limits: Limits) -> list[str]:
    """``tokens`` of a term with each application that ends at one of these places replaced.

    Raises ``AdmissionError`` (too-large).
    """
    limits.hold("expansion", sum([len(" ".join(expanded)) for expanded in expansions.values()]))
    # Lists of tokens and of such lists, so that no token is copied more than twice.
    node: list[Any] = []
    outer: list[list[Any]] = []
    for at, token in enumerate(tokens):
        if token == "(":
            outer.append(node)
            node = ["("]
        elif token == ")":
            expanded = expansions.get(at)
            if expanded is None:
                node.append(")")
                closed = node
            else:
                closed = _instance(expanded, node[2:])
            node = outer.pop()
            node.append(closed)
        else:
            node.append(token)
    return _flat(node)


def _instance(expanded: Expansion, arguments: list[Any]) -> list[Any]:
    if len(expanded) == 1 and expanded[0] not in _PARAMETERS:
        return ["(", *expanded, *arguments, ")"]
    given = dict(zip(_PARAMETERS, arguments, strict=False))
    if "let" not in expanded and all(
        isinstance(argument, str) or expanded.count(name) == 1 for name, argument in given.items()
    ):
        return [given.get(token, token) for token in expanded]
    bindings = [part for name, argument in given.items() for part in ("(", name, argument, ")")]
    return ["(", "let", "(", *bindings, ")", *expanded, ")"]


def _flat(node: list[Any]) -> list[str]:
    flat: list[str] = []
    stack = [iter(node)]
    while stack:
        for part in stack[-1]:
            if isinstance(part, str):
                flat.append(part)
            else:
                stack.append(iter(part))
                break
        else:
            stack.pop()
    return flat
