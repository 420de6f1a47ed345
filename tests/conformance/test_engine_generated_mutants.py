"""Mutants are generated from texts, apply or are errors, and a judge says what sees them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.engine.code_mutants import code_mutants
from conformance.engine.judge import Cfg, judge, judge_fairness, module_with, pure_of
from conformance.engine.model_mutants import ModelMutant, Module, model_mutants
from conformance.engine.mutants import MutantError
from conformance.engine.tlc import TlcError

LIGHT = r"""---- MODULE Light ----
(* A light for one road, and a queue of cars. *)
EXTENDS Naturals, Sequences
CONSTANTS
    Cars,   \* who may come
    Most    \* how many wait at most

VARIABLES
    color,  \* "red" or "green"
    queue   \* who waits

vars == <<color, queue>>
Colors == {"red", "green"}

\* LIGHT-0: every variable has its type.
TypeOK == color \in Colors /\ queue \in Seq(Cars)

Init == color = "red" /\ queue = <<>>

Switch ==
    /\ color' = IF color = "red" THEN "green" ELSE "red"
    /\ UNCHANGED queue

Come(c) ==
    /\ Len(queue) < Most  /\ \A i \in 1..Len(queue) : queue[i] # c
    /\ queue' = Append(queue, c)
    /\ UNCHANGED color

Go(c) ==
    /\ color = "green"
    /\ queue # <<>> /\ c = Head(queue)
    /\ queue' = Tail(queue)
    /\ UNCHANGED color

Next == Switch \/ \E c \in Cars : Come(c) \/ Go(c)

Spec == Init /\ [][Next]_vars

FairSwitch == WF_vars(Switch)
FairGo == SF_vars(\E c \in Cars : Go(c))
Fairness == FairSwitch /\ FairGo

