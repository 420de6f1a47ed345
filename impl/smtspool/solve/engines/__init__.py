"""The engines, inside their helpers. Imported only by fork servers: the service never loads an engine."""

from importlib import import_module

from smtspool.errors import ConfigError

from ..bundled import ENGINES
from ..spec import EngineSpec
from .base import Engine, EngineDied, EngineError, Session, WantedSymbol

__all__ = ["Engine", "EngineDied", "EngineError", "Session", "WantedSymbol", "load_engine", "warm_up"]


def load_engine(spec: EngineSpec) -> Engine:
    """Import the engine. Each has its own module, so that a helper imports only one."""
    if spec.command is not None:
        from .external import External

        return External(spec)
    for bundled in ENGINES:
        if bundled.name == spec.name:
            module, _, factory = bundled.factory.partition(":")
            engine: Engine = getattr(import_module(f".{module}", __name__), factory)(spec)
            return engine
    raise ConfigError(f"no engine {spec.name!r} is bundled")


def warm_up(engine: Engine) -> None:
    """Let a bundled engine do before forks what it does only once: fill tables, caches and pages."""
    for incremental in (False, True):
        session = engine.open(incremental=incremental)
        session.load("(set-logic QF_BV)")
        if incremental:
            session.push()
        session.load("(declare-fun x () (_ BitVec 8))(assert (= (bvmul x x) #x51))")
        session.check(60_000)
        session.values([WantedSymbol("x", "(_ BitVec 8)")])
        session.close()
