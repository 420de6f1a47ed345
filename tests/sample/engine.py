"""One real engine, asked directly: what the tests of the sample campaign compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import bitwuzla

from smtspool.sample import Envelope


def holds(values: Mapping[int, int], assertion: str) -> bool:
    """Whether ``assertion`` is true when ``in_k`` is ``values[k]``."""
    definitions = [f"(define-fun in_{at} () (_ BitVec 8) #x{value:02x})" for at, value in values.items()]
    return _ask([*definitions, f"(assert {assertion})"])[0]


def all_hold(values: Mapping[int, int], assertions: Sequence[str]) -> bool:
    return holds(values, f"(and true {' '.join(assertions)})")


def solve(envelope: Envelope) -> bytes | None:
    """The witness of ``envelope`` with the model written over it; None when it is unsatisfiable."""
    assertions = [*envelope["prefix"], envelope["target"]]
    sat, model = _ask([*envelope["declarations"], *(f"(assert {text})" for text in assertions)])
    if not sat:
        return None
    changed = bytearray.fromhex(envelope["witness"]["input_hex"])
    for name, offset in envelope["witness"]["symbols"].items():
        changed[offset] = model[name]
    return bytes(changed)


def _ask(commands: list[str]) -> tuple[bool, dict[str, int]]:
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse("\n".join(["(set-logic QF_BV)", *commands]), True, False)
    engine = parser.bitwuzla()
    result = engine.check_sat()
    if result == bitwuzla.Result.UNSAT:
        return False, {}
    assert result == bitwuzla.Result.SAT
    return True, {s.symbol(): int(engine.get_value(s).value(10)) for s in parser.get_declared_funs()}
