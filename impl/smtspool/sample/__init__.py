"""A small campaign of real path constraints, which are made by executing small parsers symbolically.

:data:`PROGRAMS` are the parsers and :func:`campaign` their queries. :func:`flips` executes a parser on an
answer to see that it takes the other branch, and :func:`explore` is a search that feeds new inputs back.
:func:`telemetry` is the record of one run, and :func:`runs` the records of all seeds.
"""

from smtspool.sample.campaign import campaign, runs
from smtspool.sample.programs import PROGRAMS, Malformed, Program
from smtspool.sample.symbolic import BV, Branch, Condition, Path, Term, location
from smtspool.sample.telemetry import telemetry
from smtspool.sample.walk import CONTEXT, Envelope, Flip, Walk, execute, explore, flips

__all__ = [
    "BV",
    "CONTEXT",
    "PROGRAMS",
    "Branch",
    "Condition",
    "Envelope",
    "Flip",
    "Malformed",
    "Path",
    "Program",
    "Term",
    "Walk",
    "campaign",
    "execute",
    "explore",
    "flips",
    "location",
    "runs",
    "telemetry",
]
