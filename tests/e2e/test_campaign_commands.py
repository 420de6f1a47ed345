"""The commands of a campaign, from ``init`` to ``fsck``, as an operator types them."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smtspool import cli
from tests.e2e.campaign import COMMAND, Place, identities, sampled
from tests.service.support import ODD_ENGINE, equation, query, until, witnessed

COMMANDS = tuple(name for name in cli.COMMANDS if name != "trace")  # which has commands of its own


def test_from_init_to_results(place: Place) -> None:
    asked = sampled("tlv", "fletcher16")
    files = [place.file(name, text) for name, text in asked]
    assert "smtspool serve" in place.run("init", "campaign").stdout
    *lines, count = place.run("submit", "campaign", *files).stdout.splitlines()
    assert count == f"{len(asked)} submitted"
    assert {line.split("\t")[1] for line in lines} == identities(asked)
    ended = place.run("serve", "campaign", "--once")
    assert ended.stdout.startswith(f"{len(asked)} answered: ")
    assert ended.stdout.endswith(" 0 unknown, 0 error; 0 open\n")
    expected = place.answers()
    assert expected.keys() == identities(asked)
    place.assert_in_order(asked, expected)

    rows = place.run("results", "campaign").stdout.splitlines()
    assert len(rows) == len(asked)
    assert {row.split("\t")[6] for row in rows} == {path.name for path in files}
    documents = place.documents("results", "campaign", "--json")
    assert {document["id"]: document["status"] for document in documents} == expected
    [one] = place.documents("results", "campaign", documents[0]["id"][:20], "--json")
    assert one == documents[0]

    [status] = place.documents("status", "campaign", "--json")
    assert status["schema"] == "smtspool-status-v1"
    assert status["counts"]["sat"] + status["counts"]["unsat"] == len(asked)
    assert "answered" in place.run("status", "campaign").stdout


def test_new_inputs_are_exported_for_afl(place: Place) -> None:
    place.create(("a.json", json.dumps(witnessed(42))))
    place.run("serve", place.root, "--once")
    assert place.run("results", place.root, "--export", "foreign").stdout == "1 inputs exported to foreign\n"
    [exported] = (place.folder / "foreign").iterdir()
    assert exported.read_bytes() == b"A*"
    assert exported.name.startswith("id:")


def test_an_export_says_what_is_missing_and_what_is_damaged(place: Place) -> None:
    place.create(("a.json", json.dumps(witnessed(42))), ("b.smt2", equation(1)))
    place.run("serve", place.root, "--once")
    [published] = (place.root / "out" / "inputs").iterdir()
    published.write_bytes(b"")
    said = place.run("results", place.root, "--export", "foreign", code=5)
    assert said.stdout == "1 inputs exported to foreign\n"
    assert "1 sat without an input: no witness says which symbol is which byte" in said.stderr
    assert published.name in said.stderr and "republish" in said.stderr
    [document] = place.documents("results", place.root, "--export", "foreign", "--json", code=5)
    assert (document["schema"], document["written"], document["sat"]) == ("smtspool-export-v1", 0, 2)
    place.run("republish", place.root, "--all")
    place.run("serve", place.root, "--once")
    assert published.read_bytes() == b"A*"
    assert place.run("results", place.root, "--export", "foreign").stdout == "0 inputs exported to foreign\n"


def test_a_missing_file_submits_nothing(place: Place) -> None:
    path = place.file("a.smt2", equation(1))
    place.run("init", place.root)
    refused = place.run("submit", place.root, path, "typo.smt2", "absent", code=2)
    assert "no such file: typo.smt2, absent" in refused.stderr
    assert place.in_spool("incoming") == set()


def test_a_file_that_no_spool_would_take_submits_nothing(place: Place) -> None:
    path = place.file("a.smt2", equation(1))
    large = place.file("large.smt2", "")
    os.truncate(large, 1 << 40)  # of nothing but holes
    place.run("init", place.root)
    refused = place.run("submit", place.root, path, large, code=2)
    assert f"nothing is submitted, too large: {large}" in refused.stderr
    assert place.in_spool("incoming") == set()


def test_one_result_is_shown_with_its_model(place: Place) -> None:
    place.create(("a.smt2", equation(42)), ("b.smt2", equation(1, against=2)))
    place.run("serve", place.root, "--once")
    row, *model = place.run("results", place.root, query(42).id[:13]).stdout.splitlines()
    assert row.split("\t")[:2] == [query(42).id[:16], "sat"]
    assert model == ["(", "  (define-fun x () (_ BitVec 8) #x2a)", ")"]
    assert len(place.run("results", place.root, query(1, against=2).id).stdout.splitlines()) == 1


def test_a_damaged_answer_does_not_hide_another(place: Place) -> None:
    place.create(("a.smt2", equation(42)), ("b.smt2", equation(1, against=2)))
    place.run("serve", place.root, "--once")
    with sqlite3.connect(place.root / "store" / "index.sqlite3", isolation_level=None) as database:
        database.execute("UPDATE results SET body = x'00' WHERE status = 'sat'")
    database.close()
    shown = place.run("results", place.root, query(1, against=2).id[:13]).stdout
    assert shown.split("\t")[1] == "unsat"
    assert "damaged" in place.run("results", place.root, query(42).id[:13], code=74).stderr


def test_a_name_twice_gets_a_suffix_and_the_query_is_answered_once(place: Place) -> None:
    path = place.file("a.smt2", equation(1))
    place.run("init", place.root)
    [first] = place.documents("submit", "--json", place.root, path)
    [second] = place.documents("submit", "--json", place.root, path)
    assert first["submitted"] != second["submitted"]
    place.run("serve", place.root, "--once")
    assert place.answers() == {query(1).id: "sat"}
    assert len(place.in_spool("accepted")) == 2


def test_a_query_that_kills_helpers_is_visible_and_can_be_tried_again(place: Place) -> None:
    place.create(("a.smt2", equation(1, name="poison", against=2)))
    ended = place.run("serve", place.root, "--once", "-e", ODD_ENGINE, code=3)
    assert "1 error" in ended.stdout
    shown = place.run("results", place.root, query(1, name="poison", against=2).id[:12]).stdout
    assert "3 helpers died of it" in shown
    assert place.run("retry", place.root, query(1, name="poison", against=2).id[:12]).stdout == "1 put back\n"
    place.run("serve", place.root, "--once")
    assert list(place.answers().values()) == ["unsat"]


def test_a_timeout_is_an_answer_and_not_tried_for_ever(place: Place) -> None:
    place.create(("a.smt2", equation(1, name="slow", against=2)))
    ended = place.run("serve", place.root, "--once", "-e", ODD_ENGINE, "-t", "0.2", code=3)
    assert "1 unknown" in ended.stdout
    [document] = place.documents("results", place.root, "--json")
    assert "timeout" in document["reason"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("serve", "nowhere"), "nowhere is not a campaign folder; create one with: smtspool init nowhere"),
        (("status", "nowhere"), "not a campaign folder"),
        (("retry", "campaign", "abcd"), "no query that ended as unknown or error: abcd"),
        (("results", "campaign", "abcd"), "no answered query whose id starts with 'abcd'"),
        (("serve", "campaign", "--once", "--order", "random"), "order must be one of"),
        (("serve", "campaign", "--once", "-e", "z4"), "no engine 'z4' is bundled"),
        (("serve", "campaign", "--once", "-e", "z3", "-e", "z3"), "a name of its own"),
        (("serve", "campaign", "--once", "-j", "0"), "jobs must be between"),
        (("submit", "campaign", "absent.smt2"), "absent.smt2"),
    ],
)
def test_a_wrong_command_is_one_sentence(place: Place, words: tuple[str, ...], complaint: str) -> None:
    place.create()
    done = place.run(*words, code=2)
    assert complaint in done.stderr
    assert done.stderr.startswith("smtspool: ")
    assert done.stderr.count("\n") == 1
    place.assert_no_process_left()
    assert list((place.root / "store" / "owners").iterdir()) == []


def test_broken_engines_end_the_service_with_a_word(place: Place) -> None:
    place.create(("a.smt2", equation(1)))
    done = place.run("serve", place.root, "--once", "-e", "absent=/no/such/solver", code=74)
    assert "no engine works: absent" in done.stderr
    assert place.counts().open == 0
    assert place.in_spool("incoming") == {"a.smt2"}
    place.assert_no_process_left()


def test_config_shows_values_and_where_they_come_from(place: Place) -> None:
    place.create()
    (place.root / "smtspool.toml").write_text('order = "bfs"\n')
    [document] = place.documents("config", place.root, "--json")
    assert document["settings"]["order"] == {"value": "bfs", "origin": str(place.root / "smtspool.toml")}
    assert document["settings"]["engines"]["origin"] == "SMTSPOOL_ENGINES"
    assert "default" in place.run("config", place.root).stdout
    (place.root / "smtspool.toml").write_text("ordre = 1\n")
    assert "unknown setting 'ordre'" in place.run("config", place.root, code=2).stderr
    shown = place.run("config", SMTSPOOL_ENGINES="odd=[/red] :key:").stdout
    assert "odd=[/red] :key:" in shown
    (place.root / "smtspool.toml").write_text("order = " + "[" * 10_000)
    assert "not valid TOML" in place.run("config", place.root, code=2).stderr


def test_a_damaged_store_is_found_and_not_touched(place: Place) -> None:
    place.create(("a.smt2", equation(1)))
    place.run("serve", place.root, "--once")
    index = place.root / "store" / "index.sqlite3"
    damaged = index.read_bytes().replace(b"bvult", b"bvule").replace(b"QF_BV", b"QF_AV")
    index.write_bytes(damaged)
    done = place.run("fsck", place.root, code=5)
    assert done.stdout
    assert index.read_bytes() == damaged


def test_a_campaign_behind_a_link_is_served_exported_and_named_by_its_target(place: Place) -> None:
    (place.folder / "elsewhere").mkdir()
    (place.folder / "link").symlink_to("elsewhere")
    way = Path("link") / "campaign"
    assert str(place.folder / "elsewhere" / "campaign") in place.run("init", way).stdout
    assert "exists already" in place.run("init", way).stdout
    (place.folder / "a.json").write_text(json.dumps(witnessed(1)))
    place.run("submit", way, "a.json")
    served = place.run("serve", way, "--once")
    assert f"serving {place.folder / 'elsewhere' / 'campaign'}" in served.stderr
    place.run("results", way, "--export", Path("link") / "inputs")
    assert len(list((place.folder / "elsewhere" / "inputs").iterdir())) == 1
    assert place.run("fsck", way).stdout == "clean\n"


def test_a_directory_behind_a_link_is_probed(place: Place) -> None:
    (place.folder / "link").symlink_to(place.folder)
    assert str(place.folder) in place.run("probe", "link").stdout


def test_every_command_has_help_with_an_example(place: Place) -> None:
    overview = place.run("--help").stdout
    assert "Exit codes" in overview
    for command in COMMANDS:
        assert command in overview
        shown = CliRunner().invoke(cli.app, [command, "--help"], prog_name="smtspool").stdout
        assert f"smtspool {command}" in shown.split("Example", 1)[1]


def test_pipes_are_quiet_and_colourless(place: Place) -> None:
    place.create(("a.smt2", equation(1)))
    for words in (("status", place.root), ("results", place.root), ("config",)):
        assert "\x1b" not in place.run(*words).stdout
    ended = place.run("submit", place.root, *[place.file(f"{n}.smt2", equation(n)) for n in range(20)])
    assert ended.stderr == ""


@contextmanager
def on_a_terminal(place: Place, *words: str | Path, **environment: str) -> Iterator[Terminal]:
    """A command on a terminal of its own."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [COMMAND, *map(str, words)],
            env=place.environment(TERM="xterm", **environment),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as child:
            os.set_blocking(ours, False)
            yield Terminal(child, ours)
            child.kill()
    finally:
        os.close(ours)
        os.close(theirs)


