"""The new input a model stands for."""

from __future__ import annotations

from collections.abc import Mapping

from smtspool.query import Witness

__all__ = ["derived_input"]


def derived_input(witness: Witness, model: Mapping[str, str]) -> bytes:
    """The witness with the bytes of the model written over it, each at the offset of its symbol.

    An offset past the end extends the input with zero bytes. Symbols without a value keep their byte.
    """
    values = {offset: _byte(model[name]) for name, offset in witness.symbols if name in model}
    data = bytearray(witness.input)
    data.extend(bytes(max(0, max(values, default=-1) + 1 - len(data))))
    for offset, value in values.items():
        data[offset] = value
    return bytes(data)


def _byte(value: str) -> int:
    """An 8-bit value as SMT-LIB writes it: ``#x2a``, ``#b00101010`` or ``(_ bv42 8)``."""
    if value.startswith("#x"):
        return int(value[2:], 16)
    if value.startswith("#b"):
        return int(value[2:], 2)
    return int(value.removeprefix("(_ bv").split()[0])
