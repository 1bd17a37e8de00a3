"""What all tests share: the hypothesis profile.

No deadline, because the first example of a test may compile kernels. The same examples every time,
so that a failure can be repeated.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "pkd",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pkd")
