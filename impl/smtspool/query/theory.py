"""Symbols with a meaning of their own: logics, theory symbols, literals, indexed identifiers.

The table is SMT-LIB 2.7 `QF_BV` with arrays, and extensions that at least one bundled engine supports. Its
names are reserved: a producer may neither declare nor bind them. So they mean the same in every query, and
renaming the other symbols cannot change them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from smtspool.errors import AdmissionError, Reason
from smtspool.query.limits import Limits
from smtspool.query.operators import (
    ARRAYS,
    BIT_VECTORS,
    BOOL,
    CORE,
    DIALECT,
    INDICES,
    Meaning,
    bit_vector,
    indexed,
)

__all__ = [
    "COMMANDS",
    "DECLARATIONS",
    "DEFAULT_LOGIC",
    "IDENTIFIER",
    "LOGICS",
    "RESERVED",
    "fixed_meaning",
    "hold_width",
    "meanings",
    "stranger",
    "theory_of",
]

DEFAULT_LOGIC = "QF_BV"

_VALUES: dict[str, Meaning] = {"true": BOOL, "false": BOOL}
_PLAIN = frozenset({"let", "Bool", *_VALUES, *CORE, *BIT_VECTORS})

LOGICS: dict[str, frozenset[str]] = {
    "QF_BV": _PLAIN,
    "QF_UFBV": _PLAIN,
    "QF_ABV": _PLAIN.union(("Array", "as", "const"), ARRAYS),
    "QF_AUFBV": _PLAIN.union(("Array", "as", "const"), ARRAYS),
}

# Words of the language, not names. Quoted they are names by the standard, but engines differ in that.
_WORDS = "_ ! as let exists forall lambda match par BINARY DECIMAL HEXADECIMAL NUMERAL STRING"
_COMMANDS = """
    assert check-sat check-sat-assuming declare-const declare-datatype declare-datatypes declare-fun
    declare-sort declare-sort-parameter define-const define-fun define-fun-rec define-funs-rec define-sort
    echo exit get-assertions get-assignment get-info get-model get-option get-proof get-unsat-assumptions
    get-unsat-core get-value pop push reset reset-assertions set-info set-logic set-option
