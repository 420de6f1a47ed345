"""Solving: engines behind processes that may be killed at any time (F381, F368-F371, F467).

* :class:`ForkServer` makes a :class:`Generation` (one helper process) in milliseconds.
* :meth:`Generation.exchange` sends one :class:`Request` and gives one :class:`Reply`, or the generation ends.
* :class:`PersistentSolver` asks one engine and gives an :class:`EngineAnswer`; it can be cancelled at any
time.
* :class:`Portfolio` races several engines and gives one verified :class:`~smtspool.query.Answer`.
"""

from typing import TYPE_CHECKING

from smtspool.lazily import exports

if TYPE_CHECKING:
    from .bundled import BUNDLED, ENGINES
    from .cancellation import Cancellation, CancelReason
    from .capabilities import LOGICS, Capabilities, trial
    from .domainprobe import Probe, ProbeEnd, restrict
    from .engineanswer import EngineAnswer
    from .forkserver import EngineUnusable, ForkServer
    from .generation import Generation
    from .hedging import Hedge, HedgePolicy, Plan
    from .persistent import PersistentSolver
    from .portfolio import Portfolio, RaceSummary
    from .race import Race, RaceRules
    from .request import FailureKind, GenerationFailed, Op, Reply, Request, RequestRefused
    from .runningtime import RunningTime
    from .spec import EngineSpec, HelperLimits, Recycle, parse_engine
    from .verification import Confirm, Verdict
    from .views import (
        Closing,
        HelperView,
        Part,
        PartView,
        PortfolioView,
        RaceView,
        RequestView,
        SolverView,
        Waiting,
    )

__all__ = [
    "BUNDLED",
    "ENGINES",
    "LOGICS",
    "CancelReason",
    "Cancellation",
    "Capabilities",
    "Closing",
    "Confirm",
    "EngineAnswer",
    "EngineSpec",
    "EngineUnusable",
    "FailureKind",
    "ForkServer",
    "Generation",
    "GenerationFailed",
    "Hedge",
    "HedgePolicy",
    "HelperLimits",
    "HelperView",
    "Op",
    "Part",
    "PartView",
    "PersistentSolver",
    "Plan",
    "Portfolio",
    "PortfolioView",
    "Probe",
    "ProbeEnd",
    "Race",
    "RaceRules",
    "RaceSummary",
    "RaceView",
    "Recycle",
    "Reply",
    "Request",
    "RequestRefused",
    "RequestView",
    "RunningTime",
    "SolverView",
    "Verdict",
    "Waiting",
    "parse_engine",
    "restrict",
    "trial",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "bundled": ("BUNDLED", "ENGINES"),
        "cancellation": ("Cancellation", "CancelReason"),
        "capabilities": ("LOGICS", "Capabilities", "trial"),
        "domainprobe": ("Probe", "ProbeEnd", "restrict"),
        "engineanswer": ("EngineAnswer",),
        "forkserver": ("EngineUnusable", "ForkServer"),
        "generation": ("Generation",),
        "hedging": ("Hedge", "HedgePolicy", "Plan"),
        "persistent": ("PersistentSolver",),
        "portfolio": ("Portfolio", "RaceSummary"),
        "race": ("Race", "RaceRules"),
        "request": ("FailureKind", "GenerationFailed", "Op", "Reply", "Request", "RequestRefused"),
        "runningtime": ("RunningTime",),
        "spec": ("EngineSpec", "HelperLimits", "Recycle", "parse_engine"),
        "verification": ("Confirm", "Verdict"),
        "views": (
            "Closing",
            "HelperView",
            "Part",
            "PartView",
            "PortfolioView",
            "RaceView",
            "RequestView",
            "SolverView",
            "Waiting",
        ),
    },
)
