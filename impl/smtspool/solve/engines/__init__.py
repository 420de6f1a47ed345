"""The engines, inside their helpers. Imported only by fork servers: the service never loads an engine."""

from smtspool.errors import ConfigError

from ..spec import EngineSpec
from .base import Engine, EngineError, Session, Wanted, default

__all__ = ["Engine", "EngineError", "Session", "Wanted", "default", "load_engine"]


def load_engine(spec: EngineSpec) -> Engine:
    """Import the engine. Each lives in its own module so that a helper carries one."""
    if spec.command is not None:
        from .external import External

        return External(spec)
    if spec.name == "bitwuzla":
        from .bitwuzla_wheel import BitwuzlaEngine

        return BitwuzlaEngine(spec)
    if spec.name == "z3":
        from .z3_wheel import Z3Engine

        return Z3Engine(spec)
    if spec.name == "cvc5":
        from .cvc5_wheel import Cvc5Engine

        return Cvc5Engine(spec)
    raise ConfigError(f"no engine {spec.name!r} is bundled")