"""
COMMANDS = frozenset(_COMMANDS.split())
RESERVED = COMMANDS.union(_WORDS.split())

# The commands that name something and that a producer may use.
DECLARATIONS = frozenset(
    {"declare-fun", "declare-const", "declare-sort", "define-fun", "define-const", "define-sort"}
)

_SIMPLE = r"[A-Za-z~!@$%^&*_\-+=<>.?/][0-9A-Za-z~!@$%^&*_\-+=<>.?/]*"
IDENTIFIER = re.compile(_SIMPLE, re.ASCII)
_LITERAL = re.compile(r"#b([01]+)|#x([0-9a-f]+)", re.ASCII)
_INDEXED = re.compile(r"\(_ (bv)?([^ ]+)((?: [^ ]+)*)\)")
_NUMERAL = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
# Sorts and operators of integers, reals, strings and floating point.
_ELSEWHERE = re.compile(
    r"Int|Real|String|RegLan|RoundingMode|Float(16|32|64|128)|fp|fp\..*|R(NE|NA|TP|TN|TZ)|(str|re)\..*"
    r"|\(_ (FloatingPoint|to_fp|to_fp_unsigned|fp\.\w+|[+-](oo|zero)|NaN|int2bv|int_to_bv) .*"
    r"|bv2nat|bv2int|ubv_to_int|sbv_to_int|to_real|to_int|is_int|div|mod|abs|[0-9.]+|[+*/<>-]|<=|>="
)
_SHORT = 32  # characters of a token worth remembering
_DECIMAL_DIGITS = 4000  # CPython converts up to 4300 digits; wider constants can be written as #x...


def theory_of(logic: str) -> frozenset[str]:
    """The symbols that ``logic`` gives meaning to. Raises ``AdmissionError`` (logic)."""
    try:
        return LOGICS[logic]
    except KeyError:
        known = ", ".join(LOGICS)
        raise AdmissionError(
            Reason.LOGIC, f"logic {logic[:64]!r} is not supported; supported are {known}", at=logic
        ) from None


@lru_cache(maxsize=len(LOGICS))
def meanings(logic: str) -> Mapping[str, Meaning]:
    """What the symbols of ``logic`` mean in a term, and those of z3 that a script does not declare."""
    theory = theory_of(logic)
    known: dict[str, Meaning] = {**DIALECT, **_VALUES, **CORE, **BIT_VECTORS, **ARRAYS}
    return {name: meaning for name, meaning in known.items() if name in theory or name in DIALECT}


def stranger(token: str, message: str) -> AdmissionError:
    """The refusal of a token without a meaning; the reason is ``logic`` if another theory has the symbol."""
    if _ELSEWHERE.fullmatch(token) is None:
        return AdmissionError(Reason.SYMBOL, message, at=token)
    theory = "integers, reals, strings and floating point belong to no supported logic"
    return AdmissionError(Reason.LOGIC, f"{message}: {theory}", at=token)


def fixed_meaning(token: str, limits: Limits) -> Meaning | None:
    """The meaning of a literal, which begins with ``#``, or an indexed identifier, which begins with ``(``.

    None for a sort, which is no part of a term. Raises ``AdmissionError`` (syntax, symbol, too-large).
    """
    return (_read_known if len(token) <= _SHORT else _read)(token, limits.width)


def _read(token: str, widest: int) -> Meaning | None:
    if token[0] == "#":
        literal = _LITERAL.fullmatch(token)
        if literal is None:
            raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not a bit-vector literal", at=token)
        width = len(literal[1] or "") + 4 * len(literal[2] or "")
        hold_width(token, width, widest)
        return bit_vector(width)
    form = _INDEXED.fullmatch(token)
    if form is None:
        raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not an indexed identifier", at=token)
    constant, name, rest = form.groups()
    indices = rest.split()
    if not all(map(_NUMERAL.fullmatch, indices)):
        raise AdmissionError(Reason.SYNTAX, f"the indices of {token[:64]!r} are not numerals", at=token)
    numbers = list(map(int, indices))
    for number in numbers:
        hold_width(token, number, widest)
    if constant:
        _check_constant(token, name, numbers)
        return bit_vector(numbers[0])
    count, least = (1, 1) if name == "BitVec" else INDICES.get(name, (0, 0))
    if not count:
        raise stranger(token, f"{name[:64]!r} is not an indexed identifier of the logic")
    if len(numbers) != count or min(numbers) < least or (name == "extract" and numbers[0] < numbers[1]):
        raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} has the wrong indices", at=token)
    return None if name == "BitVec" else indexed(token, name, numbers)


# All queries of a run use the same few sorts, masks and extracts.
_read_known = lru_cache(maxsize=1 << 14)(_read)


def hold_width(token: str, bits: int, widest: int) -> None:
    """Refuse (too-large) a bit-vector at ``token`` with too many bits."""
    if bits > widest:
        raise AdmissionError(Reason.TOO_LARGE, f"width: {bits} is over the limit of {widest}", at=token)


def _check_constant(token: str, digits: str, numbers: list[int]) -> None:
    if not (digits.isascii() and digits.isdigit()) or len(numbers) != 1:
        raise AdmissionError(
            Reason.SYMBOL, f"{token[:64]!r} is not an indexed identifier of the logic", at=token
        )
    if len(digits) > _DECIMAL_DIGITS:
        raise AdmissionError(
            Reason.TOO_LARGE, f"a decimal constant of {len(digits)} digits; write it as #x...", at=token
        )
    # Engines disagree about a value that does not fit: one wraps it, the others refuse.
    if int(digits).bit_length() > numbers[0] or numbers[0] == 0:
        raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} does not fit its width", at=token)
