"""What ``solve`` and ``submit`` take: folders, compressed files, pipes, standard input, lists of names."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.e2e.campaign import COMMAND, Place
from tests.service.support import PATIENCE_S, equation


@pytest.fixture
def folder(place: Place) -> Path:
    """Four queries at several depths, and what is none."""
    folder = place.folder / "queries"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "b.smt2").write_text(equation(2))
    (folder / "a.smt2.gz").write_bytes(gzip.compress(equation(1).encode()))
    (folder / "deep" / "c.smt2.xz").write_bytes(lzma.compress(equation(3, against=4).encode()))
    (folder / "deep" / "er" / "b.smt2").write_text(equation(4))
    for stranger in ("README.md", ".hidden/x.smt2", ".y.smt2", "deep/z.smt2.tmp"):
        (folder / stranger).write_text("no query")
    return folder


def fed(place: Place, data: bytes, *words: str, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Run the command with ``data`` on its standard input."""
    done = subprocess.run(
        [COMMAND, *words],
        input=data,
        cwd=place.folder,
        env=place.environment(),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


ANSWERS = """\
queries/a.smt2.gz: sat
queries/b.smt2: sat
queries/deep/c.smt2.xz: unsat
queries/deep/er/b.smt2: sat
"""


def test_a_folder_is_all_queries_in_it_in_order(place: Place, folder: Path) -> None:
    assert place.run("solve", "queries").stdout == ANSWERS


def test_a_pipe_in_a_folder_is_not_waited_for(place: Place, folder: Path) -> None:
    os.mkfifo(folder / "nobody-writes.smt2")
    assert place.run("solve", "queries").stdout == ANSWERS


def test_a_folder_without_queries_is_refused_and_the_others_are_answered(place: Place, folder: Path) -> None:
    (place.folder / "empty").mkdir()
    done = place.run("solve", "empty", "queries", code=2)
    assert done.stdout == ANSWERS
    assert done.stderr == "smtspool: empty: a folder in which nothing ends in .smt2 or .json\n"


def test_nothing_to_read_is_misuse(place: Place) -> None:
    assert "nothing to read" in place.run("solve", code=2).stderr
    assert "nothing to read" in fed(place, b"\n", "solve", "--files-from", "-", code=2).stderr.decode()


@pytest.mark.parametrize("end", ["\n", "\0"])
def test_names_may_come_in_a_list(place: Place, folder: Path, end: str) -> None:
    names = "".join(f"queries/{name}{end}" for name in ("a.smt2.gz", "b.smt2", "deep"))
    assert fed(place, names.encode(), "solve", "--files-from", "-").stdout.decode() == ANSWERS
    place.file("list", names)
    assert place.run("solve", "--files-from", "list").stdout == ANSWERS


def test_standard_input_is_one_thing(place: Place) -> None:
    assert "not both" in place.run("solve", "-", "--files-from", "-", code=2).stderr


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_standard_input_tells_what_it_is(place: Place, pack: type[bytes]) -> None:
    assert fed(place, pack(b"\xef\xbb\xbf" + equation(1).encode()), "solve", "-").stdout == b"sat\n"


def test_a_pipe_is_read_to_its_end(place: Place) -> None:
    os.mkfifo(place.folder / "pipe")
    place.run("init", "campaign")
    for words in (("solve", "pipe"), ("submit", "campaign", "pipe")):
        writer = threading.Thread(target=(place.folder / "pipe").write_text, args=(equation(1),))
        writer.start()
        done = place.run(*words)
        writer.join()
        assert done.stdout.startswith(("sat\n", "pipe\t"))
    assert [path.name for path in (place.root / "spool" / "incoming").iterdir()] == ["pipe.smt2"]


def test_a_folder_is_submitted_and_solved_as_it_is(place: Place, folder: Path) -> None:
    place.run("init", "campaign")
    lines = place.run("submit", "campaign", "queries", "queries/a.smt2.gz").stdout.splitlines()
    assert lines[-1] == "5 submitted"
    place.run("serve", "--once", "campaign")
    accepted = sorted(path.name for path in (place.root / "spool" / "accepted").iterdir())
    assert len(accepted) == 5
    assert sum(name.endswith(".smt2.gz") for name in accepted) == 2
    assert not any((place.root / "spool" / "rejected").iterdir())
    answers = place.documents("results", "campaign", "--json")
    assert sorted(answer["status"] for answer in answers) == ["sat", "sat", "sat", "unsat"]


def test_what_is_dropped_is_noted_where_somebody_looks(place: Place) -> None:
    noted = "(set-option :smt.random_seed 7)" + equation(1) + "(exit)" + equation(2)
    notes = [
        "the option :smt.random_seed is unknown and dropped",
        "a check-sat after the last exit is ignored",
    ]
    path = place.file("q.smt2", noted)
    [document] = place.documents("solve", "--json", path)
    assert document["notes"] == notes
    assert document["id"] == place.documents("solve", "--json", place.file("p.smt2", equation(1)))[0]["id"]
    assert place.run("solve", path).stderr == ""
    assert place.run("solve", "-v", "q.smt2").stderr == "".join(
        f"smtspool: q.smt2: {note}\n" for note in notes
    )
    place.run("init", "campaign")
    place.run("submit", "campaign", path)
    log = place.run("serve", "-v", "--once", "campaign").stderr
    assert all(f"q.smt2: {note}" in log for note in notes)
    [result] = (place.root / "out" / "results").iterdir()
    assert json.loads(result.read_text())["notes"] == notes


def test_values_that_a_script_asks_for_follow_the_answer(place: Place) -> None:
    path = place.file(
        "q.smt2", equation(7) + "(get-value ((bvadd x #x01) (= x #x07)))(push)(assert false)(check-sat)"
    )
    printed = place.run("solve", path).stdout
    assert printed == "sat\n(((bvadd x #x01) #x08) ((= x #x07) true))\nunsat\n"
    first, second = place.documents("solve", "--json", path)
    assert first["values"] == {"(bvadd x #x01)": "#x08", "(= x #x07)": "true"}
    assert second["values"] is None


def test_values_are_in_the_results_of_a_campaign(place: Place) -> None:
    place.run("init", "campaign")
    ask = "(get-value ((bvadd x #x01)))"
    renamed = equation(7, name="other")  # of the same form: its model is reused, and its values are its own
    for number, text in enumerate((equation(7) + ask, renamed + "(get-value ((bvnot other)))", equation(8))):
        place.run("submit", "campaign", place.file(f"{number}.smt2", text))
    place.run("serve", "--once", "campaign")
    answers = place.documents("results", "campaign", "--json")
    assert sorted(str(answer["values"]) for answer in answers) == [
        "None",
        "{'(bvadd x #x01)': '#x08'}",
        "{'(bvnot other)': '#xf8'}",
    ]
    written = [json.loads(path.read_text())["values"] for path in (place.root / "out" / "results").iterdir()]
    assert {"(bvadd x #x01)": "#x08"} in written
