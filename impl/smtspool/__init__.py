"""smtspool: a durable, crash-safe SMT query service for parallel symbolic execution.

The public API::

    [answer] = smtspool.check("(set-logic QF_BV)...(check-sat)")    # SMT-LIB in, verified answers out
    print(answer.status, answer.model)

    campaign = smtspool.Campaign.create("campaign")
    campaign.submit([("a.smt2", Path("a.smt2").read_bytes())])
    with smtspool.Service(campaign, once=True) as service:          # admit and solve what is there
        service.join()
    for result in campaign.results():
        print(result.query_id, result.answer.status)

Everything else is documented in docs/python.md. Named protocol steps: :mod:`smtspool.actions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smtspool.lazily import exports

if TYPE_CHECKING:
    from .errors import (
        AdmissionError,
        ClosedError,
        ConfigError,
        InfrastructureError,
        MisuseError,
        Reason,
        SmtspoolError,
    )
    from .query import Answer, Attempt, Status
    from .service import Campaign, Service, Settings, check
    from .store import Result

__version__ = "0.2.0"
__all__ = [
    "AdmissionError",
    "Answer",
    "Attempt",
    "Campaign",
    "ClosedError",
    "ConfigError",
    "InfrastructureError",
    "MisuseError",
    "Reason",
    "Result",
    "Service",
    "Settings",
    "SmtspoolError",
    "Status",
    "__version__",
    "check",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "errors": (
            "AdmissionError",
            "ClosedError",
            "ConfigError",
            "InfrastructureError",
            "MisuseError",
            "Reason",
            "SmtspoolError",
        ),
        "query": ("Answer", "Attempt", "Status"),
        "service": ("Campaign", "Service", "Settings", "check"),
        "store": ("Result",),
    },
)
