"""What a query is: its text, identity, form, limits, envelopes, and the answer to it.

SMT-LIB scripts and the envelopes ``smtspool-query-v1`` and ``symcc-query-ir-v1`` become one :class:`Query`.
For any input these readers give a sound query or raise :class:`~smtspool.errors.AdmissionError`, nothing
else.
"""

from typing import TYPE_CHECKING

from smtspool.lazily import exports

if TYPE_CHECKING:
    from .abstract import refutable
    from .answer import Answer, Attempt, Failure, Status
    from .codec import Remarks, decode, decode_form, decode_remarks, encode
    from .envelope import known_suffix, parse_envelope, parse_file, suffix_for, to_envelope
    from .evaluator import evaluate
    from .extension import canonical_term, extended
    from .inputs import ImpliedInput, implied_input
    from .limits import Limits
    from .model import candidate, complete, default_value, definitions, rename_model, script
    from .smtlib import parse_smt2
    from .submission import QueryFile, file_mark, file_patterns, spelled, split_suffix
    from .valuation import Valuation, value_query
    from .value import Form, Level, Query, Symbol, Witness

__all__ = [
    "Answer",
    "Attempt",
    "Failure",
    "Form",
    "ImpliedInput",
    "Level",
    "Limits",
    "Query",
    "QueryFile",
    "Remarks",
    "Status",
    "Symbol",
    "Valuation",
    "Witness",
    "candidate",
    "canonical_term",
    "complete",
    "decode",
    "decode_form",
    "decode_remarks",
    "default_value",
    "definitions",
    "encode",
    "evaluate",
    "extended",
    "file_mark",
    "file_patterns",
    "implied_input",
    "known_suffix",
    "parse_envelope",
    "parse_file",
    "parse_smt2",
    "refutable",
    "rename_model",
    "script",
    "spelled",
    "split_suffix",
    "suffix_for",
    "to_envelope",
    "value_query",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "abstract": ("refutable",),
        "answer": ("Answer", "Attempt", "Failure", "Status"),
        "codec": ("Remarks", "decode", "decode_form", "decode_remarks", "encode"),
        "envelope": ("known_suffix", "parse_envelope", "parse_file", "suffix_for", "to_envelope"),
        "evaluator": ("evaluate",),
        "extension": ("canonical_term", "extended"),
        "inputs": ("ImpliedInput", "implied_input"),
        "limits": ("Limits",),
        "model": ("candidate", "complete", "default_value", "definitions", "rename_model", "script"),
        "smtlib": ("parse_smt2",),
        "submission": ("QueryFile", "file_mark", "file_patterns", "spelled", "split_suffix"),
        "valuation": ("Valuation", "value_query"),
        "value": ("Form", "Level", "Query", "Symbol", "Witness"),
    },
)
