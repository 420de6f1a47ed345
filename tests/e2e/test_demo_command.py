"""The demonstration: every answer verified, every new input executed, everything printed."""

from __future__ import annotations

from tests.e2e.campaign import Place, identities, sampled

ALL_ENGINES = "bitwuzla,z3,cvc5"


def test_the_demo_holds_and_says_so(place: Place) -> None:
    shown = place.run("demo", place.root, SMTSPOOL_ENGINES=ALL_ENGINES, COLUMNS="200")
    [total] = [line.split() for line in shown.stdout.splitlines() if line.split()[:1] == ["all"]]
    _, queries, sat, verified, unsat, left_open, reused, executed, flipped = total
    asked = sampled()
    assert int(queries) == len(asked) == int(sat) + int(unsat)
    assert sat == verified == executed == flipped
    assert left_open == "0"
    assert int(reused) > len(asked) // 3
    assert "shared prefixes" in shown.stdout
    assert place.answers().keys() == identities(asked)
    assert place.run("fsck", place.root).stdout == "clean\n"
    place.assert_no_process_left()
