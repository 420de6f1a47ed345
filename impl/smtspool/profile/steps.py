"""The steps of this package: those of the model ``ProfileRecovery``."""

from __future__ import annotations

from smtspool.actions import Protocol

__all__ = ["action"]

action = Protocol("profile_recovery").action
