"""From the file that somebody submitted to its answer, and what stands in for one until then."""

from __future__ import annotations

import json

import pytest

from tests.e2e.campaign import Place
from tests.service.support import equation, query, witnessed

UNSAT = query(1, against=2)


def cells(printed: str) -> list[tuple[str, str]]:
    """The answers and the files of the rows that ``results`` prints."""
    return [(row.split("\t")[1], row.split("\t")[6]) for row in printed.splitlines()]


def told(site: int, **more: object) -> str:
    """An envelope of a query that is always the same, with metadata of its own."""
    return json.dumps(witnessed(42) | {"metadata": {"site": site, **more}})


def test_submit_tells_the_ids_of_each_file_and_results_find_its_answers(place: Place) -> None:
    (place.folder / "q").mkdir()
    two = place.file(
        "q/two.smt2",
        "(declare-const x (_ BitVec 8))(push)(assert (= x #x07))(check-sat)(pop)(assert false)(check-sat)",
    )
    one = place.file("q/one.smt2", equation(1, against=2))
    place.run("init", place.root)
    lines = place.run("submit", place.root, one, two).stdout.splitlines()
    assert lines[0] == f"{one}\t{UNSAT.id}"
    assert [line.split("\t")[0] for line in lines[1:3]] == [str(two), f"{two}#2"]
    assert lines[3] == "2 submitted"

    assert cells(place.run("results", place.root, "--file", two).stdout) == [("pending", "two.smt2")]
    place.run("serve", place.root, "--once")
    found = place.run("results", place.root, "--file", "two.smt2").stdout
    assert cells(found) == [("sat", "two.smt2"), ("unsat", "two.smt2#2")]
    found = place.run("results", place.root, "--file", "*.smt2", "--status", "sat").stdout
    assert cells(found) == [("sat", "two.smt2")]
    [document] = place.documents("results", place.root, "--file", "one.smt2", "--json")
    assert (document["id"], document["status"]) == (UNSAT.id, "unsat")
    assert (document["file"], document["number"], document["submissions_total"]) == ("one.smt2", 1, 1)
    refused = place.run("results", place.root, "--file", "three.smt2", code=2)
    assert "no file was submitted to this campaign as 'three.smt2'" in refused.stderr


def test_two_submitters_of_one_query_both_find_it_by_their_metadata(place: Place) -> None:
    place.create(("a.json", told(1, who="x")))
    place.run("serve", place.root, "--once")
    place.run("submit", place.root, place.file("b.json", told(2)))
    place.run("serve", place.root, "--once")
    [document] = place.documents("results", place.root, "--json")
    assert document["metadata"] == {"site": 1, "who": "x"}
    assert [one["metadata"]["site"] for one in document["submissions"]] == [1, 2]
    published = json.loads((place.root / "out" / "results" / f"{document['id']}.json").read_text())
    assert published["submissions"] == document["submissions"]
    assert published["submissions_total"] == 2
    assert published["metadata"] == document["metadata"]
    for site, file in ((1, "a.json"), (2, "b.json")):
        assert cells(place.run("results", place.root, "--where", f"site={site}").stdout) == [("sat", file)]
    assert cells(place.run("results", place.root, "--where", "site=2", "--where", "who=x").stdout) == []
    assert cells(place.run("results", place.root).stdout) == [("sat", "a.json +1")]
    assert "KEY=VALUE" in place.run("results", place.root, "--where", "site", code=2).stderr


def test_a_file_whose_name_was_taken_is_found_by_it(place: Place) -> None:
    path = place.file("a.smt2", equation(1))
    place.create()
    place.run("submit", place.root, path)
    [document] = place.documents("submit", place.root, path, "--json")
    [submitted] = document["files"]
    assert submitted == {"file": str(path), "name": document["submitted"][0], "ids": [query(1).id]}
    assert submitted["name"] != "a.smt2"
    place.run("serve", place.root, "--once")
    found = place.documents("results", place.root, "--file", "a.smt2", "--json")
    assert {one["file"] for one in found} == {"a.smt2", submitted["name"]}


