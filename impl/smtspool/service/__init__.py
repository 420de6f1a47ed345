"""The service, those of its parts that are used alone, and campaigns, settings and status for commands."""

from typing import TYPE_CHECKING

from smtspool.lazily import exports

if TYPE_CHECKING:
    from .backup import Backup, back_up
    from .campaign import Campaign
    from .config import Settings, Source, default_toml, load
    from .demo import run_demo
    from .export import Export, export_inputs
    from .figures import size
    from .increments import Increments
    from .installed import BUNDLED, versions
    from .logs import complain, log_to_stderr, plain
    from .masters import MasteredService
    from .metrics import exposed
    from .oneshot import Solved, check, solve_scripts
    from .plate import services
    from .probing import Prober
    from .profiles import Domain, ProfileReport, profile_report, verify_profile
    from .pruning import Pruned, What, prune
    from .salvage import Rescue, rescue
    from .screen import status_screen
    from .service import Service
    from .signals import collected_signals, leave_if_unwinding, run_until_signalled
    from .status import Snapshot, look, snapshot
    from .trace import traced
    from .unadmitted import Unadmitted, find_unadmitted
    from .worker import Worker

__all__ = [
    "BUNDLED",
    "Backup",
    "Campaign",
    "Domain",
    "Export",
    "Increments",
    "MasteredService",
    "Prober",
    "ProfileReport",
    "Pruned",
    "Rescue",
    "Service",
    "Settings",
    "Snapshot",
    "Solved",
    "Source",
    "Unadmitted",
    "What",
    "Worker",
    "back_up",
    "check",
    "collected_signals",
    "complain",
    "default_toml",
    "export_inputs",
    "exposed",
    "find_unadmitted",
    "leave_if_unwinding",
    "load",
    "log_to_stderr",
    "look",
    "plain",
    "profile_report",
    "prune",
    "rescue",
    "run_demo",
    "run_until_signalled",
    "services",
    "size",
    "snapshot",
    "solve_scripts",
    "status_screen",
    "traced",
    "verify_profile",
    "versions",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "backup": ("Backup", "back_up"),
        "campaign": ("Campaign",),
        "config": ("Settings", "Source", "default_toml", "load"),
        "demo": ("run_demo",),
        "export": ("Export", "export_inputs"),
        "figures": ("size",),
        "increments": ("Increments",),
        "installed": ("BUNDLED", "versions"),
        "logs": ("complain", "log_to_stderr", "plain"),
        "masters": ("MasteredService",),
        "metrics": ("exposed",),
        "oneshot": ("Solved", "check", "solve_scripts"),
        "plate": ("services",),
        "probing": ("Prober",),
        "profiles": ("Domain", "ProfileReport", "profile_report", "verify_profile"),
        "pruning": ("Pruned", "What", "prune"),
        "salvage": ("Rescue", "rescue"),
        "service": ("Service",),
        "signals": ("collected_signals", "leave_if_unwinding", "run_until_signalled"),
        "screen": ("status_screen",),
        "status": ("Snapshot", "look", "snapshot"),
        "trace": ("traced",),
        "unadmitted": ("Unadmitted", "find_unadmitted"),
        "worker": ("Worker",),
    },
)
