"""What all tests share: how much hypothesis tries, and on how many devices JAX runs.

How much is said by the environment variable HYPOTHESIS_PROFILE: `ci`, the default, always tries the
same few examples; `deep` tries many, and others every time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Read when JAX is first asked for devices: of the host it makes eight. LLVM, which comes after all
# that XLA does itself and takes most of the time, need not optimize programs that run once.
FLAGS = (
    "--xla_force_host_platform_device_count=8",
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
)
os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))

# Programs take many draws, which is fine here.
SLOW_DRAWS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]

settings.register_profile(
    "ci",
    max_examples=100,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=SLOW_DRAWS,
)
settings.register_profile(
    "deep", max_examples=5000, deadline=None, print_blob=True, suppress_health_check=SLOW_DRAWS
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
