"""Conformance of cancellation: models/ and code, held together."""
