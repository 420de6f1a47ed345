"""The rules of the house (design, "architecture"), held by reading the code itself."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import cast

import pytest
import typer

from smtspool import cli, errors
from smtspool.query import Status

ROOT = Path(__file__).parent.parent
CODE = ROOT / "impl" / "smtspool"
FILES = sorted(CODE.rglob("*.py"))
OTHERS = sorted(
    path for folder in ("conformance", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")
)
MAP = ROOT / "CONTRIBUTING.md"
LONGEST_FILE = 400
CITING = ("impl", "models", "conformance", "docs")
TEXTS = {".cfg", ".md", ".py", ".tla", ".toml", ".tsv"}
LONGEST_LINE_OF_HELP = 60  # so that a list of commands fits a terminal

# Which folders, or single modules, each of them may import.
MAY_IMPORT: dict[str, set[str]] = {
    "actions": set(),
    "backoff": set(),
    "errors": set(),
    "lazily": set(),
    "jsonvalue": set(),
    "forks": set(),
    "threads": {"errors"},
    "files": {"errors", "forks"},
    "query": {"errors", "jsonvalue"},
    "spool": {"actions", "errors", "files", "query"},
    "store": {"backoff", "errors", "forks", "query"},
    "solve": {"actions", "errors", "forks", "query", "threads"},
    "profile": {"actions", "errors", "files", "jsonvalue"},
    "cluster": {"actions", "errors", "files", "jsonvalue"},
    "sample": set(),
}
MAY_IMPORT |= {
    "service": set(MAY_IMPORT),
    "printing": {"errors", "query", "service", "store"},
    "cli": {"cluster", "errors", "printing", "query", "service", "spool", "store"},
    "__main__": {"cli"},
}
# Whose inner modules the tests of a folder may import besides those of the folder with the same name.
ALSO_ABOUT = {"e2e": "service"}


def part_of(path: Path) -> str:
    """The folder of a file under ``impl/smtspool``, or its module name at the top."""
    return path.relative_to(CODE).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[tuple[str, ...]]:
    """What a file imports from this package: ("store",) or ("store", "queue")."""
    here = path.relative_to(CODE.parent).with_suffix("").parts
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [] if node.level == 0 else list(here[: -node.level])
            origin = base + (node.module.split(".") if node.module else [])
            folder = CODE.parent.joinpath(*origin).is_dir()
            inner = folder and (origin == ["smtspool"] or part_of(path) == (origin[1:] or [""])[0])
            modules = [[*origin, alias.name] for alias in node.names] if inner else [origin]
        else:
            continue
        for module in modules:
            if module[0] == "smtspool" and len(module) > 1:
                yield tuple(module[1:])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CODE)))
def test_a_folder_imports_only_what_it_may(path: Path) -> None:
    part = part_of(path)
    if part == "__init__":
        return
    for target, *_ in imports(path):
        assert target in MAY_IMPORT[part] | {part, "__version__", "lazily"}, f"{part} imports {target}"


def mapped(page: str) -> str:
    """The map of the house with its last column as ``MAY_IMPORT`` has it."""
    above: set[str] = set()

    def row(found: re.Match[str]) -> str:
        may = MAY_IMPORT[found["part"]]
        told = "all of the above" if may and may == above else ", ".join(sorted(may)) or "nothing"
        above.add(found["part"])
        return f"{found['before']} {told} |"

    rows = r"^(?P<before>\| `impl/smtspool/(?P<part>\w+)[^|]*\|[^|]*\|)[^|]*\|$"
    return re.sub(rows, row, page, flags=re.MULTILINE)


def test_the_map_of_the_house_says_what_each_folder_may_import() -> None:
    page = MAP.read_text()
    rows = re.findall(r"^\| `impl/smtspool/(\w+)", page, re.MULTILINE)
    assert rows == [part for part in MAY_IMPORT if part != "__main__"]
    assert mapped(page) == page, "write it with `.venv/bin/python -m tests.test_house`"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CODE)))
def test_nobody_imports_a_neighbours_inner_module(path: Path) -> None:
    for target, *inner in imports(path):
        if target != part_of(path):
            assert not inner, f"{'.'.join((target, *inner))} is an inner module"


def inner_imports(path: Path) -> Iterator[tuple[str, ...]]:
    """What a file outside ``impl`` imports from below the folders: ("store", "queue")."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            origin = node.module.split(".")
            modules = [
                [*origin, alias.name] if is_module(origin, alias.name) else origin for alias in node.names
            ]
        else:
            continue
        for top, *inner in modules:
            if top == "smtspool" and len(inner) > 1:
                yield tuple(inner)


def is_module(origin: list[str], name: str) -> bool:
    """Whether ``name`` is a module in the folder ``origin``, and not one of its exports."""
    folder = CODE.parent.joinpath(*origin)
    return (folder / f"{name}.py").exists() and name not in import_module(".".join(origin)).__all__


def test_only_the_tests_of_a_folder_import_its_inner_modules() -> None:
    for path in OTHERS:
        top, about = path.relative_to(ROOT).parts[:2]
        subjects = {about, ALSO_ABOUT.get(about)} if top == "tests" else set()
        for part, *inner in inner_imports(path):
            assert part in subjects, f"{path}: {'.'.join((part, *inner))} is an inner module"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CODE)))
