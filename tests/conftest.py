"""What all tests share: how much hypothesis tries, by the environment variable HYPOTHESIS_PROFILE.

`ci`, the default, always tries the same few examples. `deep` tries many, and others every time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Programs take many draws, which is fine here.
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

settings.register_profile(
    "ci",
    max_examples=200,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=SLOW_DRAWS,
)
settings.register_profile(
    "deep", max_examples=5000, deadline=None, print_blob=True, suppress_health_check=SLOW_DRAWS
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
