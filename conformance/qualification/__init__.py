"""Conformance of qualification: models/ and code, held together."""
