"""The steps of this package: those of the model ``SpoolAdmission``."""

from __future__ import annotations

from smtspool.actions import Protocol

__all__ = ["action"]

action = Protocol("spool_admission").action
