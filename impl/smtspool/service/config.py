"""Settings: defaults, then ``smtspool.toml``, then ``SMTSPOOL_*``, then flags; later wins.

:class:`Settings` is the single list of them. Its field comments become the commented defaults that
``smtspool init`` writes, its field types decide how a text is read, and :func:`load` remembers where
each value came from, which is what ``smtspool config`` prints.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from smtspool.errors import ConfigError
from smtspool.solve import BUNDLED, parse_engine

if TYPE_CHECKING:
    from .campaign import Campaign

__all__ = ["FILE_NAME", "Settings", "Source", "default_toml", "load", "toml_without"]

FILE_NAME = "smtspool.toml"
ENVIRONMENT_PREFIX = "SMTSPOOL_"
MAX_JOBS = 256
UINT64 = (1 << 64) - 1
# Flags whose name differs from that of their setting.
OPTIONS = {"engines": "--engine", "timeout_ms": "--timeout"}
# Longer whole numbers are out of every setting's range, and may be too long for a float or to be printed.
MAX_BITS = 1000
# Read by the test suite, not settings of the service.
NOT_SETTINGS = frozenset({"SMTSPOOL_CLIENTS", "SMTSPOOL_CORPUS", "SMTSPOOL_MOUNTS"})


def setting(
    default: Any,
    comment: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    return field(default=default, metadata={"comment": comment, "low": low, "high": high, "choices": choices})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings with their defaults.

    >>> from dataclasses import replace
    >>> replace(Settings(), jobs=2, engines=("bitwuzla", "z3")).engines
    ('bitwuzla', 'z3')
    """

    jobs: int = setting(
        min(len(os.sched_getaffinity(0)), MAX_JOBS),
        "Queries solved at the same time; one worker each.",
        low=1,
        high=MAX_JOBS,
    )
    engines: tuple[str, ...] = setting(
        BUNDLED,
        "Engines of the portfolio: bundled names, or NAME=COMMAND for any SMT-LIB 2 solver.",
    )
    hedge: str = setting(
        "learnt",
        "Who starts a race and when others join: learnt from earlier answers, in fixed order, or together.",
        choices=("learnt", "fixed", "together"),
    )
    order: str = setting(
        "dfs", "Which pending query is claimed first.", choices=("dfs", "bfs", "priority", "fifo")
    )
    timeout_ms: int = setting(
        0,
        "Time limit for every query in milliseconds; 0 keeps the limit each query brings.",
        low=0,
        high=3_600_000,
    )
    confirm_sat: str = setting(
        "any",
        "Who confirms the model of a sat answer: any (the evaluator or another engine), or another engine.",
        choices=("any", "engine"),
    )
    confirm_unsat: bool = setting(False, "Ask a second engine before an unsat answer is committed.")
    lease_seconds: float = setting(
        60.0, "How long a claimed query stays ours without a heartbeat.", low=1, high=604_800
    )
    max_attempts: int = setting(
        20, "Leases a query may use up before it is parked as an error.", low=1, high=1_000_000
    )
    max_deaths: int = setting(
        3, "Helper processes a query may kill before it is parked as an error.", low=1, high=1_000
    )
    helper_memory_mib: int = setting(
        4096, "Address space of one engine process, in MiB.", low=256, high=1 << 20
    )
    batch: int = setting(256, "Spool files admitted per durable commit.", low=1, high=65_536)
    scan_budget_seconds: float = setting(
        5.0, "Longest stretch of one admission pass before others may take the lock.", low=0.01, high=3600
    )
    poll_seconds: float = setting(
        0.5, "How often to look at the spool and the queue when nothing wakes us.", low=0.01, high=3600
    )
    drain_seconds: float = setting(
        10.0, "How long running queries may finish after the first SIGINT or SIGTERM.", low=0, high=3600
    )
    publication_attempts: int = setting(
        8, "Tries to write a result under out/ before it becomes a dead letter.", low=1, high=1_000
    )
    store: str = setting(
        "",
        "Where this host keeps the database; empty is DIR/store. With masters on several hosts it must be "
        "a folder on each host's own disk, never one that two hosts see.",
    )
    qualify_seconds: float = setting(
        30.0, "How long masters may take to meet and prove the locks of the spool.", low=0.1, high=3600
    )
    renew_seconds: float = setting(
        60.0, "How often masters on several hosts prove the locks again; 0 is never.", low=0, high=86_400
    )
    renew_jitter: float = setting(
        0.1, "How much longer than that at most, as a fraction, so that fleets do not meet.", low=0, high=0.5
    )
    probe_ms: int = setting(
        100,
        "Longest a query is first tried in the values that its program was seen to compare; 0 is never.",
        low=0,
        high=60_000,
    )
    profile_window: int = setting(
        256, "Runs, the newest, from whose telemetry those values are learnt.", low=1, high=10_000
    )
    profile_interval_seconds: float = setting(
        1.0, "Least time between two generations of what was learnt.", low=0, high=3600
    )
    profile_min_observations: int = setting(
        8, "Observations before a place of a program has a domain.", low=1, high=UINT64
    )
    profile_max_distinct: int = setting(
        4, "Most values of a domain; more than 8 are never probed.", low=1, high=64
    )
    profile_min_queries: int = setting(
        8, "Probes of a domain before it may be found not worth probing.", low=1, high=UINT64
    )
    profile_min_validated_ppm: int = setting(
        125_000,
        "Answers per million probes below which it is not; 0 keeps every domain.",
        low=0,
        high=1_000_000,
    )
    profile_min_solver_us: int = setting(
        1_000, "Microseconds that its probes must have taken before it is dropped.", low=0, high=UINT64
    )
    metrics_port: int = setting(
        0,
        "Serve Prometheus metrics on this port of localhost, or the next free one; 0 is off.",
        low=0,
        high=65_535,
    )
    log_format: str = setting("text", "Log lines on stderr.", choices=("text", "json"))

    @classmethod
    def load(cls, campaign: Campaign | str | os.PathLike[str] | None = None) -> Settings:
        """The effective settings of a campaign, given as object or folder, or, without one, of none.

        They come from the defaults, the campaign's ``smtspool.toml`` and ``SMTSPOOL_*`` in the environment.
        Raises ConfigError.
        """
        if isinstance(campaign, str | os.PathLike):
            campaign = Path(campaign)
        settings, _ = load(campaign if campaign is None or isinstance(campaign, Path) else campaign.root)
        return settings

    def __post_init__(self) -> None:
        for name in _SPECS:
            _checked(name, getattr(self, name), "Settings")