class Terminal:
    """What a running command has drawn so far."""

    def __init__(self, child: subprocess.Popen[bytes], descriptor: int) -> None:
        self.child = child
        self._descriptor = descriptor
        self._shown = b""

    def shown(self) -> str:
        with suppress(BlockingIOError):
            while chunk := os.read(self._descriptor, 1 << 16):
                self._shown += chunk
        return self._shown.decode()

    def wait(self) -> int:
        until(lambda: self.shown() and self.child.poll() is not None, "the end of the command")
        return self.child.wait()


def test_no_color_is_obeyed_on_a_terminal(place: Place) -> None:
    colours = re.compile(r"\x1b\[(1;)?3\d")
    place.create()
    words = ("submit", place.root, *[place.file(f"{n}.smt2", equation(n)) for n in range(20)])
    with on_a_terminal(place, *words) as terminal:
        assert terminal.wait() == 0
        assert colours.search(terminal.shown())
    with on_a_terminal(place, *words, NO_COLOR="1") as terminal:
        assert terminal.wait() == 0
        assert not colours.search(terminal.shown())


def test_followed_results_appear_on_a_terminal_as_they_arrive(place: Place) -> None:
    place.create(("a.smt2", equation(1)))
    place.run("serve", place.root, "--once")
    with on_a_terminal(place, "results", place.root, "--follow") as terminal:
        until(lambda: query(1).id[:16] in terminal.shown(), "the answer")
        terminal.child.send_signal(signal.SIGINT)
        assert terminal.wait() == 130


@pytest.mark.parametrize("interval", ["nan", "inf", "1e10", "0.09", "-1"])
def test_an_interval_that_is_none_is_exit_2(place: Place, interval: str) -> None:
    place.create()
    done = place.run("status", place.root, "--interval", interval, code=2)
    assert "--interval must be a number of seconds from 0.1 to 86400" in done.stderr


def test_the_live_screen_is_left_as_it_was_entered(place: Place) -> None:
    place.create(("a.smt2", equation(1)))
    with on_a_terminal(place, "status", place.root, "--interval", "0.1") as terminal:
        until(lambda: terminal.shown().count("files waiting") > 1, "a refresh")
        terminal.child.send_signal(signal.SIGINT)
        assert terminal.wait() == 130
        assert terminal.shown().count("\x1b[?1049h") == terminal.shown().count("\x1b[?1049l") == 1
