"""The page of an experiment in a browser without a screen; skipped without chromium, playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import pkd
from pkd.report import read_folder, write_page

CHROMIUM = shutil.which("chromium")

playwright = pytest.importorskip("playwright.sync_api") if CHROMIUM else None
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(playwright is None, reason="needs chromium and playwright"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    base = tmp_path_factory.mktemp("page")
    models = ["two_state_chain --horizon 4 --delay 1", "riverswim --horizon 6"]
    agents = ["certified", "practical", "greedy"]
    pkd.experiment(models, agents, 40, seeds=3, folder=base / "out")
    page = base / "report.html"
    page.write_text(write_page(read_folder(base / "out")), encoding="utf-8")
    return page.as_uri()


@pytest.fixture(params=[400, 1100], ids=["telephone", "desk"])
def tab(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": request.param, "height": 800})
    opened.said, opened.asked = [], []
    opened.on("console", lambda message: opened.said.append(message.text))
    opened.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.on("request", lambda asked: opened.asked.append(asked.url))
    opened.goto(address)
    yield opened
    opened.close()


def test_nothing_is_complained_about_or_asked_for(tab: Any, address: str) -> None:
    assert tab.said == []
    assert tab.asked == [address]


def test_no_sideways_scrolling_is_needed(tab: Any) -> None:
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_every_figure_is_visible_when_its_part_is_opened(tab: Any) -> None:
    tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    figures = tab.locator("figure svg")
    assert figures.count() == 4  # regret and transitions of two models
    for i in range(4):
        box = figures.nth(i).bounding_box()
        assert figures.nth(i).is_visible()
        assert box["width"] > 300
        assert box["height"] > 100
        inked = (
            figures.nth(i)
            .locator("path, text")
            .evaluate_all("all => all.some(one => one.getBoundingClientRect().width > 0)")
        )
        assert inked


def test_letters_of_a_figure_can_be_read(tab: Any) -> None:
    sizes = (
        tab.locator("figure svg")
        .first.locator("text")
        .evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    )
    assert min(sizes) >= 8  # pixels


def test_paper_shows_what_a_screen_folds(tab: Any) -> None:
    folded = tab.locator("details table").first
    assert not folded.is_visible()
    tab.emulate_media(media="print")
    assert folded.evaluate("one => one.getBoundingClientRect().height") > 0
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
