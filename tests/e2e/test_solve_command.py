"""``smtspool solve``: what it prints, what it exits with, what it leaves behind (nothing)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.campaign import COMMAND, Place
from tests.service.support import ODD_ENGINE, PATIENCE_S, equation, until, witnessed

SLOW = equation(1, name="slow", against=2)


@pytest.fixture(autouse=True)
def scratch(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary folders of the command go here, so that none can be left unseen."""
    folder = place.folder / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_sat_is_the_first_line_and_exit_0(place: Place, scratch: Path) -> None:
    done = place.run("solve", place.file("a.smt2", equation(42)))
    assert (done.stdout, done.stderr) == ("sat\n", "")
    assert list(scratch.iterdir()) == []
    place.assert_no_process_left()


def test_unsat_is_an_answer_too(place: Place) -> None:
    assert place.run("solve", place.file("a.smt2", equation(1, against=2))).stdout == "unsat\n"


def test_what_one_engine_calls_an_error_is_told_beside_the_answer_of_another(place: Place) -> None:
    file = place.file("a.smt2", equation(1, name="strange", against=2))
    leader = ODD_ENGINE.replace("odd=", "bitwuzla=")
    done = place.run("solve", "-e", leader, "-e", "z3", file)
    assert done.stdout == "unsat\n"
    assert re.search(
        r"a\.smt2: unsat, but an engine reports an error: bitwuzla: .*error strange", done.stderr
    )


def test_the_model_follows_and_is_smt_lib(place: Place) -> None:
    printed = place.run("solve", "--model", place.file("a.smt2", equation(42))).stdout
    assert re.fullmatch(r"sat\n\(\n  \(define-fun x \(\) \(_ BitVec 8\) (#x2a|#b00101010)\)\n\)\n", printed)


def test_json_is_one_document_per_answer(place: Place) -> None:
    [document] = place.documents("solve", "--json", place.file("a.smt2", equation(42)))
    assert document["schema"] == "smtspool-solve-v1"
    assert (document["file"], document["number"]) == (str(place.folder / "a.smt2"), 1)
    assert document["status"] == "sat"
    assert document["verified_by"] not in (None, document["engine"])
    assert len(document["id"]) == 64


def test_several_files_are_answered_in_order_and_named(place: Place) -> None:
    place.file("a.smt2", equation(1))
    place.file("b.smt2", equation(1, against=2))
    place.file("c.smt2", equation(3))
    done = place.run("solve", "a.smt2", "b.smt2", "c.smt2")
    assert done.stdout == "a.smt2: sat\nb.smt2: unsat\nc.smt2: sat\n"


def test_an_incremental_script_is_answered_check_by_check(place: Place) -> None:
    script = """(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (bvult x #x10))(check-sat)
        (push 1)(assert (bvult #x20 x))(check-sat)(pop 1)(assert (= x #x0f))(check-sat)"""
    documents = place.documents("solve", "--json", place.file("a.smt2", script))
    assert [document["number"] for document in documents] == [1, 2, 3]
    assert [document["status"] for document in documents] == ["sat", "unsat", "sat"]


def test_queries_equal_up_to_names_are_solved_once(place: Place) -> None:
    place.file("a.smt2", equation(7, name="x"))
    place.file("b.smt2", equation(7, name="y"))
    first, second = place.documents("solve", "--json", "a.smt2", "b.smt2")
    assert second["reused_from"] == first["id"]
    assert second["verified_by"] is not None


def test_unknown_is_exit_3_and_says_why(place: Place) -> None:
    done = place.run("solve", "-e", ODD_ENGINE, "-t", "0.3", place.file("a.smt2", SLOW), code=3)
    assert done.stdout == "unknown\n"
    assert "timeout" in done.stderr
    place.assert_no_process_left()


def test_bad_input_is_exit_2_and_the_others_are_answered(place: Place) -> None:
    place.file("bad.smt2", '(set-option :regular-output-channel "/etc/passwd")(check-sat)')
    place.file("good.smt2", equation(1))
    done = place.run("solve", "bad.smt2", "good.smt2", code=2)
    assert done.stdout == "good.smt2: sat\n"
    assert done.stderr.startswith("smtspool: bad.smt2:1:13: ")
    [refused, _] = place.documents("solve", "--json", "bad.smt2", "good.smt2", code=2)
    assert refused["refused"]["reason"] == "command"


@pytest.mark.parametrize(
    ("name", "why"), [("absent.smt2", "cannot be read"), ("folder.smt2", "a folder in which nothing")]
)
def test_what_cannot_be_read_is_exit_2_and_the_others_are_answered(place: Place, name: str, why: str) -> None:
    (place.folder / "folder.smt2").mkdir()
    place.file("good.smt2", equation(1))
    done = place.run("solve", name, "good.smt2", code=2)
    assert done.stdout == "good.smt2: sat\n"
    assert f"smtspool: {name}: {why}" in done.stderr


def test_a_file_over_the_limit_is_refused_unread(place: Place) -> None:
    large = place.file("large.smt2", "")
    os.truncate(large, 1 << 40)  # of nothing but holes
    done = place.run("solve", large, place.file("a.smt2", equation(42)), code=2)
    assert "over the limit" in done.stderr
    assert done.stdout == f"{place.folder / 'a.smt2'}: sat\n"


