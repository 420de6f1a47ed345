"""A small campaign of real path constraints, made here by walking small parsers symbolically.

:data:`PROGRAMS` are the parsers, :func:`campaign` their queries, :func:`flips` the proof by execution that an
answer takes the other branch, :func:`explore` the search that feeds new inputs back, :func:`telemetry` what
a run says about the values it compared, :func:`runs` the telemetry of all seeds.
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
