"""The engines, inside their helpers. Imported only by fork servers: the service never loads an engine."""

from smtspool.errors import ConfigError

from ..spec import EngineSpec
from .base import Engine, EngineDied, EngineError, Session, Wanted

__all__ = ["Engine", "EngineDied", "EngineError", "Session", "Wanted", "load_engine", "warm_up"]


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


def warm_up(engine: Engine) -> None:
    """Let a bundled engine do before it is forked what it does once: pages, tables, interpreter caches."""
    for incremental in (False, True):
        session = engine.open(incremental=incremental)
        session.load("(set-logic QF_BV)")
        if incremental:
            session.push()
        session.load("(declare-fun x () (_ BitVec 8))(assert (= (bvmul x x) #x51))")
        session.check(60_000)
        session.values([Wanted("x", "(_ BitVec 8)")])
        session.close()
