"""What SMT-LIB itself gives meaning to: logics, theory symbols, literals, indexed identifiers.

The table is SMT-LIB 2.7 `QF_BV` with arrays, and the extensions that at least one bundled engine answers.
Whatever is in it is reserved: a producer may neither declare nor bind it, so that a name means the same
in every query and a renaming of the others cannot touch it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from smtspool.errors import AdmissionError, Reason
from smtspool.query.limits import Limits

__all__ = [
    "COMMANDS",
    "DECLARATIONS",
    "DEFAULT_LOGIC",
    "IDENTIFIER",
    "LOGICS",
    "RESERVED",
    "check_fixed",
    "theory_of",
]

DEFAULT_LOGIC = "QF_BV"

_CORE = "let true false not => and or xor = distinct ite Bool"
_BIT_VECTORS = """
    concat bvnot bvneg bvand bvor bvxor bvnand bvnor bvxnor bvcomp
    bvadd bvsub bvmul bvudiv bvurem bvsdiv bvsrem bvsmod bvshl bvlshr bvashr
    bvult bvule bvugt bvuge bvslt bvsle bvsgt bvsge
    bvnego bvuaddo bvsaddo bvumulo bvsmulo bvusubo bvssubo bvsdivo
    bvredor bvredand bvredxor bvinc bvdec bvrol bvror bvite
"""
_ARRAYS = "Array select store as const"

LOGICS: dict[str, frozenset[str]] = {
    "QF_BV": frozenset((_CORE + _BIT_VECTORS).split()),
    "QF_UFBV": frozenset((_CORE + _BIT_VECTORS).split()),
    "QF_ABV": frozenset((_CORE + _BIT_VECTORS + _ARRAYS).split()),
    "QF_AUFBV": frozenset((_CORE + _BIT_VECTORS + _ARRAYS).split()),
}

# Words of the language, not names. Quoted they are names like others, but no two engines agree on that.
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
_SHORT = 32  # characters of a token worth remembering
_DECIMAL_DIGITS = 4000  # CPython converts up to 4300 digits; wider constants can be written as #x...

# Operator or sort: how many indices, and the smallest allowed.
_INDICES = {
    "BitVec": (1, 1),
    "extract": (2, 0),
    "repeat": (1, 1),
    "zero_extend": (1, 0),
    "sign_extend": (1, 0),
    "rotate_left": (1, 0),
    "rotate_right": (1, 0),
}


def theory_of(logic: str) -> frozenset[str]:
    """The symbols that ``logic`` gives meaning to. Raises ``AdmissionError`` (logic)."""
    try:
        return LOGICS[logic]
    except KeyError:
        known = ", ".join(LOGICS)
        raise AdmissionError(
            Reason.LOGIC, f"logic {logic[:64]!r} is not supported; supported are {known}", at=logic
        ) from None


def check_fixed(token: str, limits: Limits) -> None:
    """Check a literal, which begins with ``#``, or an indexed identifier, which begins with ``(``.

    Raises ``AdmissionError`` (syntax, symbol, too-large).
    """
    (_check_known if len(token) <= _SHORT else _check_token)(token, limits.width)


def _check_token(token: str, widest: int) -> None:
    if token[0] == "#":
        literal = _LITERAL.fullmatch(token)
        if literal is None:
            raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not a bit-vector literal")
        _hold_width(len(literal[1] or "") + 4 * len(literal[2] or ""), widest)
        return
    indexed = _INDEXED.fullmatch(token)
    if indexed is None:
        raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} is not an indexed identifier")
    constant, name, rest = indexed.groups()
    indices = rest.split()
    if not all(map(_NUMERAL.fullmatch, indices)):
        raise AdmissionError(Reason.SYNTAX, f"the indices of {token[:64]!r} are not numerals")
    numbers = list(map(int, indices))
    for number in numbers:
        _hold_width(number, widest)
    if constant:
        _check_constant(token, name, numbers)
        return
    count, least = _INDICES.get(name, (0, 0))
    if not count:
        raise AdmissionError(Reason.SYMBOL, f"{name[:64]!r} is not an indexed identifier of the logic")
    if len(numbers) != count or min(numbers) < least or (name == "extract" and numbers[0] < numbers[1]):
        raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} has the wrong indices")


# The same few sorts, masks and extracts come back in every query of a run.
_check_known = lru_cache(maxsize=1 << 14)(_check_token)


def _hold_width(bits: int, widest: int) -> None:
    if bits > widest:
        raise AdmissionError(Reason.TOO_LARGE, f"width: {bits} is over the limit of {widest}")


def _check_constant(token: str, digits: str, numbers: list[int]) -> None:
    if not (digits.isascii() and digits.isdigit()) or len(numbers) != 1:
        raise AdmissionError(Reason.SYMBOL, f"{token[:64]!r} is not an indexed identifier of the logic")
    if len(digits) > _DECIMAL_DIGITS:
        raise AdmissionError(
            Reason.TOO_LARGE, f"a decimal constant of {len(digits)} digits; write it as #x..."
        )
    # Engines disagree about a value that does not fit: one wraps it, the others refuse.
    if int(digits).bit_length() > numbers[0] or numbers[0] == 0:
        raise AdmissionError(Reason.SYNTAX, f"{token[:64]!r} does not fit its width")
