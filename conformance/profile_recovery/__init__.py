"""Conformance of profile recovery: models/ and code, held together."""
