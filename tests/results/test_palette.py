"""One palette for all pictures, which readers with every kind of colour vision can tell apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from pkd.show.plots import COLOURS, choose_styles
from pkd_delay.demo.page import COLOURS as DEMO

# Machado, Oliveira and Fernandes 2009, full severity; acting on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def find_lab(colour: str, vision: str) -> np.ndarray:
    """CIE L*a*b* of a colour as somebody sees it, D65."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(VISION[vision]) @ linear, 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
              [0.0193339, 0.1191920, 0.9503041]]  # fmt: skip
    ratio = np.array(to_xyz) @ linear / [0.95047, 1.0, 1.08883]
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def find_least(colours: list[str], vision: str) -> float:
    """The smallest distance (CIE 1976) of two colours."""
    seen = [find_lab(colour, vision) for colour in colours]
    return float(min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)))


@pytest.mark.parametrize("vision", VISION)
def test_the_colours_of_agents_can_be_told_apart(vision: str) -> None:
    """The old palette had two colours at a distance of 1.1 under deuteranopia."""
    assert find_least(list(COLOURS), vision) > 8


def test_the_default_colours_of_matplotlib_would_fail() -> None:
    tab = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"]
    assert find_least(tab, "deuteranopia") < 8


@pytest.mark.parametrize("vision", VISION)
def test_the_colours_of_the_demo_can_be_told_apart(vision: str) -> None:
    assert find_least(sorted(set(DEMO.values())), vision) > 8


def test_more_agents_than_colours_have_other_dashes() -> None:
    styles = choose_styles(map(str, range(20)))
    assert len({tuple(style.items()) for style in styles.values()}) == 20
