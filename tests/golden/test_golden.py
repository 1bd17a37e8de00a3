"""A change of structure changes no number. Floats are compared to 1e-12, the rest exactly."""

from __future__ import annotations

import json

import pytest

from tests.golden import FILE, cases, measure

FROZEN = json.loads(FILE.read_text(encoding="utf-8"))
CASES = dict(cases())


def test_every_case_is_frozen() -> None:
    assert list(CASES) == list(FROZEN)


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_those_that_were_frozen(name: str) -> None:
    found, frozen = measure(CASES[name]), FROZEN[name]
    for key in ("fingerprint", "policy"):
        assert found.pop(key) == frozen.pop(key), key
    assert found.keys() == frozen.keys()
    for key, numbers in frozen.items():
        assert found[key] == pytest.approx(numbers, rel=1e-12, abs=1e-12, nan_ok=True), key
