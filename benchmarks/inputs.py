"""The problems: each as the file a producer writes, and as the script an engine reads.

With a corpus (``SMTSPOOL_CORPUS``) the small ones are real SAGE path conditions, without it the sample
campaign. Everything drawn at random is drawn with the seed of the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from smtspool.sample import campaign

from .measure import Bench

__all__ = ["Problem", "chains", "distinct", "hard", "renamed", "small", "with_repeats"]

REPEATS = 0.63  # of 4,206 SAGE queries 1,549 are distinct up to names


@dataclass(frozen=True, slots=True)
class Problem:
    """``family`` is shared by problems that are equal up to names."""

    name: str
    data: bytes
    script: str
    family: str

    @classmethod
    def of_script(cls, name: str, script: str, family: str | None = None) -> Problem:
        return cls(f"{name}.smt2", script.encode(), script, family or name)

    @classmethod
    def of_envelope(cls, name: str, envelope: dict[str, Any]) -> Problem:
        return cls(f"{name}.json", json.dumps(envelope).encode(), _script(envelope), name)


def _script(envelope: dict[str, Any]) -> str:
    asserted = [f"(assert {term})" for term in (*envelope["prefix"], envelope["target"])]
    lines = [f"(set-logic {envelope['logic']})", *envelope["declarations"], *asserted, "(check-sat)"]
    return "\n".join(lines)


def source_name(bench: Bench) -> str:
    return "corpus sage" if bench.corpus else "sample campaign"


def small(bench: Bench, count: int) -> list[Problem]:
    """``count`` small queries with repeats only as far as the sample campaign has them."""
    if bench.corpus:
        return distinct(bench.corpus, count, bench.random("small"))
    problems = [problem for problem in _sample() if not problem.name.startswith("keyword")]  # those are hard
    different = {problem.script: problem for problem in problems}  # some differ in metadata only
    return _again(list(different.values()), count, bench.random("small"))


def _sample() -> list[Problem]:
    return [Problem.of_envelope(name.removesuffix(".json"), dict(query)) for name, query in campaign()]


def with_repeats(bench: Bench, count: int) -> list[Problem]:
    """``count`` queries of which 63 % repeat another one up to names, in random order."""
    random = bench.random("repeats")
    originals = small(bench, max(1, round(count * (1 - REPEATS))))
    copies = [renamed(random.choice(originals), number) for number in range(count - len(originals))]
    problems = [*originals, *copies]
    random.shuffle(problems)
    return problems


def _again(problems: list[Problem], count: int, random: Random) -> list[Problem]:
    """``count`` of them; when there are fewer, the rest are copies under other names."""
    copies = (renamed(random.choice(problems), number) for number in range(count - len(problems)))
    return [*random.sample(problems, min(count, len(problems))), *copies]


# SAGE


def distinct(corpus: Path, count: int, random: Random) -> list[Problem]:
    """``count`` path conditions, no two equal up to names: the files, then shorter paths of the same runs."""
    files = sorted((corpus / "sage").glob("*.smt2"))
    problems = [Problem.of_script(path.stem, path.read_text()) for path in files]
    # Two runs may begin alike; what comes before the declarations is only about the file.
    cuts = list({_body(cut): cut for problem in problems for cut in _shorter(problem)}.values())
    random.shuffle(cuts)
    if count > len(problems) + len(cuts):
        return _again([*problems, *cuts], count, random)
    return [*random.sample(problems, min(count, len(problems))), *cuts[: max(0, count - len(problems))]]


_STATUS = re.compile(r"\(set-info :status \w+\)\s*")


def _body(problem: Problem) -> str:
    return problem.script[problem.script.index("(declare-") :]


def _shorter(problem: Problem) -> Iterator[Problem]:
    """The path condition ``(and true c1 ... cn)`` up to every earlier conjunct that adds something new."""
    start = problem.script.find("(and true ")
    if start < 0:
        return
    body = start + len("(and true ")
    ends = list(_term_ends(problem.script, body))
    if not ends:
        return
    # The status that the file tells is that of the whole, and cvc5 would insist on it.
    head = _STATUS.sub("", problem.script[:body])
    seen: set[str] = set()
    begin = body
    for number, end in enumerate(ends[:-1], 1):
        conjunct = problem.script[begin:end].strip()
        begin = end
        if conjunct in seen:
            continue
        seen.add(conjunct)
        script = head + problem.script[body:end] + problem.script[ends[-1] :]
        yield Problem.of_script(f"{problem.name.removesuffix('.smt2')}-cut{number}", script)


def _term_ends(text: str, position: int) -> Iterator[int]:
    """Where each term of a list ends, from the first one on until the list is closed."""
    depth = 0
    for found in re.compile(r"[()]|[^\s()]+").finditer(text, position):
        if found[0] == "(":
            depth += 1
        elif found[0] == ")":
            depth -= 1
            if depth < 0:
                return
        if depth == 0:
            yield found.end()


_DECLARED = re.compile(r"\(declare-(?:fun|const)\s+([^\s()|]+)")
_SYMBOL = re.compile(r"[^\s()\"|;]+")


def renamed(problem: Problem, number: int) -> Problem:
    """The same problem with every declared symbol under another name, and without its witness."""
    names = {name: f"r{number}_{place}" for place, name in enumerate(_DECLARED.findall(problem.script))}

    def rename(text: str) -> str:
        return _SYMBOL.sub(lambda found: names.get(found[0], found[0]), text)

    name = f"{Path(problem.name).stem}-as{number}"
    if problem.name.endswith(".smt2"):
        return Problem.of_script(name, rename(problem.script), problem.family)
    envelope = json.loads(problem.data)
    envelope.pop("witness", None)
    for member in ("declarations", "prefix"):
        envelope[member] = [rename(text) for text in envelope[member]]
    envelope["target"] = rename(envelope["target"])
    return Problem(f"{name}.json", json.dumps(envelope).encode(), _script(envelope), problem.family)


# Path prefixes


def chains(bench: Bench, count: int) -> list[Problem]:
    """``count`` runs, each 30 to 60 branches over its input; at every branch: could it go the other way?"""
    random = bench.random("chains")
    return [problem for chain in range(count) for problem in _chain(chain, random)]


def _chain(chain: int, random: Random) -> Iterator[Problem]:
    length = random.randint(30, 60)
    data = random.randbytes(24)
    declarations = [f"(declare-const c{chain}_{place} (_ BitVec 8))" for place in range(len(data))]
    prefix: list[str] = []
    for number in range(length):
        term, holds = _branch(chain, data, random)
        taken, other = (term, f"(not {term})") if holds else (f"(not {term})", term)
        envelope = {
            "schema": "smtspool-query-v1",
            "logic": "QF_BV",
            "declarations": declarations,
            "prefix": list(prefix),
            "target": other,
        }
        yield Problem.of_envelope(f"chain{chain:03}-{number:02}", envelope)
        prefix.append(taken)


def _branch(chain: int, data: bytes, random: Random) -> tuple[str, bool]:
    """A comparison such as parsers make, of a word of the input or of a checksum over a part of it."""
    start = random.randrange(len(data) - 4)
    word = data[start : start + 4]
    names = [f"c{chain}_{start + place}" for place in range(4)]
    bound = random.getrandbits(32)
    kind = random.randrange(3)
    if kind == 0:
        term = f"(bvult {names[0]} #x{bound & 0xFF:02x})"
        return term, word[0] < bound & 0xFF
    if kind == 1:
        term = f"(bvule (concat {' '.join(names)}) #x{bound:08x})"
        return term, int.from_bytes(word) <= bound
    widened = " ".join(f"((_ zero_extend 8) {name})" for name in names)
    return f"(bvult (bvadd {widened}) #x{bound & 0x3FF:04x})", sum(word) < bound & 0x3FF


# Hard ones

SKIPPED_FOLDERS = {"incremental", "sage-alpha"}  # several questions a file; repeats


def hard(bench: Bench, count: int | None) -> list[Problem]:
    """``count`` (None: all) single-question files of the whole corpus; else the sample's hash preimages."""
    random = bench.random("hard")
    if bench.corpus is None:
        problems = [problem for problem in _sample() if problem.name.startswith("keyword")]
    else:
        files = sorted(bench.corpus.rglob("*.smt2"))
        files = [path for path in files if not SKIPPED_FOLDERS & set(path.relative_to(bench.corpus).parts)]
        problems = [Problem.of_script(f"{p.parent.name}-{p.stem}", p.read_text()) for p in files]
    return problems if count is None else random.sample(problems, min(count, len(problems)))
