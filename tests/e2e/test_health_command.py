"""``smtspool health``, for who watches services, and ``--version``, for who reports what went wrong."""

from __future__ import annotations

import signal
from contextlib import closing
from importlib.metadata import version

from smtspool.store import Presence
from tests.e2e.campaign import Place
from tests.service.support import until


def test_a_campaign_without_a_service_is_not_healthy(place: Place) -> None:
    place.create()
    assert place.run("health", place.root, code=5).stdout == "no service is running\n"


def test_a_served_campaign_is_healthy_until_its_service_is_stopped_or_killed(place: Place) -> None:
    place.create()
    child = place.start("serve", place.root)
    until(lambda: place.run("health", place.root, code=None).returncode == 0, "health")
    child.send_signal(signal.SIGSTOP)
    silent = ("health", place.root, "--within", "1")
    until(lambda: place.run(*silent, code=None).returncode == 5, "the silence is noticed")
    assert "no sign of life" in place.run(*silent, code=5).stdout
    child.kill()
    child.communicate()
    assert place.run("health", place.root, code=5).stdout == "no service is running\n"


def test_a_plate_that_no_service_wrote_is_none(place: Place) -> None:
    place.create()
    with closing(Presence(place.root / "store")) as presence:
        presence.show({"schema": "smtspool-service-v1", "written": "soon"})
        told = place.run("health", place.root, code=5)
        assert told.stdout == f"service {presence.token} does not tell how it is\n"


def test_what_fails_is_named(place: Place) -> None:
    place.create()
    place.start("serve", place.root)
    until(lambda: place.run("health", place.root, code=None).returncode == 0, "health")
    accepted = place.root / "spool" / "accepted"
    accepted.rmdir()
    accepted.write_text("no folder")
    (place.root / "spool" / "incoming" / "a.smt2").write_text("(assert true)(check-sat)")
    until(lambda: "admission fails" in place.run("health", place.root, code=None).stdout, "the trouble")


def test_the_version_comes_with_those_of_the_engines(place: Place) -> None:
    lines = place.run("--version").stdout.splitlines()
    assert lines[0] == f"smtspool {version('smtspool')}"
    assert f"z3 {version('z3-solver')}" in lines
    assert {f"{name} {version(name)}" for name in ("bitwuzla", "cvc5")} <= set(lines)
