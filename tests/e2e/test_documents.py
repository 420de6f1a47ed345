"""What the documents tell people to do is done here."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.campaign import Place
from tests.service.support import equation

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
SYMCC_LOG = """Trying to solve:
(declare-fun stdin0 () (_ BitVec 8))
(assert (bvult #x40 stdin0))

Found diverging input:
stdin0 -> #x41
Trying to solve:
(declare-fun stdin0 () (_ BitVec 8))
(assert (= #x40 stdin0))
(assert (= #x41 stdin0))

Can't find a diverging input at this point
"""


def blocks(page: str, language: str = "") -> list[str]:
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}, (
                anchor
            )


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_python_is_run_as_it_stands(place: Place, page: str) -> None:
    place.file("a.smt2", equation(1))
    program = "\n".join(blocks(page, "python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=place.folder,
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(" sat")


def test_a_log_of_symcc_becomes_scripts(place: Place) -> None:
    place.file("symcc.log", SYMCC_LOG)
    [recipe] = [block for block in blocks("docs/clients.md") if "awk" in block]
    awk = recipe[recipe.index("mkdir") : recipe.index("smtspool submit")]
    subprocess.run(["sh", "-ec", awk], cwd=place.folder, check=True)
    answered = place.run("solve", *sorted((place.folder / "queries").iterdir())).stdout
    assert [line.split(": ")[1] for line in answered.splitlines()] == ["sat", "unsat"]


def test_out_is_deleted_and_written_again(place: Place) -> None:
    place.create(("a.smt2", equation(1, name="in_0")), ("b.smt2", equation(1, against=2)))
    place.run("serve", place.root, "--once")
    out = place.root / "out"
    before = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    shutil.rmtree(out)
    place.run("results", place.root, "--export", "inputs")
    assert [path.read_bytes() for path in (place.folder / "inputs").iterdir()] == [b"\1"]
    place.run("republish", place.root, "--all")
    place.run("serve", place.root, "--once")
    after = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert after == before
    assert len(before) >= 3
