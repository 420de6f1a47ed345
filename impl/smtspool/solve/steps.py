"""The steps of this package: those of one solver, and those of a race above several.

The model ``Cancellation`` has the solver's. The model ``Race`` has the race's, and takes a solver's steps as
steps of the solver: whoever takes one names the protocol that it belongs to, not the model that looks at it.
"""

from __future__ import annotations

from smtspool.actions import Protocol

__all__ = ["race_action", "solver_action"]

race_action = Protocol("race", ordered=True).action
solver_action = Protocol("cancellation", ordered=True).action
