"""The command line: parse, call the service or the public API, print. No logic of its own.

``app`` holds what commands share; each other module adds the commands of one subject, in the order in which
``--help`` lists them.
"""

# isort: off
from .app import Exit, app
from .main import main
from . import solve, campaign, serve, results, profile, upkeep, cluster, trace, demo
# isort: on

__all__ = [
    "Exit",
    "app",
    "campaign",
    "cluster",
    "demo",
    "main",
    "profile",
    "results",
    "serve",
    "solve",
    "trace",
    "upkeep",
]
