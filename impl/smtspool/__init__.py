"""smtspool: a durable, crash-safe SMT query service for parallel symbolic execution."""

__version__ = "0.1.0"
