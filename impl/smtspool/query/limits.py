"""The limits of queries and their files."""

from __future__ import annotations

from dataclasses import dataclass

from smtspool.errors import AdmissionError, Reason

__all__ = ["DEFAULT", "Limits"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The largest accepted value of each thing that a producer can make large; one more is refused.

    The figures for envelopes are those of F363, so that its producers can send all that they could.
    """

    file: int = 256 * MIB  # bytes of one spool file
    script: int = 32 * MIB  # UTF-8 bytes of one SMT-LIB text; it takes 40 times as much memory, 55 if refused
    text: int = 128 * MIB  # UTF-8 bytes of one text of a Query IR, which is not read
    depth: int = 1_000_000  # open parentheses at one point of an SMT-LIB text
    symbol: int = 4096  # characters of one identifier
    sort: int = 4096  # characters of one sort after define-sort is expanded
    width: int = 1 << 20  # bits of a bit-vector, and any index of an operator
    declarations: int = 1_000_000  # visible at one check-sat
    assertions: int = 100_001  # active at one check-sat: prefix and target
    queries: int = 10_000  # check-sat commands of one script
    written: int = 64 * MIB  # characters of all declarations and assertions of one script or envelope
    # Summed over the queries of one script. A second sum is over declarations that an assertion needs first:
    replicated: int = 4_000_000  # declarations and assertions
    replicated_text: int = 1 << 30  # characters of their texts
    expansion: int = 32 * MIB  # characters of all sort abbreviations of one script, expanded
    model_bits: int = 1 << 28  # of all declared symbols: every model has a value for each
    json_depth: int = 64  # nesting of arrays and objects
    json_values: int = 8_000_000  # commas and opening brackets
    nodes: int = 250_000  # of a Query IR graph
    witness: int = 128 * MIB  # bytes of the input
    witness_extension: int = 1 * MIB  # bytes by which a symbol's offset may lie past the input's end
    witness_symbols: int = 1_000_000
    metadata_depth: int = 8
    metadata_list: int = 4096
    metadata_members: int = 1024  # of one object
    metadata_key: int = 256  # characters
    timeout_ms: int = 3_600_000
    priority: float = 1e12  # either sign

    def hold(self, name: str, value: float) -> None:
        """Raise ``AdmissionError`` (too-large) when ``value`` is over the limit called ``name``."""
        limit = getattr(self, name)
        if value > limit:
            what = name.replace("_", " ")
            raise AdmissionError(Reason.TOO_LARGE, f"{what}: {value} is over the limit of {limit}")


DEFAULT = Limits()