@pytest.mark.parametrize("text", [equation(42), json.dumps(witnessed(42))], ids=["script", "envelope"])
def test_a_dash_is_standard_input(place: Place, text: str) -> None:
    done = subprocess.run(
        [COMMAND, "solve", "-"],
        input=text,
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "sat\n", "")


def test_a_wrong_engine_is_exit_2(place: Place) -> None:
    done = place.run("solve", "-e", "z4", place.file("a.smt2", equation(1)), code=2)
    assert "no engine 'z4' is bundled" in done.stderr
    place.assert_no_process_left()


@pytest.mark.parametrize("words", [("-t", "1"), ()], ids=["short of time", "it confirms"])
def test_an_engine_that_does_not_start_is_left_out(place: Place, words: tuple[str, ...]) -> None:
    engines = ("-e", "bitwuzla", "-e", "absent=/no/such/solver")
    file = place.file("a.smt2", equation(1))
    done = place.run("solve", *engines, *words, file, code=3, SMTSPOOL_CONFIRM_SAT="engine")
    assert done.stdout == "unknown\n"
    assert done.stderr.count("engine absent does not work and is left out") == 1


def test_no_second_engine_is_needed_to_confirm_a_small_query(place: Place) -> None:
    done = place.run("solve", "--json", "-e", "bitwuzla", place.file("a.smt2", equation(1)))
    (line,) = done.stdout.splitlines()
    assert (json.loads(line)["engine"], json.loads(line)["verified_by"]) == ("bitwuzla", "evaluator")


def test_an_engine_that_is_not_needed_is_not_started(place: Place) -> None:
    mark = place.folder / "started"
    late = f"late=sh -c 'touch {mark}; echo unknown' {{query}}"
    engines = ("-e", "bitwuzla", "-e", "z3", "-e", late)
    files = [place.file("a.smt2", equation(1)), place.file("b.smt2", equation(1, against=2))]
    done = place.run("solve", *engines, *files)
    assert done.stdout == f"{files[0]}: sat\n{files[1]}: unsat\n"
    assert not mark.exists()


def test_no_engine_at_all_is_exit_74_and_says_so(place: Place) -> None:
    done = place.run("solve", "-e", "absent=/no/such/solver", place.file("a.smt2", equation(1)), code=74)
    assert "no engine works: absent" in done.stderr
    place.assert_no_process_left()


def test_names_are_shown_and_not_obeyed(place: Place) -> None:
    place.file("a\x1b[2J\n.smt2", equation(1))
    place.file("b\x1b[2J\udcff.smt2", "nonsense")
    done = place.run("solve", "a\x1b[2J\n.smt2", "b\x1b[2J\udcff.smt2", code=2)
    assert done.stdout == "a\\x1b[2J\\n.smt2: sat\n"
    complaint = "'nonsense' stands outside of any command, near 'nonsense'"
    assert done.stderr == f"smtspool: b\\x1b[2J\\udcff.smt2:1:1: {complaint}\n"


def test_a_symbol_that_stdout_cannot_encode_is_escaped(place: Place) -> None:
    script = "(set-logic QF_BV)(declare-const |\u2603| Bool)(assert |\u2603|)(check-sat)"
    done = place.run("solve", "--model", place.file("a.smt2", script), PYTHONIOENCODING="latin-1")
    assert r"(define-fun |\u2603| () Bool true)" in done.stdout


@pytest.mark.parametrize("limit", ["nan", "inf", "1e306", "-1", "0"])
def test_a_timeout_that_is_none_is_exit_2(place: Place, limit: str) -> None:
    done = place.run("solve", "--timeout", limit, place.file("a.smt2", equation(1)), code=2)
    assert "--timeout must be" in done.stderr


def test_a_reader_that_leaves_is_no_error(place: Place) -> None:
    place.file("a.smt2", "".join([equation(1).replace("(check-sat)", ""), "(check-sat)" * 2000]))
    piped = subprocess.run(
        f"{COMMAND} solve a.smt2 | head -n 1",
        shell=True,
        cwd=place.folder,
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert (piped.stdout, piped.stderr) == ("sat\n", "")
    place.assert_no_process_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_nothing_is_left(place: Place, scratch: Path, number: signal.Signals) -> None:
    child = place.start("solve", "-e", ODD_ENGINE, "-t", "1000", place.file("a.smt2", SLOW))
    until(lambda: len(place.processes()) >= 4, "the start of the engine")
    child.send_signal(number)
    _, complaints = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 128 + number
    assert "Traceback" not in complaints
    assert list(scratch.iterdir()) == []
    place.assert_no_process_left()


def test_a_kill_leaves_no_helper(place: Place) -> None:
    child = place.start("solve", "-e", ODD_ENGINE, "-t", "1000", place.file("a.smt2", SLOW))
    until(lambda: len(place.processes()) >= 4, "the start of the engine")
    child.kill()
    child.wait(PATIENCE_S)
    place.assert_no_process_left()
