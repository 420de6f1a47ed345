"""One more assertion on a query that was read before, without reading it again."""

from __future__ import annotations

from dataclasses import replace

from smtspool.query.assembler import Assembler
from smtspool.query.identity import chain, content_id
from smtspool.query.limits import DEFAULT
from smtspool.query.value import Form, Query

__all__ = ["canonical_term", "extended"]

_NO_FORM = Form("", ())


def canonical_term(query: Query, text: str) -> str:
    """``text`` as one term over the symbols of ``query``, canonical. Raises ``AdmissionError``."""
    return _declared(query).term_text(text).text


def extended(query: Query, assertion: str) -> Query:
    """``query`` with ``assertion`` on top of its levels, for engines only: it has no form.

    The assertion is read as strictly as any other. Raises ``AdmissionError``.
    """
    alone = _alone(query, assertion)
    prefix = (*query.prefix, query.target)
    emitted = {text for level in query.levels for text in level.declarations}
    needs = [text for text in alone.levels[0].declarations if text not in emitted]
    level = chain(query.levels[-1].key, query.logic, needs, alone.target)
    return replace(
        query,
        prefix=prefix,
        target=alone.target,
        id=content_id(query.logic, query.declarations, prefix, alone.target),
        levels=(*query.levels, level),
        form=_NO_FORM,
        size=query.size + len(alone.target),
    )


def _alone(query: Query, assertion: str) -> Query:
    """A query of this assertion, over the same declarations."""
    assembler = _declared(query)
    assembler.assert_text(assertion)
    return assembler.query(metadata={}, timeout_ms=query.timeout_ms, priority=query.priority)


def _declared(query: Query) -> Assembler:
    assembler = Assembler(query.logic, DEFAULT)
    for command in query.declarations:
        assembler.declare_text(command)
    return assembler
