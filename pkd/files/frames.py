"""Results as pandas frames. pandas is imported when a frame is asked for: extra `pandas`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pkd.model import ModelError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["make_frame"]


def make_frame(rows: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A frame from columns, or from rows that are mappings.

    >>> make_frame([{"a": 1, "b": "x"}, {"a": 2}]).shape
    (2, 2)
    """
    try:
        import pandas as pd
    except ImportError:
        raise ModelError("to_frame() needs pandas: pip install 'pkd[pandas]'") from None
    return pd.DataFrame(rows if isinstance(rows, Mapping) else list(rows))
