"""The command over real queries from public repositories, whose answers are known."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.campaign import Place

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif("SMTSPOOL_CORPUS" not in os.environ, reason="SMTSPOOL_CORPUS names no corpus"),
]

ALL_ENGINES = "bitwuzla,z3,cvc5"
# Its queries take minutes each.
LONG = "incremental/QF_BV__20210110-Coffin__domain.smt2"


def manifest(*families: str) -> dict[str, list[str]]:
    """Path to the expected answers, in order; files of these families."""
    with (Path(os.environ["SMTSPOOL_CORPUS"]) / "MANIFEST.tsv").open(newline="") as file:
        return {
            row["path"]: row["status"].removeprefix("incremental:").split(",")
            for row in csv.DictReader(file, delimiter="\t")
            if row["path"].split("/")[0] in families and row["path"] != LONG
        }


def solved(place: Place, paths: dict[str, list[str]]) -> dict[str, list[dict[str, Any]]]:
    """What ``smtspool solve`` says of each file, checked against what is known."""
    root = Path(os.environ["SMTSPOOL_CORPUS"])
    said = defaultdict(list)
    command = ("solve", "--json", "--timeout", "5", *(root / path for path in paths))
    for document in place.documents(*command, code=None, SMTSPOOL_ENGINES=ALL_ENGINES):
        said[str(Path(document["file"]).relative_to(root))].append(document)
    assert said.keys() == paths.keys()
    for path, expected in paths.items():
        statuses = [document["status"] for document in said[path]]
        assert len(statuses) == len(expected), path
        for status, right in zip(statuses, expected, strict=True):
            assert status in (right, "unknown"), path
        for document in said[path]:
            if document["status"] == "sat":
                assert document["verified_by"] not in (None, document["engine"]), path
    return dict(said)


def unanswered(said: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [path for path, documents in said.items() for one in documents if one["status"] == "unknown"]


def test_path_constraints_of_real_programs_and_solver_regressions(place: Place) -> None:
    said = solved(place, manifest("sage", "bitwuzla", "quirks", "skewed"))
    assert len(said) > 100
    # A loaded machine may need more than the time limit for the hardest.
    assert len(unanswered(said)) <= 3


def test_incremental_scripts_are_answered_in_order(place: Place) -> None:
    said = solved(place, manifest("incremental"))
    assert len(unanswered(said)) <= 3


def test_queries_equal_up_to_names_are_solved_once_each(place: Place) -> None:
    said = solved(place, manifest("sage-alpha"))
    classes = defaultdict(list)
    for path, [document] in said.items():
        classes[path.rsplit("/", 1)[0]].append(document)
    assert len(classes) == 6
    for members in classes.values():
        [first] = [document for document in members if document["reused_from"] is None]
        assert {document["reused_from"] for document in members} == {None, first["id"]}
        assert len({document["status"] for document in members}) == 1
