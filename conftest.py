"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# How long an example takes says nothing about right and wrong: it depends on how busy the machine is.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
