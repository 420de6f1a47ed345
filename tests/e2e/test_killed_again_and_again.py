"""The claim of the whole service: whatever is killed, every query is answered exactly once."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.campaign import Place, identities, placed, sampled
from tests.service.support import PATIENCE_S

PROGRAMS = ("tlv", "utf8", "leb128")
SEED = 20_240_229
MOST_KILLS = 200


@pytest.fixture(scope="module")
def asked() -> list[tuple[str, str]]:
    return sampled(*PROGRAMS)


@pytest.fixture(scope="module")
def expected(asked: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The answers of a run that nobody disturbs."""
    with placed(tmp_path_factory.mktemp("undisturbed")) as place:
        place.create(*asked)
        place.run("serve", place.root, "--once")
        answers = place.answers()
        assert answers.keys() == identities(asked)
        assert set(answers.values()) == {"sat", "unsat"}
        place.assert_in_order(asked, answers)
        return answers


def killed_until_done(place: Place, pauses: Iterator[float]) -> int:
    """SIGKILL ``serve --once`` after each pause until one run comes to its end; how many were killed."""
    for kills, pause in enumerate(itertools.islice(pauses, MOST_KILLS)):
        child = place.start("serve", place.root, "--once", "--timeout", "60")
        try:
            _, complaints = child.communicate(timeout=pause)
        except subprocess.TimeoutExpired:
            child.kill()
            _, complaints = child.communicate(timeout=PATIENCE_S)
            assert "Traceback" not in complaints, complaints
            place.assert_no_process_left()
            continue
        assert child.returncode == 0, complaints
        return kills
    raise AssertionError(f"not done after {MOST_KILLS} kills")


def test_killed_at_random_the_answers_are_the_same(
    place: Place, asked: list[tuple[str, str]], expected: dict[str, str]
) -> None:
    place.create(*asked)
    pauses = random.Random(SEED)
    # Growing, so that a slow machine comes to the end too.
    assert killed_until_done(place, (pauses.uniform(0.3, 1.5) * 1.1**n for n in itertools.count())) > 0
    place.assert_in_order(asked, expected)


@pytest.mark.slow
def test_killed_every_second_the_answers_are_the_same(place: Place) -> None:
    everything = sampled()
    place.create(*everything)
    # One query takes seconds: the pauses outgrow it long before it has been killed as often as it may be.
    killed_until_done(place, (1.0 * 1.1**n for n in itertools.count()))
    assert place.answers().keys() == identities(everything)
    assert set(place.answers().values()) == {"sat", "unsat"}
    place.assert_in_order(everything, place.answers())


def test_three_services_at_once_answer_each_query_once(
    place: Place, asked: list[tuple[str, str]], expected: dict[str, str]
) -> None:
    place.create(*asked)
    children = [place.start("serve", place.root, "--once") for _ in range(3)]
    for child in children:
        _, complaints = child.communicate(timeout=2 * PATIENCE_S)
        assert child.returncode == 0, complaints
        assert "Traceback" not in complaints
    place.assert_in_order(asked, expected)
    assert place.counters().get("stale", 0) == 0
    assert place.counters()["admission.accepted"] == len(asked)


def test_three_services_of_which_one_is_killed_answer_each_query_once(
    place: Place, asked: list[tuple[str, str]], expected: dict[str, str]
) -> None:
    place.create(*asked)
    victim, *others = [place.start("serve", place.root, "--once") for _ in range(3)]
    with pytest.raises(subprocess.TimeoutExpired):
        victim.communicate(timeout=1.0)
    victim.kill()
    victim.communicate(timeout=PATIENCE_S)
    for child in others:
        _, complaints = child.communicate(timeout=2 * PATIENCE_S)
        assert child.returncode == 0, complaints
    place.assert_in_order(asked, expected)
