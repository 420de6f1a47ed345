"""Every branch of a run is a question, its answer an input that really goes the other way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.sample import PROGRAMS, Walk, execute, explore, flips, location, programs

from .engine import all_hold, holds, solve

ALL = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
EASY = [program for program in PROGRAMS.values() if program.name not in ("bitmap", "keyword")]


@ALL
def test_a_witness_satisfies_its_prefix_and_misses_its_target(program):
    for seed in program.seeds:
        values = dict(enumerate(seed))
        *_, last = Walk(program).queries(seed)
        assert all_hold(values, last["prefix"])
        for envelope in Walk(program).queries(seed):
            assert envelope["prefix"] == last["prefix"][: len(envelope["prefix"])]
            assert not holds(values, envelope["target"])


@pytest.mark.parametrize("program", EASY, ids=lambda program: program.name)
def test_an_answer_follows_the_run_up_to_the_branch_and_leaves_it_there(program):
    answers = 0
    for envelope in Walk(program).queries(program.seeds[0]):
        new_input = solve(envelope)
        if new_input is not None:
            answers += 1
            flip = flips(program, envelope, new_input)
            assert flip.flipped, flip
            assert flip.after != flip.before
    assert answers > 3


def test_the_engine_finds_a_reserved_word_from_its_hash():
    program = PROGRAMS["keyword"]
    *_, is_while, _ = Walk(program).queries(b"abcde:")
    assert solve(is_while) == b"while:"


def test_an_input_that_changes_nothing_flips_nothing():
    program = PROGRAMS["date"]
    *_, envelope = Walk(program).queries(program.seeds[0])
    flip = flips(program, envelope, program.seeds[0])
    assert (flip.flipped, flip.diverged, flip.after) == (False, None, flip.before)


def test_an_input_that_leaves_too_early_flips_nothing():
    program = PROGRAMS["date"]
    *_, envelope = Walk(program).queries(program.seeds[0])
    flip = flips(program, envelope, b"x" + program.seeds[0][1:])
    assert (flip.flipped, flip.diverged, flip.after) == (False, 1, None)


def test_an_input_for_another_branch_flips_nothing():
    program = PROGRAMS["utf8"]
    first, *_, last = Walk(program).queries(b"abc")
    assert flips(program, first, b"\xc3\xa9c").flipped
    assert not flips(program, last, b"\xc3\xa9c").flipped


def test_a_flip_names_the_line_it_happened_on():
    program = PROGRAMS["utf8"]
    first, *_ = Walk(program).queries(b"abc")
    assert flips(program, first, b"\xc3\xa9c").source == "if lead < 0x80:"


@ALL
def test_sites_are_places_in_the_text_of_the_parsers(program):
    text = Path(programs.__file__).read_text().splitlines()
    for branch in execute(program, program.seeds[0]).branches:
        line, column = location(branch.site)
        assert text[line - 1][column:].strip()


@given(st.binary(max_size=5), st.sampled_from(EASY))
def test_behind_a_header_a_program_asks_the_same_about_other_symbols(header, program):
    seed = program.seeds[0]
    here = list(Walk(program).queries(seed))
    there = list(Walk(program, len(header)).queries(header + seed))
    assert [renamed(envelope, len(header)) for envelope in here] == [
        [*envelope["prefix"], envelope["target"]] for envelope in there
    ]


def renamed(envelope: dict, distance: int) -> list[str]:
    texts = [*envelope["prefix"], envelope["target"]]
    for offset in sorted(envelope["witness"]["symbols"].values(), reverse=True):
        texts = [text.replace(f"in_{offset})", f"in_{offset + distance})") for text in texts]
    return texts


def test_nothing_is_asked_twice():
    walk = Walk(PROGRAMS["date"])
    assert len(list(walk.queries(b"2024-02-29"))) > 20
    assert list(walk.queries(b"2024-02-29")) == []
    assert 0 < len(list(walk.queries(b"2024-02-30"))) < 3


def test_what_was_not_seen_yet_goes_first():
    walk = Walk(PROGRAMS["utf8"])
    first, *_ = walk.queries(b"\xc3\xa9")
    assert first["priority"] == 1.0
    assert all(e["priority"] == 0.0 for e in walk.queries(b"a\xc3\xa9") if e["metadata"]["branch"] == 0)


def test_the_search_finds_its_way_from_nonsense_to_a_leap_day():
    found = [new for _, new in explore(PROGRAMS["date"], [b"xxxxxxxxxx"], solve, runs=60)]
    accepted = [new for new in found if new is not None and parses("date", new)]
    assert accepted


def test_the_search_stops_when_there_is_nothing_new():
    answers = list(explore(PROGRAMS["crc8"], [b"\x00"], solve, runs=10_000))
    assert 8 < len(answers) < 5_000


def parses(name: str, data: bytes) -> bool:
    try:
        PROGRAMS[name].parse(data)
    except programs.Malformed:
        return False
    return True
