"""The built site in a browser without a screen: pages load, formulas render, links work.

`docs/check_site.sh` builds the site and runs these. Without a built site, chromium or playwright
they are skipped.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import pytest

SITE = Path(os.environ.get("PKD_SITE", Path(__file__).parent.parent.parent / "docs" / "_build"))
CHROMIUM = shutil.which("chromium")
PAGES = (
    sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html")) if SITE.is_dir() else []
)
NARROW = 400  # pixels: a small telephone

playwright = pytest.importorskip("playwright.sync_api") if CHROMIUM and PAGES else None
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        playwright is None, reason="needs `make docs`, chromium and playwright: docs/check_site.sh"
    ),
]


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *message: Any) -> None:
        """A test prints nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served on this machine."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Silent, directory=str(SITE))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def visits(browser: Any, address: str) -> dict[str, dict[str, Any]]:
    """What was seen on every page, opened once on a narrow screen."""
    return {page: visit(browser, address, page) for page in PAGES}


def visit(browser: Any, address: str, page: str) -> dict[str, Any]:
    tab = browser.new_page(viewport={"width": NARROW, "height": 800})
    asked: list[str] = []
    failed: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on(
        "response",
        lambda answer: (
            failed.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None
        ),
    )
    tab.on("pageerror", lambda error: failed.append(str(error)))
    status = tab.goto(f"{address}/{page}", wait_until="load").status
    tab.wait_for_function("() => !window.MathJax || (MathJax.startup && MathJax.startup.promise)")
    tab.evaluate("() => window.MathJax ? MathJax.startup.promise.then(() => true) : true")
    seen = {
        "status": status,
        "failed": failed,
        "outside": [url for url in asked if not url.startswith((address, "data:", "blob:"))],
        "links": tab.eval_on_selector_all("a[href]", "links => links.map(link => link.href)"),
        "anchors": tab.eval_on_selector_all("[id]", "marked => marked.map(one => one.id)"),
        "formulas": tab.locator(".math").count(),
        "rendered": tab.locator(".math mjx-container svg").count(),
        "broken": tab.locator("mjx-merror").count(),
        "width": tab.evaluate("() => document.documentElement.scrollWidth"),
        "pictures": tab.eval_on_selector_all(
            "main img, article img",
            "all => all.filter(one => !one.naturalWidth).map(one => one.src)",
        ),
        "text": tab.evaluate("() => document.body.innerText.length"),
    }
    tab.close()
    return seen


def test_every_page_loads_without_an_error(visits: dict[str, dict[str, Any]]) -> None:
    assert {
        page: seen["failed"] or seen["status"]
        for page, seen in visits.items()
        if seen["failed"] or seen["status"] != 200
    } == {}


def test_no_page_is_empty(visits: dict[str, dict[str, Any]]) -> None:
    assert [page for page, seen in visits.items() if seen["text"] < 100] == []


def test_every_formula_is_rendered(visits: dict[str, dict[str, Any]]) -> None:
    assert sum(seen["formulas"] for seen in visits.values()) > 0
    assert {
        page: seen
        for page, seen in visits.items()
        if seen["rendered"] < seen["formulas"] or seen["broken"]
    } == {}


def test_every_picture_is_there(visits: dict[str, dict[str, Any]]) -> None:
    assert {page: seen["pictures"] for page, seen in visits.items() if seen["pictures"]} == {}


def test_nothing_outside_is_asked_for(visits: dict[str, dict[str, Any]]) -> None:
    assert {page: seen["outside"] for page, seen in visits.items() if seen["outside"]} == {}


def test_every_link_within_the_site_leads_to_a_page_and_a_place_on_it(
    visits: dict[str, dict[str, Any]], address: str
) -> None:
    broken = []
    for page, seen in visits.items():
        for link in seen["links"]:
            target, place = urldefrag(link)
            if not target.startswith(address):
                continue
            path = unquote(urlparse(target).path).lstrip("/") or "index.html"
            known = path in visits or (SITE / path).is_file()
            if not known or (
                place and path in visits and unquote(place) not in visits[path]["anchors"]
            ):
                broken.append(f"{page} -> {link.removeprefix(address)}")
    assert broken == []


def test_a_narrow_screen_needs_no_sideways_scrolling(visits: dict[str, dict[str, Any]]) -> None:
    assert {page: seen["width"] for page, seen in visits.items() if seen["width"] > NARROW} == {}