@dataclass(frozen=True, slots=True)
class Source:
    """One effective setting; ``origin`` is ``default``, a file, a variable, or ``flag``."""

    name: str
    value: Any
    origin: str


def load(
    directory: Path | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> tuple[Settings, list[Source]]:
    """The effective settings of a campaign ``directory``, and where each came from.

    ``flags`` with the value None are absent. Raises ConfigError for an unknown key, a wrong type, or a
    value out of range, naming the place it stands in.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}

    def accept(name: str, value: Any, origin: str) -> None:
        values[name] = _checked(name, value, origin)
        origins[name] = origin

    for name, value in _read_toml(directory).items():
        accept(name, value, str(Path(directory or ".") / FILE_NAME))
    for variable, text in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in NOT_SETTINGS:
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
            accept(name, _from_text(name, text, variable), variable)
    for name, value in (flags or {}).items():
        if value is not None:
            accept(name, value, OPTIONS.get(name) or f"--{name.replace('_', '-')}")
            origins[name] = "flag"

    settings = replace(Settings(), **values)
    sources = [
        Source(f.name, getattr(settings, f.name), origins.get(f.name, "default")) for f in fields(settings)
    ]
    return settings, sources


def default_toml() -> str:
    """The text of a new ``smtspool.toml``: every setting, commented out at its default."""
    lines = ["# Settings of this campaign; SMTSPOOL_<NAME> in the environment and flags win over them.\n"]
    for spec in fields(Settings):
        lines.append(f"# {spec.metadata['comment']}")
        if spec.metadata["choices"]:
            lines.append(f"# One of: {', '.join(spec.metadata['choices'])}.")
        lines.append(f"#{spec.name} = {_toml_value(spec.default)}\n")
    return "\n".join(lines)


def toml_without(name: str, directory: Path) -> tuple[str, bool]:
    """The text of the settings file with the setting ``name`` as a comment, and whether it was set there.

    Raises ConfigError for a file that is no TOML, or where no single line sets ``name``.
    """
    values = _read_toml(directory)
    path = directory / FILE_NAME
    text = path.read_bytes().decode() if path.exists() else ""
    if name not in values:
        return text, False
    import tomllib

    del values[name]
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if name in line:
            left = "".join([*lines[:number], "# left out: ", *lines[number:]])
            with suppress(ValueError):
                if tomllib.loads(left) == values:
                    return left, True
    raise ConfigError(f"{path}: {name} must be set in one line, so that a copy can do without it")


def _read_toml(directory: Path | None) -> dict[str, Any]:
    if directory is None:
        return {}
    path = directory / FILE_NAME
    try:
        # Opened without blocking, since opening a FIFO would wait for a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{path} is not a regular file")
            import tomllib  # imported here, since it takes longer than most commands, and many read no file

            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except IsADirectoryError as error:
        raise ConfigError(f"{path} is not a regular file") from error
    except (ValueError, RecursionError) as error:  # broken TOML or UTF-8, or more digits than Python reads
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


_TYPES = get_type_hints(Settings)
_SPECS = {spec.name: spec for spec in fields(Settings)}


def _checked(name: str, value: Any, origin: str) -> Any:
    """``value`` in the type and range of setting ``name``, or a ConfigError that says what is wrong."""
    if name not in _SPECS:
        raise ConfigError(f"{origin}: unknown setting {name!r}; known are {', '.join(_SPECS)}")
    kind, rules = _TYPES[name], _SPECS[name].metadata
    if type(value) is int and value.bit_length() > MAX_BITS:
        raise ConfigError(f"{origin}: {name} cannot be a number of {value.bit_length()} bits")
    if kind is float and type(value) is int:
        value = float(value)
    if name == "engines" and isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return _engines(tuple(value), origin)
    if type(value) is not kind:
        wanted = _KIND_NAMES.get(kind, "a list of texts")
        raise ConfigError(f"{origin}: {name} must be {wanted}, not {value!r}")
    if rules["choices"] and value not in rules["choices"]:
        raise ConfigError(f"{origin}: {name} must be one of {', '.join(rules['choices'])}, not {value!r}")
    low, high = rules["low"], rules["high"]
    # `not <=` rather than `>`: it also refuses NaN.
    if low is not None and not low <= value <= high:
        raise ConfigError(f"{origin}: {name} must be between {low:g} and {high:g}, not {value!r}")
    return value


def _engines(texts: tuple[str, ...], origin: str) -> tuple[str, ...]:
    if not texts:
        raise ConfigError(f"{origin}: engines must name at least one engine")
    try:
        names = [parse_engine(text).name for text in texts]
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from error
    if len(set(names)) < len(names):
        raise ConfigError(f"{origin}: each engine needs a name of its own: {', '.join(names)}")
    return texts


_KIND_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _from_text(name: str, text: str, origin: str) -> Any:
    """Read an environment variable the way the type of its setting asks for."""
    kind = _TYPES.get(name, str)
    if kind is bool:
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        if text.lower() in ("0", "false", "no", "off"):
            return False
        raise ConfigError(f"{origin}: {name} must be true or false, not {text!r}")
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise ConfigError(f"{origin}: {name} must be {_KIND_NAMES[kind]}, not {text!r}") from None
    return text if kind is str else [part.strip() for part in text.split(",") if part.strip()]


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{part}"' for part in value) + "]"
    return f'"{value}"' if isinstance(value, str) else f"{value}"
