"""Experiment files: `pkd learn --config experiment.toml` reads flags from a file.

    model = "inventory"
    episodes = 10000
    optimism = "practical"

    [options]
    lead_time = 2

A key is the long name of a flag; `flag = true` is `--flag`, and `flag = false` is `--no-flag`. The
file is turned into words of the command line and put before those that were typed, so that it is
checked like them and they go before it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from pkd.model import ModelError

__all__ = ["insert_experiment_file", "list_flags"]


@attrs.frozen
class Origin:
    """Where words come from that the user did not type."""

    path: str
    flags: tuple[str, ...]  # such as --episodes

    def name(self, message: str) -> str:
        """A complaint of the parser, with the file where it is about one of the file's flags."""
        mine = any(re.search(rf"{re.escape(flag)}\b", message) for flag in self.flags)
        return f"{self.path}: {message}" if mine else message


def insert_experiment_file(words: list[str]) -> tuple[list[str], Origin | None]:
    """The words with `--config FILE` replaced by what the file says, and which these are."""
    for i, word in enumerate(words):
        if word == "--config" and i + 1 < len(words):
            path, rest = words[i + 1], words[:i] + words[i + 2 :]
            break
        if word.startswith("--config="):
            path, rest = word.removeprefix("--config="), words[:i] + words[i + 1 :]
            break
    else:
        return words, None
    flags = list(list_flags(path, _read(path)))
    origin = Origin(path, tuple(flag.partition("=")[0] for flag in flags))
    return [*rest[:1], *flags, *rest[1:]], origin


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ModelError(f"{path}: expected a TOML file: {problem}") from None


def list_flags(path: str, entries: dict[str, Any]) -> Iterator[str]:
    """The words of the command line that the keys of a table stand for."""
    for key, value in entries.items():
        if key == "options":
            if not isinstance(value, dict):
                raise ModelError(
                    f"{path}: options: expected a table of the model's options, found {value!r}"
                )
            for name, option in value.items():
                yield f"--option={name}={_read_option(option)}"
        elif isinstance(value, dict):
            raise ModelError(f"{path}: [{key}]: the only table is [options]")
        elif value is True:
            yield f"--{key}"
        elif value is False:
            yield f"--no-{key}"
        else:
            yield f"--{key}={value}"


def _read_option(value: Any) -> str:
    return repr(tuple(value)) if isinstance(value, list) else str(value)
