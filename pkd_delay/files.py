"""Files of this package: the core's atomic writer and checked reader, imported in one place."""

from __future__ import annotations

from pkd import results

__all__ = ["neutralize", "read_npz", "write_npz", "write_text"]


read_npz, write_npz, write_text = results.read_npz, results.write_npz, results.write_text


def neutralize(cell: str) -> str:
    """A cell of a CSV file that no spreadsheet takes for a formula; numbers stay as they are.

    >>> [neutralize(cell) for cell in ("low", "-1 0", "-", "=1+2", "@sum")]
    ['low', '-1 0', '-', "'=1+2", "'@sum"]
    """
    harmless = all(word == "-" or _is_number(word) for word in cell.split())
    return cell if harmless or cell[0] not in "=+-@\t\r" else f"'{cell}"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