def test_a_bad_file_is_refused_when_it_is_submitted(place: Place) -> None:
    good, bad = place.file("good.smt2", equation(1)), place.file("bad.smt2", "(assert\n  oops)(check-sat)")
    place.run("init", place.root)
    refused = place.run("submit", place.root, bad, good, code=2)
    assert refused.stdout == f"{good}\t{query(1).id}\n1 submitted\n"
    assert f"{bad}:2:" in refused.stderr and "oops" in refused.stderr
    assert place.in_spool("incoming") == {"good.smt2"}
    [document] = place.documents("submit", place.root, bad, "--json", code=2)
    assert document["submitted"] == document["files"] == []
    assert (document["refused"][0]["file"], document["refused"][0]["reason"]) == (str(bad), "symbol")


def test_a_bad_file_that_was_not_checked_is_told_from_one_that_waits(place: Place) -> None:
    place.create()
    place.run("submit", place.root, place.file("bad.smt2", "(assert"), "--no-check")
    assert cells(place.run("results", place.root, "--file", "bad.smt2").stdout) == [("pending", "bad.smt2")]
    [document] = place.documents("results", place.root, "--file", "bad.smt2", "--json")
    assert (document["status"], document["state"], document["id"]) == ("pending", "incoming", None)
    place.run("serve", place.root, "--once")
    assert cells(place.run("results", place.root, "--file", "b*.smt2").stdout) == [("rejected", "bad.smt2")]
    [document] = place.documents("results", place.root, "--file", "bad.smt2", "--json")
    assert (document["status"], document["reason"]) == ("rejected", "syntax")


@pytest.mark.parametrize("text", ["[]", "[" * 60_000, "{"])
def test_a_sidecar_that_is_none_is_passed_over(place: Place, text: str) -> None:
    place.create()
    (place.root / "spool" / "rejected" / "bad.smt2.error").write_text(text)
    for form in ((), ("--json",)):
        told = place.run("results", place.root, "--file", "bad.smt2", *form, code=2)
        assert "no file was submitted" in told.stderr


def test_answers_are_chosen_by_kind_and_time(place: Place) -> None:
    place.create(("a.smt2", equation(1)), ("b.smt2", equation(1, against=2)))
    place.run("serve", place.root, "--once")
    place.run("submit", place.root, place.file("c.smt2", equation(3)))
    [(status, _)] = cells(place.run("results", place.root, "--status", "unsat").stdout)
    assert status == "unsat"
    assert place.run("results", place.root, "--status", "pending").stdout == ""  # it is not admitted yet
    both = place.run("results", place.root, "--status", "sat", "--status", "unsat").stdout
    assert len(cells(both)) == 2
    for since, count in (("1h", 2), ("2001-01-01", 2), ("2001-01-01T10:00:00Z", 2), ("2999-01-01", 0)):
        assert len(cells(place.run("results", place.root, "--since", since).stdout)) == count
    assert "--since takes" in place.run("results", place.root, "--since", "soon", code=2).stderr
    assert "--follow" in place.run("results", place.root, "-f", "--file", "a.smt2", code=2).stderr


def test_a_timeout_is_asked_again_when_it_is_submitted_with_a_larger_limit(place: Place) -> None:
    factors = {
        "schema": "smtspool-query-v1",
        "logic": "QF_BV",
        "declarations": ["(declare-const x (_ BitVec 32))", "(declare-const y (_ BitVec 32))"],
        "prefix": [f"(bvult #x00000001 {v})" for v in "xy"] + [f"(bvult {v} #x00002000)" for v in "xy"],
        "target": "(= (bvmul x y) (_ bv16016003 32))",  # 4001 * 4003
    }
    place.create(("hasty.json", json.dumps(factors | {"timeout_ms": 1})))
    place.run("serve", place.root, "--once", code=3)
    [document] = place.documents("results", place.root, "--json")
    assert (document["status"], document["limit_ms"]) == ("unknown", 1)
    published = place.root / "out" / "results" / f"{document['id']}.json"
    assert json.loads(published.read_text())["status"] == "unknown"

    place.run("submit", place.root, place.file("again.json", json.dumps(factors | {"timeout_ms": 1})))
    place.run("serve", place.root, "--once", code=3)
    [document] = place.documents("results", place.root, "--json")
    assert (document["status"], document["submissions_total"]) == ("unknown", 2)

    place.run("submit", place.root, place.file("patient.json", json.dumps(factors | {"timeout_ms": 60_000})))
    place.run("serve", place.root, "--once")
    [document] = place.documents("results", place.root, "--json")
    assert document["status"] == json.loads(published.read_text())["status"] == "sat"
    assert [one["file"] for one in document["submissions"]] == ["hasty.json", "again.json", "patient.json"]
    assert place.run("fsck", place.root).stdout == "clean\n"
