"""Conformance of races: models/ and code, held together."""
