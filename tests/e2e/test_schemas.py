"""``docs/schemas.md`` is what the commands print, member by member."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smtspool.query import parse_file
from tests.e2e.campaign import Place
from tests.service.support import equation, until, witnessed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "schemas.md").read_text()
SECTIONS = {part.partition("\n")[0]: part.partition("\n")[2] for part in PAGE.split("\n## ")[1:]}
KINDS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "list": list,
    "object": dict,
    "null": type(None),
}


def members(section: str) -> dict[str, str]:
    """Member to type, of a section and of those it takes over."""
    text = SECTIONS[section]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", text, re.MULTILINE)
    found = dict(rows)
    assert len(found) == len(rows), f"{section}: a member is described twice"
    for other in re.findall(r"members of\s+an? \[[\w-]+\]\(#([\w-]+)\)", text):
        found |= members(other)
    return found


def compare(document: Any, section: str) -> None:
    known = members(section)
    assert set(document) <= set(known), f"{section}: not described: {set(document) - set(known)}"
    for name, kind in known.items():
        if name in document:
            compare_value(document[name], kind.removeprefix("optional "), f"{section}.{name}")
        else:
            assert kind.startswith("optional "), f"{section}: {name} is missing"


def compare_value(value: Any, kind: str, where: str) -> None:
    listed = re.fullmatch(r"list of \[[\w-]+\]\(#([\w-]+)\)", kind)
    if listed:
        for one in value:
            compare(one, listed[1])
        return
    linked = re.match(r"\[[\w-]+\]\(#([\w-]+)\)", kind)
    if linked and value is not None:
        compare(value, linked[1])
        return
    kinds = [KINDS[word] for word in kind.split(" or ") if word in KINDS]
    assert kinds, f"{where}: no such type: {kind}"
    assert any(isinstance(value, one) for one in kinds), f"{where} is {value!r} and no {kind}"


def test_every_schema_is_named() -> None:
    code = "".join(path.read_text() for path in (ROOT / "impl").rglob("*.py"))
    for schema in set(re.findall(r'"(smtspool-[a-z-]+-v[0-9])"', code)):
        family = schema.startswith("smtspool-cluster-") and "smtspool-cluster-"
        assert (family or schema) in PAGE, schema


def test_no_member_is_described_twice() -> None:
    for section, text in SECTIONS.items():
        described = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
        assert len(set(described)) == len(described), section


def test_an_envelope_may_have_all_the_members_and_must_have_the_others() -> None:
    envelope = {**witnessed(7), "metadata": {"site": 1}, "timeout_ms": 5, "priority": 1.5}
    compare(envelope, "smtspool-query-v1")
    assert parse_file("all.json", json.dumps(envelope).encode())
    described = members("smtspool-query-v1")
    assert set(envelope) == set(described)
    least = {name: envelope[name] for name, kind in described.items() if "optional" not in kind}
    assert parse_file("least.json", json.dumps(least | {"target": "true"}).encode())


@pytest.fixture
def campaign(place: Place) -> Place:
    place.create()
    place.file("a.json", json.dumps(witnessed(7)))
    place.file("b.smt2", equation(1))
    place.file("c.smt2", equation(1, against=2))
    place.file("bad.smt2", "(assert p)(check-sat)")
    return place


def test_what_solve_prints(campaign: Place) -> None:
    sat, unsat, refused = campaign.documents("solve", "--json", "b.smt2", "c.smt2", "bad.smt2", code=2)
    compare(sat, "smtspool-solve-v1")
    compare(unsat, "smtspool-solve-v1")
    compare(refused, "refused")
    compare(refused["refused"]["place"], "place")


def test_what_a_campaign_prints_and_writes(campaign: Place) -> None:
    root = campaign.root
    [submitted] = campaign.documents(
        "submit", root, "a.json", "b.smt2", "c.smt2", "bad.smt2", "--json", code=2
    )
    compare(submitted, "smtspool-submit-v1")
    assert submitted["refused"]
    [unchecked] = campaign.documents("submit", root, "--no-check", "bad.smt2", "--json")
    compare(unchecked, "smtspool-submit-v1")
    [before] = campaign.documents("status", root, "--json")
    compare(before, "smtspool-status-v1")
    [after] = campaign.documents("serve", root, "--once", "--json")
    compare(after, "smtspool-status-v1")
    for words in ((), ("--file", "a.json")):
        results = campaign.documents("results", root, "--json", *words)
        assert results
        for result in results:
            compare(result, "smtspool-answer-v1")
    published = list((root / "out" / "results").iterdir())
    assert len(published) == 3
    for file in published:
        compare(json.loads(file.read_text()), "smtspool-result-v1")
    compare(json.loads((root / "spool" / "rejected" / "bad.smt2.error").read_text()), "smtspool-rejection-v1")
    [exported] = campaign.documents("results", root, "--export", "inputs", "--json")
    compare(exported, "smtspool-export-v1")
    [config] = campaign.documents("config", root, "--json")
    compare(config, "smtspool-config-v1")


def test_what_services_say(campaign: Place) -> None:
    campaign.start("serve", campaign.root)
    until(lambda: campaign.documents("status", campaign.root, "--json")[0]["services"], "a service")
    [status] = campaign.documents("status", campaign.root, "--json")
    compare(status, "smtspool-status-v1")
    assert status["services"]


def test_what_fsck_finds(campaign: Place) -> None:
    campaign.run("submit", campaign.root, "b.smt2")
    campaign.run("serve", campaign.root, "--once")
    index = campaign.root / "store" / "index.sqlite3"
    index.write_bytes(index.read_bytes().replace(b"QF_BV", b"QF_AV"))
    findings = campaign.documents("fsck", campaign.root, "--json", code=5)
    assert findings
    for finding in findings:
        compare(finding, "smtspool-fsck-v1")
