"""Random well-sorted scripts over what every engine knows, and what one mistake makes of them."""

from __future__ import annotations

import re
from random import Random

BOOL = 0  # every other sort is a width
_WIDTHS = (1, 3, 4, 8)
_UNARY = ("bvnot", "bvneg")
_MANY = ("bvand", "bvor", "bvxor", "bvadd", "bvmul")
_BINARY = (
    "bvnand",
    "bvnor",
    "bvxnor",
    "bvsub",
    "bvudiv",
    "bvurem",
    "bvsdiv",
    "bvsrem",
    "bvsmod",
    "bvshl",
    "bvlshr",
)
_PREDICATES = (
    "bvult",
    "bvule",
    "bvsgt",
    "bvsge",
    "bvuaddo",
    "bvsaddo",
    "bvumulo",
    "bvsmulo",
    "bvusubo",
    "bvssubo",
)
_TOKEN = re.compile(r"\(_ [^()]*\)|[()]|[^\s()]+")


def sort_text(sort: int) -> str:
    return f"(_ BitVec {sort})" if sort else "Bool"


def sorted_script(seed: int) -> str:
    """The script that belongs to ``seed``: constants, a function, an array, a definition, two assertions."""
    return "\n".join(_Generator(Random(seed)).lines())


def mutated(seed: int) -> str:
    """The same with one token of the assertions replaced, dropped or doubled; parentheses always match."""
    rnd = Random(seed)
    *head, assertion, check = _Generator(rnd).lines()
    tokens = _TOKEN.findall(assertion)
    at = rnd.choice([at for at, token in enumerate(tokens) if token not in "()" and at > 1])
    other = rnd.choice([token for token in tokens if token not in ("(", ")", "assert", "let")])
    tokens[at : at + 1] = rnd.choice(([other], [], [tokens[at]] * 2, ["p"], ["a8"], ["(", tokens[at], ")"]))
    return "\n".join([*head, " ".join(tokens), check])


class _Generator:
    def __init__(self, rnd: Random) -> None:
        self._rnd = rnd
        self._names = {f"a{width}": width for width in _WIDTHS} | {"p": BOOL}
        self._count = 0

    def lines(self) -> list[str]:
        constants = [f"(declare-const {name} {sort_text(sort)})" for name, sort in self._names.items()]
        return [
            "(set-logic QF_AUFBV)",
            *constants,
            f"(declare-fun f ({sort_text(4)} Bool) {sort_text(8)})",
            f"(declare-const m (Array {sort_text(3)} {sort_text(8)}))",
            f"(define-fun d ((v {sort_text(8)})) Bool (bvult v a8))",
            f"(assert {self.term(BOOL, 4)})",
            f"(assert {self.term(BOOL, 3)})",
            "(check-sat)",
        ]

    def term(self, sort: int, depth: int) -> str:
        rnd = self._rnd
        if depth == 0:
            return rnd.choice([name for name, of in self._names.items() if of == sort] + self._literals(sort))
        shape = rnd.randrange(8)
        if shape == 0:
            return self._let(sort, depth - 1)
        if shape == 1:
            condition, *choices = (self.term(of, depth - 1) for of in (BOOL, sort, sort))
            return f"(ite {condition} {' '.join(choices)})"
        return self._formula(depth - 1) if sort == BOOL else self._vector(sort, depth - 1)

    def _literals(self, sort: int) -> list[str]:
        if sort == BOOL:
            return ["true", "false"]
        return [
            f"#b{self._rnd.randrange(1 << sort):0{sort}b}",
            f"(_ bv{self._rnd.randrange(1 << sort)} {sort})",
        ]

    def _let(self, sort: int, depth: int) -> str:
        names = [self._fresh(), self._rnd.choice([*self._names])]
        sorts = [self._rnd.choice((BOOL, *_WIDTHS)) for _ in names]
        bindings = " ".join(f"({name} {self.term(of, depth)})" for name, of in zip(names, sorts, strict=True))
        outer = dict(self._names)
        self._names.update(zip(names, sorts, strict=True))
        if not set(self._names.values()).issuperset((BOOL, *_WIDTHS)):
            self._names = outer  # every sort keeps a name
            return self.term(sort, depth)
        body = self.term(sort, depth)
        self._names = outer
        return f"(let ({bindings}) {body})"

    def _fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _formula(self, depth: int) -> str:
        rnd = self._rnd
        width = rnd.choice(_WIDTHS)

        def some(sort: int, least: int, most: int) -> str:
            return " ".join(self.term(sort, depth) for _ in range(rnd.randint(least, most)))

        return rnd.choice(
            (
                lambda: f"(not {some(BOOL, 1, 1)})",
                lambda: f"({rnd.choice(('and', 'or', 'xor', '=>'))} {some(BOOL, 2, 3)})",
                lambda: f"({rnd.choice(('=', 'distinct'))} {some(rnd.choice((BOOL, width)), 2, 3)})",
                lambda: f"({rnd.choice(_PREDICATES)} {some(width, 2, 2)})",
                lambda: f"(d {some(8, 1, 1)})",
                lambda: f"(= m (store m {some(3, 1, 1)} {some(8, 1, 1)}))",
                lambda: f"(bvnego {some(width, 1, 1)})",
            )
        )()

    def _vector(self, width: int, depth: int) -> str:
        rnd = self._rnd

        def some(least: int, most: int, sort: int = width) -> str:
            return " ".join(self.term(sort, depth) for _ in range(rnd.randint(least, most)))

        shapes = [
            lambda: f"({rnd.choice(_UNARY)} {some(1, 1)})",
            lambda: f"({rnd.choice(_MANY)} {some(2, 3)})",
            lambda: f"({rnd.choice(_BINARY)} {some(2, 2)})",
            lambda: f"((_ {rnd.choice(('rotate_left', 'rotate_right'))} {rnd.randrange(9)}) {some(1, 1)})",
        ]
        if width == 1:
            shapes.append(lambda: f"({rnd.choice(('bvredor', 'bvredand'))} {some(1, 1, 8)})")
            shapes.append(lambda: f"(bvcomp {some(2, 2, 3)})")
        if width == 3:
            shapes.append(lambda: f"((_ extract 4 2) {some(1, 1, 8)})")
        if width == 4:
            shapes.append(lambda: f"(concat {some(1, 1, 3)} {some(1, 1, 1)})")
            shapes.append(lambda: f"((_ zero_extend 1) {some(1, 1, 3)})")
        if width == 8:
            shapes.append(lambda: f"(f {some(1, 1, 4)} {some(1, 1, BOOL)})")
            shapes.append(lambda: f"(select m {some(1, 1, 3)})")
            shapes.append(lambda: f"((_ repeat 2) {some(1, 1, 4)})")
            shapes.append(lambda: f"((_ sign_extend 4) {some(1, 1, 4)})")
        return rnd.choice(shapes)()
