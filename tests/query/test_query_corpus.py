"""Real queries from public benchmark sets are read, each of them, and repeats up to names are seen."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

from smtspool.query import decode, encode, parse_envelope, parse_file, script, to_envelope

pytestmark = pytest.mark.corpus

# Files that may be refused, with the reason. There are none: all 280 are read.
REFUSED: dict[str, str] = {}


@pytest.fixture(scope="module")
def corpus() -> Path:
    folder = os.environ.get("SMTSPOOL_CORPUS")
    if folder is None:
        pytest.skip("SMTSPOOL_CORPUS is unset")
    return Path(folder)


@pytest.fixture(scope="module")
def expected(corpus: Path) -> dict[str, list[str]]:
    """What the manifest says each file answers, one word per check-sat."""
    rows = (corpus / "MANIFEST.tsv").read_text().splitlines()
    columns = rows[0].split("\t")
    path, status = columns.index("path"), columns.index("status")
    fields = [row.split("\t") for row in rows[1:]]
    return {row[path]: row[status].removeprefix("incremental:").split(",") for row in fields}


def test_every_file_is_read_with_all_its_questions(corpus: Path, expected: dict[str, list[str]]) -> None:
    for path, answers in expected.items():
        if path in REFUSED:
            continue
        queries = parse_file(path, (corpus / path).read_bytes())
        assert len(queries) == len(answers), path


def test_no_file_is_left_out(corpus: Path, expected: dict[str, list[str]]) -> None:
    assert {str(path.relative_to(corpus)) for path in corpus.rglob("*.smt2")} == expected.keys()


def test_a_query_survives_every_way_around(corpus: Path, expected: dict[str, list[str]]) -> None:
    for path in expected:
        for query in parse_file(path, (corpus / path).read_bytes())[:3]:
            assert decode(encode(query)) == query, path
            assert parse_file("again.smt2", script(query).encode()) == (query,), path
            if query.size < 100_000:
                assert parse_envelope(to_envelope(query)) == query, path


def test_files_that_differ_in_names_alone_share_their_form(corpus: Path) -> None:
    forms: dict[str, set[str]] = defaultdict(set)
    for path in sorted((corpus / "sage-alpha").rglob("*.smt2")):
        (query,) = parse_file(path.name, path.read_bytes())
        forms[path.parent.name].add(query.form.digest)
    assert len(forms) > 1
    assert all(len(digests) == 1 for digests in forms.values())
    assert len(set.union(*forms.values())) == len(forms)


def test_no_form_has_two_answers(corpus: Path, expected: dict[str, list[str]]) -> None:
    answers: dict[str, set[str]] = defaultdict(set)
    for path, statuses in expected.items():
        for query, status in zip(parse_file(path, (corpus / path).read_bytes()), statuses, strict=True):
            answers[query.form.digest].add(status)
    assert all(not {"sat", "unsat"} <= found for found in answers.values())
