"""Hypothesis profiles for every test of the project, and the `store` fixture of stores.py.

`ci` (the default): derandomized, without deadlines, so a run says the same twice. `long`: twenty times the examples,
random, for the tiers behind markers; choose it with `--hypothesis-profile=long`.
"""

from hypothesis import HealthCheck, settings

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile("ci", derandomize=True, deadline=None, database=None, suppress_health_check=_QUIET)
settings.register_profile("long", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=_QUIET)
settings.load_profile("ci")

pytest_plugins = ["stores"]
