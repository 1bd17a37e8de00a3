"""`Missing`: observations that go missing, and come back at the end or never.

The transformer is the core's own, because it delays nothing. It stands here beside `KnownDelay`,
with which it can be combined: a gap is a delay that grows by one step at a time and ends at once.
"""

from __future__ import annotations

from pkd import Missing

__all__ = ["Missing"]
