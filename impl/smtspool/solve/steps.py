"""The steps of this package: those of one solver, and those of a race above several.

The model ``Cancellation`` has those of the solver. The model ``Race`` has those of the race and some of the
solver. In the code each step names the protocol that it belongs to, even if both models have it.
"""

from __future__ import annotations

from smtspool.actions import Protocol

__all__ = ["race_action", "solver_action"]

race_action = Protocol("race", ordered=True).action
solver_action = Protocol("cancellation", ordered=True).action
