"""Conformance of spool admission: models/ and code, held together."""
