"""Arguments that several commands share: the model with its options, and files for results."""

from __future__ import annotations

import argparse
from pathlib import Path

from pkd.catalog import Found, find, parse_options

__all__ = ["add_model", "find_model", "fraction", "positive", "seed", "writable"]


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL --option key=value --horizon H."""
    parser.add_argument("words", nargs="?", metavar="MODEL", help="a registered name, module:object, an .npz file, or a Gymnasium id")
    parser.add_argument("--model", help=argparse.SUPPRESS)  # how an experiment file names it
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="an option of the model; may be repeated")
    parser.add_argument("--horizon", type=positive, metavar="H", help="actions per episode")
    parser.add_argument("--config", metavar="FILE", help="read flags from a TOML file; flags that are typed go before it")


def find_model(args: argparse.Namespace) -> Found:
    """The model that the arguments name."""
    from pkd.model import ModelError

    word = args.words or args.model
    if word is None:
        raise ModelError("no model was named; expected a registered name, module:object, an .npz file, or a Gymnasium id")
    return find(word, parse_options(args.option), args.horizon)


def positive(text: str) -> int:
    """A whole number of at least 1; 1e6 and 1_000_000 are read too."""
    try:
        number = float(text)
    except ValueError:
        number = 0.5
    if number != int(number) or number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(number)


def seed(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, found {text!r}")
    return int(text)


def fraction(text: str) -> float:
    """A number between 0 and 1, both left out."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, found {text!r}")
    return number


def writable(text: str) -> Path:
    """A file to be written; its folder must exist, because a long run should not fail at its end."""
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: expected a file in a folder that exists")
    return path
