"""The models tied to the running code: one generic engine and one adapter per protocol."""