def test_a_file_has_one_subject(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    assert not text or ast.get_docstring(tree_of(path)), "a file begins with what it is"


def test_every_action_has_a_literal_name_in_the_manner_of_the_models() -> None:
    """And every protocol is declared once, under the name of the folder that holds it to its model."""
    declared = []
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id == "Protocol":
                assert path.name == "steps.py", f"{path}:{node.lineno}: a package declares it in its steps"
                declared.append(ast.literal_eval(node.args[0]))
            if node.func.id == "action":
                [name] = node.args
                assert isinstance(name, ast.Constant), f"{path}:{node.lineno}"
                assert re.fullmatch(r"([A-Z]+[a-z]*)+", name.value), f"{path}:{node.lineno}: {name.value}"
    folders = {path.parent.name for path in (ROOT / "conformance").glob("*/system.py")}
    assert sorted(declared) == sorted(folders)


def test_nothing_is_swallowed() -> None:
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, f"{path}:{node.lineno}: a bare except"
                idle = all(isinstance(step, ast.Pass) for step in node.body)
                named = ast.unparse(node.type)
                assert not (idle and named in ("Exception", "BaseException")), f"{path}:{node.lineno}"


@pytest.mark.parametrize("path", [path for path in FILES if path.name == "__init__.py"], ids=part_of)
def test_what_a_folder_exports_exists(path: Path) -> None:
    module = import_module(".".join(path.parent.relative_to(CODE.parent).parts))
    for name in module.__all__:
        assert hasattr(module, name)


def test_what_a_package_imports_on_demand_is_what_it_shows_to_readers() -> None:
    for path in (path for path in FILES if path.name == "__init__.py"):
        module = import_module(".".join(path.parent.relative_to(CODE.parent).parts))
        for block in tree_of(path).body:
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
                shown = [name.name for node in block.body for name in cast(ast.ImportFrom, node).names]
                assert sorted(shown) == dir(module) == sorted(set(module.__all__) - {"__version__"}), path


def test_one_exported_name_is_one_thing() -> None:
    """A folder may hand on what another exports, and no two folders have a name for different things."""
    things: dict[str, set[int]] = {}
    for path in (path for path in FILES if path.name == "__init__.py" and path.parent != CODE):
        module = import_module(".".join(path.parent.relative_to(CODE.parent).parts))
        for name in getattr(module, "__all__", ()):
            things.setdefault(name, set()).add(id(getattr(module, name)))
    assert not [name for name, different in things.items() if len(different) > 1]


def test_no_name_that_a_package_imports_on_demand_is_the_name_of_a_module() -> None:
    for path in (path for path in FILES if path.name == "__init__.py"):
        module = import_module(".".join(path.parent.relative_to(CODE.parent).parts))
        if "__getattr__" in vars(module):
            # Importing such a module binds its name in the package, and the export would not be looked up.
            assert not set(module.__all__) & {one.stem for one in path.parent.iterdir()}


def test_every_command_stands_in_the_module_that_the_table_names() -> None:
    for module, line in cli.COMMANDS.values():
        import_module(f"smtspool.cli.{module}")
        assert line.endswith(".") and len(line) <= LONGEST_LINE_OF_HELP
    commands = typer.main.get_group(cli.app).commands
    assert list(commands) == list(cli.COMMANDS)
    for name, (module, _) in cli.COMMANDS.items():
        functions = (commands[name], *getattr(commands[name], "commands", {}).values())
        homes = {one.callback.__module__ for one in functions if one.callback}
        assert f"smtspool.cli.{module}" in homes, f"{name} is in {homes}"


def test_every_reason_and_status_is_documented() -> None:
    documents = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    for value in (*errors.Reason, *Status):
        assert f"`{value}`" in documents, f"{value!r} is not documented"


def test_every_report_that_is_cited_is_explained_section_by_section() -> None:
    page = ROOT / "docs" / "sources.md"
    paragraph = re.compile(r"^### (F\d+)\n(.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
    explained = dict(paragraph.findall(page.read_text()))
    cited: set[str] = set()
    for path in (path for folder in CITING for path in (ROOT / folder).rglob("*")):
        if path.suffix in TEXTS and path != page:
            text = path.read_text()
            cited.update(re.findall(r"\bF\d{3}\b", text))
            for first, last in re.findall(r"\bF(\d{3})(?:-| to )F(\d{3})\b", text):
                cited.update(f"F{number}" for number in range(int(first), int(last)))
            for report, section in re.findall(r"\b(F\d{3}) (?:§|sections? )(\d(?:\.\d+)*)", text):
                assert re.search(rf"§{section}(?!\.?\d)", explained[report]), f"{path}: {report} §{section}"
    assert cited == set(explained)


def test_commands_of_the_readme_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    assert set(re.findall(r"^\$ smtspool (\w+)", readme, re.MULTILINE)) <= set(cli.COMMANDS)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make (\w+)", readme)) <= targets
    assert {"run", "test", "quick", "bench", "lint", "clean"} <= targets


def test_every_dependency_is_pinned_and_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    pins = {_normal(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    explained = (ROOT / "docs" / "dependencies.md").read_text().lower()
    for requirement in wanted:
        name = re.split(r"[<>=\[ ]", requirement)[0]
        assert _normal(name) in pins, f"{name} is not pinned"
        assert name.lower() in explained, f"{name} is not explained"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_names_of_test_modules_are_unique() -> None:
    names = [path.name for folder in ("tests", "conformance") for path in (ROOT / folder).rglob("test_*.py")]
    assert len(set(names)) == len(names)


if __name__ == "__main__":
    MAP.write_text(mapped(MAP.read_text()))
