"""What a query is: its text, identity, form, limits, envelopes, and the answer to it.

SMT-LIB scripts and the envelopes ``smtspool-query-v1`` and ``symcc-query-ir-v1`` become one :class:`Query`.
Whatever comes from outside is sound or raises :class:`~smtspool.errors.AdmissionError`, and nothing else.
"""

from smtspool.query.answer import Answer, Attempt, Status
from smtspool.query.codec import decode, decode_form, decode_metadata, encode
from smtspool.query.envelope import parse_envelope, parse_file, to_envelope
from smtspool.query.extension import canonical_term, extended
from smtspool.query.limits import Limits
from smtspool.query.model import candidate, complete, default_value, definitions, rename_model, script
from smtspool.query.smtlib import parse_smt2
from smtspool.query.value import Form, Level, Query, Symbol, Witness

__all__ = [
    "Answer",
    "Attempt",
    "Form",
    "Level",
    "Limits",
    "Query",
    "Status",
    "Symbol",
    "Witness",
    "candidate",
    "canonical_term",
    "complete",
    "decode",
    "decode_form",
    "decode_metadata",
    "default_value",
    "definitions",
    "encode",
    "extended",
    "parse_envelope",
    "parse_file",
    "parse_smt2",
    "rename_model",
    "script",
    "to_envelope",
]
