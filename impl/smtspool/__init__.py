"""smtspool: a durable, crash-safe SMT query service for parallel symbolic execution.

The public API::

    for answer in smtspool.check(script_text):        # one-off: SMT-LIB in, verified answers out
        ...

    campaign = smtspool.Campaign.create(Path("campaign"))
    with smtspool.Service(campaign, smtspool.Settings()) as service:
        ...                                            # admit and solve until drained

Errors: :mod:`smtspool.errors`. Named protocol steps: :mod:`smtspool.actions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smtspool.lazily import exports

if TYPE_CHECKING:
    from .service import Campaign, Service, Settings, check

__version__ = "0.1.0"
__all__ = ["Campaign", "Service", "Settings", "__version__", "check"]

__getattr__, __dir__ = exports(__name__, {"service": ("Campaign", "Service", "Settings", "check")})
