"""What all tests share: the hypothesis profile and the markers.

No deadline, because the first example of a test may compile kernels; a fixed example order, because a red build must be red again.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("pkd", deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=False)
settings.load_profile("pkd")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: starts a fresh process with an empty cache of compiled code")
