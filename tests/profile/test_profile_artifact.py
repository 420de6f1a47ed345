"""Artifacts: three versions read, none believed that does not prove itself (F300-F304)."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, Reason
from smtspool.profile import Policy, Record, build_candidate, parse_artifact
from tests.profile.support import OTHER, UNWRITABLE, anything, document, probed, saw

COSTLY = probed(1, queries=9, validated=1, cost_us=4000)


def told() -> dict[str, Any]:
    runs = [
        document(saw(1, 2), saw(*range(9), site=8), saw(5, site=9, saturated=1)),
        document(saw(1), context=OTHER, feedback=[COSTLY]),
    ]
    records = [record for record in map(Record.of, runs) if record is not None]
    whole: dict[str, Any] = json.loads(build_candidate(records, Policy(max_distinct_values=9)).artifact)
    return whole


def sealed(members: dict[str, Any]) -> bytes:
    """A file of ``members`` with a right seal, however wrong they are."""
    members = {name: value for name, value in members.items() if name != "profile_sha256"}
    text = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return json.dumps({**members, "profile_sha256": sha256(text.encode()).hexdigest()}, indent=2).encode()


def older(version: int) -> dict[str, Any]:
    """The same findings, as a version before this one would have written them."""
    members = told() | {"schema": f"symcc-empirical-value-profile-v{version}"}
    if version == 1:
        del members["online_admission"], members["runtime_domain_count"]
        return members
    admission = members["online_admission"]
    admission["schema"] = "symcc-empirical-domain-admission-v1"
    del admission["min_solver_time_us"]
    for one in admission["suppressed"]:
        del one["solver_time_us"]
        one["reason"] = "low-validated-query-ratio-v1"
    return members


def test_its_own_file_is_read_and_so_is_one_for_people() -> None:
    _, artifact = parse_artifact(sealed(told()))
    assert artifact.version == 3
    assert [domain.values for domain in artifact.domains] == [(1, 2)]
    assert [one.domain.values for one in artifact.suppressed] == [(1,)]


@pytest.mark.parametrize(("version", "domains"), [(1, [(1, 2), (1,)]), (2, [(1, 2)])])
def test_older_artifacts_are_verified_and_read(version: int, domains: list[tuple[int, ...]]) -> None:
    _, artifact = parse_artifact(sealed(older(version)))
    assert artifact.version == version
    assert [domain.values for domain in artifact.domains] == domains


Forgery = Callable[[dict[str, Any]], object]
FORGERIES: dict[str, Forgery] = {
    "schema": lambda a: a.update(schema="symcc-empirical-value-profile-v4"),
    "policy": lambda a: a.update(policy="empirical-unsat-is-final"),
    "an unknown member": lambda a: a.update(more=1),
    "a missing member": lambda a: a.pop("contexts"),
    "too few records": lambda a: a.update(input_records=1),
    "a run too many": lambda a: a["profiles"][0].update(runs=3),
    "no run": lambda a: a["profiles"][0].update(runs=0),
    "contexts out of order": lambda a: a["contexts"].reverse(),
    "a context no profile may have": lambda a: a["contexts"].pop(),
    "profiles out of order": lambda a: a["profiles"].reverse(),
    "a profile twice": lambda a: a["profiles"].append(a["profiles"][-1]),
    "a count": lambda a: a["profiles"][0]["values"][0].update(count=9),
    "a value": lambda a: a["profiles"][0]["values"][0].update(value=2),
    "a value too wide": lambda a: a["profiles"][0]["values"][1].update(value=2**32),
    "a number that is a truth value": lambda a: a["profiles"][0]["values"][0].update(value=True),
    "a truth value that is a number": lambda a: a["profiles"][0].update(saturated=0),
    "limited": lambda a: a["profiles"][2].update(limited_domain=True),
    "distinct values": lambda a: a["profiles"][0].update(distinct_values=3),
    "entropy": lambda a: a["profiles"][0].update(entropy_bits=0.5),
    "entropy of what is lost": lambda a: a["profiles"][2].update(entropy_bits=0.0),
    "how many are limited": lambda a: a.update(limited_domain_count=4),
    "how many are probed": lambda a: a.update(runtime_domain_count=2),
    "a threshold": lambda a: a.update(min_observations=9),
    "a threshold out of range": lambda a: a["online_admission"].update(min_solver_queries=0),
    "a lower ratio": lambda a: a["online_admission"].update(min_validated_ratio_ppm=100_000),
    "a higher cost": lambda a: a["online_admission"].update(min_solver_time_us=4001),
    "the reason": lambda a: a["online_admission"]["suppressed"][0].update(reason="because"),
    "a cost below the floor": lambda a: a["online_admission"]["suppressed"][0].update(solver_time_us=999),
    "too few queries": lambda a: a["online_admission"]["suppressed"][0].update(solver_queries=8),
    "a broken law": lambda a: a["online_admission"]["suppressed"][0].update(unknown=1),
    "another domain": lambda a: a["online_admission"]["suppressed"][0].update(domain_values=[2]),
    "a domain of nine": lambda a: a["online_admission"]["suppressed"][0].update(domain_values=list(range(9))),
    "a domain that is no list": lambda a: a["online_admission"]["suppressed"][0].update(domain_values=1),
    "a domain with a hole": lambda a: a["online_admission"]["suppressed"][0].update(domain_values=[None]),
    "a suppression twice": lambda a: a["online_admission"]["suppressed"].append(
        a["online_admission"]["suppressed"][0]
    ),
    "no admission": lambda a: a.pop("online_admission"),
    "an admission that is a list": lambda a: a.update(online_admission=[]),
    "the older admission": lambda a: a.update(online_admission=older(2)["online_admission"]),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forgery_with_a_right_seal_is_refused(forge: Forgery) -> None:
    members = deepcopy(told())
    parse_artifact(sealed(members))
    forge(members)
    with pytest.raises(AdmissionError):
        parse_artifact(sealed(members))


def test_a_changed_file_breaks_its_seal() -> None:
    data = sealed(told()).replace(b'"runs": 1', b'"runs": 2', 1)
    with pytest.raises(AdmissionError, match="seal"):
        parse_artifact(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.JSON),
        (b"[]", Reason.JSON),
        (b"\xff{}", Reason.ENCODING),
        (b'{"a": 1, "a": 1}', Reason.JSON),
        (b'{"a": NaN}', Reason.JSON),
        (b'{"a": 1e999}', Reason.JSON),
        (b'{"a": ' + b"9" * 5000 + b"}", Reason.JSON),
        (b'{"a": ' + b"[" * 100_000, Reason.JSON),
        (b" " * ((16 << 20) + 1), Reason.TOO_LARGE),
    ],
)  # fmt: skip
def test_what_is_no_json_of_ours_is_refused(data: bytes, reason: Reason) -> None:
    with pytest.raises(AdmissionError) as refusal:
        parse_artifact(data)
    assert refusal.value.reason is reason


@given(st.data())
def test_no_member_can_be_anything(data: st.DataObject) -> None:
    members = told()
    place: Any = members
    while True:
        names = list(place) if isinstance(place, dict) else list(range(len(place)))
        name = data.draw(st.sampled_from(names))
        if isinstance(place[name], dict | list) and place[name] and data.draw(st.booleans()):
            place = place[name]
            continue
        value = data.draw(anything)
        was, place[name] = place[name], value
        break
    if type(value) is type(was) and value == was:
        return
    try:
        file = sealed(members)
    except (UnicodeEncodeError, ValueError):
        return
    try:
        _, artifact = parse_artifact(file)
    except AdmissionError:
        return
    # What is read after all says of itself just what the file says: a count of runs cannot be checked.
    assert json.loads(artifact.seal()[1]) == json.loads(file)


def test_an_artifact_that_nobody_could_read_again_is_not_made() -> None:
    record = Record.of(document(*UNWRITABLE))
    assert record is not None
    with pytest.raises(AdmissionError) as refusal:
        build_candidate([record], Policy())
    assert refusal.value.reason is Reason.TOO_LARGE
