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

if TYPE_CHECKING:
    from smtspool.service import Campaign, Service, Settings, check

__version__ = "0.1.0"
__all__ = ["Campaign", "Service", "Settings", "__version__", "check"]


def __getattr__(name: str) -> object:
    # On demand: helper processes import this package too, and need none of the service.
    if name in __all__:
        from smtspool import service

        return getattr(service, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
