"""The queue against a model of it that fits on two pages, driven at random and shrunk on failure."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from smtspool.query import Answer, QueryFile, Status, file_mark
from smtspool.store import Lease, Order, Patience, Publication, State, Store
from tests.clock import Clock
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, query, sat

PATIENCE = Patience(attempts=3, deaths=2)
KINDS = ["sat", "unsat", "confirmed", "at-limit", "timeout", "disagreement"]
CONFIRMED = replace(UNSAT, verified_by="z3")
DISAGREEMENT = Answer(Status.UNKNOWN, reason="engines disagree", disagreement=True)


@dataclass(slots=True)
class Form:
    """What the model knows of queries that are equal up to names."""

    state: str = "open"
    status: Status | None = None
    leader: str | None = None
    verified: bool = False  # by a second engine


@dataclass(slots=True)
class Entry:
    """What the model knows of one query."""

    form: Form
    admitted: int
    state: State = State.PENDING
    status: Status | None = None
    token: int = 0
    attempts: int = 0
    deaths: int = 0
    deadline: float = 0.0
    witnesses: set[bytes] = field(default_factory=set)
    submissions: set[tuple[int, int]] = field(default_factory=set)  # file, and place in it
    limit: int = 0
    outrun: int = 0  # the limit at which it ended unknown
    due: bool = False  # its files are to be written


@dataclass(slots=True)
class Model:
    """Leases, forms and patience as the documentation tells them."""

    entries: dict[str, Entry] = field(default_factory=dict)  # by query id, in order of admission
    forms: dict[int, Form] = field(default_factory=dict)
    stale: int = 0
    confirm_unsat: bool = False

    def place(self, key: str) -> None:
        entry = self.entries[key]
        form = entry.form
        entry.state, entry.status, entry.due, entry.outrun = State.PENDING, None, False, 0
        if form.state == "open" and form.leader is not None:
            entry.state = State.WAITING
        elif form.state == "open":
            form.leader = key
        elif form.status is Status.UNSAT and form.state == "answered" and self.enough(form):
            entry.state, entry.status, entry.due = State.DONE, Status.UNSAT, True

    def enough(self, form: Form) -> bool:
        return form.verified or not self.confirm_unsat

    def finish(self, key: str, answer: Answer) -> None:
        entry = self.entries[key]
        form = entry.form
        entry.state, entry.status, entry.due = State.DONE, answer.status, True
        if form.state == "open":
            if answer.disagreement:
                self.quarantine(form)
            elif answer.status.definite and not answer.at_limit:
                form.state, form.status, form.leader = "answered", answer.status, None
                form.verified = answer.verified_by is not None
                self.let_go(form)
            elif form.leader == key:
                form.leader = next(iter(self.waiting(form)), None)
                if form.leader is not None:
                    self.entries[form.leader].state = State.PENDING
        elif form.state == "answered" and (
            answer.disagreement or (answer.status.definite and answer.status is not form.status)
        ):
            self.quarantine(form)
        elif form.state == "answered" and answer.status is form.status and not answer.at_limit:
            form.verified |= answer.verified_by is not None

    def quarantine(self, form: Form) -> None:
        form.state, form.leader = "quarantined", None
        self.let_go(form)

    def let_go(self, form: Form) -> None:
        for key in self.waiting(form):
            self.place(key)

    def waiting(self, form: Form) -> list[str]:
        return [
            key for key, entry in self.entries.items() if entry.form is form and entry.state is State.WAITING
        ]

    def give_up_if_hopeless(self, key: str) -> None:
        entry = self.entries[key]
        if entry.deaths >= PATIENCE.deaths or entry.attempts >= PATIENCE.attempts:
            self.finish(key, Answer(Status.ERROR, reason="hopeless"))

    def reopen(self, key: str) -> None:
        self.entries[key].attempts = self.entries[key].deaths = 0
        self.place(key)

    def expire(self, now: float) -> None:
        expired = [
            (entry.deadline, entry.admitted, key)
            for key, entry in self.entries.items()
            if entry.state is State.LEASED and entry.deadline <= now
        ]
        for *_, key in sorted(expired):
            self.entries[key].state = State.PENDING
        for *_, key in sorted(expired):
            self.give_up_if_hopeless(key)

    def holds(self, lease: Lease, now: float) -> bool:
        entry = self.entries[lease.query.id]
        return entry.state is State.LEASED and entry.token == lease.token and entry.deadline > now


class Queue(RuleBasedStateMachine):
    """Two owners, few forms, few names: everything collides soon."""

    leases: Bundle[Lease] = Bundle("leases")
    written: Bundle[Publication] = Bundle("written")

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="smtspool-test-"))
        self.clock = Clock()
        self.model = Model()
        self.store = Store.open(self.directory, create=True, clock=self.clock, patience=PATIENCE)
        self.ingest([(1, "a", 0, 10, None), (1, "b", 0, 10, None), (2, "a", 0, 10, None)], None)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            try:
                assert Store.fsck(self.directory) == []
            finally:
                shutil.rmtree(self.directory)

    @rule(
        batch=st.lists(
            st.tuples(
                *(st.integers(1, 2), st.sampled_from("abcd"), st.integers(0, 2)),
                *(st.sampled_from([10, 20, 30]), st.sampled_from([None, b"one", b"two"])),
            ),
            min_size=1,
            max_size=5,
        ),
        file=st.one_of(st.none(), st.integers(0, 3)),
    )
    def ingest(self, batch: list[tuple[int, str, int, int, bytes | None]], file: int | None) -> None:
        """Queries of a file, which may be another one or the same again, or of none."""
        queries = [
            query(number, name=name, priority=float(priority), timeout_ms=limit, witness=witness)
            for number, name, priority, limit, witness in batch
        ]
        created = []
        for place, ((number, *_, witness), asked) in enumerate(zip(batch, queries, strict=True), 1):
            created.append(asked.id not in self.model.entries)
            if created[-1]:
                form = self.model.forms.setdefault(number, Form())
                self.model.entries[asked.id] = Entry(form, len(self.model.entries))
                self.model.place(asked.id)
            entry = self.model.entries[asked.id]
            entry.limit = max(entry.limit, asked.timeout_ms)
            if 0 < entry.outrun < entry.limit:
                self.model.reopen(asked.id)
            if file is not None and (file, place) not in entry.submissions:
                entry.submissions.add((file, place))
                entry.due |= entry.status is not None
            if witness is not None and witness not in entry.witnesses:
                entry.witnesses.add(witness)
                entry.due |= entry.status is Status.SAT
        if file is None:
            assert self.store.ingest(queries) == created
        else:
            mark = file_mark("q.smt2", file, 0)
            assert self.store.admit([QueryFile("q.smt2", mark, 1, 0.0, tuple(queries))]) == created

    @rule(
        target=leases,
        owner=st.sampled_from(["v", "w"]),
        limit=st.integers(1, 4),
        order=st.sampled_from(Order),
    )
    def claim(self, owner: str, limit: int, order: Order) -> MultipleResults[Lease]:
        self.model.expire(self.clock.seconds)
        claimed = self.store.claim(owner, LEASE_S, limit, order)
        pending = [key for key, entry in self.model.entries.items() if entry.state is State.PENDING]
        assert len(claimed) == min(limit, len(pending))
        if order is Order.FIFO:
            assert [lease.query.id for lease in claimed] == pending[:limit]
        for lease in claimed:
            entry = self.model.entries[lease.query.id]
            assert entry.state is State.PENDING
            entry.state, entry.deadline = State.LEASED, lease.deadline
            entry.token += 1
            entry.attempts += 1
            assert (lease.token, lease.attempts, lease.owner) == (entry.token, entry.attempts, owner)
            assert lease.deadline == self.clock.seconds + LEASE_S
            offered = entry.form.state == "answered" and entry.form.status is Status.SAT
            assert (lease.reuse is not None) == offered
        return multiple(*claimed)

    @rule(seconds=st.sampled_from([1.0, LEASE_S / 2, LEASE_S]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(lease=leases, kind=st.sampled_from(KINDS))
    def complete(self, lease: Lease, kind: str) -> None:
        answer = {
            "sat": sat(lease),
            "unsat": UNSAT,
            "confirmed": CONFIRMED,
            "at-limit": replace(UNSAT, at_limit=True),
            "timeout": TIMEOUT,
            "disagreement": DISAGREEMENT,
        }[kind]
        held = self.model.holds(lease, self.clock.seconds)
        assert self.store.complete([(lease, answer)]) == [held]
        entry = self.model.entries[lease.query.id]
        if held and kind == "timeout" and lease.query.timeout_ms < entry.limit:
            entry.state = State.PENDING  # it was submitted with more time meanwhile
            entry.attempts -= 1
        elif held:
            self.model.finish(lease.query.id, answer)
            entry.outrun = lease.query.timeout_ms if kind == "timeout" else 0
        else:
            self.model.stale += 1

    @rule(kind=st.sampled_from(KINDS), limit=st.integers(1, 2))
    def solve(self, kind: str, limit: int) -> None:
        """What a worker does, in one step: whole lives of a query are rare among single ones."""
        for lease in self.claim("v", limit, Order.FIFO).values:
            self.complete(lease, kind)

    @rule(lease=leases, helper_died=st.booleans())
    def fail(self, lease: Lease, helper_died: bool) -> None:
        held = self.model.holds(lease, self.clock.seconds)
        assert self.store.fail(lease, "failed", helper_died=helper_died) == held
        if held:
            entry = self.model.entries[lease.query.id]
            entry.state = State.PENDING
            entry.deaths += helper_died
            self.model.give_up_if_hopeless(lease.query.id)
        else:
            self.model.stale += 1

    @rule(lease=consumes(leases))
    def release(self, lease: Lease) -> None:
        held = self.model.holds(lease, self.clock.seconds)
        assert self.store.release([lease]) == held
        if held:
            entry = self.model.entries[lease.query.id]
            entry.state = State.PENDING
            entry.attempts -= 1

    @rule(target=leases, lease=consumes(leases))
    def renew(self, lease: Lease) -> object:
        held = self.model.holds(lease, self.clock.seconds)
        renewed = self.store.renew([lease], LEASE_S)
        assert len(renewed) == held
        if held:
            self.model.entries[lease.query.id].deadline = renewed[0].deadline
        return multiple(*renewed)

    @rule(lease=leases)
    def refute(self, lease: Lease) -> None:
        if lease.reuse is not None:
            self.store.refute(lease)
            if self.model.entries[lease.query.id].form.state != "quarantined":
                self.model.quarantine(self.model.entries[lease.query.id].form)

    @precondition(lambda self: self.model.entries)
    @rule(choice=st.data())
    def retry(self, choice: st.DataObject) -> None:
        key = choice.draw(st.sampled_from(list(self.model.entries)))
        entry = self.model.entries[key]
        possible = entry.status in (Status.UNKNOWN, Status.ERROR)
        assert self.store.retry(key) == possible
        if possible:
            self.model.reopen(key)

    @rule(target=written, limit=st.integers(1, 4))
    def write_files(self, limit: int) -> MultipleResults[Publication]:
        publications = self.store.due_publications(limit)
        assert len(publications) == min(limit, sum(entry.due for entry in self.model.entries.values()))
        for publication in publications:
            entry = self.model.entries[publication.result.query_id]
            assert {witness.input for witness in publication.witnesses} == entry.witnesses
            assert publication.submissions.total == len(publication.submissions.listed)
            assert publication.submissions.total == len(entry.submissions)
        return multiple(*publications)

    @rule(limit=st.integers(1, 4))
    def publish(self, limit: int) -> None:
        for publication in self.write_files(limit).values:
            self.acknowledge(publication)

    @rule(publication=written)
    def acknowledge(self, publication: Publication) -> None:
        key = publication.result.query_id
        entry, current = self.model.entries[key], self.store.result(key)
        if current is not None and current.number == publication.id:
            entry.due &= len(publication.witnesses) < len(entry.witnesses) or (
                publication.submissions.total < len(entry.submissions)
            )
        self.store.published([publication])

    @rule(confirm_unsat=st.booleans())
    def reopen(self, confirm_unsat: bool) -> None:
        self.store.close()
        self.model.confirm_unsat = confirm_unsat
        self.store = Store.open(
            self.directory, clock=self.clock, patience=PATIENCE, confirm_unsat=confirm_unsat
        )

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "store"):
            return
        states = [entry.state for entry in self.model.entries.values()]
        statuses = [entry.status for entry in self.model.entries.values()]
        counts = self.store.counts()
        assert (counts.pending, counts.waiting, counts.leased) == (
            states.count(State.PENDING),
            states.count(State.WAITING),
            states.count(State.LEASED),
        )
        assert (counts.sat, counts.unsat, counts.unknown, counts.error) == tuple(
            statuses.count(status) for status in (Status.SAT, Status.UNSAT, Status.UNKNOWN, Status.ERROR)
        )
        assert counts.publications_due == sum(entry.due for entry in self.model.entries.values())
        assert counts.publications_due + counts.publications_published == counts.done
        assert self.store.counters().get("stale", 0) == self.model.stale

    @invariant()
    def results_agree(self) -> None:
        if hasattr(self, "store"):
            found = {result.query_id: result.answer.status for result in self.store.results()}
            assert found == {key: entry.status for key, entry in self.model.entries.items() if entry.status}


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=30)