\* LIGHT-1: not too many wait.
FewWait == Len(queue) <= Most
\* LIGHT-2: nobody goes while the light is red.
RedStops == [][color = "red" => Len(queue') >= Len(queue)]_vars
\* LIGHT-3: whoever waits goes.
Empties == (queue # <<>>) ~> (queue = <<>>)
====
"""
BOUNDED = r"""---- MODULE MCLight ----
EXTENDS Light, TLC
VARIABLE act
allVars == <<vars, act>>
MCInit == Init /\ act = [name |-> "Init"]
MCNext ==
    \/ Switch /\ act' = [name |-> "Switch"]
    \/ \E c \in Cars : \/ Come(c) /\ act' = [name |-> "Come", car |-> c]
                       \/ Go(c) /\ act' = [name |-> "Go", car |-> c]
MCSpec == MCInit /\ [][MCNext]_allVars
Refines == [][Next]_vars
Quiet == MCInit /\ [][Next /\ act' = act]_allVars
LiveSpec == Quiet /\ Fairness
====
"""
CONSTANTS = 'CONSTANTS\n    Cars = {"a"}\n    Most = 1\n'


@pytest.fixture
def light(tmp_path: Path) -> Path:
    (tmp_path / "Light.tla").write_text(LIGHT)
    (tmp_path / "MCLight.tla").write_text(BOUNDED)
    safe = "INVARIANTS\n    TypeOK\n    FewWait\nPROPERTIES\n    RedStops\n    Refines\n"
    (tmp_path / "Graph.cfg").write_text(f"\\* All.\nSPECIFICATION MCSpec\n{CONSTANTS}{safe}")
    (tmp_path / "Live.cfg").write_text(f"SPECIFICATION LiveSpec\n{CONSTANTS}PROPERTY\n    Empties\n")
    return tmp_path / "MCLight.tla"


@pytest.fixture
def mutants(light: Path) -> dict[str, ModelMutant]:
    return {mutant.name: mutant for mutant in model_mutants(Module(pure_of(light)))}


def test_operators_change_one_place_each(mutants: dict[str, ModelMutant]) -> None:
    changes = {name: mutant.change for name, mutant in mutants.items()}
    assert changes == {
        "Init: swap constants 1": '"red" -> "green"',
        "Switch: drop assignment 1": 'color\' = IF color = "red" THEN "green" ELSE "red" '
        "-> UNCHANGED <<color>>",
        "Switch: negate condition 1": 'color = "red" -> ~(color = "red")',
        "Switch: swap constants 1": '"red" -> "green"',
        "Switch: swap constants 2": '"green" -> "red"',
        "Switch: swap constants 3": '"red" -> "green"',
        "Come: drop guard 1": "Len(queue) < Most -> TRUE",
        "Come: negate guard 1": "Len(queue) < Most -> ~(Len(queue) < Most)",
        "Come: drop guard 2": r"\A i \in 1..Len(queue) : queue[i] # c -> TRUE",
        "Come: negate guard 2": r"\A i \in 1..Len(queue) : queue[i] # c "
        r"-> ~(\A i \in 1..Len(queue) : queue[i] # c)",
        "Come: drop assignment 1": "queue' = Append(queue, c) -> UNCHANGED <<queue>>",
        "Come: off by one 1": "< -> <=",
        "Come: off by one 2": "1 -> 0",
        "Come: off by one 3": "1 -> 2",
        "Go: drop guard 1": 'color = "green" -> TRUE',
        "Go: negate guard 1": 'color = "green" -> ~(color = "green")',
        "Go: drop guard 2": "queue # <<>> -> TRUE",
        "Go: negate guard 2": "queue # <<>> -> ~(queue # <<>>)",
        "Go: drop guard 3": "c = Head(queue) -> TRUE",
        "Go: negate guard 3": "c = Head(queue) -> ~(c = Head(queue))",
        "Go: drop assignment 1": "queue' = Tail(queue) -> UNCHANGED <<queue>>",
        "Go: swap constants 1": '"green" -> "red"',
        "Next: drop disjunct 1": "Switch -> FALSE",
        "Next: drop disjunct 2": r"\E c \in Cars : Come(c) \/ Go(c) -> FALSE",
        "Next: drop disjunct 3": "Come(c) -> FALSE",
        "Next: drop disjunct 4": "Go(c) -> FALSE",
        "Fairness: drop fairness 1": "FairSwitch -> TRUE",
        "Fairness: drop fairness 2": "FairGo -> TRUE",
    }


def test_what_follows_a_change_stays_in_its_column(light: Path, mutants: dict[str, ModelMutant]) -> None:
    before = mutants["Come: negate guard 1"].definition.body.splitlines()
    after = mutants["Come: negate guard 1"].body.splitlines()
    assert before[0].index("/\\ \\A") == after[1].index("/\\ \\A") and before[1:] == after[2:]


def test_a_digest_is_of_the_definition_and_of_the_change(
    light: Path, mutants: dict[str, ModelMutant]
) -> None:
    assert len({mutant.digest for mutant in mutants.values()}) == len(mutants)
    light.with_name("Light.tla").write_text(LIGHT.replace("queue # <<>> /\\", "Len(queue) > 0 /\\"))
    later = {mutant.name: mutant for mutant in model_mutants(Module(pure_of(light)))}
    assert later["Go: drop assignment 1"].digest != mutants["Go: drop assignment 1"].digest
    assert later["Come: drop guard 1"].digest == mutants["Come: drop guard 1"].digest


def test_one_run_judges_many(light: Path, mutants: dict[str, ModelMutant]) -> None:
    verdicts = judge(light, list(mutants.values()), [(light.with_name("Graph.cfg"), 20)])
    assert verdicts == {
        "Init: swap constants 1": "graph: other initial states",
        "Switch: drop assignment 1": "graph: a Switch more",
        "Switch: negate condition 1": "graph: a Switch more",
        "Switch: swap constants 1": "graph: a Switch more",
        "Switch: swap constants 2": "graph: a Switch more",
        "Switch: swap constants 3": "graph: a Switch more",
        "Come: negate guard 1": "graph: a Come less",
        "Come: negate guard 2": "graph: a Come less",
        "Come: drop assignment 1": "graph: a Come more",
        "Come: off by one 2": "evaluation",
        "Go: drop guard 1": "property RedStops",
        "Go: negate guard 1": "property RedStops",
        "Go: drop guard 2": "evaluation",
        "Go: negate guard 2": "evaluation",
        "Go: negate guard 3": "graph: a Go less",
        "Go: drop assignment 1": "graph: a Go more",
        "Go: swap constants 1": "property RedStops",
        "Next: drop disjunct 1": "property Refines",
        "Next: drop disjunct 2": "property Refines",
        "Next: drop disjunct 3": "property Refines",
        "Next: drop disjunct 4": "property Refines",
    }
    # Of one car there is room for one: either guard of Come is enough, and no other car could be meant.
    survivors = {name for name, mutant in mutants.items() if mutant.operator != "drop fairness"} - set(
        verdicts
    )
    assert survivors == {
        "Come: drop guard 1", "Come: drop guard 2", "Come: off by one 1", "Come: off by one 3",
        "Go: drop guard 3",
    }  # fmt: skip


def test_fairness_is_judged_by_what_must_happen(light: Path, mutants: dict[str, ModelMutant]) -> None:
    for number in (1, 2):
        mutant = mutants[f"Fairness: drop fairness {number}"]
        assert judge_fairness(light, mutant, [light.with_name("Live.cfg")]) == "property Empties"


def test_a_mutant_that_does_not_parse_is_an_error(light: Path, mutants: dict[str, ModelMutant]) -> None:
    good = mutants["Go: drop guard 1"]
    broken = ModelMutant("broken", good.operator, good.definition, "    /\\ queue' = \n", "")
    with pytest.raises(TlcError, match="no verdict"):
        judge(light, [broken], [(light.with_name("Graph.cfg"), 20)])


def test_the_text_with_all_mutants_chooses_by_number(light: Path, mutants: dict[str, ModelMutant]) -> None:
    text = module_with(Module(pure_of(light)), {7: mutants["Go: drop guard 1"]})
    assert "VARIABLE mutant" in text and "mutant = 7 -> Go_7(c)" in text and "OTHER -> Go_0(c)" in text


def test_a_cfg_is_taken_apart(light: Path) -> None:
    cfg = Cfg.read(light.with_name("Graph.cfg"))
    assert (cfg.specification, cfg.invariants) == ("MCSpec", ("TypeOK", "FewWait"))
    assert cfg.properties == ("RedStops", "Refines") and "Most = 1" in cfg.constants


CODE = '''
from smtspool.actions import action


class Door:
    def enter(self, who):
        """Let somebody in."""
        with action("Enter", who=who) as step:
            if self.open and who is not None:
                step.outcome = "in"
                self.inside.append(who)
            else:
                step.outcome = "out"
        try:
            self.shut()
        except OSError as error:
            self.trouble = error
        self.lock()

    def leave(self):
        self.inside.clear()
'''


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "a_door.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "a_door"
    sys.modules.pop("a_door", None)


def test_code_mutants_are_of_the_functions_that_take_steps(door: str) -> None:
    faults = {one.mutant.name: one.mutant.fault for one in code_mutants(door)}
    assert faults == {
        "a_door.Door.enter: drop statement 1": "no self.lock()",
        "a_door.Door.enter: drop statement 2": "no self.shut()",
        "a_door.Door.enter: drop statement 3": "no step.outcome = 'in'",
        "a_door.Door.enter: drop statement 4": "no self.inside.append(who)",
        "a_door.Door.enter: drop statement 5": "no step.outcome = 'out'",
        "a_door.Door.enter: drop statement 6": "no self.trouble = error",
        "a_door.Door.enter: swap statements 1": "try: self.shut() except OSError as error: self.trouble = "
        "error ahead of with action('Enter', who=who) as step: if self.open and who is not ...",
        "a_door.Door.enter: swap statements 2": "self.lock() ahead of try: self.shut() except OSError as "
        "error: self.trouble = error",
        "a_door.Door.enter: negate condition 1": "not (self.open and who is not None)",
        "a_door.Door.enter: drop operand 1": "no self.open in self.open and who is not None",
        "a_door.Door.enter: drop operand 2": "no who is not None in self.open and who is not None",
        "a_door.Door.enter: drop except 1": "OSError passes",
    }


def test_code_mutants_apply_and_are_code(door: str) -> None:
    for one in code_mutants(door):
        one.mutant.check()
        (change,) = one.mutant.substitutions
        compile(change.of(CODE), "a_door.py", "exec")


def test_code_mutants_of_a_module_that_is_not_there() -> None:
    with pytest.raises(MutantError, match="no module"):
        code_mutants("smtspool.nowhere")
