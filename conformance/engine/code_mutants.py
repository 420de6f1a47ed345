"""Small faults in the code of a protocol, generated from its syntax.

Only functions that take steps of the model are changed, which are those with an ``action`` in them. A mutant
replaces the text of one whole function, so it applies only while that function is unchanged.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from textwrap import dedent, indent

from .mutants import Mutant, MutantError, Substitution

__all__ = ["OPERATORS", "CodeMutant", "code_mutants"]

OPERATORS = (
    "drop statement",
    "negate condition",
    "drop operand",
    "swap statements",
    "drop except",
    "drop finally",
)
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class CodeMutant:
    """One change in one function."""

    mutant: Mutant
    operator: str
    text: str  # of the place, whole

    @property
    def digest(self) -> str:
        """Of the changed place and the change, but of nothing else in the function."""
        return sha256(f"{self.mutant.name}\0{self.mutant.fault}\0{self.text}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Site:
    """A place in a tree, and the change to make there."""

    operator: str
    told: str
    change: Callable[[], None]
    place: ast.AST


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 70 else f"{text[:67]}..."


def _put(block: list[ast.stmt], index: int, new: list[ast.stmt]) -> Callable[[], None]:
    def change() -> None:
        block[index : index + 1] = new

    return change


def _set(owner: ast.AST, field: str, value: ast.expr) -> Callable[[], None]:
    return lambda: setattr(owner, field, value)


def _blocks(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Lambda):
            continue
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _is_droppable(statement: ast.stmt) -> bool:
    """Whether a statement may be dropped: not one that only binds a local name, which the rest needs."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        return any(
            isinstance(node, (ast.Attribute, ast.Subscript))
            for t in statement.targets
            for node in ast.walk(t)
        )
    return isinstance(statement, (ast.AugAssign, ast.Delete, ast.Raise, ast.Return, ast.Break, ast.Continue))


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _may_swap(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two statements may be swapped: both have effects, and the second does not need the first."""
    for one in (first, second):
        if isinstance(one, (ast.Return, ast.Raise)) or not any(
            isinstance(n, ast.Call) for n in ast.walk(one)
        ):
            return False
    return not _names(first, ast.Store) & _names(second, ast.Load)


def _swapped(block: list[ast.stmt], index: int) -> Callable[[], None]:
    def change() -> None:
        block[index], block[index + 1] = block[index + 1], block[index]

    return change


def _statements(function: ast.AST) -> Iterator[_Site]:
    # Within one step there is no order that anybody could see.
    atomic = {id(node) for step in ast.walk(function) if _is_step(step) for node in ast.walk(step)} - {
        id(node) for node in ast.walk(function) if _is_step(node)
    }
    for block in _blocks(function):
        for index, statement in enumerate(block):
            if _is_droppable(statement):
                drop = _put(block, index, [ast.Pass()])
                yield _Site("drop statement", f"no {_short(statement)}", drop, statement)
            ordered = index + 1 < len(block) and id(statement) not in atomic
            if ordered and _may_swap(statement, block[index + 1]):
                told = f"{_short(block[index + 1])} ahead of {_short(statement)}"
                yield _Site("swap statements", told, _swapped(block, index), statement)
            if isinstance(statement, ast.Try) and statement.finalbody and not statement.handlers:
                told = f"{_short(statement.finalbody[0])} only after success"
                drop = _put(block, index, [*statement.body, *statement.finalbody])
                yield _Site("drop finally", told, drop, statement.finalbody[0])


def _conditions(function: ast.AST) -> Iterator[_Site]:
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)) and not isinstance(node.test, ast.Constant):
            negated = ast.UnaryOp(ast.Not(), node.test)
            yield _Site("negate condition", _short(negated), _set(node, "test", negated), node.test)
        if isinstance(node, ast.comprehension):
            for index, test in enumerate(node.ifs):
                negated = ast.UnaryOp(ast.Not(), test)
                yield _Site("negate condition", _short(negated), _operand(node.ifs, index, negated), test)
        if isinstance(node, ast.BoolOp):
            for index, operand in enumerate(node.values):
                neutral = ast.Constant(isinstance(node.op, ast.And))
                told = f"no {_short(operand)} in {_short(node)}"
                yield _Site("drop operand", told, _operand(node.values, index, neutral), node)


def _operand(operands: list[ast.expr], index: int, new: ast.expr) -> Callable[[], None]:
    def change() -> None:
        operands[index] = new

    return change


def _handlers(function: ast.AST) -> Iterator[_Site]:
    for node in ast.walk(function):
        if isinstance(node, ast.ExceptHandler):
            kind = "everything" if node.type is None else _short(node.type)
            only = len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and node.body[0].exc is None
            if not only:
                yield _Site("drop except", f"{kind} passes", _put_all(node.body, [ast.Raise()]), node)


def _put_all(block: list[ast.stmt], new: list[ast.stmt]) -> Callable[[], None]:
    def change() -> None:
        block[:] = new

    return change


def _sites(function: ast.AST) -> list[_Site]:
    return [site for kind in (_statements, _conditions, _handlers) for site in kind(function)]


def _is_step(node: ast.AST) -> bool:
    return isinstance(node, ast.With) and any(
        isinstance(call := item.context_expr, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "action"
        for item in node.items
    )


def _takes_steps(node: ast.AST) -> bool:
    return any(map(_is_step, ast.walk(node)))


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _takes_steps(node):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and _takes_steps(method):
                    yield f"{node.name}.{method.name}", method


def code_mutants(module: str) -> Sequence[CodeMutant]:
    """All of one module, in its order. The names say function, operator and number."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise MutantError(f"there is no module {module}")
    text = Path(spec.origin).read_text()
    lines = text.splitlines(keepends=True)
    found: list[CodeMutant] = []
    for name, function in _functions(ast.parse(text)):
        start = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        old = "".join(lines[start - 1 : function.end_lineno])
        whole = ast.parse(dedent(old))
        numbers: dict[str, int] = {}
        for index, site in enumerate(_sites(whole)):
            tree = deepcopy(whole)
            _sites(tree)[index].change()
            new = indent(ast.unparse(ast.fix_missing_locations(tree)), " " * function.col_offset) + "\n"
            numbers[site.operator] = numbers.get(site.operator, 0) + 1
            called = f"{module.rpartition('.')[2]}.{name}: {site.operator} {numbers[site.operator]}"
            change = Substitution(module, old, new)
            place = ast.unparse(site.place)
            found.append(CodeMutant(Mutant(called, site.told, (change,)), site.operator, place))
    return found
